"""Which fields are counted one by one, and their values as integers, bools or text."""

import numpy as np
import pandas as pd
import xarray as xr

from trajlab.analysis.common import as_rows
from trajlab.dataset.fields import as_text
from trajlab.dataset.flat import iter_flat
from trajlab.names import RECORDED_DTYPE_ATTR
from trajlab.padding import shown_as

MAX_DISTINCT = 1024
"""More values than this are not told apart where each has a row of its own, or a curve."""

_DTYPES = {"b": np.dtype(bool), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}


def discrete_kind(ds: xr.Dataset, name: str) -> str | None:
    """Return what the values of a field are counted as: "b", "i", "u" or "U" as in `numpy.dtype.kind`; None for bins.

    What is bools, integers or text now is discrete, whatever it was computed from (attributes outlive
    arithmetic). Floats that were recorded as integers or bools are where each of their values still is a
    whole number, as `where` leaves them; so are objects that hold text, or nothing but bools. Only floats
    and objects that may be so are read for it.
    """
    variable = ds.variables[name]
    kind = variable.dtype.kind
    if kind in "biu":
        return kind
    if kind in "UTS":
        return "U"
    recorded = variable.attrs.get(RECORDED_DTYPE_ATTR)
    shown = None if recorded is None else shown_as(recorded)
    was = None if shown is None else shown.kind
    if kind == "O":
        return _kind_of_objects(ds, name, was)
    return _kind_of_floats(ds, name, was) if kind == "f" and was in ("b", "i", "u") else None


def require_discrete(ds: xr.Dataset, name: str, what: str) -> str:
    """Return `discrete_kind` of a field; raise ValueError where it is continuous."""
    kind = discrete_kind(ds, name)
    if kind is None:
        raise ValueError(
            f"{what}: {name!r} is continuous ({ds.variables[name].dtype}); expected integers, bools or text. "
            f"Cut it first, as in ds.assign(low=(ds[{name!r}] < 0).where(ds.mask, False))"
        )
    return kind


def require_few(number: int, name: str, what: str) -> None:
    """Raise ValueError where a field has more than `MAX_DISTINCT` values."""
    if number > MAX_DISTINCT:
        raise ValueError(
            f"{what}: {name!r} has {number:,} distinct values or more; expected at most {MAX_DISTINCT:,}. Join some "
            f"first, as in ds.assign(joined=(ds[{name!r}] // 100).where(ds.mask, -1))"
        )


def _kind_of_objects(ds: xr.Dataset, name: str, was: str | None) -> str | None:
    if was in ("U", "S"):
        return "U"
    types: set[type] = set()
    for batch in iter_flat(ds, [name]):
        values = batch.values[name].ravel()
        types |= set(map(type, values[~pd.isna(values)].tolist()))
    if types and types <= {bool, np.bool_}:
        return "b"
    if was in ("b", "i", "u") and not types & {str, np.str_}:
        return _kind_of_floats(ds, name, was)
    return "U" if was is None else None


def _kind_of_floats(ds: xr.Dataset, name: str, was: str) -> str | None:
    smallest, largest = 0.0, 0.0
    for batch in iter_flat(ds, [name]):
        rows = as_rows(batch.values[name])
        rows = rows[~np.isnan(rows)]
        if (rows != np.floor(rows)).any():
            return None
        smallest, largest = min(smallest, float(rows.min(initial=0))), max(largest, float(rows.max(initial=0)))
    if was == "b" and smallest == 0 and largest <= 1:
        return "b"
    if smallest >= -(2.0**63) and largest < 2.0**63:
        return "i"
    return "u" if smallest == 0 and largest < 2.0**64 else None


def as_discrete(values: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return values (M, ...) as rows of integers, bools or text, and which are missing, None where no one is.

    `kind` is what `discrete_kind` returned for the field.
    """
    if kind == "U":
        missing = pd.isna(values) if values.dtype.kind == "O" else None
        return as_rows(as_text(values)), None if missing is None or not missing.any() else as_rows(missing)
    if values.dtype.kind in "biu":
        return as_rows(values), None
    rows = as_rows(values)
    missing = np.isnan(rows)
    return np.where(missing, 0, rows).astype(_DTYPES[kind]), missing if missing.any() else None
