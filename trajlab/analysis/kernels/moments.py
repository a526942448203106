"""Kernels for means, deviations and quantiles of rows that carry an index, batch by batch, in float64."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

TILE = 2**19
"""Elements turned to float64 at once, so that they stay in the processor's cache."""


def _by_index(index: np.ndarray, size: int) -> tuple[np.ndarray | slice, np.ndarray, int]:
    """Return which of `size` places occur (all of them where that is cheap), and the index among those."""
    if size <= 4 * len(index):
        return slice(None), index, size
    places, among = np.unique(index, return_inverse=True)
    return places, among, len(places)


def sum_by_index(index: np.ndarray, rows: np.ndarray, size: int) -> np.ndarray:
    """Return the sums (size, D) of float64 rows (M, D) that share an index (M,).

    One product with a sparse matrix of ones: twice as fast as one `numpy.bincount` per component.

    >>> sum_by_index(np.array([0, 2, 0]), np.array([[1.0], [2.0], [3.0]]), 3)
    array([[4.],
           [0.],
           [2.]])
    """
    return _summer(index, size, rows.shape[1])(rows)


def _summer(index: np.ndarray, size: int, width: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return what adds up rows (M, width) that share an index, made once for all rows with this index."""
    if width == 1:
        return lambda rows: np.bincount(index, weights=rows[:, 0], minlength=size)[:, None]
    indicator = _indicator(index, size)
    return lambda rows: indicator @ rows


def _indicator(index: np.ndarray, size: int, dtype: type[np.generic] = np.float64) -> Any:
    """Return the sparse matrix (size, M) with a one at ``[index[m], m]``."""
    from scipy import sparse

    count = len(index)
    ones, ends = np.ones(count, dtype), np.arange(count + 1, dtype=np.int32)
    return sparse.csc_matrix((ones, index.astype(np.int32), ends), shape=(size, count))


class Moments:
    """Mean and population standard deviation (ddof 0) at each of `size` places, for each of `width` components.

    One pass over shifted data: deviations are from the mean of the first values met at each place, so that
    nothing cancels where values are large and vary little.

    References
    ----------
    Chan, Golub & LeVeque, "Algorithms for computing the sample variance", The American Statistician 37 (1983),
    section 3: shifted data.
    """

    def __init__(self, size: int, width: int) -> None:
        """Start with no values."""
        self.size, self.width = size, width
        self.shift = np.zeros((size, width))
        self.met = np.zeros(size, bool)
        self.sums = np.zeros((size, width))
        self.squares = np.zeros((size, width))

    def add(self, index: np.ndarray, rows: np.ndarray) -> None:
        """Take rows (M, width), each at the place that `index` (M,) says."""
        step = max(TILE // max(self.width, 1), 1)
        for start in range(0, len(index), step):
            self._add_tile(index[start : start + step], rows[start : start + step].astype(np.float64))

    def _add_tile(self, index: np.ndarray, rows: np.ndarray) -> None:
        places, among, size = _by_index(index, self.size)
        add_up = _summer(among, size, self.width)
        with np.errstate(invalid="ignore", over="ignore"):
            if len(index) and not self.met[index.min() : index.max() + 1].all():
                self._meet(index, rows)
            rows -= self.shift[places].take(among, axis=0)
            self.sums[places] += add_up(rows)
            rows *= rows
            self.squares[places] += add_up(rows)

    def _meet(self, index: np.ndarray, rows: np.ndarray) -> None:
        """Set the shift at places that have no value yet to the mean of these rows, or 0 where it is not finite."""
        new = np.flatnonzero(~self.met.take(index))
        places, among, size = _by_index(index[new], self.size)
        counts = np.bincount(among, minlength=size)[:, None]
        means = sum_by_index(among, rows[new], size) / np.maximum(counts, 1)
        self.shift[places] += np.where(np.isfinite(means), means, 0.0)  # at a place that was met before it is 0
        self.met[places] |= counts[:, 0] > 0

    def result(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and deviation (size, width), NaN where `counts` (size,), the rows taken, is 0."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            offset = self.sums / counts[:, None]
            variance = self.squares / counts[:, None] - offset**2
            return self.shift + offset, np.sqrt(np.maximum(variance, 0.0))


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
        places, among, size = _by_index(index, len(self._next))
        grouped = _indicator(among, size, np.int8).tocsr()  # a counting sort of the index
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

        Linear between the two nearest values, as `numpy.quantile`. The rows of each place are sorted by that.
        """
        counts = np.diff(self.starts)
        for first, last in _equal_runs(counts, TILE // max(self.rows.shape[1], 1)):
            rows = self.rows[self.starts[first] : self.starts[last]]
            _sort(rows.reshape(last - first, int(counts[first]), rows.shape[1]))
        there = np.flatnonzero(counts)
        out = np.full((len(quantiles), len(counts), self.rows.shape[1]), np.nan)
        out[:, there] = sorted_quantiles(self.rows, self.starts[there], counts[there] - 1, quantiles)
        return out


def _sort(rows: np.ndarray) -> None:
    """Sort rows (place, n, D) along `n`, in place."""
    if rows.dtype.itemsize == 1:
        rows[...] = np.sort(rows.astype(np.int16), axis=1)  # three times faster
    else:
        rows.sort(axis=1)


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
