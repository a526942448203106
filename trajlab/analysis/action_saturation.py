"""How often a continuous action sits at its bounds, and what the environment made of it."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from trajlab.analysis.bounds import Bounds, PerComponent, as_attr, find_bounds, is_unbounded
from trajlab.analysis.common import (
    as_rows,
    field_of,
    inner_coords,
    inner_dims,
    is_blank,
    made_by,
    report_overflow,
    require_free_dims,
    require_numeric,
    title_of,
    units_of,
)
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_groups
from trajlab.analysis.kernels.bound_sides import DifferenceCounter, SideCounter
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.fields import resolve_field
from trajlab.dataset.flat import iter_flat
from trajlab.dataset.schema import validate
from trajlab.errors import warn_user
from trajlab.names import (
    CLIPPED,
    COUNT,
    EXECUTED_ATTR,
    HIGH_ATTR,
    LOW_ATTR,
    MEAN_DIFFERENCE,
    NUM_NAN_ATTR,
    SATURATION_NAMES,
    SHARE,
    SIDE,
    SIDES,
    TOLERANCE_ATTR,
)

WHAT = "action_saturation"


class Limits(NamedTuple):
    """The arguments of `action_saturation` that say what is at a bound."""

    low: PerComponent | None
    high: PerComponent | None
    tolerance: PerComponent


def action_saturation(
    ds: xr.Dataset,
    field: str = "action",
    *,
    low: PerComponent | None = None,
    high: PerComponent | None = None,
    tolerance: PerComponent = 0.0,
    executed: str | None = None,
    by: str | None = None,
    groups: GroupsArgument = None,
) -> xr.Dataset:
    """Count how often an action is at its low bound, at its high bound, or inside, over all transitions.

    An action beyond a bound, which the policy did not clip, counts at that side. Where several agents share an
    environment, those that are done do not count (`alive` is False).

    Parameters
    ----------
    ds : Dataset
    field : str
        The action, or any other field of numbers; each of its components is counted by itself.
    low, high : float or array, optional
        Bounds, in the units of the action: a number, or one for each component; infinity where there is none. By
        default those that a `Box` space of Gymnasium left in the field's attributes. They are compared in the
        dtype of the field.
    tolerance : float or array
        How near to a bound, in the units of the action, counts as at it. 0 is right for what is clipped. A policy that
        ends in `tanh` may come as near as it likes and never reach it: 0.01 or so.
    executed : str, optional
        A field of the same shape: the action that the environment really took. The result then has `clipped` and
        `mean_difference`, and where neither bound is given or known these only.
    by, groups
        As in `action_histogram`.

    Returns
    -------
    Dataset
        `count`, int64, and `share`, float64: the count as a part of all that were counted of that group and component
        (NaN where none were). Dims (by, ..., side) with the field's own dims between, `side` being ``"low"``,
        ``"inside"`` and ``"high"``. With `executed` also, dims (by, ...): `clipped`, the share of transitions where the
        two differ by more than `tolerance`, in the coarser of their dtypes; and `mean_difference`, the mean of their
        absolute difference, both float64. The attributes have the bounds and the tolerance. A NaN is on no side, and
        makes `mean_difference` NaN; the attribute `num_nan` and a warning say how many there are (of differences where
        there are no bounds).

    Raises
    ------
    KeyError
        When there is no such field or coordinate.
    TypeError
        When a field does not hold numbers.
    ValueError
        When a bound is neither given nor known (with `executed` both may be so), bounds leave nothing between them,
        `executed` has another shape, `groups` does not fit, or a dim of the field has a name that the result uses
        itself.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"action": np.array([-1.0, 0.2, 1.3])}, {"action": np.array([1.0])}])
    >>> tl.action_saturation(ds, low=-1, high=1)["share"].to_series().to_dict()
    {'low': 0.25, 'inside': 0.25, 'high': 0.5}
    """
    ds, name, other = saturation_fields(ds, field, executed, by)
    return grouped_saturation(ds, name, make_groups(ds, by, groups), Limits(low, high, tolerance), other)


def saturation_fields(ds: xr.Dataset, field: Any, executed: Any, by: Any) -> tuple[xr.Dataset, str, str | None]:
    """Return the Dataset, and the fields of it that `field` and `executed` mean."""
    validate(ds)
    blank = is_blank(ds)
    ds, name = field_of(ds, field, along=by)
    if executed is None:
        return ds, name, None
    return ds, name, name if blank else resolve_field(ds, executed)


def grouped_saturation(
    ds: xr.Dataset, name: str, groups: Groups, limits: Limits, executed: str | None = None
) -> xr.Dataset:
    """Return `action_saturation` of the field called `name` for groups that were made already."""
    require_numeric(ds.variables[name], name, WHAT)
    require_free_dims(ds, name, (*groups.dims, *SATURATION_NAMES), WHAT)
    has_bounds = executed is None or limits.low is not None or limits.high is not None or not is_unbounded(ds, name)
    if not has_bounds:
        limits = limits._replace(low=-np.inf, high=np.inf)
    bounds = find_bounds(ds, name, *limits, WHAT)
    if executed is not None:
        _check_executed(ds, name, executed)
    sides, differences = _count(ds, name, groups, bounds if has_bounds else None, bounds.tolerance, executed)
    arrays: dict[str, np.ndarray] = {}
    attrs: dict[str, Any] = {NUM_NAN_ATTR: (differences if sides is None else sides).num_nan}
    if sides is not None:
        counts = arrays[COUNT] = sides.result()
        with np.errstate(invalid="ignore"):
            arrays[SHARE] = counts / counts.sum(axis=-1, keepdims=True)
        attrs |= {LOW_ATTR: as_attr(bounds.low), HIGH_ATTR: as_attr(bounds.high)}
    attrs[TOLERANCE_ATTR] = as_attr(bounds.tolerance)
    if executed is not None:
        arrays[CLIPPED], arrays[MEAN_DIFFERENCE] = differences.result()
        report_overflow(WHAT, f"{name} - {executed}", np.isinf(arrays[MEAN_DIFFERENCE]))
        attrs[EXECUTED_ATTR] = executed
    return _labelled(ds, name, groups, arrays, attrs)


def _check_executed(ds: xr.Dataset, name: str, executed: str) -> None:
    require_numeric(ds.variables[executed], executed, WHAT)
    shapes = [ds.variables[key].shape[2:] for key in (executed, name)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"{WHAT}: executed={executed!r} has components of shape {shapes[0]}, and {name!r} of {shapes[1]}; expected "
            "the same, in the same order"
        )


def _count(
    ds: xr.Dataset, name: str, groups: Groups, bounds: Bounds | None, tolerance: np.ndarray, executed: str | None
) -> tuple[SideCounter | None, DifferenceCounter]:
    """Go through all transitions once; without bounds nothing is on a side."""
    sides = None if bounds is None else SideCounter(*bounds.inner(ds.variables[name].dtype), groups.size)
    differences = DifferenceCounter(tolerance, groups.size)
    alive = AliveRows.of(ds, name)
    fields = [name, *([] if executed is None else [executed]), *groups.fields, *alive.needed]
    for batch in iter_flat(ds, fields):
        dead = alive.missing(batch, batch.values[name].shape)
        values, group = as_rows(batch.values[name]), groups.index(batch)
        if sides is not None:
            sides.add(values, group, dead)
        if executed is not None:
            differences.add(values, as_rows(batch.values[executed]), group, dead)
    if sides is not None and sides.num_nan:
        warn_user(
            f"{WHAT}: {sides.num_nan} values of {name!r} are NaN and on no side; attrs['num_nan'] has their number"
        )
    if differences.num_nan:
        warn_user(
            f"{WHAT}: {differences.num_nan} differences of {name!r} and {executed!r} are NaN: they are not in "
            f"{CLIPPED!r}, and {MEAN_DIFFERENCE!r} is NaN where there is one"
        )
    return sides, differences


def _labelled(
    ds: xr.Dataset, name: str, groups: Groups, arrays: dict[str, np.ndarray], attrs: dict[str, Any]
) -> xr.Dataset:
    """Return arrays (group, component, ...) as a Dataset."""
    title, share = title_of(ds, name), {"units": "1"}
    said: dict[str, dict[str, str]] = {
        COUNT: {"long_name": "transitions"},
        SHARE: {"long_name": "share of transitions"} | share,
        CLIPPED: {"long_name": "share of transitions in which another action was executed"} | share,
        MEAN_DIFFERENCE: {"long_name": f"mean difference from the {title} executed", **units_of(ds, name)},
    }
    lead = (*groups.shape, *ds.variables[name].shape[2:])
    variables = {}
    for key, values in arrays.items():
        of_side = (SIDE,) if values.ndim == 3 else ()
        dims = (*groups.dims, *inner_dims(ds, name), *of_side)
        variables[key] = (dims, values.reshape((*lead, *values.shape[2:])), said[key])
    coords = {**inner_coords(ds, name), **groups.coords()}
    coords |= {SIDE: (SIDE, list(SIDES))} if COUNT in arrays else {}
    return xr.Dataset(variables, coords, made_by(ds, WHAT, name) | attrs)
