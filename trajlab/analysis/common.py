"""What all analyses share: which field is meant, how a result was made, and what is reported to the user."""

import functools
import importlib.metadata
from typing import Any

import numpy as np
import xarray as xr

from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import is_numeric, resolve_field
from trajlab.dataset.schema import validate
from trajlab.names import (
    COMPLETE,
    CUT,
    END_REASON,
    EPISODE,
    MADE_BY_ATTR,
    NUM_COMPLETE_ATTR,
    NUM_CUT_ATTR,
    NUM_EPISODES_ATTR,
    NUM_TRANSITIONS_ATTR,
    RECORDED_DTYPE_ATTR,
    VERSION_ATTR,
    units_name,
)
from trajlab.padding import is_discrete


def field_of(ds: xr.Dataset, name: str) -> str:
    """Return the field that `name` means, once the Dataset has what every analysis needs.

    Raises
    ------
    ValueError
        When `ds` is not of schema 1.
    KeyError
        When there is no such field.
    """
    validate(ds)
    return resolve_field(ds, name)


def require_numeric(variable: xr.Variable, name: str, what: str) -> None:
    """Raise TypeError when a field does not hold numbers; bools that `where` turned to objects pass."""
    if not is_numeric(variable):
        raise TypeError(f"{what}: {name!r} has dtype {variable.dtype}; expected bools, integers or real numbers")


def recorded_as_discrete(variable: xr.Variable) -> bool:
    """Say whether a field was recorded as integers, bools or text, whatever `where` has made of it since."""
    if variable.dtype.kind in "UTS" or (variable.dtype.kind == "O" and RECORDED_DTYPE_ATTR not in variable.attrs):
        return True
    return is_discrete(variable.attrs.get(RECORDED_DTYPE_ATTR, variable.dtype))


def made_by(ds: xr.Dataset, function: str, field: str) -> dict[str, Any]:
    """Return the attributes that say how a result was made: text and whole numbers only."""
    return {
        MADE_BY_ATTR: f"trajlab.{function}",
        VERSION_ATTR: _version(),
        "field": field,
        NUM_EPISODES_ATTR: int(ds.sizes[EPISODE]),
        NUM_COMPLETE_ATTR: int(ds[COMPLETE].values.sum()),
        NUM_CUT_ATTR: int((ds[END_REASON].values == CUT).sum()),
        NUM_TRANSITIONS_ATTR: len(Cells.of(ds)),
    }


@functools.cache
def _version() -> str:
    return importlib.metadata.version("trajlab")


def title_of(ds: xr.Dataset, field: str) -> str:
    """Return what a field is called on an axis: its `long_name`, or else its name."""
    return str(ds[field].attrs.get("long_name", field))


def units_of(ds: xr.Dataset, field: str) -> dict[str, str]:
    """Return the attribute `units` of a field, or nothing where it has no single unit."""
    units = ds[field].attrs.get("units")
    return {} if units is None else {"units": str(units)}


def inner_dims(ds: xr.Dataset, field: str) -> tuple[str, ...]:
    """Return a field's own dims."""
    return tuple(str(dim) for dim in ds[field].dims[2:])


def inner_coords(ds: xr.Dataset, field: str) -> dict[str, xr.Variable]:
    """Return the coordinates of a field's own dims: labels of components and their units."""
    coords = {}
    for dim in inner_dims(ds, field):
        for name in (dim, units_name(dim)):
            if name in ds.coords and ds[name].dims == (dim,):
                coords[name] = ds[name].variable
    return coords


def as_rows(values: np.ndarray) -> np.ndarray:
    """Return values (M, ...) as rows (M, component); bools that `where` turned to objects become floats."""
    if values.dtype.kind == "O":
        values = values.astype(np.float64)
    return values.reshape(len(values), int(np.prod(values.shape[1:], dtype=np.int64)))
