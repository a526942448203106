"""A kernel for the means of episodes over equal parts of them."""

import itertools

import numpy as np


def mean_in_parts(rows: np.ndarray, missing: np.ndarray | None, length: np.ndarray, parts: int) -> np.ndarray:
    """Return the mean of each part of each episode, weighted by how far a row covers the part.

    Episodes of one length are cut alike: those that stand side by side are one product with a sparse matrix.

    Parameters
    ----------
    rows : array (M, component) float64
        Of whole episodes, one behind the other.
    missing : array (M, component) bool or None
        What does not count.
    length : array (episode,) int64
        At least 1 each.
    parts : int

    Returns
    -------
    array (episode, part, component)
        NaN where all that a part has is missing.

    Examples
    --------
    >>> mean_in_parts(np.array([[3.0], [6.0], [9.0], [5.0]]), None, np.array([3, 1]), 2)[:, :, 0]
    array([[4., 8.],
           [5., 5.]])
    """
    out = np.empty((len(length), parts, rows.shape[1]))
    edges = [0, *(np.flatnonzero(np.diff(length)) + 1).tolist(), len(length)]
    start = 0
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for begin, end in itertools.pairwise(edges):
            steps = int(length[begin])
            stop = start + (end - begin) * steps
            columns = _by_step(rows[start:stop], steps)
            absent = None if missing is None else _by_step(missing[start:stop], steps)
            means = _mean_alike(columns, absent, steps, parts)
            out[begin:end] = means.reshape(parts, end - begin, -1).swapaxes(0, 1)
            start = stop
    return out


def _by_step(rows: np.ndarray, steps: int) -> np.ndarray:
    """Return rows (episode * step, component) of episodes of one length as (step, episode * component)."""
    episodes = len(rows) // steps
    return rows.reshape(episodes, steps, -1).swapaxes(0, 1).reshape(steps, episodes * rows.shape[1])


def _mean_alike(columns: np.ndarray, missing: np.ndarray | None, steps: int, parts: int) -> np.ndarray:
    """Return the means (part, column) of columns (step, column)."""
    from scipy import sparse

    row, starts, weight = overlaps_of(steps, parts)
    matrix = sparse.csr_matrix((weight, row.astype(np.int32), starts.astype(np.int32)), shape=(parts, steps))
    if missing is None:
        return (matrix @ columns) / np.add.reduceat(weight, starts[:-1])[:, np.newaxis]
    return (matrix @ np.where(missing, 0.0, columns)) / (matrix @ (~missing).astype(np.float64))


def overlaps_of(steps: int, parts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which steps overlap with which equal parts of an episode, and by how much.

    Returns
    -------
    row : array (overlap,)
        The steps of each part, one part after the other.
    starts : array (part + 1,)
        First overlap of each part, and the end.
    weight : array (overlap,) float64
        The overlap as a share of the part.

    Examples
    --------
    >>> overlaps_of(3, 2)
    (array([0, 1, 1, 2]), array([0, 2, 4]), array([0.66666667, 0.33333333, 0.33333333, 0.66666667]))
    """
    ends = np.arange(parts + 1) * steps  # in units of which a step has `parts`, and an episode ``steps * parts``
    first, last = ends[:-1] // parts, (ends[1:] - 1) // parts
    count = last - first + 1
    starts = np.append(0, np.cumsum(count))
    row = np.arange(starts[-1]) + np.repeat(first - starts[:-1], count)
    begin, end = np.repeat(ends[:-1], count), np.repeat(ends[1:], count)
    covered = np.minimum((row + 1) * parts, end) - np.maximum(row * parts, begin)
    return row, starts, covered / steps
