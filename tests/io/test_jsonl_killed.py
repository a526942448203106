"""A program that is killed leaves what it has written, up to the last whole line."""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import trajlab as tl

WRITING = Path(__file__).with_name("jsonl_writing.py")
MOMENTS = 20


def check(path):
    """Assert that every episode is a beginning of what was written; return how many there are, and how many are cut."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ds = tl.read_jsonl(path).load()
    if not ds.sizes["episode"]:
        return 0, 0
    assert len(found) <= 1
    tl.validate(ds, deep=True)
    lengths, numbers = ds["length"].values, ds["obs"].values[:, 0, 0]
    whole = ds["end_reason"].values == "terminated"
    np.testing.assert_array_equal(lengths[whole], numbers[whole] % 10 + 1)
    assert (lengths <= numbers % 10 + 1).all()
    for number, length, obs in zip(numbers, lengths, ds["obs"].values, strict=True):
        np.testing.assert_array_equal(obs[:length, 0], number)
        np.testing.assert_array_equal(obs[:length, 1], np.arange(length))
    return len(whole), int((~whole).sum())


@pytest.mark.slow
def test_what_was_written_before_a_kill_is_read(tmp_path):
    rng = np.random.default_rng(0)
    ways = ["consumed"] * 2 + ["wrapped"] * (MOMENTS - 2)
    moments = [f"{way}:{rng.uniform(0, 0.3)}:{tmp_path / str(n)}" for n, way in enumerate(ways)]
    subprocess.run([sys.executable, WRITING, *moments], check=True, stderr=subprocess.DEVNULL, timeout=120)
    total = {"wrapped": 0, "consumed": 0}
    for number, way in enumerate(ways):
        episodes, cut = check(tmp_path / str(number))
        assert cut <= 1
        total[way] += episodes
    assert min(total.values()) > 10
