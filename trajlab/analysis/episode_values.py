"""One number, or one for each component, per episode: its return, its length, or what else is known of it."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import require_numeric, title_of, units_of
from trajlab.analysis.returns import returns
from trajlab.dataset.fields import missing_values
from trajlab.errors import require_text, unknown_name
from trajlab.names import EPISODE, RETURN, TIME


def episode_values(ds: xr.Dataset, value: Any, own: Iterable[str], what: str) -> xr.DataArray:
    """Return the values (episode, ...) that `value` names, called so, with `long_name` and `units` where known.

    Parameters
    ----------
    ds : Dataset
        Valid.
    value : str
        A coordinate or variable of numbers over `episode` and dims of its own; ``"return"``, where there is none of
        that name, is what `returns` computes.
    own : iterable of str
        Names that the result of `what` has for itself, which no dim may have.
    what : str
        The function that asks, for texts.

    Raises
    ------
    KeyError
        When there is no such variable.
    TypeError
        When it does not hold numbers, or `value` is no text.
    ValueError
        When it has a value per transition, or a dim with a name that is not free; as `returns`.
    """
    require_text("value", value, "a value per episode")
    if value in ds.variables:
        _check_dims(ds, value, what)
        require_numeric(ds.variables[value], value, what)
        found = ds[value].transpose(EPISODE, ...)
        missing = missing_values(found.variable)
        if missing.any() and found.dtype.kind == "i":
            found = found.copy(data=np.where(missing, np.nan, found.values))
        attrs = {"long_name": title_of(ds, value), **units_of(ds, value)}
    elif value == RETURN:
        found = returns(ds)
        attrs = {key: found.attrs[key] for key in ("long_name", "units") if key in found.attrs}
    else:
        known = [str(name) for name, v in ds.variables.items() if _is_per_episode(v) and v.dtype.kind in "biuf"]
        raise unknown_name("value over episode", value, dict.fromkeys([RETURN, *known]))
    taken = [str(dim) for dim in found.dims[1:] if dim in set(own)]
    if taken:
        raise ValueError(
            f"{what}: {value!r} has the dim {taken[0]!r}, a name that the result uses itself; rename it first: "
            f"ds.rename({ {taken[0]: f'my_{taken[0]}'}!r})"
        )
    coords = {key: coord for key, coord in found.coords.items() if EPISODE not in coord.dims}
    return xr.DataArray(found.values, coords, found.dims, value, attrs)


def _is_per_episode(variable: xr.Variable) -> bool:
    return EPISODE in variable.dims and TIME not in variable.dims


def _check_dims(ds: xr.Dataset, value: Any, what: str) -> None:
    """Raise ValueError where a variable has not one value, or one for each component, per episode."""
    dims = ds.variables[value].dims
    if EPISODE in dims and TIME in dims:
        raise ValueError(
            f"{what}: value={value!r} has a value per transition; expected one per episode, such as its sum: "
            f"value='total' of ds.assign_coords(total=trajlab.returns(ds, reward={value!r}))"
        )
    if EPISODE not in dims:
        raise ValueError(f"{what}: value={value!r} has dims {dims}; expected one value per episode")
