"""A trace as a Dataset: what was reduced at each place, with its names, units and coordinates."""

from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.alignment import Alignment
from trajlab.analysis.common import inner_coords, inner_dims, made_by, title_of, units_of
from trajlab.analysis.groups import Groups
from trajlab.dataset.alive_rows import AliveRows
from trajlab.names import AGENT, MEAN, QUANTILE, QUANTILES, STD, N


def label_trace(
    ds: xr.Dataset,
    name: str,
    groups: Groups,
    alignment: Alignment,
    levels: np.ndarray,
    counts: np.ndarray,
    mean: np.ndarray,
    std: np.ndarray,
    bands: np.ndarray,
) -> xr.Dataset:
    """Return what was reduced as a Dataset."""
    lead = mean.shape[0 if groups.dims else 1 : 2]
    dims = (*groups.dims, alignment.dim, *inner_dims(ds, name))
    alive = AliveRows.of(ds, name)
    of_agents = () if alive.axis is None else (AGENT,)
    units, title = units_of(ds, name), title_of(ds, name)
    what = alignment.counted if groups.is_per_episode else "transitions"
    counts = counts.reshape(*lead, alive.num_agents) if of_agents else counts.reshape(lead)
    mean, std, bands = (_as_field(values, lead, ds[name].shape[2:], alive.axis) for values in (mean, std, bands))
    variables: dict[str, Any] = {
        MEAN: (dims, mean[0], {"long_name": f"mean of {title}", **units}),
        STD: (dims, std[0], {"long_name": f"standard deviation of {title}", **units}),
        N: ((*dims[: len(lead)], *of_agents), counts, {"long_name": what}),
    }
    axis = (alignment.dim, alignment.labels, alignment.attrs)
    coords = {alignment.dim: axis, **groups.coords(), **inner_coords(ds, name)}
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
