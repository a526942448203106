"""Fields at every transition at once, in the order of the Dataset's episodes and then of time."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from trajlab.dataset.cells import Cells
from trajlab.dataset.flat import FlatBatch, checked, iter_flat, whole_source
from trajlab.dataset.flat_columns import place_blocks
from trajlab.dataset.lazy import as_slice, lazy_base
from trajlab.dataset.source import RowArray, Source


def read_flat(ds: xr.Dataset, fields: list[Any]) -> dict[Any, np.ndarray]:
    """Return fields at every transition, (M, ...), in the order of `ds`' episodes and then of time."""
    cells = Cells.of(ds)
    out = {name: np.empty((len(cells), *ds.variables[name].shape[2:]), ds.variables[name].dtype) for name in fields}
    read_into(out, ds, cells.offsets[:-1])
    return out


def read_into(out: Mapping[Any, np.ndarray], ds: xr.Dataset, first: np.ndarray) -> None:
    """Write the fields that `out` has to it, at every transition, each episode from the place that `first` has for it.

    Parameters
    ----------
    out : mapping from fields to arrays (place, ...)
    ds : Dataset
    first : array (episode,) of int
    """
    fields, cells = list(out), Cells.of(ds)
    if not fields or not len(cells):
        return
    found = rows_of_log(ds, fields, cells)
    if found is not None:
        source, chosen, arrays = found
        place_blocks(source, chosen, arrays, first, out)
        return
    for batch in iter_flat(ds, fields):
        places = _places(batch, cells, first, len(batch.values[fields[0]]))
        for name in fields:
            out[name][places] = batch.values[name]


def rows_of_log(
    ds: xr.Dataset, fields: Iterable[Any], cells: Cells
) -> tuple[Source, np.ndarray, dict[Hashable, RowArray]] | None:
    """Return the log whose rows all fields show whole, which of its episodes, and the fields' arrays; or None."""
    variables = {name: checked(ds, name) for name in fields}
    bases = {name: lazy_base(variable) for name, variable in variables.items()}
    arrays: dict[Hashable, RowArray] = {
        name: base[0] for name, base in bases.items() if base and isinstance(base[0], RowArray)
    }
    found = whole_source(variables, cells) if len(arrays) == len(variables) else None
    return None if found is None else (*found, arrays)


def _places(batch: FlatBatch, cells: Cells, first: np.ndarray, size: int) -> np.ndarray | slice:
    """Return where a batch's transitions stand, `first` being the place of the first one of each episode."""
    if batch.start is not None and np.array_equal(first, cells.offsets[:-1]):
        return slice(batch.start, batch.start + size)
    return as_slice(batch.spread(first) + cells.steps_of(batch.time))
