"""Kernels for means and deviations of rows that carry an index, batch by batch, in float64."""

from collections.abc import Callable
from typing import Any

import numpy as np

TILE = 2**19
"""Elements turned to float64 at once, so that they stay in the processor's cache."""


def by_index(index: np.ndarray, size: int) -> tuple[np.ndarray | slice, np.ndarray, int]:
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
    ones = indicator(index, size)
    return lambda rows: ones @ rows


def indicator(index: np.ndarray, size: int, dtype: type[np.generic] = np.float64) -> Any:
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
            self._add_tile(index[start : start + step], rows[start : start + step].astype(np.float64, copy=False))

    def _add_tile(self, index: np.ndarray, rows: np.ndarray) -> None:
        index = index.astype(np.intp, copy=False)  # what all below would turn it to, each by itself
        places, among, size = by_index(index, self.size)
        add_up = _summer(among, size, self.width)
        with np.errstate(invalid="ignore", over="ignore"):
            if len(index) and not self.met[index.min() : index.max() + 1].all():
                self._meet(index, rows)
            rows = rows - self.shift[places].take(among, axis=0)
            self.sums[places] += add_up(rows)
            rows *= rows
            self.squares[places] += add_up(rows)

    def _meet(self, index: np.ndarray, rows: np.ndarray) -> None:
        """Set the shift at places that have no value yet to the mean of these rows, or 0 where it is not finite."""
        new = np.flatnonzero(~self.met.take(index))
        places, among, size = by_index(index[new], self.size)
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
