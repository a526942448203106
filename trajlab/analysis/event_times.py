"""When something first happens in each episode."""

from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import episode_coords, made_by
from trajlab.analysis.events.conditions import Conditions
from trajlab.analysis.events.first_times import FirstTimes, find_first
from trajlab.names import CENSORED, EVENT_TIME, REACHED, TIME


def event_times(ds: xr.Dataset, condition: Conditions) -> xr.Dataset:
    """Return the first time at which a condition holds in each episode.

    An episode that ended without it never reached it. In one that was cut or truncated it might have come later: it
    is `censored`. A mean over those that reached it is therefore too early; `milestones` accounts for that.

    The time counts from the episode's first recorded transition. Where `start_seen` is False, the event may have been
    before: leave such episodes out where that matters, ``ds.sel(episode=ds["start_seen"])``. The attributes hold their
    number.

    Parameters
    ----------
    ds : Dataset
        With all steps.
    condition : str, DataArray, function, or mapping of them
        The name of a field of bools. Or a DataArray of bools over (episode, time), which is matched by its labels. Or
        a function that returns one for a Dataset, as in ``lambda ds: ds["obs"].isel(obs_dim_0=0) > 1``: it is called
        with some of the episodes at a time, in any order, so that little is in memory at once, and what it says of
        padding is not looked at. A mapping from names to such conditions gives several events.

        A condition may have dims of its own: each component is then an event by itself. An agent that is done reaches
        nothing any more.

    Returns
    -------
    Dataset
        `event_time`, float64, the label of `time`, NaN where the condition never holds; `reached`, bool; and
        `censored`, bool: not reached, in an episode that was cut or truncated, in which the agent, where it is about
        one, took part to the last. Dims (episode, ...), with `event` in front for a mapping. The coordinates over
        `episode` are kept.

    Raises
    ------
    KeyError
        When there is no such field.
    TypeError
        When a condition is none of these.
    ValueError
        When `ds` is not valid or steps of it are missing, a condition does not hold bools, or lacks an episode or a
        step, or the conditions of a mapping differ in their dims.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"height": np.array([1.0, 3.0, 4.0])}, {"height": np.array([2.0])}])
    >>> events = tl.event_times(ds, lambda ds: ds["height"] > 2)
    >>> events["event_time"].values, events["censored"].values
    (array([ 1., nan]), array([False, False]))
    """
    first, text = find_first(ds, condition, "event_times")
    return events_dataset(ds, first, made_by(ds, "event_times", text))


def events_dataset(ds: xr.Dataset, first: FirstTimes, attrs: dict[str, Any]) -> xr.Dataset:
    """Return first times as a Dataset, with what is known of the episodes."""
    reached = ~np.isnan(first.times)
    censored = ~reached & first.is_open(ds)
    variables = {
        EVENT_TIME: (first.dims, first.times, {"long_name": "time of the event", **time_units(ds)}),
        REACHED: (first.dims, reached, {"long_name": "whether the event was reached"}),
        CENSORED: (first.dims, censored, {"long_name": "whether the event might have come later"}),
    }
    return xr.Dataset(variables, {**first.coords, **episode_coords(ds, variables)}, attrs)


def time_units(ds: xr.Dataset) -> dict[str, str]:
    """Return the units of `time`."""
    return {"units": str(ds.variables[TIME].attrs.get("units", "steps"))}
