"""Transitions with where the next one of their episode stands, in whatever order is cheapest to read."""

import dataclasses
import functools
from collections.abc import Iterable, Iterator

import numpy as np
import xarray as xr

from trajlab.dataset.cells import Cells
from trajlab.dataset.flat import FlatBatch, in_whole, joined_parts, log_tiles, tile_batch
from trajlab.dataset.flat_blocks import Tile
from trajlab.dataset.ordered import iter_ordered, last_places, overlapping
from trajlab.dataset.source import Source


@dataclasses.dataclass(frozen=True, eq=False)
class Successive:
    """Some transitions, of which many are followed by the next one of their episode in the same batch.

    Attributes
    ----------
    batch : FlatBatch
        Perhaps with places that are no transition: they hold the values of one, and are among `last`.
    ahead : int
        How many places after a transition the next one stands.
    last : array (K,) of int
        Places at which no transition stands, or one that the next of its episode does not follow, each once. Those
        of the last `ahead` need not be there, unless none follows this batch.
    absent : array (K,) of int
        Those of `last` at which no transition stands, which are the last of these.
    ended : array (K,) of int
        Position along `episode` of the transition at each other one of `last`.
    shared : int
        How many of the first places were in the batch before.
    """

    batch: FlatBatch
    ahead: int
    last: np.ndarray
    ended: np.ndarray
    absent: np.ndarray
    shared: int


def iter_successive(ds: xr.Dataset, fields: Iterable[str]) -> Iterator[Successive]:
    """Yield every transition, and every pair of neighbours in an episode in exactly one batch.

    Rows of a log are taken as they lie, where the next transition of an environment stands in the next row; all other
    forms are read in order. Neighbours are steps whose labels differ by one.
    """
    fields = list(dict.fromkeys(fields))
    cells = Cells.of(ds)
    if not len(cells):
        return
    parts = joined_parts(ds, fields)
    if parts is not None:
        for part, episodes in parts:
            for one in iter_successive(part, fields):
                yield dataclasses.replace(one, batch=in_whole(one.batch, episodes), ended=episodes[one.ended])
        return
    found = log_tiles(ds, fields, cells)
    yield from _in_order(ds, fields, cells) if found is None else _in_log(*found)


def _in_order(ds: xr.Dataset, fields: list[str], cells: Cells) -> Iterator[Successive]:
    """Yield ordered batches, each with the last transition of the one before in front."""
    for batch, shared in overlapping(iter_ordered(ds, fields), cells):
        assert batch.start is not None
        last = last_places(batch, cells, len(batch.values[fields[0]]))
        ended = np.searchsorted(cells.offsets, batch.start + last, side="right") - 1
        yield Successive(batch, 1, last, ended, np.zeros(0, np.intp), shared)


def _in_log(source: Source, chosen: np.ndarray, tiles: Iterator[Tile]) -> Iterator[Successive]:
    """Yield tiles of a log, each with the last row of the one before in front where they adjoin."""
    width = source.view.layout.width
    numbers = np.arange(len(chosen))
    table = source.episodes
    ends = (table.start[chosen] + table.length[chosen] - 1) * width + table.column[chosen]
    order = np.argsort(ends)
    ends = ends[order]
    before: Tile | None = None
    for tile in tiles:
        adjoins = before is not None and before.stop == tile.start
        joined = _with_row(before, tile, width) if before is not None and adjoins else tile
        low, high = np.searchsorted(ends, [joined.start * width, joined.stop * width])
        last = np.concatenate([ends[low:high] - joined.start * width, joined.absent])
        batch = tile_batch(joined._replace(values=_without_absent(joined)), numbers)
        yield Successive(batch, width, last, order[low:high], joined.absent, width if adjoins else 0)
        before = tile


def _with_row(before: Tile, tile: Tile, width: int) -> Tile:
    """Return a tile with the last row of another one in front."""
    row = (before.stop - before.start - 1) * width
    absent = before.absent[np.searchsorted(before.absent, row) :] - row
    return Tile(
        values={name: np.concatenate([before.values[name][row:], values]) for name, values in tile.values.items()},
        spread=lambda of_episode: np.concatenate([before.spread(of_episode)[row:], tile.spread(of_episode)]),
        find_time=lambda: np.concatenate([before.find_time()[row:], tile.find_time()]),
        time_plus=lambda of_episode: np.concatenate([before.time_plus(of_episode)[row:], tile.time_plus(of_episode)]),
        reached=lambda steps: np.concatenate([before.reached(steps)[row:], tile.reached(steps)]),
        locate=functools.partial(_located, before, tile, row, width),
        start=tile.start - 1,
        stop=tile.stop,
        absent=np.concatenate([absent, tile.absent + width]),
    )


def _located(before: Tile, tile: Tile, row: int, width: int, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return episodes and times at places, the first `width` of which are those of `before` from `row` on."""
    cut = np.searchsorted(places, width)
    parts = before.locate(places[:cut] + row), tile.locate(places[cut:] - width)
    episode, time = (np.concatenate(each) for each in zip(*parts, strict=True))
    return episode, time


def _without_absent(tile: Tile) -> dict[str, np.ndarray]:
    """Return the values of a tile, with those of a transition in place of what is none."""
    if not len(tile.absent):
        return tile.values
    size = len(next(iter(tile.values.values())))
    holes = np.flatnonzero(tile.absent != np.arange(len(tile.absent)))
    present = int(holes[0]) if len(holes) else len(tile.absent)
    assert present < size
    values = {name: rows.copy() for name, rows in tile.values.items()}
    for rows in values.values():
        rows[tile.absent] = rows[present]
    return values
