"""A kernel for the means of episodes over equal parts of them."""

import dataclasses
import functools
import itertools

import numpy as np


def mean_in_parts(rows: np.ndarray, missing: np.ndarray | None, length: np.ndarray, parts: int) -> np.ndarray:
    """Return the mean of each part of each episode, weighted by how far a row covers the part.

    Episodes of one length are cut alike: those that stand side by side are one product with a sparse matrix.

    Parameters
    ----------
    rows : array (M, component) of numbers
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
    overlaps = Overlaps.of(length[edges[:-1]] if len(length) else length, parts)
    start = 0
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for number, (begin, end) in enumerate(itertools.pairwise(edges)):
            steps = int(length[begin])
            stop = start + (end - begin) * steps
            columns = _by_step(rows[start:stop], steps, np.float64)
            absent = None if missing is None else _by_step(missing[start:stop], steps, np.bool_)
            means = overlaps.means(number, columns, absent)
            out[begin:end] = means.reshape(parts, end - begin, -1).swapaxes(0, 1)
            start = stop
    return out


def _by_step(rows: np.ndarray, steps: int, dtype: type[np.generic]) -> np.ndarray:
    """Return rows (episode * step, component) of episodes of one length as (step, episode * component), contiguous."""
    episodes = len(rows) // steps
    turned = rows.reshape(episodes, steps, -1).swapaxes(0, 1)
    return np.ascontiguousarray(turned, dtype).reshape(steps, episodes * rows.shape[1])


@dataclasses.dataclass(frozen=True, eq=False)
class Overlaps:
    """Which steps overlap with which equal parts of episodes of some lengths, and by how much.

    Attributes
    ----------
    parts : int
    row : array (overlap,) int32
        The steps of each part, one part after the other, length after length.
    starts : array (length * part + 1,) int32
        First overlap of each part, and the end.
    weight : array (overlap,) float64
        The overlap as a share of the part.

    Examples
    --------
    >>> found = Overlaps.of(np.array([3]), 2)
    >>> found.row, found.starts
    (array([0, 1, 1, 2], dtype=int32), array([0, 2, 4], dtype=int32))
    >>> found.weight
    array([0.66666667, 0.33333333, 0.33333333, 0.66666667])
    """

    parts: int
    row: np.ndarray
    starts: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, steps: np.ndarray, parts: int) -> "Overlaps":
        """Return those of episodes as long as `steps` (length,)."""
        ends = np.arange(parts + 1) * steps[:, np.newaxis]  # in units of which a step has `parts`, a part `steps`
        first, last = (ends[:, :-1] // parts).reshape(-1), ((ends[:, 1:] - 1) // parts).reshape(-1)
        count = last - first + 1
        starts = np.append(0, np.cumsum(count))
        row = np.arange(starts[-1]) + np.repeat(first - starts[:-1], count)
        begin, end = np.repeat(ends[:, :-1].reshape(-1), count), np.repeat(ends[:, 1:].reshape(-1), count)
        covered = np.minimum((row + 1) * parts, end) - np.maximum(row * parts, begin)
        weight = covered / np.repeat(np.repeat(steps, parts), count)
        return cls(parts, row.astype(np.int32), starts.astype(np.int32), weight)

    @functools.cached_property
    def _totals(self) -> np.ndarray:
        """Sums of the weights of each part: 1, but for rounding."""
        return np.add.reduceat(self.weight, self.starts[:-1])

    def means(self, number: int, columns: np.ndarray, missing: np.ndarray | None) -> np.ndarray:
        """Return the means (part, column) of columns (step, column) of episodes of the length at `number`."""
        from scipy import sparse

        own = slice(number * self.parts, (number + 1) * self.parts)
        starts = self.starts[own.start : own.stop + 1]
        within = slice(starts[0], starts[-1])
        data = self.weight[within], self.row[within], starts - starts[0]
        matrix = sparse.csr_matrix(data, shape=(self.parts, len(columns)))
        if missing is None:
            return (matrix @ columns) / self._totals[own, np.newaxis]
        return (matrix @ np.where(missing, 0.0, columns)) / (matrix @ (~missing).astype(np.float64))
