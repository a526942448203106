"""Which values of a field count, where several agents share an environment and some of them are done."""

from typing import NamedTuple

import numpy as np
import xarray as xr

from trajlab import names
from trajlab.block.layout import EVERY_AGENT
from trajlab.dataset.flat import FlatBatch


class AliveRows(NamedTuple):
    """Which agents a field's values in a transition belong to, and whether these take part.

    Attributes
    ----------
    needed : tuple of str
        The variables to read beside the field; empty where all of its values count.
    axis : int or None
        Where the axis of agents stands among the field's own dims; None where it has none.
    agent : int or None
        The one agent that the field belongs to, by its place in `alive`; None where it is of all that `alive` has.
    num_agents : int
        How many agents the field's axis has, else 1.
    """

    needed: tuple[str, ...] = ()
    axis: int | None = None
    agent: int | None = None
    num_agents: int = 1

    @classmethod
    def of(cls, ds: xr.Dataset, field: str) -> "AliveRows":
        """Find them for a field.

        Raises
        ------
        ValueError
            When the field belongs to an agent other than the one that was selected.
        """
        if not has_alive(ds) or field == names.ALIVE:
            return cls()
        variable, alive = ds.variables[field], ds.variables[names.ALIVE]
        owner = variable.attrs.get(names.AGENT_ATTR)
        if names.AGENT in variable.dims:
            axis, count = variable.dims[2:].index(names.AGENT), ds.sizes[names.AGENT]
            if owner in (None, EVERY_AGENT):
                return cls((names.ALIVE,), axis, None, count)
            # What one agent has was spread over all of them, as `where(ds["alive"])` does.
            return cls((names.ALIVE,), axis, cls._place(ds, field, owner), count)
        if names.AGENT not in alive.dims:
            selected = str(ds[names.AGENT].values) if names.AGENT in ds.coords else owner
            if owner not in (None, EVERY_AGENT, selected):
                raise ValueError(
                    f"{field!r} belongs to the agent {owner!r}, and {selected!r} was selected; take it before that"
                )
            return cls() if owner is None else cls((names.ALIVE,))
        if owner in (None, EVERY_AGENT):
            return cls()  # of no agent, or reduced over all of them
        return cls((names.ALIVE,), None, cls._place(ds, field, owner))

    @staticmethod
    def _place(ds: xr.Dataset, field: str, owner: str) -> int:
        """Return the place of a field's one agent along `agent`."""
        found = np.flatnonzero(ds[names.AGENT].values == owner)
        if not len(found):
            raise ValueError(f"{field!r} belongs to the agent {owner!r}, which was left out of this Dataset")
        return int(found[0])

    def mask(self, batch: FlatBatch) -> np.ndarray | None:
        """Return which agents take part (M, agent), None where all values count."""
        if not self.needed:
            return None
        alive = batch.values[names.ALIVE] == 1  # `where` may have made floats of it, with NaN
        alive = alive.reshape(len(alive), -1)
        if self.agent is None:
            return alive
        if self.axis is None:
            return alive[:, [self.agent]]
        return alive & (np.arange(self.num_agents) == self.agent)

    def cells(self, batch: FlatBatch) -> np.ndarray | None:
        """Return the places ``transition * agents + agent`` of the agents that take part; None where all values count.

        They are those of the rows that `by_agent` returns.
        """
        alive = self.mask(batch)
        return None if alive is None else np.flatnonzero(alive)

    def by_agent(self, values: np.ndarray) -> np.ndarray:
        """Return values (M, ...) as (M * agents, component)."""
        size = int(np.prod(values.shape[1:], dtype=np.int64)) // max(self.num_agents, 1)
        values = np.moveaxis(values, 1 + self.axis, 1) if self.axis else values
        return values.reshape(len(values) * self.num_agents, size)

    def over_field(self, values: np.ndarray, lead: tuple[int, ...], inner: tuple[int, ...]) -> np.ndarray:
        """Return values (..., component) by agents, as `by_agent` has them, over the sizes `lead` and a field's own."""
        if self.axis is None:
            return values.reshape(*lead, *inner)
        others = [size for place, size in enumerate(inner) if place != self.axis]
        return np.moveaxis(values.reshape(*lead, inner[self.axis], *others), len(lead), len(lead) + self.axis)

    def missing(self, batch: FlatBatch, shape: tuple[int, ...]) -> np.ndarray | None:
        """Return which components (M, component) of values (M, ...) do not count, None where all do."""
        alive = self.mask(batch)
        if alive is None:
            return None
        own = np.ones(len(shape) - 1, int)
        if self.axis is not None:
            own[self.axis] = self.num_agents
        out = np.broadcast_to(~alive.reshape(len(alive), *own), shape)
        return out.reshape(len(alive), int(np.prod(shape[1:], dtype=np.int64)))


def has_alive(ds: xr.Dataset) -> bool:
    """Say whether a Dataset tells which of several agents take part."""
    return names.ALIVE in ds.coords and ds.variables[names.ALIVE].attrs.get(names.ROLE_ATTR) == names.ALIVE
