"""Where the transitions of a Dataset lie, counted through episode after episode."""

import dataclasses
import functools

import numpy as np
import xarray as xr

from trajlab.names import LENGTH, TIME

MANY_OF = 64
"""From one transition of so many on, all are located at once."""


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """Where the transitions of a Dataset lie: in each episode, those whose label is below its length.

    Attributes
    ----------
    counts : array (episode,) int64
        Number of transitions of each episode that lie within the Dataset.
    labels : array (time,) int64
        Labels of `time`, ascending.
    order : array (time,) int64 or None
        Positions of `labels` along `time`; None where they stand in order.
    """

    counts: np.ndarray
    labels: np.ndarray
    order: np.ndarray | None

    @classmethod
    def of(cls, ds: xr.Dataset) -> "Cells":
        """Find them from the coordinates `length` and `time`."""
        labels = ds.variables[TIME].values.astype(np.int64)
        order = None if (np.diff(labels) > 0).all() else np.argsort(labels, kind="stable")
        labels = labels if order is None else labels[order]
        length = ds.variables[LENGTH].values.astype(np.int64)
        if len(labels) and labels[-1] - labels[0] == len(labels) - 1:
            return cls(np.minimum(np.maximum(length - labels[0], 0), len(labels)), labels, order)
        return cls(np.searchsorted(labels, length, side="left").astype(np.int64), labels, order)

    @functools.cached_property
    def offsets(self) -> np.ndarray:
        """Number of the first transition of each episode, all counted through, and their total, (episode + 1,)."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def positions(self, steps: np.ndarray) -> np.ndarray:
        """Return the positions along `time` of steps counted in label order."""
        return steps if self.order is None else self.order[steps]

    def steps_of(self, time: np.ndarray) -> np.ndarray:
        """Return the place of labels of `time` among `labels`."""
        if self.has_gaps:
            return np.searchsorted(self.labels, time)
        return time - self.labels[0] if len(self.labels) and self.labels[0] else time

    @functools.cached_property
    def has_gaps(self) -> bool:
        """Whether some labels between the first and the last are not there."""
        return len(self.labels) > 0 and bool(self.labels[-1] - self.labels[0] != len(self.labels) - 1)

    def span(self, start: int, stop: int) -> "CellSpan":
        """Return transitions `start` to `stop`, counted through episode after episode."""
        first = int(np.searchsorted(self.offsets, start, side="right")) - 1
        last = int(np.searchsorted(self.offsets, stop, side="left"))
        counts = np.diff(np.clip(self.offsets[first : last + 1], start, stop))
        return CellSpan(self, start, stop, np.arange(first, last), counts)


@dataclasses.dataclass(frozen=True, eq=False)
class CellSpan:
    """Transitions `start` to `stop` of `cells`; `counts` of them in each of `episodes`."""

    cells: Cells
    start: int
    stop: int
    episodes: np.ndarray
    counts: np.ndarray

    def _spread(self, per_episode: np.ndarray) -> np.ndarray:
        return np.repeat(per_episode, self.counts)

    @functools.cached_property
    def episode(self) -> np.ndarray:
        """Position along `episode`, (M,)."""
        return self._spread(self.episodes)

    @functools.cached_property
    def step(self) -> np.ndarray:
        """Number of each transition in its episode, counted in label order, (M,)."""
        return np.arange(self.start, self.stop) - self._spread(self.cells.offsets[self.episodes])

    @functools.cached_property
    def position(self) -> np.ndarray:
        """Position along `time`, (M,)."""
        return self.cells.positions(self.step)

    def flat(self, width: int) -> np.ndarray:
        """Return ``episode * width + position``, (M,), without making either where that can be avoided."""
        if self.cells.order is not None:
            return self.episode * width + self.position
        shift = self.episodes * width - self.cells.offsets[self.episodes]
        return np.arange(self.start, self.stop) + self._spread(shift)

    @functools.cached_property
    def time(self) -> np.ndarray:
        """Label of `time`, (M,)."""
        return self.cells.labels[self.step]

    def locate(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return position along `episode` and label of `time` of some transitions, counted from `start`."""
        if len(places) * MANY_OF > self.stop - self.start:
            return self.episode[places], self.time[places]
        numbers = self.start + places
        episode = np.searchsorted(self.cells.offsets, numbers, side="right") - 1
        return episode, self.cells.labels[numbers - self.cells.offsets[episode]]
