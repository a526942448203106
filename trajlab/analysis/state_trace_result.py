"""A trace as a Dataset: what was reduced at each place, with its names, units and coordinates."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from trajlab.analysis.alignment.alignments import Alignment
from trajlab.analysis.common import inner_coords, inner_dims, made_by, title_of, units_of
from trajlab.analysis.grouping.groups import Groups
from trajlab.dataset.alive_rows import AliveRows
from trajlab.names import AGENT, MEAN, QUANTILE, QUANTILES, STD, N


class Reduced(NamedTuple):
    """What a field was reduced to at each place.

    Attributes
    ----------
    counts : array (group, place, agent) int64
        Transitions, or episodes where these are what is averaged; one agent where the field is of none.
    mean, std : array (group, place, component) float64
    quantiles : array (quantile, group, place, component) float64
    """

    counts: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    quantiles: np.ndarray


def label_trace(
    ds: xr.Dataset, name: str, groups: Groups, alignment: Alignment, levels: np.ndarray, found: Reduced
) -> xr.Dataset:
    """Return what was reduced as a Dataset; `levels` are those of the quantiles."""
    lead = found.mean.shape[0 if groups.dims else 1 : 2]
    dims = (*groups.dims, alignment.dim, *inner_dims(ds, name))
    alive = AliveRows.of(ds, name)
    of_agents = () if alive.axis is None else (AGENT,)
    units, title = units_of(ds, name), title_of(ds, name)
    what = alignment.counted if groups.is_per_episode else "transitions"
    counts = found.counts.reshape(*lead, *((alive.num_agents,) if of_agents else ()))
    inner = ds.variables[name].shape[2:]
    mean, std = (alive.over_field(values, lead, inner) for values in (found.mean, found.std))
    variables: dict[str, Any] = {
        MEAN: (dims, mean, {"long_name": f"mean of {title}", **units}),
        STD: (dims, std, {"long_name": f"standard deviation of {title}", **units}),
        N: ((*dims[: len(lead)], *of_agents), counts, {"long_name": what}),
    }
    axis = (alignment.dim, alignment.labels, alignment.attrs)
    coords = {alignment.dim: axis, **groups.coords(), **inner_coords(ds, name)}
    if len(levels):
        attrs = {"long_name": f"quantiles of {title}", **units}
        variables[QUANTILES] = (
            (QUANTILE, *dims),
            alive.over_field(found.quantiles, (len(levels), *lead), inner),
            attrs,
        )
        coords[QUANTILE] = (QUANTILE, levels)
    return xr.Dataset(variables, coords, made_by(ds, "state_trace", name))
