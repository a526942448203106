"""The steps around an event of each episode, side by side."""

from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.alignment.argument import WindowArgument, event_lags, event_origins
from trajlab.analysis.events.conditions import Condition
from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import is_per_transition
from trajlab.dataset.lazy import lazy_variable
from trajlab.dataset.schema import validate
from trajlab.dataset.windows import WindowArray, Windows
from trajlab.names import EPISODE, EVENT_TIME, LAG, LEFT_OUT_ATTR, MADE_BY_ATTR, MASK, TIME


def align(
    ds: xr.Dataset, events: Condition | xr.Dataset | xr.DataArray, *, window: WindowArgument = None
) -> xr.Dataset:
    """Return the steps around an event of each episode, side by side.

    Parameters
    ----------
    ds : Dataset
    events : Dataset, DataArray, or condition
        The times of one event, as `event_times` returns them (a result of it, or its `event_time`); or a condition as
        there, whose first times are then found.
    window : (int, int), optional
        Steps before and after the event, both with it; by default at most 50, and not beyond what the episodes hold.

    Returns
    -------
    Dataset
        Every field with the dims (episode, lag, ...), lazy and in its dtype; `lag` counts steps from the event, and
        `mask` tells where a transition of the episode stands, everywhere else is padding as in `ds`. What is known of
        each episode stays, and `event_time` is a coordinate. Episodes without the event are left out; the attribute
        `left_out` is their number. `state_trace` of it is the average around the event; other functions over episodes
        and steps take `ds` itself, and may count by the steps since the event.

    Raises
    ------
    KeyError, TypeError
        As `event_times`.
    ValueError
        As `event_times`; when the times are those of several events, or lack an episode, `window` is no pair of whole
        numbers, or something in `ds` is called `lag`.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"height": np.arange(6.0)}, {"height": np.array([2.0, 3.0, 5.0])}])
    >>> aligned = tl.align(ds, lambda ds: ds["height"] >= 3, window=(2, 1))
    >>> aligned["height"].values
    array([[ 1.,  2.,  3.,  4.],
           [nan,  2.,  3.,  5.]])

    Count the heights before the event, and from it on:

    >>> near = ds.sel(episode=aligned.episode)
    >>> near = near.assign(since=(near.time - aligned.event_time).T)
    >>> sides = {"before": slice(-50, -1), "after": slice(0, 50)}
    >>> tl.action_histogram(near, "height", bins=[0, 3, 6], by="since", groups=sides)["count"].to_pandas()
    bin     1.5  4.5
    since
    before    4    0
    after     0    5
    """
    validate(ds)
    _check_names(ds)
    times = event_origins(ds, events, "align: ")
    episodes = np.flatnonzero(~np.isnan(times))
    origin = times[episodes].astype(np.int64)
    cells = Cells.of(ds)
    windows = Windows(cells, episodes, origin, event_lags(cells, episodes, origin, window))
    variables: dict[Any, xr.Variable] = {}
    for name, variable in ds.variables.items():
        if is_per_transition(variable):
            dims = (EPISODE, LAG, *map(str, variable.dims[2:]))
            variables[name] = lazy_variable(dims, WindowArray(variable, windows), variable.attrs)
        elif TIME not in variable.dims:
            variables[name] = variable.isel({EPISODE: episodes}) if EPISODE in variable.dims else variable
    variables[MASK] = xr.Variable((EPISODE, LAG), windows.mask(), ds.variables[MASK].attrs)
    variables[LAG] = xr.Variable(LAG, windows.lags, {"long_name": "steps from the event"})
    variables[EVENT_TIME] = xr.Variable(EPISODE, origin, {"long_name": "time of the event", "units": "steps"})
    coords = {name: variables.pop(name) for name in (*ds.coords, LAG, EVENT_TIME) if name in variables}
    attrs = {MADE_BY_ATTR: "trajlab.align", LEFT_OUT_ATTR: int(ds.sizes[EPISODE] - len(episodes))}
    return xr.Dataset(variables, coords, ds.attrs | attrs)


def _check_names(ds: xr.Dataset) -> None:
    """Raise ValueError where something is called as the result's own dim."""
    taken = [name for name in (LAG, EVENT_TIME) if name in ds.variables or name in ds.dims]
    if taken:
        raise ValueError(f"align: the result has {taken[0]!r} itself; rename it first: ds.rename({taken[0]}='my_lag')")
