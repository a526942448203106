"""When something first happens in each episode."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from trajlab.analysis.common import is_blank, made_by
from trajlab.analysis.conditions import ConditionReader, Conditions, condition_text, named_conditions
from trajlab.analysis.first import NEVER, lower_to
from trajlab.dataset.cells import Cells
from trajlab.dataset.schema import require_whole, validate
from trajlab.names import (
    CENSORED,
    CUT,
    END_REASON,
    EPISODE,
    EVENT,
    EVENT_TIME,
    REACHED,
    TIME,
    TRUNCATED,
)


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
    validate(ds)
    require_whole(ds, "event_times")
    conditions, is_named = named_conditions(condition)
    found = {name: _first_times(ds, one, name) for name, one in conditions.items()}
    text = ", ".join(name or condition_text(one) for name, one in conditions.items())
    return _labelled(ds, found if is_named else found[""], made_by(ds, "event_times", text))


class First(NamedTuple):
    """First times of an event, or of several components of one.

    Attributes
    ----------
    dims : tuple of str
        Those behind `episode`.
    coords : mapping
        Coordinates of those dims.
    times : array (episode, ...) float64
        NaN where it was not reached.
    ended : array (episode, ...) of bool
        Whether what could reach it ended before the episode did, as an agent does.
    """

    dims: tuple[str, ...]
    coords: Mapping[Any, Any]
    times: np.ndarray
    ended: np.ndarray


def _first_times(ds: xr.Dataset, condition: Any, name: str) -> First:
    """Return the first times of one condition; an empty Dataset without fields cannot be asked for it."""
    if is_blank(ds):
        return First((), {}, np.zeros(0), np.zeros(0, bool))
    what = f"condition {name!r}" if name else "condition"
    reader = ConditionReader(ds, condition, what)
    _check_free(reader.dims, what)
    episodes, width = ds.sizes[EPISODE], int(np.prod(reader.shape, dtype=np.int64))
    smallest = np.full(episodes * width, NEVER)
    steps = np.zeros(episodes * reader.alive.num_agents, np.int64)
    for held in reader:
        cell = np.flatnonzero(held.holds)
        row = cell if width == 1 else cell // width
        lower_to(smallest, held.episode[row] * width + (cell - row * width), held.time[row])
        if held.takes_part is not None:
            index = held.episode[:, np.newaxis] * reader.alive.num_agents + np.arange(reader.alive.num_agents)
            steps += np.bincount(index[held.takes_part], minlength=len(steps))
    shape = (episodes, *reader.shape)
    ended = np.zeros(shape, bool)
    if reader.alive.needed:
        is_over = steps.reshape(episodes, -1) < Cells.of(ds).counts[:, np.newaxis]
        ended |= is_over.reshape(_as_agents(is_over, reader))
    times = np.where(smallest == NEVER, np.nan, smallest).reshape(shape)
    return First(reader.dims, reader.coords, times, ended)


def _as_agents(of_agent: np.ndarray, reader: ConditionReader) -> tuple[int, ...]:
    """Return the shape in which values (episode, agent) go with those of a condition's own dims."""
    own = [1] * len(reader.shape)
    if reader.alive.axis is not None:
        own[reader.alive.axis] = of_agent.shape[1]
    return (len(of_agent), *own)


def _check_free(dims: tuple[str, ...], what: str) -> None:
    taken = [dim for dim in dims if dim in (EVENT, EVENT_TIME, REACHED, CENSORED)]
    if taken:
        raise ValueError(f"{what} has the dim {taken[0]!r}, a name that the result uses itself; rename it first")


def _joined(found: Mapping[str, First]) -> First:
    """Return several events as one array; raise ValueError where they have different dims."""
    dims = {name: one.dims for name, one in found.items()}
    shapes = {one.times.shape for one in found.values()}
    if len(set(dims.values())) > 1 or len(shapes) > 1:
        said = ", ".join(f"{name!r} has {own} beside 'episode'" for name, own in dims.items())
        raise ValueError(f"conditions of one mapping have to have the same dims; {said}. Ask for them one by one")
    some = next(iter(found.values()))
    times = np.stack([one.times for one in found.values()])
    ended = np.stack([one.ended for one in found.values()])
    return First(some.dims, {**some.coords, EVENT: list(found)}, times, ended)


def _labelled(ds: xr.Dataset, found: First | Mapping[str, First], attrs: dict[str, Any]) -> xr.Dataset:
    """Return first times as a Dataset, with what is known of the episodes."""
    lead = (EPISODE,) if isinstance(found, First) else (EVENT, EPISODE)
    first = found if isinstance(found, First) else _joined(found)
    dims = (*lead, *first.dims)
    is_open = np.isin(ds[END_REASON].values.astype(str), (CUT, TRUNCATED))
    reached = ~np.isnan(first.times)
    censored = ~reached & ~first.ended & is_open.reshape(-1, *([1] * len(first.dims)))
    units = {"units": str(ds[TIME].attrs.get("units", "steps"))}
    variables = {
        EVENT_TIME: (dims, first.times, {"long_name": "time of the event", **units}),
        REACHED: (dims, reached, {"long_name": "whether the event was reached"}),
        CENSORED: (dims, censored, {"long_name": "whether the event might have come later"}),
    }
    kept = {name: coord for name, coord in ds.coords.items() if coord.dims == (EPISODE,)}
    return xr.Dataset(variables, {**first.coords, **kept}, attrs)
