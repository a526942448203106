"""Reading all transitions block by block, in the order in which they lie in the log."""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from trajlab.block.block import Block
from trajlab.dataset.cell_episodes import CellEpisodes
from trajlab.dataset.lazy import as_slice, lazy_base
from trajlab.dataset.source import FieldArray, PerTransition, RowArray, Source

TILE_CELLS = 2**17
"""Cells read in one go: index arrays of that size stay in the processor's cache."""
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
    table = source.episodes.take(as_slice(chosen))
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
                yield _tile(variables, block, episodes, start, stop, chosen, is_full, every_cell)


def _tile(
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
        return episodes.locate_among(cells, start, stop)

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
