"""Reading all transitions block by block, in the order in which they lie in the log."""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from trajlab.block.log import Block
from trajlab.dataset.lazy import lazy_base
from trajlab.dataset.source import FieldArray, IterationArray, PerTransition, Source
from trajlab.segment import Episodes

TILE_CELLS = 2**17
"""Cells read in one go: index arrays of that size stay in the processor's cache."""
LABELLED_TILES = 8
"""Tiles labelled at once: more would not stay in the cache when turned, fewer would look for episodes often."""
SPARSE = 4
"""Where fewer than one cell in so many is wanted, they are gathered one by one instead."""

Tile = tuple[dict[str, np.ndarray], Callable[[], np.ndarray], Callable[[], np.ndarray]]


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


def read_blocks(source: Source, chosen: np.ndarray, variables: Mapping[str, xr.Variable]) -> Iterator[Tile]:
    """Yield the values of some episodes' transitions tile by tile, and what locates them.

    Parameters
    ----------
    source, chosen
        As `common_source` returned them.
    variables : mapping of str to Variable

    Yields
    ------
    values : dict of str to array (M, ...)
        Perhaps views of the log; not to be written.
    find_episode, find_time : callable
        Return position along `chosen`, and time, both (M,).
    """
    table = source.episodes.take(chosen)
    rows = source.view.rows + 1
    begun, ended = (np.bincount(x, minlength=rows) for x in (table.start, table.start + table.length))
    per_row = np.cumsum(begun - ended)[:-1]
    width = source.view.layout.width
    step = max(1, TILE_CELLS // width)
    for block, first, end in source.view.spans():
        for start in range(first, end, step):
            stop = min(start + step, end)
            if (start - first) % (LABELLED_TILES * step) == 0:
                until = min(start + LABELLED_TILES * step, end)
                labels = functools.cache(
                    functools.partial(_labels, table.column, table.start, table.length, start, until, width)
                )
                begin = start
            if per_row[start:stop].any():
                is_full = bool((per_row[start:stop] == width).all())
                yield _tile(source, variables, block, labels, begin, start, stop, chosen, table, is_full)


def _tile(
    source: Source,
    variables: Mapping[str, xr.Variable],
    block: Block,
    labels: Callable[[], np.ndarray],
    first: int,
    start: int,
    stop: int,
    chosen: np.ndarray,
    table: Episodes,
    is_full: bool,
) -> Tile:
    """Return rows `start` to `stop` of the log, and what locates them."""
    width = source.view.layout.width
    here = functools.cache(lambda: np.ascontiguousarray(labels()[:, start - first : stop - first].T).ravel())
    valid = None if is_full else here() >= 0

    def wanted(cells: np.ndarray) -> np.ndarray:
        return cells if valid is None else cells[valid]

    @functools.cache
    def episode() -> np.ndarray:
        return wanted(here()).astype(np.intp)

    @functools.cache
    def time() -> np.ndarray:
        return wanted(np.repeat(np.arange(start, stop), width)) - table.start.take(episode())

    values = {}
    for name, variable in variables.items():
        base = lazy_base(variable)
        assert base is not None
        assert isinstance(base[0], PerTransition)
        if isinstance(base[0], FieldArray):
            rows = source.view.read_rows(base[0].field.name, block, start, stop)
            values[name] = wanted(rows.reshape(rows.shape[0] * rows.shape[1], *rows.shape[2:]))
        elif isinstance(base[0], IterationArray):
            values[name] = wanted(np.repeat(source.iteration_of(np.arange(start, stop)), width))
        else:
            whole = (slice(None),) * (variable.ndim - 2)
            values[name] = base[0].recorded(chosen[episode()], time(), whole)
    return values, episode, time


def _labels(column: np.ndarray, start: np.ndarray, length: np.ndarray, first: int, end: int, width: int) -> np.ndarray:
    """Return which episode each cell of a block belongs to, (width, rows) int32, -1 for none."""
    rows = end - first
    low, high = np.maximum(start, first) - first, np.minimum(start + length, end) - first
    which = np.flatnonzero(low < high)
    begin = column[which] * rows + low[which]
    order = np.argsort(begin)
    which, begin = which[order], begin[order]
    finish = begin + (high - low)[which]
    gaps = np.append(begin, width * rows) - np.append(0, finish)
    names = np.full(2 * len(which) + 1, -1, np.int32)
    names[1::2] = which
    counts = np.empty(2 * len(which) + 1, np.int64)
    counts[0::2], counts[1::2] = gaps, finish - begin
    return np.repeat(names, counts).reshape(width, rows)
