"""What the recorded transitions say: kernels on plain arrays, and functions from a Dataset to labelled data."""
