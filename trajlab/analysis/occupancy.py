"""How often two components have which values together."""

from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import made_by
from trajlab.analysis.components import Component, components_of
from trajlab.analysis.grid import BinsArgument, Grid, make_grid, report_nan
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_groups
from trajlab.analysis.kernels.counting import PlaceCounter
from trajlab.dataset.flat import iter_flat
from trajlab.names import COUNT, NUM_NAN_ATTR, NUM_OUTSIDE_ATTR, SHARE

DEFAULT_BINS = 50


def occupancy(
    ds: xr.Dataset,
    x: str,
    y: str,
    *,
    bins: BinsArgument = None,
    by: str | None = None,
    groups: GroupsArgument = None,
) -> xr.Dataset:
    """Count in which states transitions begin: the joint histogram of two components, those of cut episodes too.

    The components may be of any fields: two of an observation say where the policy is, two of an action which of its
    parts go together. Each transition counts the same, so that long episodes count for more; final observations are
    those of none. Where components belong to agents, transitions in which one of these is done do not count.

    Parameters
    ----------
    ds : Dataset
    x, y : str
        Components, called as in `stack_fields`: ``"reward"``, ``"obs[x]"``, ``"action[0]"``.
    bins : int or pair, optional
        Number of bins of both, over the range of finite values; or a pair, for `x` and `y`, of numbers or edges. By
        default integers and bools that span at most 1,024 have a bin for each value, centred on it, and others 50.
    by, groups
        As in `action_histogram`.

    Returns
    -------
    Dataset
        Dims (by, x_bin, y_bin): `count`, int64, and `share`, float64: the count as a part of all transitions that were
        counted in that group (NaN where none were). `x_bin` is the middle of each bin, or its value, `x_bin_left`
        and `x_bin_right` its edges; the last bin holds its right edge. What lies outside of edges is not counted: the
        attribute `num_outside` says how many transitions that are, `num_nan` in how many a component is NaN; a
        warning tells of NaN.

    Raises
    ------
    KeyError
        When there is no such component or coordinate.
    TypeError
        When a component does not hold numbers.
    ValueError
        When `ds` is not valid, or `bins` or `groups` do not fit.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"cell": np.array([[0, 0], [0, 1], [0, 1]]), "action": np.array([[0, 1]] * 3)}])
    >>> tl.occupancy(ds, "cell[0]", "cell[1]")["count"].values
    array([[1, 2]])

    How often two parts of an action go together:

    >>> tl.occupancy(ds, "action[0]", "action[1]", bins=([-0.5, 0.5, 1.5], 1))["share"].values
    array([[1.],
           [0.]])
    """
    ds, (first, second) = components_of(ds, [x, y], "occupancy", along=by)
    return grouped_occupancy(ds, (first, second), make_groups(ds, by, groups), bins)


def grouped_occupancy(ds: xr.Dataset, components: tuple[Component, Component], groups: Groups, bins: Any) -> xr.Dataset:
    """Return `occupancy` for components and groups that were found already."""
    grid = make_grid(ds, components, bins, DEFAULT_BINS, groups.size)
    counts = count_grid(ds, grid, groups).reshape(groups.size, *grid.shape)
    report_nan("occupancy", grid)
    totals = counts.sum(axis=(1, 2), keepdims=True)
    with np.errstate(invalid="ignore"):
        share = counts / totals
    dims = (*groups.dims, *grid.dims)
    lead = slice(None) if groups.dims else 0
    variables: dict[str, Any] = {
        COUNT: (dims, counts[lead], {"long_name": "transitions"}),
        SHARE: (dims, share[lead], {"long_name": "share of transitions", "units": "1"}),
    }
    attrs = made_by(ds, "occupancy", " ".join(component.label for component in components))
    attrs |= {NUM_NAN_ATTR: grid.num_nan, NUM_OUTSIDE_ATTR: grid.num_outside}
    return xr.Dataset(variables, {**groups.coords(), **grid.coords()}, attrs)


def count_grid(ds: xr.Dataset, grid: Grid, groups: Groups) -> np.ndarray:
    """Return how many transitions are at each place (group * bin,), int64."""
    counter = PlaceCounter(groups.size * grid.size)
    for batch in iter_flat(ds, list(dict.fromkeys([*grid.needed, *groups.fields]))):
        counter.add(grid.index(batch, groups.index(batch)))
    return counter.counts
