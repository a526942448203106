"""First times of events in each episode, as plain arrays: from conditions, and in how many steps they could come."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import is_blank
from trajlab.analysis.events.conditions import ConditionReader, condition_text, named_conditions
from trajlab.analysis.kernels.minima import NEVER, lower_to
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.schema import require_whole, validate
from trajlab.names import CUT, END_REASON, EPISODE, EVENT, EVENT_NAMES, LENGTH, TRUNCATED


@dataclasses.dataclass(frozen=True, eq=False)
class FirstTimes:
    """First times of events.

    Attributes
    ----------
    dims : tuple of str
        `episode`, before it `event` where there are several, and behind it the events' own.
    coords : mapping
        Coordinates of those dims, `episode` apart.
    times : array (...) float64
        Labels of `time`, NaN where it was not reached.
    stop : array (...) int64
        In how many steps it could be reached: as many as the episode has, or fewer where an agent was done before.
    """

    dims: tuple[str, ...]
    coords: Mapping[Any, Any]
    times: np.ndarray
    stop: np.ndarray

    def by_episode(self, values: np.ndarray) -> np.ndarray:
        """Return values (episode,) in the shape in which they go with those of the events."""
        return values.reshape([-1 if dim == EPISODE else 1 for dim in self.dims])

    def is_open(self, ds: xr.Dataset) -> np.ndarray:
        """Return whether an event might have come later (...): the episode was cut or truncated, and nothing done."""
        was_cut = np.isin(ds.variables[END_REASON].values.astype(str), (CUT, TRUNCATED))
        return self.by_episode(was_cut) & (self.stop == self.by_episode(ds.variables[LENGTH].values))


def find_first(ds: xr.Dataset, condition: Any, what: str) -> tuple[FirstTimes, str]:
    """Return the first times of one condition, or of several, and a text that names them."""
    validate(ds)
    require_whole(ds, what)
    conditions, is_named = named_conditions(condition)
    found = {name: _of_one(ds, one, name) for name, one in conditions.items()}
    text = ", ".join(name or condition_text(one) for name, one in conditions.items())
    return (_joined(found) if is_named else found[""]), text


def _of_one(ds: xr.Dataset, condition: Any, name: str) -> FirstTimes:
    """Return the first times of one condition; an empty Dataset without fields cannot be asked for it."""
    if is_blank(ds):
        return FirstTimes((EPISODE,), {}, np.zeros(0), np.zeros(0, np.int64))
    what = _said(condition, name)
    reader = ConditionReader(ds, condition, what)
    _check_free(reader.dims, what)
    episodes, width = ds.sizes[EPISODE], int(np.prod(reader.shape, dtype=np.int64))
    smallest = np.full(episodes * width, NEVER)
    stop = AgentSteps(ds, reader.alive)
    for batch in reader:
        hits = batch.hits
        lower_to(smallest, hits.episode * width + hits.component, hits.time)
        if batch.taking_part is not None:
            stop.add(*batch.taking_part)
    shape = (episodes, *reader.shape)
    times = np.where(smallest == NEVER, np.nan, smallest).reshape(shape)
    return FirstTimes((EPISODE, *reader.dims), reader.coords, times, stop.result(shape))


def _said(condition: Any, name: str) -> str:
    """Return what errors call a condition."""
    field = condition if isinstance(condition, str) else ""
    text = f"condition {name or field!r}" if name or field else "condition"
    return f"{text} ({field!r})" if name and field not in ("", name) else text


class AgentSteps:
    """How many steps of each episode each component of a field can be of: all, or those its agent takes part in."""

    def __init__(self, ds: xr.Dataset, alive: AliveRows) -> None:
        """Start with no transition."""
        self.alive, self.length = alive, ds.variables[LENGTH].values.astype(np.int64)
        self.counts = np.zeros((len(self.length), alive.num_agents), np.int64)

    def add(self, episode: np.ndarray, takes_part: np.ndarray) -> None:
        """Take transitions (M,), and which agents take part in them (M, agent)."""
        index = episode[:, np.newaxis] * self.alive.num_agents + np.arange(self.alive.num_agents)
        self.counts += np.bincount(index[takes_part], minlength=self.counts.size).reshape(self.counts.shape)

    def result(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return the number for each episode and component (episode, ...)."""
        own = [1] * (len(shape) - 1)
        if not self.alive.needed:
            return np.broadcast_to(self.length.reshape(-1, *own), shape)
        if self.alive.axis is not None:
            own[self.alive.axis] = self.alive.num_agents
        return np.broadcast_to(self.counts.reshape(-1, *own), shape)


def _check_free(dims: tuple[str, ...], what: str) -> None:
    taken = [dim for dim in dims if dim in EVENT_NAMES]
    if taken:
        raise ValueError(f"{what} has the dim {taken[0]!r}, a name that the result uses itself; rename it first")


def _joined(found: Mapping[str, FirstTimes]) -> FirstTimes:
    """Return several events as one array; raise ValueError where they have different dims."""
    shapes = {name: dict(zip(one.dims, one.times.shape, strict=True)) for name, one in found.items()}
    if len({tuple(sizes.items()) for sizes in shapes.values()}) > 1:
        said = ", ".join(f"{name!r} has {sizes}" for name, sizes in shapes.items())
        raise ValueError(f"conditions of one mapping have to have the same dims; {said}. Ask for them one by one")
    some = next(iter(found.values()))
    times, stop = np.stack([one.times for one in found.values()]), np.stack([one.stop for one in found.values()])
    return FirstTimes((EVENT, *some.dims), {**some.coords, EVENT: list(found)}, times, stop)
