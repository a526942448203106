"""Quantiles of gathered rows: as NumPy's, sorted or only put in order where they are read."""

import numpy as np
import pytest

from trajlab.analysis.kernels import quantiles
from trajlab.analysis.kernels.quantiles import Packer, select

LEVELS = np.array([0.0, 0.1, 0.5, 0.9, 1.0])


@pytest.mark.parametrize("seed", range(20))
def test_few_are_put_where_sorting_puts_them(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 60))
    values = rng.integers(0, int(rng.integers(1, 100)), size).astype(rng.choice([np.float32, np.int64]))
    lower = np.unique(rng.integers(0, size, int(rng.integers(1, 5))))
    want = np.sort(values)
    select(values, lower)
    places = np.unique(np.minimum([*lower, *(lower + 1), size - 1], size - 1))
    np.testing.assert_array_equal(values[places], want[places])
    np.testing.assert_array_equal(np.sort(values), want)


@pytest.mark.parametrize("many", [1, 10**9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.uint8, bool])
@pytest.mark.parametrize("width", [1, 3])
def test_as_numpys(monkeypatch, many, dtype, width):
    monkeypatch.setattr(quantiles, "MANY", many)
    rng = np.random.default_rng(0)
    counts = np.array([40, 0, 7, 7, 1, 300])
    index = rng.permutation(np.repeat(np.arange(6), counts))
    rows = rng.integers(0, 50, (len(index), width)).astype(dtype)
    packer = Packer(counts, width, rows.dtype)
    for part in np.array_split(np.arange(len(index)), 3):
        packer.add(index[part], rows[part])
    found = packer.quantiles(LEVELS)
    for place in range(6):
        of = rows[index == place].astype(np.float64)
        want = np.quantile(of, LEVELS, axis=0) if len(of) else np.nan
        np.testing.assert_allclose(found[:, place], np.broadcast_to(want, found[:, place].shape), rtol=1e-12)


@pytest.mark.parametrize("many", [1, 10**9])
def test_a_nan_is_not_lost(monkeypatch, many):
    monkeypatch.setattr(quantiles, "MANY", many)
    packer = Packer(np.array([4, 3]), 1, np.dtype(np.float32))
    packer.add(np.array([0, 1, 0, 1, 0, 1, 0]), np.array([[1], [2], [np.nan], [4], [3], [6], [7]], np.float32))
    np.testing.assert_array_equal(packer.quantiles(np.array([0.0, 0.5]))[:, :, 0], [[np.nan, 2], [np.nan, 4]])
