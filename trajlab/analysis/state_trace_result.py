"""A trace as a Dataset: what was reduced at each place, with its names, units and coordinates."""

from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.alignment.alignments import Alignment
from trajlab.analysis.common import inner_coords, inner_dims, made_by, title_of, units_of
from trajlab.analysis.grouping.groups import Groups
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
    inner = ds.variables[name].shape[2:]
    mean, std = (alive.over_field(values, lead, inner) for values in (mean, std))
    variables: dict[str, Any] = {
        MEAN: (dims, mean, {"long_name": f"mean of {title}", **units}),
        STD: (dims, std, {"long_name": f"standard deviation of {title}", **units}),
        N: ((*dims[: len(lead)], *of_agents), counts, {"long_name": what}),
    }
    axis = (alignment.dim, alignment.labels, alignment.attrs)
    coords = {alignment.dim: axis, **groups.coords(), **inner_coords(ds, name)}
    if len(levels):
        attrs = {"long_name": f"quantiles of {title}", **units}
        variables[QUANTILES] = ((QUANTILE, *dims), alive.over_field(bands, (len(levels), *lead), inner), attrs)
        coords[QUANTILE] = (QUANTILE, levels)
    return xr.Dataset(variables, coords, made_by(ds, "state_trace", name))
