"""A Dataset in parts that fit into memory padded: ranges of episodes, of similar length where they may be moved."""

import functools
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import xarray as xr

from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import component_count, is_per_transition
from trajlab.dataset.flat_array import FlatWhenRead
from trajlab.dataset.flat_whole import read_flat, rows_of_log
from trajlab.dataset.lazy import as_slice, is_in_memory, lazy_variable
from trajlab.dataset.ranges import may_move, padded_ranges, stored_chunk
from trajlab.names import EPISODE, TIME

MAX_BYTES = 2**25
"""Bytes that all fields of a part may take, padded, where one episode takes no more."""
MAX_AT_ONCE = 2**28
"""Bytes that a field may have to be put in order as a whole; of a larger one each part is gathered by itself."""


def iter_parts(ds: xr.Dataset, *, few_fields: bool = False) -> Iterator[tuple[np.ndarray, xr.Dataset]]:
    """Yield every episode of a Dataset once, in parts no longer along `time` than their longest episode.

    Where only a `few_fields` of the parts will be read, each that lies in a log is read whole the first time, and held,
    unless it is larger than `MAX_AT_ONCE`.

    Yields
    ------
    episodes : array (part,)
        Their positions along `episode`.
    part : Dataset
        As lazy as `ds`.
    """
    cells = Cells.of(ds)
    fields = [variable for variable in ds.variables.values() if is_per_transition(variable)]
    can_move = may_move(fields)
    order = np.argsort(cells.counts, kind="stable") if can_move else np.arange(len(cells.counts))
    width = sum(variable.dtype.itemsize * component_count(variable) for variable in fields)
    step = 1 if can_move else max((stored_chunk(variable) for variable in fields), default=1)
    held = {key: field for key, field in ds.variables.items() if is_per_transition(field) and is_in_memory(field)}
    in_order = ds.drop_vars(list(held)).isel({EPISODE: as_slice(order)})  # of what is in memory it would be a copy
    at_once = _fields_at_once(in_order) if can_move and few_fields else {}
    for start, stop in padded_ranges(cells.counts[order], max(MAX_BYTES // max(width, 1), 1), step):
        episodes = order[start:stop]
        longest = int(cells.counts[episodes].max(initial=0))
        times = slice(0, longest) if cells.order is None else cells.order[:longest]
        part = in_order.isel({EPISODE: slice(start, stop), TIME: times})
        of_part = {name: variable[start:stop, :longest] for name, variable in at_once.items()}
        of_part |= {name: field.isel({EPISODE: as_slice(episodes), TIME: times}) for name, field in held.items()}
        coords = {name: of_part.pop(name) for name in list(of_part) if name in ds.coords}
        yield episodes, part.assign(of_part).assign_coords(coords)


def _fields_at_once(ds: xr.Dataset) -> dict[Hashable, xr.Variable]:
    """Return the fields of a log, each to be read whole when some of it is first read.

    Else each part would be gathered from all over the log, cell by cell, as it is of fields of more than `MAX_AT_ONCE`.
    """
    found: dict[Hashable, xr.Variable] = {}
    cells = Cells.of(ds)
    for name, variable in ds.variables.items():
        size = len(cells) * variable.dtype.itemsize * component_count(variable) if is_per_transition(variable) else 0
        if 0 < size <= MAX_AT_ONCE and rows_of_log(ds, [name], cells) is not None:
            array = FlatWhenRead(variable, cells.counts, functools.partial(_read, ds, name))
            found[name] = lazy_variable([str(dim) for dim in variable.dims], array, variable.attrs)
    return found


def _read(ds: xr.Dataset, name: Any) -> np.ndarray:
    return read_flat(ds, [name])[name]
