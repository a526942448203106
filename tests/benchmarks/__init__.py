"""Speed and memory, each as a ratio to a peer measured in the same run: ``python -m tests.benchmarks [names]``."""
