"""Kernels for quantiles of rows that carry an index, gathered batch by batch."""

import itertools
from collections.abc import Iterator

import numpy as np

from trajlab.analysis.kernels.moments import TILE, by_index, indicator

MANY = 2**14
"""From so many rows at a place on, a few of them are found faster than all are sorted."""


class Packer:
    """Gathers rows by their place, so that the rows of each place lie side by side.

    Attributes
    ----------
    rows : array (M, D)
        In the dtype given; complete once as many rows came as `counts` announced.
    starts : array (size + 1,) int64
        First row of each place, and the end.
    """

    def __init__(self, counts: np.ndarray, width: int, dtype: np.dtype) -> None:
        """Make room for `counts` (size,) rows at each place."""
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        self.rows = np.empty((int(self.starts[-1]), width), dtype)
        self._next = self.starts[:-1].copy()

    def add(self, index: np.ndarray, rows: np.ndarray) -> None:
        """Take rows (M, D), each at the place that `index` (M,) says."""
        places, among, size = by_index(index, len(self._next))
        grouped = indicator(among, size, np.int8).tocsr()  # a counting sort of the index
        counts = np.diff(grouped.indptr)
        shift = self._next[places] - grouped.indptr[:-1]
        target = np.repeat(shift, counts)
        target += np.arange(len(index))
        if self.rows.shape[1] == 1:
            self.rows[:, 0][target] = rows[:, 0].take(grouped.indices)
        else:
            self.rows[target] = rows.take(grouped.indices, axis=0)
        self._next[places] += counts

    def quantiles(self, quantiles: np.ndarray) -> np.ndarray:
        """Return quantiles (quantile, size, D) of the rows of each place, NaN where one is NaN or none is there.

        Linear between the two nearest values, as `numpy.quantile`. The rows of each place are put in order by that, or
        as far as it needs.
        """
        counts = np.diff(self.starts)
        for first, last in _equal_runs(counts, TILE // max(self.rows.shape[1], 1)):
            rows = self.rows[self.starts[first] : self.starts[last]]
            _sort(rows.reshape(last - first, int(counts[first]), rows.shape[1]), quantiles)
        there = np.flatnonzero(counts)
        out = np.full((len(quantiles), len(counts), self.rows.shape[1]), np.nan)
        out[:, there] = sorted_quantiles(self.rows, self.starts[there], counts[there] - 1, quantiles)
        return out


def _sort(rows: np.ndarray, quantiles: np.ndarray) -> None:
    """Sort rows (place, n, D) along `n`, in place, or at least what lies around quantiles, and the last."""
    n = rows.shape[1]
    if rows.dtype.itemsize == 1:
        rows[...] = np.sort(rows.astype(np.int16), axis=1)  # three times faster
    elif n < MANY or np.isnan(rows.min()):
        rows.sort(axis=1)
    else:
        lower = np.unique(np.floor(quantiles * (n - 1)).astype(np.intp))
        for place in rows:
            for values in place.T:
                select(values, lower)


def select(values: np.ndarray, lower: np.ndarray) -> None:
    """Put at the places `lower`, which ascend, at those after them and at the last what sorting would put there.

    In place. Of `values` (n,) none is NaN.

    >>> values = np.array([5, 3, 4, 1, 2, 0])
    >>> select(values, np.array([1]))
    >>> values[[1, 2, 5]]
    array([1, 2, 5])
    """
    _split(values, lower)
    for first, stop in itertools.pairwise([*lower.tolist(), len(values)]):
        after = values[first + 1 : stop]
        if len(after):
            _swap(after, 0, int(after.argmin()))
    behind = values[int(lower[-1]) + 1 :]
    if len(behind):
        _swap(behind, len(behind) - 1, int(behind.argmax()))


def _split(values: np.ndarray, places: np.ndarray) -> None:
    """Put at some places what sorting would put there, smaller values before and larger ones behind each."""
    if len(places):
        middle = len(places) // 2
        at = int(places[middle])
        values.partition(at)
        _split(values[:at], places[:middle])
        _split(values[at + 1 :], places[middle + 1 :] - (at + 1))


def _swap(values: np.ndarray, one: int, other: int) -> None:
    values[[one, other]] = values[[other, one]]


def _equal_runs(counts: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of places with equal counts, of at most `most` rows where that is more than one place."""
    edges = np.flatnonzero(np.diff(counts)) + 1
    for first, last in itertools.pairwise([0, *edges, len(counts)]):
        step = max(most // max(int(counts[first]), 1), 1) if last > first else 1
        for start in range(first, last, step):
            yield start, min(start + step, last)


def sorted_quantiles(rows: np.ndarray, starts: np.ndarray, last: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Return quantiles (quantile, place, D) of sorted rows (M, D), NaN where one is NaN.

    Those of a place stand from `starts` (place,) on, and `last` (place,) behind that is the last one.

    >>> rows = np.array([[1.0], [2.0], [4.0], [7.0], [-1.5e308], [1.5e308]])
    >>> sorted_quantiles(rows, np.array([0, 3]), np.array([2, 0]), np.array([0.0, 0.75]))[:, :, 0]
    array([[1., 7.],
           [3., 7.]])
    >>> sorted_quantiles(rows, np.array([4]), np.array([1]), np.array([0.5]))
    array([[[0.]]])
    """
    place = quantiles[:, np.newaxis] * last
    lower = np.floor(place).astype(np.intp)
    below = rows[starts + lower].astype(np.float64)
    above = rows[starts + np.minimum(lower + 1, last)].astype(np.float64)
    beyond = (place - lower)[:, :, np.newaxis]
    with np.errstate(invalid="ignore", over="ignore"):
        span = above - below
        out = np.where(below == above, below, below + span * beyond)
        if np.isinf(span).any():  # between finite values that are further apart than any float
            far = np.isinf(span) & np.isfinite(below) & np.isfinite(above)
            out = np.where(far, below * (1 - beyond) + above * beyond, out)
    out = np.where(beyond == 0, below, out)
    if rows.dtype.kind == "f":
        out[:, np.isnan(rows[starts + last])] = np.nan
    return out
