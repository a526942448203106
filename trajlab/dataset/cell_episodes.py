"""Which episode each cell of a log belongs to, found row after row."""

import dataclasses
import functools

import numpy as np

from trajlab.segment import Episodes

WIDE = 128
"""From so many columns on it is faster to go down row by row than column by column."""


@dataclasses.dataclass(frozen=True, eq=False)
class CellEpisodes:
    """Finds the episodes of cells, by their places in the order in which the episodes begin.

    Attributes
    ----------
    order : array (episode,) of int or None
        Positions of the episodes in the order in which they begin; None where they stand in it.
    begin, end, column : array (episode,) of int
        First row of each, the row behind its last, and its column, in that order.
    width : int
        Columns of the log.
    """

    order: np.ndarray | None
    begin: np.ndarray
    end: np.ndarray
    column: np.ndarray
    width: int

    @classmethod
    def of(cls, table: Episodes, width: int) -> "CellEpisodes":
        """Return that of a table, in any order, of a log whose ranks are its rows."""
        order = None if (np.diff(table.start) >= 0).all() else np.argsort(table.start, kind="stable")
        table = table if order is None else table.take(order)
        return cls(order, table.start, table.start + table.length, table.column, width)

    def sorted(self, per_episode: np.ndarray) -> np.ndarray:
        """Return an array (episode,) in the order in which episodes begin."""
        return per_episode if self.order is None else per_episode[self.order]

    def places(self, start: int, stop: int) -> np.ndarray:
        """Return, (rows * width,) intp, where the episode of each cell of some rows stands in that order.

        A cell of no episode has the place of the last one before it in its column, or 0.
        """
        out, held, begun = self._starts(start, stop, np.int32)
        out[0, self.column[held]] = held
        out[self.begin[begun] - start, self.column[begun]] = np.arange(begun.start, begun.stop)
        return _down(np.maximum, out).reshape(-1).astype(np.intp)

    def are_held(self, start: int, stop: int) -> np.ndarray:
        """Return, (rows * width,) bool, which cells of some rows an episode holds."""
        out, held, begun = self._starts(start, stop, np.int8)
        ended = np.concatenate([held, np.arange(begun.start, begun.stop)])
        ended = ended[self.end[ended] < stop]
        out[0, self.column[held]] = 1
        out[self.begin[begun] - start, self.column[begun]] += 1
        out[self.end[ended] - start, self.column[ended]] -= 1
        return _down(np.add, out).reshape(-1).view(bool)

    def _starts(self, start: int, stop: int, dtype: type[np.generic]) -> tuple[np.ndarray, np.ndarray, slice]:
        """Return zeros (rows, width), which episodes hold cells on both sides of the first row, and which begin."""
        first = int(np.searchsorted(self._latest_end, start, side="right"))
        begun = slice(*np.searchsorted(self.begin, [start, stop]).tolist())
        held = first + np.flatnonzero(self.end[first : begun.start] > start)
        return np.zeros((stop - start, self.width), dtype), held, begun

    @functools.cached_property
    def _latest_end(self) -> np.ndarray:
        """The largest of `end` up to each episode: where it is not behind a row, none of these reaches the row."""
        return np.maximum.accumulate(self.end)


def _down(function: np.ufunc, cells: np.ndarray) -> np.ndarray:
    """Return what a function makes of all cells (rows, width) from the first row to each, perhaps in the same array."""
    if cells.shape[1] < WIDE:
        return function.accumulate(cells, axis=0, dtype=cells.dtype)
    for row in range(1, len(cells)):
        function(cells[row - 1], cells[row], out=cells[row])
    return cells
