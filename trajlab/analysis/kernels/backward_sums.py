"""Kernels that sum rows from the end of each episode on, discounted."""

import itertools

import numpy as np

TOGETHER = 2**13
"""Episodes summed side by side, so that the rows they stand at stay in the processor's cache."""
FEW = 32
"""Fewer episodes than this are summed one after the other."""
WIDE = 128
"""From so many numbers in a row of a log on, it is faster to go from row to row."""


def sum_backwards(rows: np.ndarray, offsets: np.ndarray, discount: float) -> None:
    """Add to each row (M, component) of float64 `discount` times the sum that follows it in its episode, in place.

    Every sum is made by the same two operations per step, so that it is the same to the last bit whatever episodes
    are summed beside it, and nothing of one episode touches another.

    Parameters
    ----------
    rows : array (M, component) float64
    offsets : array (episode + 1,) of int
        First row of each episode, and the end.
    discount : float

    Examples
    --------
    >>> rows = np.array([[1.0], [2.0], [4.0], [8.0]])
    >>> sum_backwards(rows, np.array([0, 3, 4]), 0.5)
    >>> rows[:, 0]
    array([3., 4., 4., 8.])
    """
    if discount == 0:  # 0 * inf would be NaN
        return
    counts = np.diff(offsets)
    longest_first = np.argsort(-counts, kind="stable")
    with np.errstate(invalid="ignore", over="ignore"):
        for start in range(0, len(counts), TOGETHER):
            which = longest_first[start : start + TOGETHER]
            _sum_together(rows, offsets[which], counts[which], discount)


def _sum_together(rows: np.ndarray, first: np.ndarray, counts: np.ndarray, discount: float) -> None:
    """Sum episodes, the longest first, side by side from their last rows on, and the few that are longest alone."""
    last = first + counts - 1
    taking_part = len(counts) - np.searchsorted(counts[::-1], np.arange(counts[0]), side="right")
    many = int(np.searchsorted(-taking_part, -FEW, side="right"))
    if many:
        sums = rows.take(last[: taking_part[0]], axis=0)
    for step in range(1, many):
        places = last[: taking_part[step]] - step
        sums = sums[: len(places)] * discount
        sums += rows.take(places, axis=0)
        rows[places] = sums
    for episode in range(taking_part[many] if many < len(taking_part) else 0):
        _sum_alone(rows[first[episode] : last[episode] + 1 - max(many - 1, 0)], discount)


def _sum_alone(rows: np.ndarray, discount: float) -> None:
    """Sum one episode whose last row holds its sum."""
    for column in rows.T:
        backwards = column[::-1].tolist()
        column[::-1] = list(itertools.accumulate(backwards, lambda total, reward: reward + discount * total))


def sum_rows_backwards(rows: np.ndarray, last_row: np.ndarray, column: np.ndarray, discount: float) -> None:
    """Add to each row (width, component) of float64 `discount` times the sum in the next row, in place.

    Where an episode ends nothing is added. The sums are those of `sum_backwards`, to the last bit.

    Parameters
    ----------
    rows : array (row, width, component) float64
    last_row, column : array (episode,) of int
        Where each episode ends.
    discount : float

    Examples
    --------
    >>> rows = np.array([[[1.0], [2.0]], [[4.0], [8.0]]])
    >>> sum_rows_backwards(rows, np.array([1, 1, 0]), np.array([0, 1, 1]), 0.5)
    >>> rows[:, :, 0]
    array([[3., 2.],
           [4., 8.]])
    """
    if discount == 0:  # 0 * inf would be NaN
        return
    order = np.argsort(last_row, kind="stable")
    column = column[order]
    edges = np.searchsorted(last_row[order], np.arange(len(rows) + 1)).tolist()
    following = np.zeros(rows.shape[1:])
    with np.errstate(invalid="ignore", over="ignore"):
        for at in range(len(rows) - 2, -1, -1):
            np.multiply(rows[at + 1], discount, out=following)
            following[column[edges[at] : edges[at + 1]]] = 0.0
            rows[at] += following
