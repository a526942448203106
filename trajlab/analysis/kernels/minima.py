"""Kernel: the smallest of values that share an index, where they mostly come in ascending order."""

import numpy as np

NEVER = np.iinfo(np.int64).max
"""Stands where no value came."""


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
