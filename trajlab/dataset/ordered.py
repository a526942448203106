"""Transitions batch by batch, episode after episode and step after step."""

import itertools
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import xarray as xr

from trajlab.dataset.cells import Cells, CellSpan
from trajlab.dataset.flat import MAX_CELLS, FlatBatch, batch_of, iter_flat, read_flat
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
    batches = iter_flat(ds, fields)
    first = next(batches, None)
    if first is None:
        return
    if first.start is not None:
        yield from itertools.chain([first], batches)
        return
    cells = Cells.of(ds)
    for begin, end in _ranges(cells.offsets):
        is_whole = (begin, end) == (0, len(cells.counts))
        values = read_flat(ds if is_whole else ds.isel({EPISODE: slice(begin, end)}), fields)
        offset = int(cells.offsets[begin])
        for start in range(offset, int(cells.offsets[end]), MAX_CELLS):
            stop = min(start + MAX_CELLS, int(cells.offsets[end]))
            span = cells.span(start, stop)
            part = {name: array[start - offset : stop - offset] for name, array in values.items()}
            yield batch_of(part, span)


def iter_whole(ds: xr.Dataset, fields: Iterable[str]) -> Iterator[tuple[FlatBatch, CellSpan]]:
    """Yield every transition in order as `iter_ordered` does, in batches of whole episodes, each with where it lies."""
    fields = list(dict.fromkeys(fields))
    cells = Cells.of(ds)
    held: list[Mapping[str, np.ndarray]] = []
    begin = 0
    for batch in iter_ordered(ds, fields):
        assert batch.start is not None
        stop = batch.start + len(batch.values[fields[0]])
        end = int(cells.offsets[np.searchsorted(cells.offsets, stop, side="right") - 1])
        held.append(batch.values)
        if end > begin:
            joined = {name: np.concatenate([values[name] for values in held]) for name in fields}
            span = cells.span(begin, end)
            yield batch_of({name: rows[: end - begin] for name, rows in joined.items()}, span), span
            held = [{name: rows[end - begin :] for name, rows in joined.items()}]
            begin = end


def _ranges(offsets: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield ranges of episodes with at most `MAX_HELD` transitions, or else a single one."""
    begin = 0
    while begin < len(offsets) - 1:
        end = max(int(np.searchsorted(offsets, offsets[begin] + MAX_HELD, side="right")) - 1, begin + 1)
        yield begin, end
        begin = end
