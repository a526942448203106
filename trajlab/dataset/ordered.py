"""Transitions batch by batch, episode after episode and step after step, and which of them follow each other."""

import itertools
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import xarray as xr

from trajlab.dataset.cells import Cells, CellSpan
from trajlab.dataset.flat import MAX_CELLS, FlatBatch, batch_of, iter_flat
from trajlab.dataset.flat_whole import read_flat, rows_of_log
from trajlab.names import EPISODE

MAX_HELD = 2**24
"""Transitions put in order at once; more are read by ranges of episodes, one after the other."""


def iter_ordered(ds: xr.Dataset, fields: Iterable[str]) -> Iterator[FlatBatch]:
    """Yield every transition as `iter_flat` does, but in the order of the Dataset's episodes and then of `time`.

    What lies in another order, as rows in a log do, is held in memory to put it in order, at most `MAX_HELD`
    transitions or one episode at once.

    Yields
    ------
    FlatBatch
        Each begins with the transition after the last one of the batch before: `start` says which it is.
    """
    fields = list(dict.fromkeys(fields))
    cells = Cells.of(ds)
    if not len(cells):
        return
    if rows_of_log(ds, fields, cells) is None:
        batches = iter_flat(ds, fields)
        first = next(batches)
        if first.start is not None:
            yield from itertools.chain([first], batches)
            return
    for begin, end in _ranges(cells.offsets, MAX_HELD):
        is_whole = (begin, end) == (0, len(cells.counts))
        values = read_flat(ds if is_whole else ds.isel({EPISODE: slice(begin, end)}), fields)
        offset = int(cells.offsets[begin])
        for start in range(offset, int(cells.offsets[end]), MAX_CELLS):
            stop = min(start + MAX_CELLS, int(cells.offsets[end]))
            span = cells.span(start, stop)
            part = {name: array[start - offset : stop - offset] for name, array in values.items()}
            yield batch_of(part, span)


def iter_whole(ds: xr.Dataset, fields: Iterable[str], most: int = MAX_CELLS) -> Iterator[tuple[FlatBatch, CellSpan]]:
    """Yield every transition in order as `iter_ordered` does, in batches of whole episodes, each with where it lies.

    A batch holds at most `most` transitions, or a single episode.
    """
    fields = list(dict.fromkeys(fields))
    cells = Cells.of(ds)
    held: list[Mapping[str, np.ndarray]] = []
    begin = 0
    for batch in iter_ordered(ds, fields):
        assert batch.start is not None
        stop = batch.start + len(batch.values[fields[0]])
        held.append(batch.values)
        is_last = stop == len(cells)
        if stop - begin < most and not is_last:
            continue
        first, last = np.searchsorted(cells.offsets, [begin, stop], side="right") - 1
        joined = {name: np.concatenate([values[name] for values in held]) for name in fields}
        edges, start = cells.offsets[first : last + 1], begin
        for low, high in _ranges(edges, most):
            if high == last - first and high - low > 1 and not is_last:
                break  # episodes of the next batch may join these
            span = cells.span(int(edges[low]), int(edges[high]))
            part = {name: rows[span.start - start : span.stop - start] for name, rows in joined.items()}
            yield batch_of(part, span), span
            begin = span.stop
        held = [{name: rows[begin - start :] for name, rows in joined.items()}]


def _ranges(offsets: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of episodes with at most so many transitions, or else a single one."""
    begin = 0
    while begin < len(offsets) - 1:
        end = max(int(np.searchsorted(offsets, offsets[begin] + most, side="right")) - 1, begin + 1)
        yield begin, end
        begin = end


def overlapping(batches: Iterable[FlatBatch], cells: Cells, rows: int = 1) -> Iterator[tuple[FlatBatch, int]]:
    """Put the last `rows` transitions before an ordered batch in front of it; yield also how many these are.

    So each sequence of `rows` + 1 neighbours is within a batch, and ends in its part that is not shared.
    """
    before: dict[str, np.ndarray] = {}
    for batch in batches:
        assert batch.start is not None
        shared = min(rows, batch.start)
        values = batch.values
        if shared:
            values = {name: np.concatenate([before[name], array]) for name, array in values.items()}
        size = len(next(iter(values.values())))
        yield batch_of(values, cells.span(batch.start - shared, batch.start - shared + size)), shared
        before = {name: array[max(size - rows, 0) :] for name, array in values.items()}


def last_places(batch: FlatBatch, cells: Cells, size: int) -> np.ndarray:
    """Return the places in an ordered batch that no next transition follows: ends of episodes, and steps left out.

    `size` is the number of transitions in the batch.
    """
    assert batch.start is not None
    first, last = np.searchsorted(cells.offsets, [batch.start, batch.start + size], side="right")
    ends = cells.offsets[first:last] - batch.start - 1
    ends = ends[np.diff(ends, prepend=-1) > 0]  # episodes without a transition in the Dataset end where others do
    gaps = np.diff(cells.labels) != 1
    if not gaps.any():
        return ends
    return np.union1d(ends, np.flatnonzero(np.append(gaps, True)[cells.steps_of(batch.time)]))
