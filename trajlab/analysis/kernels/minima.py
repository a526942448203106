"""Kernels: the smallest of values that share an index, where they mostly come in ascending order, and first rows."""

import numpy as np

NEVER = np.iinfo(np.int64).max
"""Stands where no value came."""
MAX_NUMBER = 255
"""Rows are numbered in 8 bits."""


def lower_to(smallest: np.ndarray, index: np.ndarray, values: np.ndarray) -> None:
    """Set ``smallest[index[m]]`` to ``values[m]`` where that is smaller, in place.

    As `numpy.minimum.at`, but a few times faster where the values of each index ascend, as those of time do: of
    values assigned to one place the last one stays, so in reversed order the first. Where it is not the smallest,
    what is smaller is assigned again.

    >>> smallest = np.full(2, NEVER)
    >>> lower_to(smallest, np.array([0, 1, 0]), np.array([5, 7, 3]))
    >>> smallest
    array([3, 7])
    """
    lower = np.flatnonzero(smallest.take(index) > values)[::-1]
    while len(lower):
        index, values = index[lower], values[lower]
        smallest[index] = values
        lower = np.flatnonzero(smallest.take(index) > values)


def first_rows(holds: np.ndarray) -> np.ndarray:
    """Return the first row of (row, column) bools that is True in each column, (column,), -1 where none is.

    As `argmax` does, but all columns of a row at once: rows are numbered from behind in 8 bits, and the largest number
    of those that are True is the first one.

    >>> first_rows(np.array([[False, False, True], [False, True, True]]))
    array([-1,  1,  0])
    """
    out = np.full(holds.shape[1], -1)
    for start in range(0, len(holds), MAX_NUMBER):
        strip = holds[start : start + MAX_NUMBER].view(np.uint8)
        numbers = np.arange(len(strip), 0, -1, dtype=np.uint8)
        best = (strip * numbers[:, np.newaxis]).max(axis=0)
        out = np.where((best > 0) & (out < 0), start + len(strip) - best.astype(np.intp), out)
    return out
