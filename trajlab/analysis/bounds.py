"""Bounds of a field's components: those given, or those that the attributes of its space tell of."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from trajlab.dataset.fields import component_count, has_own_name
from trajlab.errors import has_bool
from trajlab.names import EPISODE, HIGH_ATTR, LOW_ATTR

PerComponent = float | int | Sequence[Any] | np.ndarray
"""A number for all components, or one for each, in the shape of the field's own dims."""


class Bounds(NamedTuple):
    """The bounds of each component, and how near to them counts as at them, (component,) float64 each."""

    low: np.ndarray
    high: np.ndarray
    tolerance: np.ndarray

    def inner(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """Return the values from which on a component is at its low, and at its high bound.

        In the field's own dtype where that is one of floats, since 0.7 as a float32 is less than 0.7.
        """
        dtype = dtype if dtype.kind == "f" else np.dtype(np.float64)
        with np.errstate(over="ignore"):  # beyond the largest float16 stands infinity, which is as good a bound
            return (self.low + self.tolerance).astype(dtype), (self.high - self.tolerance).astype(dtype)


def find_bounds(ds: xr.Dataset, name: str, low: Any, high: Any, tolerance: Any, what: str) -> Bounds:
    """Return the bounds of a field: those given (not None), or those that its attributes tell of.

    Raises
    ------
    ValueError
        When a bound is neither given nor known, does not fit the field, or when they leave nothing between them.
    """
    room = _per_component(ds, name, "tolerance", tolerance)
    if not (room >= 0).all() or np.isinf(room).any():
        raise ValueError(f"tolerance={tolerance!r}; expected finite numbers of at least 0, in the units of {name!r}")
    ends = [_bound(ds, name, key, given, what) for key, given in ((LOW_ATTR, low), (HIGH_ATTR, high))]
    bounds = Bounds(ends[0], ends[1], room)
    lower, upper = bounds.inner(ds.variables[name].dtype)
    if not (lower < upper).all():
        place = int(np.flatnonzero(~(lower < upper))[0])
        raise ValueError(
            f"{what}: component {place} of {name!r} has low={ends[0][place]:g} and high={ends[1][place]:g}, with "
            f"tolerance={room[place]:g}; expected something between them"
        )
    return bounds


def is_unbounded(ds: xr.Dataset, name: str) -> bool:
    """Say whether a field has transitions, and its attributes tell of neither bound."""
    return ds.sizes[EPISODE] > 0 and all(_known(ds, name, key) is None for key in (LOW_ATTR, HIGH_ATTR))


def _known(ds: xr.Dataset, name: str, key: str) -> Any:
    variable = ds.variables[name]
    return variable.attrs.get(key) if has_own_name(variable, name) else None  # arithmetic keeps attributes


def _bound(ds: xr.Dataset, name: str, key: str, given: Any, what: str) -> np.ndarray:
    """Return one bound (component,), as float64."""
    if given is not None:
        return _per_component(ds, name, key, given)
    known = _known(ds, name, key)
    sign = "-" if key == LOW_ATTR else ""
    if known is None and not ds.sizes[EPISODE]:
        known = float(f"{sign}inf")  # there is nothing to count, and a recorder that was off knows no space
    if known is None:
        raise ValueError(
            f"{what}: nothing says what the {key} bound of {name!r} is (its attributes do, where a Gymnasium "
            f"space was recorded); give {key}={sign}1.0, a number for each component, or {key}={sign}np.inf for none"
        )
    if isinstance(known, str):
        known = [float(text) for text in known.strip("[]").split(",")]
    return _per_component(ds, name, key, known)


def _per_component(ds: xr.Dataset, name: str, key: str, value: Any) -> np.ndarray:
    """Return a number for each component (component,) from one for all of them, or from one for each."""
    count, shape = component_count(ds.variables[name]), ds.variables[name].shape[2:]
    try:
        values = np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{key}={value!r}; expected a number, or {count} of them") from error
    if has_bool(value) and ds.variables[name].dtype != bool:
        raise ValueError(f"{key}={value!r}; expected a number, or {count} of them")
    if values.ndim and values.shape not in (shape, (count,)):
        raise ValueError(
            f"{key} has the shape {values.shape}, and the components of {name!r} {shape}; expected a number for each "
            f"of them, or one for all: {key}=..."
        )
    if np.isnan(values).any():
        raise ValueError(f"{key}={value!r} has NaN; expected numbers, infinite where there is no bound")
    return np.broadcast_to(values.reshape(-1), (count,)).copy()


def as_attr(values: np.ndarray) -> float | str:
    """Return numbers (component,) as an attribute that any file takes: a number where all are equal, else a text.

    >>> as_attr(np.array([1.0, 1.0])), as_attr(np.array([1.0, np.inf]))
    (1.0, '[1, inf]')
    """
    if len(values) and np.isfinite(values[0]) and (values == values[0]).all():
        return float(values[0])
    return f"[{', '.join(f'{value:g}' for value in values)}]"
