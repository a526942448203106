"""Which agents take part in a transition."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from trajlab import names
from trajlab.block.layout import EVERY_AGENT
from trajlab.dataset.lazy import Inner, lazy_variable, vector
from trajlab.dataset.padding_attrs import about_padding
from trajlab.dataset.source import EpisodeFieldArray, PerTransition, Source
from trajlab.padding import padding_value

READ_CELLS = 2**20
"""Flags read in one go."""


@dataclasses.dataclass(frozen=True)
class AgentRows:
    """What tells which agents take part.

    Attributes
    ----------
    count : int
        Number of agents.
    flags : tuple of str
        Stored fields (agent,) that are set where an agent is done. None: all agents are always alive.
    is_late : bool
        Whether a row carries the flags of the one before.
    """

    count: int
    flags: tuple[str, ...]
    is_late: bool


class AliveArray(PerTransition):
    """Whether each agent takes part in a transition: whether no earlier one of its episode left it done.

    An agent takes part in the transition that ends it. In the first one of an episode all agents do, unless its start
    was not seen and flags say that some, but not all, may be done already.
    """

    def __init__(self, source: Source, agents: AgentRows) -> None:
        """Show which agents take part in the transitions of a source."""
        super().__init__(source, (agents.count,), np.bool_)
        self.agents = agents
        self._stop = np.full((len(source.episodes.length), agents.count), -1)

    def recorded(self, episode: np.ndarray, time: np.ndarray, inner: Inner) -> np.ndarray:
        """Return which agents take part in transitions."""
        (key,) = inner
        alive = time[:, np.newaxis] < self.stops(episode)[:, vector(key, self.agents.count)]
        return alive if isinstance(key, slice | np.ndarray) else alive[:, 0]

    def stops(self, episode: np.ndarray) -> np.ndarray:
        """Return the first step (M, agent) in which each agent takes no part; whole episodes are read for it, once."""
        stop = self._stop.take(episode, axis=0)
        if stop.min(initial=0) >= 0:
            return stop
        unknown = np.unique(episode[stop[:, 0] < 0])
        length = self.source.episodes.length[unknown]
        if not self.agents.flags:
            self._stop[unknown] = length[:, np.newaxis]
        ends = np.cumsum(length)
        step = READ_CELLS // self.agents.count + 1
        first = 0
        while self.agents.flags and first < len(unknown):
            start = ends[first] - length[first]
            last = max(int(np.searchsorted(ends, start + step, side="right")), first + 1)
            self._find(unknown[first:last], length[first:last])
            first = last
        return self._stop[episode]

    def _find(self, episode: np.ndarray, length: np.ndarray) -> None:
        """Find the stops of some episodes."""
        place = np.repeat(np.arange(len(episode)), length)
        time = np.arange(len(place)) - np.repeat(np.cumsum(length) - length, length)
        done = np.zeros((len(place), self.agents.count), bool)
        for name in self.agents.flags:
            done |= self.source.read(name, episode[place], time, (slice(None),)).astype(bool)
        if self.agents.is_late:
            # They belong to the episode before; but where the start was not seen, perhaps to a row of this one.
            is_first = time == 0
            is_first[is_first] = self.source.episodes.start_seen[episode] | done[is_first].all(axis=1)
            done[is_first] = False
        cell, agent = np.nonzero(done)
        stop = np.repeat(length[:, np.newaxis], self.agents.count, axis=1)
        np.minimum.at(stop, (place[cell], agent), time[cell] + (0 if self.agents.is_late else 1))
        if not self.agents.is_late:
            # Who is done in the first row may have been before, where the start was not seen: one row too few is better
            # than one of an agent that is gone.
            first = done[time == 0]
            stop[first & ~(self.source.episodes.start_seen[episode] | first.all(axis=1))[:, np.newaxis]] = 0
        self._stop[episode] = stop


class LastAliveArray(EpisodeFieldArray):
    """One recorded field at the last transition of each episode that its agent takes part in, padding where none is."""

    def __init__(self, source: Source, name: str, alive: AliveArray, agent: int | None) -> None:
        """Show the field `name`, which belongs to one agent, by its place, or has an axis of them."""
        super().__init__(source, name, "last")
        self.alive, self.agent = alive, agent

    def read(self, cells: tuple[np.ndarray, ...], inner: Inner) -> np.ndarray:
        """Return the values of some episodes."""
        (episode,) = cells
        stops = self.alive.stops(episode)
        if self.agent is not None:
            return self._at(episode, stops[:, self.agent], inner)
        key, *rest = inner
        parts = [self._at(episode, stops[:, agent], (agent, *rest)) for agent in vector(key, self.shape[1])]
        return np.stack(parts, axis=1) if isinstance(key, slice | np.ndarray) else parts[0]

    def _at(self, episode: np.ndarray, stop: np.ndarray, inner: Inner) -> np.ndarray:
        values = self.each.recorded(episode, np.maximum(stop - 1, 0), inner)
        values[stop == 0] = padding_value(self.dtype)
        return values


def alive_variable(alive: AliveArray) -> xr.Variable:
    """Return the coordinate `alive`, lazy."""
    attrs: dict[str, Any] = {
        **about_padding(np.dtype(bool)),
        "long_name": names.ALIVE,
        names.ROLE_ATTR: names.ALIVE,
        names.AGENT_ATTR: EVERY_AGENT,
    }
    return lazy_variable((names.EPISODE, names.TIME, names.AGENT), alive, attrs)
