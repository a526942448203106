"""Whether the benchmarks still run; how fast is for the table to say, not for a test."""

import pytest

from benchmarks.process import fresh

RECORDING = [
    "record",
    "pending",
    "record_step",
    "add",
    "small_chunks",
    "ring",
    "loop",
    "streaming",
    "rivals",
    "gymnasium",
    "jsonl",
]
READING = ["job", "to_dataset", "statistics", "analyses", "rival_analyses", "scaling", "imports", "gpu"]


@pytest.mark.benchmark
@pytest.mark.parametrize("name", [*RECORDING, *READING])
def test_benchmark_runs_on_tiny_sizes(name):
    rows = fresh("__main__", name, "--here", "--quick")
    assert rows
    assert all(len(row) == 5 for row in rows)
