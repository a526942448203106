"""Transitions without padding, batch by batch: what every reduction runs over."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from trajlab.dataset.blocks import common_source, read_blocks
from trajlab.dataset.fields import component_count
from trajlab.dataset.joined import Piece, pieces_of
from trajlab.dataset.lazy import LazyArray, is_in_memory, lazy_base
from trajlab.names import EPISODE, LENGTH, TIME

MAX_BYTES = 2**25
"""Bytes a batch may take by default, where one transition is not bigger."""
MAX_CELLS = 2**17
"""Transitions of a batch at most: index arrays of that size stay in the processor's cache."""

Reader = Callable[["Span"], np.ndarray]
"""Returns one field's values (M, ...) at a span of M transitions."""


@dataclasses.dataclass(frozen=True, eq=False)
class FlatBatch:
    """Some transitions of a Dataset, in an order that all fields share.

    Attributes
    ----------
    values : mapping of str to array (M, ...)
        The fields, each in the dtype in which the Dataset shows it.
    locate : callable
        Returns `episode` and `time`; called when one of them is first asked for.
    """

    values: Mapping[str, np.ndarray]
    locate: Callable[[], tuple[np.ndarray, np.ndarray]]

    @functools.cached_property
    def _located(self) -> tuple[np.ndarray, np.ndarray]:
        return self.locate()

    @property
    def episode(self) -> np.ndarray:
        """Position along `episode` of each transition, (M,) intp."""
        return self._located[0]

    @property
    def time(self) -> np.ndarray:
        """Label of `time` of each transition, (M,) int64."""
        return self._located[1]


def iter_flat(ds: xr.Dataset, fields: Iterable[str], *, max_bytes: int = MAX_BYTES) -> Iterator[FlatBatch]:
    """Yield every transition of a Dataset exactly once, in batches of bounded size.

    Padding is never part of a batch, and the cost follows the transitions, not the padded shape.

    Parameters
    ----------
    ds : Dataset
        Valid, also filtered, reordered, sliced in `time`, lazy or in memory.
    fields : iterable of str
        Variables with the dims `episode` and `time`, and others behind them.
    max_bytes : int
        What the values of a batch may take. One transition, or one stored chunk of an array that is neither
        in memory nor read by the cell, is read whole even where it is bigger.

    Yields
    ------
    FlatBatch
        None for a Dataset without transitions. The order of transitions is arbitrary.

    Raises
    ------
    ValueError
        When a field has no dim `episode` or `time`.

    Notes
    -----
    Of three ways the first that all fields allow is taken: block by block from the log they were recorded in;
    cell by cell; or, for dask and file-backed arrays, as ranges of episodes without what lies past the
    longest. Fields that `concat` joined are read part by part, each in its own way.
    """
    variables = {name: _checked(ds, name) for name in fields}
    cells = Cells.of(ds)
    if not len(cells):
        return iter(())
    pieces = pieces_of(variables)
    if pieces is not None:
        return _piece_batches(ds, pieces, max_bytes)
    batches = block_batches(variables, cells)
    if batches is not None:
        return batches
    readers = {name: _cell_reader(variable) for name, variable in variables.items()}
    by_cell = {name: reader for name, reader in readers.items() if reader is not None}
    if len(by_cell) == len(variables):
        return _cell_batches(cells, by_cell, _cells_within(variables, max_bytes))
    return _range_batches(cells, variables, max_bytes)


def block_batches(variables: Mapping[str, xr.Variable], cells: "Cells") -> Iterator[FlatBatch] | None:
    """Return the transitions block by block from the log, or None where that is not possible.

    It is possible when all fields are unsliced views of one log, and `time` is whole.
    """
    found = common_source(variables)
    if found is None:
        return None
    source, chosen = found
    if cells.order is not None or not np.array_equal(cells.counts, source.episodes.length[chosen]):
        return None
    return (FlatBatch(values, locate) for values, locate in read_blocks(source, chosen, variables))


def _piece_batches(ds: xr.Dataset, pieces: Iterable[Piece], max_bytes: int) -> Iterator[FlatBatch]:
    """Yield the batches of each part of joined fields, located in the whole."""
    length, time = ds[LENGTH].values, ds[TIME].values
    for piece in pieces:
        coords = {TIME: (TIME, time[piece.times]), LENGTH: (EPISODE, length[piece.episodes])}
        part = xr.Dataset(piece.variables, coords)
        for batch in iter_flat(part, piece.variables, max_bytes=max_bytes):
            yield FlatBatch(batch.values, functools.partial(_located_in, piece.episodes, batch.locate))


def _located_in(
    episodes: np.ndarray, locate: Callable[[], tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    episode, time = locate()
    return episodes[episode], time


def _checked(ds: xr.Dataset, name: str) -> xr.Variable:
    variable = ds[name].variable
    missing = [dim for dim in (EPISODE, TIME) if dim not in variable.dims]
    if missing:
        raise ValueError(
            f"{name!r} has dims {variable.dims}, not {' and '.join(map(repr, missing))}; "
            "expected a value for each transition, dims ('episode', 'time', ...)"
        )
    return variable.transpose(EPISODE, TIME, ...) if variable.dims[:2] != (EPISODE, TIME) else variable


def _cells_within(variables: Mapping[str, xr.Variable], max_bytes: int) -> int:
    return int(np.clip(max_bytes // max(_cell_bytes(variables), 1), 1, MAX_CELLS))


def _cell_bytes(variables: Mapping[str, xr.Variable]) -> int:
    """Return the bytes that one transition takes in all fields together."""
    return sum(v.dtype.itemsize * component_count(v) for v in variables.values())


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """Where the transitions of a Dataset lie: in each episode, those whose label is below its length.

    Attributes
    ----------
    counts : array (episode,) int64
        Number of transitions of each episode that lie within the Dataset.
    labels : array (time,) int64
        Labels of `time`, ascending.
    order : array (time,) int64 or None
        Positions of `labels` along `time`; None where they stand in order.
    """

    counts: np.ndarray
    labels: np.ndarray
    order: np.ndarray | None

    @classmethod
    def of(cls, ds: xr.Dataset) -> "Cells":
        """Find them from the coordinates `length` and `time`."""
        labels = ds[TIME].values.astype(np.int64)
        order = None if (np.diff(labels) > 0).all() else np.argsort(labels, kind="stable")
        labels = labels if order is None else labels[order]
        length = ds[LENGTH].values.astype(np.int64)
        if len(labels) and labels[-1] - labels[0] == len(labels) - 1:
            return cls(np.clip(length - labels[0], 0, len(labels)), labels, order)
        return cls(np.searchsorted(labels, length, side="left").astype(np.int64), labels, order)

    @functools.cached_property
    def offsets(self) -> np.ndarray:
        """Number of the first transition of each episode, all counted through, and their total, (episode + 1,)."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def positions(self, steps: np.ndarray) -> np.ndarray:
        """Return the positions along `time` of steps counted in label order."""
        return steps if self.order is None else self.order[steps]

    def span(self, start: int, stop: int) -> "Span":
        """Return transitions `start` to `stop`, counted through episode after episode."""
        first = int(np.searchsorted(self.offsets, start, side="right")) - 1
        last = int(np.searchsorted(self.offsets, stop, side="left"))
        counts = np.diff(np.clip(self.offsets[first : last + 1], start, stop))
        return Span(self, start, stop, np.arange(first, last), counts)


@dataclasses.dataclass(frozen=True, eq=False)
class Span:
    """Transitions `start` to `stop` of `cells`; `counts` of them in each of `episodes`."""

    cells: Cells
    start: int
    stop: int
    episodes: np.ndarray
    counts: np.ndarray

    def _spread(self, per_episode: np.ndarray) -> np.ndarray:
        return np.repeat(per_episode, self.counts)

    @functools.cached_property
    def episode(self) -> np.ndarray:
        """Position along `episode`, (M,)."""
        return self._spread(self.episodes)

    @functools.cached_property
    def step(self) -> np.ndarray:
        """Number of each transition in its episode, counted in label order, (M,)."""
        return np.arange(self.start, self.stop) - self._spread(self.cells.offsets[self.episodes])

    @functools.cached_property
    def position(self) -> np.ndarray:
        """Position along `time`, (M,)."""
        return self.cells.positions(self.step)

    def flat(self, width: int) -> np.ndarray:
        """Return ``episode * width + position``, (M,), without making either where that can be avoided."""
        if self.cells.order is not None:
            return self.episode * width + self.position
        shift = self.episodes * width - self.cells.offsets[self.episodes]
        return np.arange(self.start, self.stop) + self._spread(shift)

    def locate(self) -> tuple[np.ndarray, np.ndarray]:
        """Return position along `episode` and label of `time`."""
        return self.episode, self.cells.labels[self.step]


def _cell_batches(cells: Cells, readers: Mapping[str, Reader], size: int) -> Iterator[FlatBatch]:
    """Yield batches of `size` transitions, episode after episode."""
    for start in range(0, len(cells), size):
        span = cells.span(start, min(start + size, len(cells)))
        yield FlatBatch({name: read(span) for name, read in readers.items()}, span.locate)


def _cell_reader(variable: xr.Variable) -> Reader | None:
    """Return what reads a variable by cells, or None where it is neither ours nor in memory."""
    lazy = lazy_base(variable)
    if lazy is not None and lazy[0].lead == 2:
        return _lazy_reader(*lazy)
    if is_in_memory(variable):
        return _memory_reader(variable.values)
    return None


def _memory_reader(values: np.ndarray) -> Reader:
    if not values.flags.c_contiguous:
        return lambda span: values[span.episode, span.position]
    width = values.shape[1]
    flat = values.reshape(-1, *values.shape[2:])
    return lambda span: flat.take(span.flat(width), axis=0)


def _lazy_reader(array: LazyArray, key: tuple[Any, ...]) -> Reader:
    episodes, times = (
        None if isinstance(k, slice) and k == slice(None) else np.arange(size)[k]
        for k, size in zip(key[:2], array.shape[:2], strict=True)
    )

    def read(span: Span) -> np.ndarray:
        episode = span.episode if episodes is None else episodes[span.episode]
        position = span.position if times is None else times[span.position]
        return array.read((episode, position), key[2:])

    return read


def _range_batches(cells: Cells, variables: Mapping[str, xr.Variable], max_bytes: int) -> Iterator[FlatBatch]:
    """Yield ranges of episodes, read as far as the longest of them."""
    part = xr.Dataset(variables)
    step = max((_stored_chunk(variable) for variable in variables.values()), default=1)
    for start, stop in _ranges(cells.counts, _cell_bytes(variables), max_bytes, step):
        counts = cells.counts[start:stop]
        longest = int(counts.max(initial=0))
        if not longest:
            continue
        times = slice(0, longest) if cells.order is None else cells.order[:longest]
        loaded = part.isel({EPISODE: slice(start, stop), TIME: times}).load()
        valid = np.arange(longest) < counts[:, None]
        span = cells.span(int(cells.offsets[start]), int(cells.offsets[stop]))
        yield FlatBatch({str(name): v.values[valid] for name, v in loaded.variables.items()}, span.locate)


def _stored_chunk(variable: xr.Variable) -> int:
    """Return how many episodes one chunk of a dask or file-backed array holds, 1 where it has none."""
    if variable.chunks is not None:
        return max(variable.chunks[0], default=1)
    preferred = variable.encoding.get("preferred_chunks") or {}
    return max(int(preferred.get(EPISODE, 1)), 1)


def _ranges(counts: np.ndarray, cell_bytes: int, max_bytes: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of episodes that take at most `max_bytes` as a padded block, or else `step` episodes.

    They end at multiples of `step`, so that no chunk is read twice.
    """
    start = 0
    most = max(max_bytes // max(cell_bytes, 1), 1)
    while start < len(counts):
        ahead = counts[start : start + max(most // max(int(counts[start]), 1), 1)]
        block = np.maximum.accumulate(ahead) * np.arange(1, len(ahead) + 1)
        stop = start + int(np.searchsorted(block, most, side="right"))
        if stop < len(counts):
            stop = max(stop // step * step, min(start + step, len(counts)))
        yield start, stop
        start = stop
