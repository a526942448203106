"""Transitions without padding, batch by batch: what every reduction runs over."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from trajlab.dataset.cells import Cells, CellSpan
from trajlab.dataset.fields import component_count
from trajlab.dataset.flat_array import FlatArray
from trajlab.dataset.flat_blocks import Tile, common_source, read_blocks
from trajlab.dataset.flat_pieces import Piece, pieces_of
from trajlab.dataset.lazy import LazyArray, is_in_memory, lazy_base
from trajlab.dataset.ranges import padded_ranges, stored_chunk
from trajlab.dataset.source import Source
from trajlab.names import EPISODE, LENGTH, TIME

MAX_BYTES = 2**25
"""Bytes a batch may take, where one transition is not bigger."""
MAX_CELLS = 2**17
"""Transitions of a batch at most: index arrays of that size stay in the processor's cache."""

Reader = Callable[[CellSpan], np.ndarray]
"""Returns one field's values (M, ...) at a span of M transitions."""


@dataclasses.dataclass(frozen=True, eq=False)
class FlatBatch:
    """Some transitions of a Dataset, in an order that all fields share.

    Attributes
    ----------
    values : mapping of str to array (M, ...)
        The fields, each in the dtype in which the Dataset shows it.
    find_episode, find_time : callable
        Return `episode`, and `time`; each called when that one is first asked for.
    start : int or None
        Number of the first transition, all counted through episode after episode, where those of the batch follow
        each other in this order; None where they may not.
    tile : Tile or None
        Where they lie in a log, if they do: much is found there without `episode` and `time`.
    find : callable or None
        Return `episode` and `time` at some places, which ascend, without those of all others.
    """

    values: Mapping[str, np.ndarray]
    find_episode: Callable[[], np.ndarray]
    find_time: Callable[[], np.ndarray]
    start: int | None = None
    tile: Tile | None = None
    find: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None

    @functools.cached_property
    def episode(self) -> np.ndarray:
        """Position along `episode` of each transition, (M,) intp."""
        return self.find_episode()

    @functools.cached_property
    def time(self) -> np.ndarray:
        """Label of `time` of each transition, (M,) int64."""
        return self.find_time()

    def spread(self, per_episode: np.ndarray) -> np.ndarray:
        """Return what an array of integers over `episode` has for each transition, (M,)."""
        return per_episode[self.episode] if self.tile is None else self.tile.spread(per_episode)

    def time_plus(self, per_episode: np.ndarray) -> np.ndarray:
        """Return `time` and what an array of integers over `episode` adds to it, (M,) of int."""
        return self.time + self.spread(per_episode) if self.tile is None else self.tile.time_plus(per_episode)

    def reached(self, steps: np.ndarray) -> np.ndarray:
        """Return how many of `steps` (few, episode), ascending, are not after that of each transition, (M,) int32."""
        if self.tile is not None:
            return self.tile.reached(steps)
        return np.asarray(sum((self.time >= self.spread(step) for step in steps), np.zeros(len(self.time), np.int32)))

    def locate(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return `episode` and `time` of the transitions at some places, which ascend."""
        return (self.episode[places], self.time[places]) if self.find is None else self.find(places)


def batch_of(values: Mapping[str, np.ndarray], span: CellSpan) -> FlatBatch:
    """Return the batch of a span's transitions."""
    return FlatBatch(values, lambda: span.episode, lambda: span.time, span.start, find=span.locate)


def iter_flat(ds: xr.Dataset, fields: Iterable[str]) -> Iterator[FlatBatch]:
    """Yield every transition of a Dataset exactly once, in batches of at most `MAX_BYTES`.

    Padding is never part of a batch, and the cost follows the transitions, not the padded shape.

    Parameters
    ----------
    ds : Dataset
        Valid, also filtered, reordered, sliced in `time`, lazy or in memory.
    fields : iterable of str
        Variables with the dims `episode` and `time`, and others behind them.

    Yields
    ------
    FlatBatch
        None for a Dataset without transitions. The order of transitions is arbitrary, but that those of an episode
        come in the order of `time`.

    Raises
    ------
    ValueError
        When a field has no dim `episode` or `time`.

    Notes
    -----
    One transition, or one stored chunk of an array that is neither in memory nor read by the cell, is read whole
    even where it is bigger.

    Of three ways the first that all fields allow is taken: block by block from the log they were recorded in;
    cell by cell; or, for dask and file-backed arrays, as ranges of episodes without what lies past the
    longest. Fields that `concat` joined are read part by part, each in its own way.
    """
    fields = list(fields)
    variables = {name: checked(ds, name) for name in fields}
    cells = Cells.of(ds)
    if not len(cells):
        return iter(())
    parts = joined_parts(ds, fields)
    if parts is not None:
        return (in_whole(batch, episodes) for part, episodes in parts for batch in iter_flat(part, fields))
    batches = block_batches(variables, cells)
    if batches is not None:
        return batches
    readers = {name: _cell_reader(variable, cells) for name, variable in variables.items()}
    by_cell = {name: reader for name, reader in readers.items() if reader is not None}
    if len(by_cell) == len(variables):
        return _cell_batches(cells, by_cell, _cells_within(variables))
    return _range_batches(cells, variables)


def block_batches(variables: Mapping[str, xr.Variable], cells: Cells) -> Iterator[FlatBatch] | None:
    """Return the transitions block by block from the log, or None where that is not possible.

    It is possible when all fields are unsliced views of one log, and `time` is whole.
    """
    found = whole_source(variables, cells)
    if found is None:
        return None
    numbers = np.arange(len(found[1]))
    return (tile_batch(tile, numbers) for tile in read_blocks(*found, variables))


def tile_batch(tile: Tile, numbers: np.ndarray) -> FlatBatch:
    """Return the batch of a tile's cells; `numbers` are the positions of all episodes."""
    return FlatBatch(tile.values, lambda: tile.spread(numbers), tile.find_time, tile=tile, find=tile.locate)


def whole_source(variables: Mapping[str, xr.Variable], cells: Cells) -> tuple[Source, np.ndarray] | None:
    """Return the log that all fields show whole, and which of its episodes, or None."""
    found = common_source(variables)
    if found is None or cells.order is not None:
        return None
    source, chosen = found
    return found if np.array_equal(cells.counts, source.episodes.length[chosen]) else None


def log_tiles(ds: xr.Dataset, fields: Iterable[str], cells: Cells) -> tuple[Source, np.ndarray, Iterator[Tile]] | None:
    """Return the log that all fields show whole, which of its episodes, and all of its cells as they lie; or None."""
    variables = {name: checked(ds, name) for name in fields}
    found = whole_source(variables, cells)
    return None if found is None else (*found, read_blocks(*found, variables, every_cell=True))


Part = tuple[xr.Dataset, np.ndarray]
"""What one part of joined fields gives, and where its episodes stand along `episode` of the whole."""


def joined_parts(ds: xr.Dataset, fields: Iterable[str]) -> Iterator[Part] | None:
    """Return the parts of fields that `concat` joined, each to be read in its own way; None where they are not."""
    pieces = pieces_of({name: checked(ds, name) for name in fields})
    return None if pieces is None else _parts(ds, pieces)


def _parts(ds: xr.Dataset, pieces: Iterable[Piece]) -> Iterator[Part]:
    length, time = ds.variables[LENGTH].values, ds.variables[TIME].values
    for piece in pieces:
        coords = {TIME: (TIME, time[piece.times]), LENGTH: (EPISODE, length[piece.episodes])}
        yield xr.Dataset(piece.variables, coords), piece.episodes


def in_whole(batch: FlatBatch, episodes: np.ndarray) -> FlatBatch:
    """Return a part's batch with its places in the whole; `episodes` are where those of the part stand there."""
    return FlatBatch(batch.values, lambda: episodes[batch.episode], batch.find_time)


def checked(ds: xr.Dataset, name: str) -> xr.Variable:
    """Return a field, `episode` and `time` first; raise ValueError where it has no value for each transition."""
    variable = ds.variables[name]
    missing = [dim for dim in (EPISODE, TIME) if dim not in variable.dims]
    if missing:
        raise ValueError(
            f"{name!r} has dims {variable.dims}, not {' and '.join(map(repr, missing))}; "
            "expected a value for each transition, dims ('episode', 'time', ...)"
        )
    return variable.transpose(EPISODE, TIME, ...) if variable.dims[:2] != (EPISODE, TIME) else variable


def _cells_within(variables: Mapping[str, xr.Variable]) -> int:
    return int(np.clip(MAX_BYTES // max(_cell_bytes(variables), 1), 1, MAX_CELLS))


def _cell_bytes(variables: Mapping[str, xr.Variable]) -> int:
    """Return the bytes that one transition takes in all fields together."""
    return sum(v.dtype.itemsize * component_count(v) for v in variables.values())


def _cell_batches(cells: Cells, readers: Mapping[str, Reader], size: int) -> Iterator[FlatBatch]:
    """Yield batches of `size` transitions, episode after episode."""
    for start in range(0, len(cells), size):
        span = cells.span(start, min(start + size, len(cells)))
        yield batch_of({name: read(span) for name, read in readers.items()}, span)


def _cell_reader(variable: xr.Variable, cells: Cells) -> Reader | None:
    """Return what reads a variable by cells, or None where it is neither ours nor in memory."""
    lazy = lazy_base(variable)
    if lazy is not None and lazy[0].lead == 2:
        return _flat_reader(*lazy, cells) or _lazy_reader(*lazy)
    if is_in_memory(variable):
        return _memory_reader(variable.values)
    return None


def _memory_reader(values: np.ndarray) -> Reader:
    if not values.flags.c_contiguous:
        return lambda span: values[span.episode, span.position]
    width = values.shape[1]
    flat = values.reshape(values.shape[0] * width, *values.shape[2:])
    return lambda span: flat.take(span.flat(width), axis=0)


def _flat_reader(array: LazyArray, key: tuple[Any, ...], cells: Cells) -> Reader | None:
    """Return what reads values that already lie without padding, or None where they do not, or not all are wanted."""
    if not isinstance(array, FlatArray) or any(not isinstance(k, slice) or k != slice(None) for k in key):
        return None
    if not np.array_equal(array.length, cells.counts):
        return None
    values = array.values
    return lambda span: values[span.start : span.stop]


def _lazy_reader(array: LazyArray, key: tuple[Any, ...]) -> Reader:
    episodes, times = (
        None if isinstance(k, slice) and k == slice(None) else np.arange(size)[k]
        for k, size in zip(key[:2], array.shape[:2], strict=True)
    )

    def read(span: CellSpan) -> np.ndarray:
        episode = span.episode if episodes is None else episodes[span.episode]
        position = span.position if times is None else times[span.position]
        return array.read((episode, position), key[2:])

    return read


def _range_batches(cells: Cells, variables: Mapping[str, xr.Variable]) -> Iterator[FlatBatch]:
    """Yield ranges of episodes, read as far as the longest of them."""
    part = xr.Dataset(variables)
    step = max((stored_chunk(variable) for variable in variables.values()), default=1)
    most = max(MAX_BYTES // max(_cell_bytes(variables), 1), 1)
    for start, stop in padded_ranges(cells.counts, most, step):
        counts = cells.counts[start:stop]
        longest = int(counts.max(initial=0))
        if not longest:
            continue
        times = slice(0, longest) if cells.order is None else cells.order[:longest]
        loaded = part.isel({EPISODE: slice(start, stop), TIME: times}).load()
        valid = np.arange(longest) < counts[:, None]
        span = cells.span(int(cells.offsets[start]), int(cells.offsets[stop]))
        yield batch_of({str(name): v.values[valid] for name, v in loaded.variables.items()}, span)
