"""When each action is first taken in each episode."""

from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import field_of, inner_coords, inner_dims, made_by, require_free_dims
from trajlab.analysis.discrete import as_discrete, require_discrete, require_few
from trajlab.analysis.event_times import events_dataset
from trajlab.analysis.events.first_times import AgentSteps, FirstTimes
from trajlab.analysis.kernels.counting import coded, only_occurring, places_dtype
from trajlab.analysis.kernels.masks import count_set, either
from trajlab.analysis.kernels.minima import NEVER
from trajlab.analysis.labels import LabelsArgument, check_labels, list_values, value_coords
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.fields import component_count
from trajlab.dataset.flat import FlatBatch, iter_flat
from trajlab.dataset.schema import require_whole
from trajlab.errors import warn_user
from trajlab.names import EPISODE, EVENT_NAMES, LABEL, NUM_NAN_ATTR, VALUE


def first_action_time(ds: xr.Dataset, field: str = "action", *, labels: LabelsArgument = None) -> xr.Dataset:
    """Return the first time at which each action is taken in each episode.

    It is `event_times` for each action as an event. An episode that ended without the action never takes it; in one
    that was cut or truncated it might have come later, and is `censored`. The time counts from the episode's first
    recorded transition, which is not its first where `start_seen` is False.

    Parameters
    ----------
    ds : Dataset
        With all steps.
    field : str
        The action, or any other field of integers, bools or text; each of its components is looked at by itself.
    labels : sequence or mapping, optional
        As in `action_histogram`.

    Returns
    -------
    Dataset
        `event_time`, float64, the label of `time`, NaN where the action is never taken; `reached` and `censored`,
        bool. Dims (episode, ..., value) with the field's own dims between. `value` is as in `action_histogram`, with
        the coordinate `label` where there are `labels`. The coordinates over `episode` are kept. A NaN is no action;
        the attribute `num_nan` and a warning say how many there are.

    Raises
    ------
    KeyError
        When there is no such field.
    TypeError
        When `labels` is a single text.
    ValueError
        When `ds` is not valid or steps of it are missing; when the field is continuous or has more than 1,024 distinct
        values, `labels` do not fit it, or a dim of it has a name that the result uses itself.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"action": np.array([0, 0, 1])}, {"action": np.array([1])}])
    >>> tl.first_action_time(ds)["event_time"].values
    array([[ 0.,  2.],
           [nan,  0.]])
    """
    first, attrs = find_first_actions(ds, field, labels)
    ds, name = field_of(ds, field, like=np.int64)
    return events_dataset(ds, first, made_by(ds, "first_action_time", name) | attrs)


def find_first_actions(ds: xr.Dataset, field: str, labels: Any) -> tuple[FirstTimes, dict[str, int]]:
    """Return the first times of each action, and the attributes that say how many were NaN."""
    ds, name = field_of(ds, field, like=np.int64)
    names = check_labels(labels)
    kind = require_discrete(ds, name, "first_action_time")
    require_free_dims(ds, name, (VALUE, LABEL, *EVENT_NAMES), "first_action_time")
    require_whole(ds, "first_action_time")
    alive = AliveRows.of(ds, name)
    stop = AgentSteps(ds, alive)
    times = FirstOfValues(ds.sizes[EPISODE], component_count(ds.variables[name]), name)
    num_nan = 0
    for batch in iter_flat(ds, [name, *alive.needed]):
        values, missing = as_discrete(batch.values[name], kind)
        dead = alive.missing(batch, batch.values[name].shape)
        num_nan += count_set(missing, dead)
        times.add(batch, values, either(missing, dead))
        taking_part = alive.mask(batch)
        if taking_part is not None:
            stop.add(batch.episode, taking_part)
    if num_nan:
        warn_user(f"first_action_time: {num_nan} values of {name!r} are NaN and counted in attrs['num_nan'] only")
    values, found = times.listed(names, ds.variables[name].attrs)
    shape = (ds.sizes[EPISODE], *ds.variables[name].shape[2:], len(values))
    dims = (EPISODE, *inner_dims(ds, name), VALUE)
    steps = np.broadcast_to(stop.result(shape[:-1])[..., np.newaxis], shape)
    coords = {**inner_coords(ds, name), **value_coords(ds, name, values, names)}
    return FirstTimes(dims, coords, found.reshape(shape), steps), {NUM_NAN_ATTR: num_nan}


class FirstOfValues:
    """The first time of each distinct value, for each episode and component.

    Attributes
    ----------
    values : array (value,)
        Those met so far, ascending.
    times : array (episode, component, value) int64
        `NEVER` where it was not met.
    """

    def __init__(self, episodes: int, components: int, name: str) -> None:
        """Start with no value; `name` is the field's, for errors."""
        self.name = name
        self.values: np.ndarray = np.zeros(0, np.int64)
        self.times = np.full((episodes, components, 0), NEVER)
        self._make_room()

    def add(self, batch: FlatBatch, rows: np.ndarray, missing: np.ndarray | None) -> None:
        """Take values (M, component) of a batch, but for what is `missing`; those of an episode come in order."""
        if not rows.size:
            return
        seen, codes = coded(rows)
        codes = codes.reshape(rows.shape)
        if len(seen) != len(self.values) or not np.array_equal(seen, self.values):
            seen, codes = only_occurring(seen, codes, missing)
            self._meet(seen)
            codes = np.searchsorted(self.values, seen)[codes] if len(seen) else codes
        index = codes + batch.spread(self._first)[:, np.newaxis]
        components = rows.shape[1]
        if components > 1:
            index += np.arange(components) * len(self.values)
        index = index.astype(np.intp, copy=False).reshape(-1)
        is_new = self._is_unmet.take(index)
        if missing is not None:
            is_new &= ~missing.reshape(-1)
        new = np.flatnonzero(is_new)
        index = index[new]
        self._is_unmet[index] = False
        # Of what is assigned to one place the last one stays: in reversed order that is the first.
        self.times.reshape(-1)[index[::-1]] = batch.time[new // components][::-1]

    def _meet(self, values: np.ndarray) -> None:
        """Make room for further values."""
        union = np.union1d(self.values, values) if len(self.values) else values
        if len(union) == len(self.values):
            return
        require_few(len(union), self.name, "first_action_time")
        wider = np.full((*self.times.shape[:2], len(union)), NEVER)
        wider[..., np.searchsorted(union, self.values)] = self.times
        self.values, self.times = union, wider
        self._make_room()

    def _make_room(self) -> None:
        """Note which values were not met yet, in few bytes for the cache, and where those of each episode stand."""
        self._is_unmet = (self.times == NEVER).reshape(-1)
        dtype = places_dtype(self.times.size)
        self._first = np.arange(len(self.times), dtype=dtype) * (self.times.shape[1] * self.times.shape[2])

    def listed(self, names: dict[Any, str] | None, attrs: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return all values to list, and the times (episode, component, value) as float64, NaN where never."""
        place = np.arange(1, len(self.values) + 1)  # 0 for a value that was not met
        values, place = list_values(self.values, place, names, attrs, self.name)
        times = np.where(self.times == NEVER, np.nan, self.times)
        if np.array_equal(place, np.arange(1, len(self.values) + 1)):
            return values, times
        wider = np.full((*times.shape[:2], len(values)), np.nan)
        wider[..., place > 0] = times[..., place[place > 0] - 1]
        return values, wider
