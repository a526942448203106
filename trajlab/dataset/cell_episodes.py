"""What integers over episodes have for each cell of a log, found row after row."""

import dataclasses
import functools
import itertools

import numpy as np

from trajlab.dataset.cells import MANY_OF
from trajlab.segment import Episodes

WIDE = 128
"""From so many columns on it is faster to go down row by row than column by column."""


@dataclasses.dataclass(frozen=True, eq=False)
class CellEpisodes:
    """Finds what belongs to the episodes of cells, without an index of them.

    Only where an episode begins or ends something is written; sums from row to row tell it to all of its cells.

    Attributes
    ----------
    order : array (episode,) of int
        Positions of the episodes in the order in which they begin.
    begin, end, column : array (episode,) of int
        First row of each, the row behind its last, and its column, in that order.
    width : int
        Columns of the log.
    """

    order: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    column: np.ndarray
    width: int

    @classmethod
    def of(cls, table: Episodes, width: int) -> "CellEpisodes":
        """Return that of a table, in any order, of a log whose ranks are its rows."""
        order = np.argsort(table.start, kind="stable")
        begin = table.start[order]
        return cls(order, begin, begin + table.length[order], table.column[order], width)

    def spread(self, per_episode: np.ndarray, start: int, stop: int) -> np.ndarray:
        """Return, (rows * width,), what integers (episode,) have for the episode of each cell of some rows.

        A cell of no episode has what the last one before it in its column has, or zero.
        """
        assert per_episode.dtype.kind in "iu", "sums of others are not exact"
        return self._spread(per_episode, start, stop, 0)

    def time_plus(self, per_episode: np.ndarray, start: int, stop: int) -> np.ndarray:
        """Return, (rows * width,), the step of each cell of some rows, and what integers (episode,) add to it.

        In a cell of no episode it is any number.
        """
        wide = np.result_type(per_episode.dtype, np.int32 if stop < 2**31 else np.int64)
        return self._spread(per_episode.astype(wide, copy=False), start, stop, 1)

    def _spread(self, per_episode: np.ndarray, start: int, stop: int, slope: int) -> np.ndarray:
        """Return what cells have that begin with the number of their episode and add `slope` in each row."""
        held, begun = self.present(start, stop)
        before = self._before[begun]
        is_present = (before >= 0) & (self.end[before] > start)
        out = np.full((stop - start, self.width), slope, per_episode.dtype)
        out[0] = 0
        out[0, self.column[held]] = per_episode[self.order[held]] + slope * (start - self.begin[held])
        since = np.where(is_present, self.begin[before], start)
        changes = per_episode[self.order[begun]] - slope * np.maximum(self.begin[begun] - since - 1, 0)
        changes[is_present] -= per_episode[self.order[before[is_present]]]
        out[self.begin[begun] - start, self.column[begun]] = changes
        return _sums(out)

    def reached(self, steps: np.ndarray, start: int, stop: int) -> np.ndarray:
        """Return, (rows * width,), how many of steps (few, episode) are not after that of each cell of some rows.

        In a cell of no episode it is 0.
        """
        present = np.concatenate(self.present(start, stop))
        end, column = self.end[present], self.column[present]
        rows = np.clip(self.begin[present] + steps[:, self.order[present]], start, end)
        out = np.zeros((stop - start, self.width), np.int8 if len(steps) < 2**7 else np.int32)
        for row, change in [(rows, 1), (end, -len(steps))]:
            cells = (row - start) * self.width + column
            np.add.at(out.reshape(-1), cells[cells < out.size], out.dtype.type(change))
        return _sums(out)

    def are_held(self, start: int, stop: int) -> np.ndarray:
        """Return, (rows * width,) bool, which cells of some rows an episode holds."""
        return self.reached(np.zeros((1, len(self.order)), np.int64), start, stop).view(bool)

    def locate(self, row: np.ndarray, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the episodes of some cells that they hold, and the steps, by row of the log and column."""
        found = self._by_column[np.searchsorted(self._first_cells, column * self._rows + row, side="right") - 1]
        return self.order[found], row - self.begin[found]

    def locate_among(self, cells: np.ndarray, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the same of cells that are counted through from row `start` on, of the rows before `stop`."""
        row = start + cells // self.width
        if len(cells) * MANY_OF < (stop - start) * self.width:
            return self.locate(row, cells % self.width)
        found = self.spread(self._rank, start, stop)[cells]
        return self.order[found], row - self.begin[found]

    @functools.cached_property
    def _rank(self) -> np.ndarray:
        """Where each episode stands in the order in which they begin."""
        rank = np.empty(len(self.order), np.int32)
        rank[self.order] = np.arange(len(self.order))
        return rank

    def present(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which episodes hold cells on both sides of the first of some rows, and which begin in them."""
        first = int(np.searchsorted(self._latest_end, start, side="right"))
        begun, ended = np.searchsorted(self.begin, [start, stop])
        return first + np.flatnonzero(self.end[first:begun] > start), np.arange(begun, ended)

    @functools.cached_property
    def _latest_end(self) -> np.ndarray:
        """The largest of `end` up to each episode: where it is not behind a row, none of these reaches the row."""
        return np.maximum.accumulate(self.end)

    @functools.cached_property
    def _by_column(self) -> np.ndarray:
        """The episodes column after column, each from above."""
        return by_column_first(self.column, self.width)

    @functools.cached_property
    def _rows(self) -> int:
        return int(self.end.max(initial=0))

    @functools.cached_property
    def _first_cells(self) -> np.ndarray:
        """The first cell of each episode, counted column after column, ascending."""
        return (self.column * self._rows + self.begin)[self._by_column]

    @functools.cached_property
    def _before(self) -> np.ndarray:
        """The last episode before each one in its column, or -1."""
        order = self._by_column
        is_same = np.diff(self.column[order]) == 0
        out = np.full(len(order), -1)
        out[order[1:][is_same]] = order[:-1][is_same]
        return out


def by_column_first(column: np.ndarray, width: int) -> np.ndarray:
    """Return the places of columns below `width` in their order; of those in the same column each stays in its own."""
    return np.argsort(column.astype(np.min_scalar_type(width)), kind="stable")  # few bits sort faster


def _sums(cells: np.ndarray) -> np.ndarray:
    """Return the sums of cells (rows, width) from the first row to each, (rows * width,), perhaps in the same array."""
    if cells.shape[1] < WIDE:
        cells = np.add.accumulate(cells, axis=0, dtype=cells.dtype)
    else:
        for above, row in itertools.pairwise(cells):
            np.add(above, row, out=row)
    return cells.reshape(-1)
