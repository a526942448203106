"""Rows of a log turned to columns, in each of which the transitions of an episode stand behind each other."""

import dataclasses
from collections.abc import Hashable, Mapping

import numpy as np

from trajlab.block.block import Block
from trajlab.dataset.cell_episodes import CellEpisodes, by_column_first
from trajlab.dataset.lazy import as_slice
from trajlab.dataset.source import RowArray, Source

BAND_CELLS = 2**18
"""Cells put in order in one go: index arrays of that size stay in the processor's cache."""
MAX_BYTES = 2**25
"""Bytes that some rows of one field may take where they are put in order."""
FEW_ROWS, MANY_ROWS = 8, 64
"""Rows turned to columns at once, where they are a multiple of `CACHE_STRIDE` apart, and elsewhere."""
CACHE_STRIDE = 2048
"""Bytes: what is a multiple of these apart competes for the same places of the processor's cache."""


def place_blocks(
    source: Source,
    chosen: np.ndarray,
    arrays: Mapping[Hashable, RowArray],
    first: np.ndarray,
    out: Mapping[Hashable, np.ndarray],
) -> None:
    """Write the transitions of some episodes to `out`, each episode from the place that `first` has for it.

    Columns of the log are taken one after the other: in each the transitions of an episode stand as they will in `out`.
    """
    width = source.view.layout.width
    episodes = CellEpisodes.of(source.episodes.take(as_slice(chosen)), width)
    cell_bytes = max(array.dtype.itemsize * int(np.prod(array.shape[2:])) for array in arrays.values())
    step = max(1, min(BAND_CELLS, MAX_BYTES // max(cell_bytes, 1)) // width)
    spans = list(source.view.spans())
    numbers = np.arange(min(step, max(end - begin for _, begin, end in spans)) * width)
    for block, begin, end in spans:
        for start in range(begin, end, step):
            _Band(episodes, start, min(start + step, end)).place(block, arrays, first, out, numbers)


def by_column(rows: np.ndarray) -> np.ndarray:
    """Return rows (R, W, ...) column after column, (W * R, ...).

    Rows whose starts are a multiple of some KiB apart fall into the same few places of the cache, so that only a few at
    a time are turned: up to four times faster.

    >>> by_column(np.array([[1, 2, 3], [4, 5, 6]]))
    array([1, 4, 2, 5, 3, 6])
    """
    height, width = rows.shape[:2]
    out = np.empty((width, height, *rows.shape[2:]), rows.dtype)
    step = FEW_ROWS if rows.strides[0] % CACHE_STRIDE == 0 else MANY_ROWS
    step = height if width < FEW_ROWS else step
    for start in range(0, height, max(step, 1)):
        out[:, start : start + step] = rows[start : start + step].swapaxes(0, 1)
    return out.reshape(width * height, *rows.shape[2:])


@dataclasses.dataclass(frozen=True, eq=False)
class _Band:
    """Rows `first` to `end` of a log, and to which episode each cell belongs."""

    episodes: CellEpisodes
    first: int
    end: int

    def _runs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return which episodes have cells here, and the first and last of these, counted column after column."""
        episodes, rows = self.episodes, self.end - self.first
        which = np.concatenate(episodes.present(self.first, self.end))
        column = episodes.column[which]
        order = by_column_first(column, episodes.width)
        which, top = which[order], column[order] * rows - self.first
        low, high = np.maximum(episodes.begin[which], self.first), np.minimum(episodes.end[which], self.end)
        return which, top + low, top + high

    def place(
        self,
        block: Block,
        arrays: Mapping[Hashable, RowArray],
        first: np.ndarray,
        out: Mapping[Hashable, np.ndarray],
        numbers: np.ndarray,
    ) -> None:
        """Write the transitions in these rows, which lie in `block`, to `out`; see `places`."""
        cells, places = self.places(first, numbers)
        for name, array in arrays.items() if cells is None or len(cells) else ():
            columns = by_column(array.rows_between(block, self.first, self.end))
            out[name][places] = columns if cells is None else columns[cells]

    def places(self, first: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | slice]:
        """Return which cells are transitions, column after column, and the place of each, `first` that of its episode.

        None for the cells where all of them are; a slice where each place follows that of the cell before. `numbers`
        count from 0, at least to as many as there are cells.
        """
        episodes = self.episodes
        which, begin, finish = self._runs()
        counts = finish - begin
        before = np.cumsum(counts) - counts
        time = np.maximum(self.first - episodes.begin[which], 0)
        shift = first[episodes.order[which]] + time - before
        total = int(counts.sum())
        is_whole = total == (self.end - self.first) * episodes.width
        is_range = not np.diff(shift).any()
        start = int(shift[0]) if total else 0
        places = slice(start, start + total) if is_range else _counted_on(shift, counts, numbers)
        return None if is_whole else _counted_on(begin - before, counts, numbers), places


def _counted_on(shift: np.ndarray, counts: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return `numbers`, as many as `counts` (run,) are together, each with the `shift` (run,) of its run."""
    out = np.repeat(shift, counts)
    out += numbers[: len(out)]
    return out
