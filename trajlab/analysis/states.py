"""How a field goes over the steps of an episode."""

import itertools
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import xarray as xr

from trajlab.analysis.alive import alive_index, count_alive, place_of
from trajlab.analysis.common import (
    as_rows,
    field_of,
    inner_coords,
    inner_dims,
    made_by,
    require_free_dims,
    require_numeric,
    title_of,
    units_of,
)
from trajlab.analysis.cut import GroupsArgument, Numbers
from trajlab.analysis.groups import Groups, make_groups, refuse_time
from trajlab.analysis.moments import Moments, Packer
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import component_count
from trajlab.dataset.flat import FlatBatch, iter_flat
from trajlab.errors import warn_user
from trajlab.names import AGENT, MEAN, QUANTILE, QUANTILES, STD, TIME, TRACE_NAMES, N

DEFAULT_QUANTILES = (0.1, 0.5, 0.9)
MAX_PACKED = 2**30
"""Bytes of rows held at once for quantiles; what is bigger is read by ranges of `time`, one after the other."""


def state_trace(
    ds: xr.Dataset,
    field: str,
    *,
    by: str | None = None,
    quantiles: Numbers | Literal[False] | None = DEFAULT_QUANTILES,
    groups: GroupsArgument = None,
) -> xr.Dataset:
    r"""Return mean, deviation and quantiles of a field at each step, over the episodes that are still alive.

    At step `t` these are the `n` episodes longer than `t`, those cut later than `t` too; for a field of agents, those
    in which the agent still takes part:

    .. math:: \mathrm{mean}_t = \frac{1}{n_t} \sum_{e:\, L_e > t} x_{e,t}, \qquad
              \mathrm{std}_t^2 = \frac{1}{n_t} \sum_{e:\, L_e > t} (x_{e,t} - \mathrm{mean}_t)^2

    An episode recorded from mid-way (`start_seen` is False) counts from its first recorded step, which is not its
    first: where that matters leave it out, ``ds.sel(episode=ds["start_seen"])``. The attributes hold their number.

    The population changes as episodes end: a curve may rise because those that were low are gone. Read it
    together with `n`.

    Parameters
    ----------
    ds : Dataset
    field : str
        Of bools or numbers, with any dims of its own.
    by, groups
        As in `action_histogram`. Where `by` differs from step to step, `n` counts the transitions of a group.
    quantiles : sequence of float or False, optional
        From 0 to 1, by default 0.1, 0.5 and 0.9; none of them (False or empty) is faster and needs no memory for
        the rows.

    Returns
    -------
    Dataset
        `mean`, `std` (population, ddof 0) and `quantiles` (linear between the two nearest values), float64, dims
        (by, time, ...) and (quantile, by, time, ...) with the field's own dims last; `n`, int64, dims
        (by, time), and `agent` for a field of agents. Where `n` is 0 they are NaN. A NaN in the field makes all of
        them NaN at its step, and a warning says how many steps that concerns.

    Raises
    ------
    KeyError
        When there is no such field or coordinate.
    TypeError
        When the field does not hold numbers.
    ValueError
        When a quantile is not within 0 and 1, `groups` does not fit, or a dim of the field has a name that the
        result uses itself.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"height": np.array([1.0, 5.0])}, {"height": np.array([3.0])}])
    >>> trace = tl.state_trace(ds, "height")
    >>> trace["mean"].values, trace["n"].values
    (array([2., 5.]), array([2, 1]))
    """
    ds, name = field_of(ds, field, along=by)
    return grouped_trace(ds, name, make_groups(ds, by, groups), quantiles)


def grouped_trace(ds: xr.Dataset, name: str, groups: Groups, quantiles: Numbers | Literal[False] | None) -> xr.Dataset:
    """Return `state_trace` of the field called `name` for groups that were made already."""
    levels = _check_quantiles(quantiles)
    refuse_time(groups, "state_trace")
    require_numeric(ds[name].variable, name, "state_trace")
    require_free_dims(ds, name, (*groups.dims, *TRACE_NAMES), "state_trace")
    parts = [_trace(part, name, groups, levels) for part in _time_ranges(ds, name, len(levels) > 0)]
    counts, mean, std, bands = (np.concatenate(arrays, axis=-2) for arrays in zip(*parts, strict=True))
    _report_nan(mean, counts, name)
    return _labelled(ds, name, groups, levels, counts, mean, std, bands)


def _check_quantiles(quantiles: Any) -> np.ndarray:
    given = DEFAULT_QUANTILES if quantiles is None else () if quantiles is False else quantiles
    levels = np.asarray(given, np.float64)
    if levels.ndim != 1 or not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(f"quantiles={quantiles!r}; expected numbers from 0 to 1, or False for none")
    if len(np.unique(levels)) < len(levels):
        raise ValueError(f"quantiles={quantiles!r}; expected each only once")
    return levels


def _time_ranges(ds: xr.Dataset, name: str, packs: bool) -> Iterator[xr.Dataset]:
    """Yield the Dataset in ranges of ascending `time` whose rows can be held at once; whole where that is enough."""
    cells = Cells.of(ds)
    row = ds[name].dtype.itemsize * component_count(ds[name].variable)
    if not packs or len(cells) * row <= MAX_PACKED:
        yield ds
        return
    ordered = ds if cells.order is None else ds.isel({TIME: cells.order})
    alive = np.cumsum(np.bincount(cells.counts, minlength=len(cells.labels) + 1)[::-1])[::-1][1:]
    which = (np.cumsum(alive) - alive) * row // MAX_PACKED
    edges = [0, *(np.flatnonzero(np.diff(which)) + 1), len(alive)]
    for start, stop in itertools.pairwise(edges):
        yield ordered.isel({TIME: slice(start, stop)})


def _trace(
    ds: xr.Dataset, name: str, groups: Groups, quantiles: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return counts (group, time, 1), mean and std (group, time, component), quantiles (quantile, group, ...)."""
    cells = Cells.of(ds)
    alive = AliveRows.of(ds, name)
    variable = ds[name].variable
    steps, width = len(cells.labels), component_count(variable)
    size = groups.size * steps * alive.num_agents
    counts = count_alive(ds, groups, cells, alive)
    moments = Moments(size, width // alive.num_agents)
    packer = Packer(counts, moments.width, _packed_dtype(variable.dtype)) if len(quantiles) else None
    for batch in iter_flat(ds, [name, *groups.fields, *alive.needed]):
        index, rows = _alive_rows(place_of(batch, groups, cells), batch.values[name], batch, alive)
        if index.min(initial=0) < 0:
            index, rows = index[index >= 0], rows[index >= 0]
        moments.add(index, rows)
        if packer is not None:
            packer.add(index, rows)
    mean, std = moments.result(counts)
    bands = packer.quantiles(quantiles) if packer is not None else np.zeros((0, size, moments.width))
    shape = (groups.size, steps)
    return (
        counts.reshape(*shape, alive.num_agents),
        mean.reshape(*shape, width),
        std.reshape(*shape, width),
        bands.reshape(len(quantiles), *shape, width),
    )


def _alive_rows(
    index: np.ndarray, values: np.ndarray, batch: FlatBatch, alive: AliveRows
) -> tuple[np.ndarray, np.ndarray]:
    """Return places ``index * agents + agent`` and rows (K, component) of the agents that take part in transitions."""
    cells = alive.cells(batch)
    if cells is None:
        return index, as_rows(values)
    return alive_index(index, cells, alive), alive.by_agent(values).take(cells, axis=0)


def _packed_dtype(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float64) if dtype.kind == "O" else dtype


def _report_nan(mean: np.ndarray, counts: np.ndarray, name: str) -> None:
    of_agent = mean.reshape(*counts.shape, mean.shape[-1] // counts.shape[-1])
    steps = int((np.isnan(of_agent).any(axis=-1) & (counts > 0)).any(axis=(0, 2)).sum())
    if steps:
        warn_user(f"state_trace: {name!r} has NaN, and so has its trace, at {steps} of {mean.shape[1]} steps")


def _labelled(
    ds: xr.Dataset,
    name: str,
    groups: Groups,
    levels: np.ndarray,
    counts: np.ndarray,
    mean: np.ndarray,
    std: np.ndarray,
    bands: np.ndarray,
) -> xr.Dataset:
    """Return what was reduced as a Dataset."""
    lead = mean.shape[0 if groups.dims else 1 : 2]
    dims = (*groups.dims, TIME, *inner_dims(ds, name))
    alive = AliveRows.of(ds, name)
    of_agents = () if alive.axis is None else (AGENT,)
    units, title = units_of(ds, name), title_of(ds, name)
    what = "episodes alive" if groups.is_per_episode else "transitions"
    counts = counts.reshape(*lead, alive.num_agents) if of_agents else counts.reshape(lead)
    mean, std, bands = (_as_field(values, lead, ds[name].shape[2:], alive.axis) for values in (mean, std, bands))
    variables: dict[str, Any] = {
        MEAN: (dims, mean[0], {"long_name": f"mean of {title}", **units}),
        STD: (dims, std[0], {"long_name": f"standard deviation of {title}", **units}),
        N: ((*dims[: len(lead)], *of_agents), counts, {"long_name": what}),
    }
    time = np.sort(ds[TIME].values)
    coords = {TIME: (TIME, time, ds[TIME].attrs), **groups.coords(), **inner_coords(ds, name)}
    if len(levels):
        attrs = {"long_name": f"quantiles of {title}", **units}
        variables[QUANTILES] = ((QUANTILE, *dims), bands, attrs)
        coords[QUANTILE] = (QUANTILE, levels)
    return xr.Dataset(variables, coords, made_by(ds, "state_trace", name))


def _as_field(values: np.ndarray, lead: tuple[int, ...], inner: tuple[int, ...], axis: int | None) -> np.ndarray:
    """Return values (..., group, time, component) as (quantile, *lead, *inner); components go by agents first."""
    lead = (values.shape[0] if values.ndim == 4 else 1, *lead)
    if axis is None:
        return values.reshape(*lead, *inner)
    others = [size for place, size in enumerate(inner) if place != axis]
    return np.moveaxis(values.reshape(*lead, inner[axis], *others), len(lead), len(lead) + axis)
