"""Reading all transitions block by block, in the order in which they lie in the log."""

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from trajlab.block.block import Block
from trajlab.dataset.cell_episodes import CellEpisodes, by_column_first
from trajlab.dataset.lazy import lazy_base
from trajlab.dataset.source import FieldArray, PerTransition, RowArray, Source

TILE_CELLS = 2**17
"""Cells read in one go: index arrays of that size stay in the processor's cache."""
MAX_BYTES = 2**25
"""Bytes that some rows of one field may take where they are put in order."""
FEW_ROWS, MANY_ROWS = 8, 64
"""Rows turned to columns at once, where they are a multiple of `CACHE_STRIDE` apart, and elsewhere."""
CACHE_STRIDE = 2048
"""Bytes: what is a multiple of these apart competes for the same places of the processor's cache."""
SPARSE = 4
"""Where fewer than one cell in so many is wanted, they are gathered one by one instead."""


def by_identity(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that is computed once for each array; arrays are kept, so that none takes another's id."""
    found: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def remembered(array: np.ndarray) -> np.ndarray:
        if id(array) not in found:
            found[id(array)] = array, function(array)
        return found[id(array)][1]

    return remembered


def common_source(variables: Mapping[str, xr.Variable]) -> tuple[Source, np.ndarray] | None:
    """Return the source whose fields all variables show whole, and which of its episodes, or None.

    Fields that are read one row earlier than they stand, and logs with masked cells, are left to slower ways.
    """
    found: Source | None = None
    chosen = np.zeros(0, np.intp)
    for variable in variables.values():
        base = lazy_base(variable)
        array, key = base or (None, ())
        if not isinstance(array, PerTransition):
            return None
        episodes = _episodes_of(key[0], array.shape[0])
        is_whole = all(_is_whole(k, size) for k, size in zip(key[1:], array.shape[1:], strict=True))
        is_moved = isinstance(array, FieldArray) and array.field.moved
        if episodes is None or not is_whole or is_moved or not array.source.ranks.is_identity:
            return None
        if found is None:
            found, chosen = array.source, episodes
        elif array.source is not found or not np.array_equal(episodes, chosen):
            return None
    if found is None or np.bincount(chosen).max(initial=0) > 1:
        return None
    wanted = int(found.episodes.length[chosen].sum())
    if wanted * SPARSE < found.view.rows * found.view.layout.width:
        return None
    return found, chosen


def _is_whole(key: Any, size: int) -> bool:
    return isinstance(key, slice) and range(size)[key] == range(size)


def _episodes_of(key: Any, size: int) -> np.ndarray | None:
    if isinstance(key, (int, np.integer)):
        return None
    return np.arange(size)[key]


class Tile(NamedTuple):
    """Some rows of the log.

    Attributes
    ----------
    values : dict of str to array (M, ...)
        Perhaps views of the log; not to be written.
    spread : callable
        Return, (M,), what an array of integers (chosen episode,) has for the episode of each cell.
    find_time : callable
        Return time, (M,).
    time_plus : callable
        Return, (M,), time and what an array of integers (chosen episode,) has for the episode of each cell.
    reached : callable
        Return, (M,) int32, how many of steps (few, chosen episode), ascending, are not after each cell's.
    locate : callable
        Return the chosen episode, and time, (K,), at places (K,) that ascend and hold transitions.
    start, stop : int
        Which rows they are.
    absent : array (K,) of int
        Places among the M cells of those that are no transition, ascending.
    """

    values: dict[str, np.ndarray]
    spread: Callable[[np.ndarray], np.ndarray]
    find_time: Callable[[], np.ndarray]
    time_plus: Callable[[np.ndarray], np.ndarray]
    reached: Callable[[np.ndarray], np.ndarray]
    locate: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    start: int
    stop: int
    absent: np.ndarray


def read_blocks(
    source: Source, chosen: np.ndarray, variables: Mapping[str, xr.Variable], *, every_cell: bool = False
) -> Iterator[Tile]:
    """Yield the values of some episodes' transitions tile by tile, row after row, and what locates them.

    Parameters
    ----------
    source, chosen
        As `common_source` returned them.
    variables : mapping of str to Variable
    every_cell : bool
        Keep what is no transition as well, of whichever episode, so that a row follows after `width` places.
    """
    table = source.episodes.take(chosen)
    rows = source.view.rows + 1
    begun, ended = (np.bincount(x, minlength=rows) for x in (table.start, table.start + table.length))
    per_row = np.cumsum(begun - ended)[:-1]
    width = source.view.layout.width
    episodes = CellEpisodes.of(table, width)
    step = max(1, TILE_CELLS // width)
    for block, first, end in source.view.spans():
        for start in range(first, end, step):
            stop = min(start + step, end)
            if per_row[start:stop].any():
                is_full = bool((per_row[start:stop] == width).all())
                yield _tile(source, variables, block, episodes, start, stop, chosen, is_full, every_cell)


def _tile(
    source: Source,
    variables: Mapping[str, xr.Variable],
    block: Block,
    episodes: CellEpisodes,
    start: int,
    stop: int,
    chosen: np.ndarray,
    is_full: bool,
    every_cell: bool,
) -> Tile:
    """Return rows `start` to `stop` of the log, and what locates them."""
    held = None if is_full else episodes.are_held(start, stop)
    absent = np.flatnonzero(~held) if held is not None else np.zeros(0, np.intp)

    def wanted(cells: np.ndarray) -> np.ndarray:
        return cells if held is None or every_cell else cells[held]

    @by_identity
    def spread(per_episode: np.ndarray) -> np.ndarray:
        return wanted(episodes.spread(per_episode, start, stop))

    @by_identity
    def reached(steps: np.ndarray) -> np.ndarray:
        return wanted(episodes.reached(steps, start, stop)).astype(np.int32)

    def time_plus(per_episode: np.ndarray) -> np.ndarray:
        found = wanted(episodes.time_plus(per_episode, start, stop))
        if every_cell:
            found[absent] = 0
        return found

    @functools.cache
    def time() -> np.ndarray:
        return time_plus(np.zeros(len(chosen), np.int32)).astype(np.int64, copy=False)

    def locate(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        cells = places if held is None or every_cell else np.flatnonzero(held)[places]
        row, column = np.divmod(cells, episodes.width)
        return episodes.locate(row + start, column)

    values = {}
    for name, variable in variables.items():
        base = lazy_base(variable)
        assert base is not None
        assert isinstance(base[0], PerTransition)
        if isinstance(base[0], RowArray):
            rows = base[0].rows_between(block, start, stop)
            values[name] = wanted(rows.reshape(rows.shape[0] * rows.shape[1], *rows.shape[2:]))
        else:
            whole = (slice(None),) * (variable.ndim - 2)
            values[name] = base[0].recorded(spread(chosen), time(), whole)
    return Tile(values, spread, time, time_plus, reached, locate, start, stop, absent)


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
    episodes = CellEpisodes.of(source.episodes.take(chosen), width)
    cell_bytes = max(array.dtype.itemsize * int(np.prod(array.shape[2:])) for array in arrays.values())
    step = max(1, min(2 * TILE_CELLS, MAX_BYTES // max(cell_bytes, 1)) // width)
    for block, begin, end in source.view.spans():
        for start in range(begin, end, step):
            band = _Band(episodes, start, min(start + step, end))
            cells, places = band.places(first)
            for name, array in arrays.items() if cells is None or len(cells) else ():
                columns = by_column(array.rows_between(block, start, band.end))
                out[name][places] = columns if cells is None else columns[cells]


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

    def places(self, first: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | slice]:
        """Return which cells are transitions, column after column, and the place of each, `first` that of its episode.

        None for the cells where all of them are; a slice where each place follows that of the cell before.
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
        numbers = np.zeros(0, np.intp) if is_whole and is_range else np.arange(total)
        start = int(shift[0]) if total else 0
        places = slice(start, start + total) if is_range else numbers + np.repeat(shift, counts)
        return None if is_whole else numbers + np.repeat(begin - before, counts), places
