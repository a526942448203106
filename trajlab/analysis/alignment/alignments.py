"""By what the steps of episodes stand side by side: by their start, or by something that happens in each."""

import abc
import dataclasses
import functools
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal

import numpy as np
import xarray as xr

from trajlab.dataset.cells import Cells
from trajlab.dataset.flat import FlatBatch, iter_flat
from trajlab.dataset.windows import iter_windows
from trajlab.names import LAG, MASK, TIME

Align = Literal["start", "end", "fraction"]
"""What a trace may be aligned by, beside the times of an event."""


class Alignment(abc.ABC):
    """Gives transitions their places along the axis of a trace.

    Attributes
    ----------
    dim : str
        What the axis is called.
    labels : array (place,)
        Ascending.
    attrs : dict
        Those of the axis' coordinate.
    counted : str
        What `n` counts at a place.
    width : float
        How far one place is from the next.
    most_rows : int
        How many rows there are at all places together, at most.
    is_total : bool
        Whether every transition has a place.
    """

    dim: ClassVar[str]
    counted: ClassVar[str] = "episodes with such a step"
    is_total: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def labels(self) -> np.ndarray:
        """Labels of the places, ascending."""

    @property
    @abc.abstractmethod
    def attrs(self) -> dict[str, Any]:
        """Attributes of the axis' coordinate."""

    @property
    @abc.abstractmethod
    def most_rows(self) -> int:
        """How many rows there are at all places together, at most."""

    @property
    def width(self) -> float:
        """How far one place is from the next."""
        return 1.0

    def packs(self, dtype: np.dtype) -> np.dtype:
        """Return the dtype in which rows of a field are held; bools that `where` turned to objects become floats."""
        return np.dtype(np.float64) if dtype.kind == "O" else dtype

    def transitions(self, ds: xr.Dataset, fields: Iterable[str]) -> Iterator[FlatBatch]:
        """Yield what `at` tells of where it stands, as `iter_flat` does."""
        return iter_flat(ds, fields)

    def batches(self, ds: xr.Dataset, fields: Iterable[str]) -> Iterator[FlatBatch]:
        """Yield what `places` gives places to."""
        return self.transitions(ds, fields)

    @abc.abstractmethod
    def places(self, batch: FlatBatch) -> np.ndarray:
        """Return the place of each transition (M,), -1 for none."""

    @abc.abstractmethod
    def at(self, batch: FlatBatch) -> np.ndarray:
        """Return where each transition stands along the axis (M,), also one that has no place."""

    @abc.abstractmethod
    def count(self, group: np.ndarray, size: int) -> np.ndarray | None:
        """Return how many transitions stand at each place (group, place), or None where lengths do not tell.

        `group` (episode,) is below 0 for an episode in none of the `size` groups.
        """

    @abc.abstractmethod
    def narrowed(self, ds: xr.Dataset, start: int, stop: int) -> "tuple[xr.Dataset, Alignment]":
        """Return what has the places `start` to `stop` only, and the part of the Dataset to read for it."""

    @abc.abstractmethod
    def take(self, episodes: np.ndarray) -> "Alignment":
        """Return the same for some episodes, by position, of the Dataset."""


@dataclasses.dataclass(frozen=True, eq=False)
class FromStart(Alignment):
    """Steps stand where they are: at their label of `time`."""

    cells: Cells
    time_attrs: dict[Any, Any] = dataclasses.field(default_factory=dict)

    dim: ClassVar[str] = TIME
    counted: ClassVar[str] = "episodes alive"
    is_total: ClassVar[bool] = True

    @classmethod
    def of(cls, ds: xr.Dataset) -> "FromStart":
        """Return that of a Dataset."""
        return cls(Cells.of(ds), ds.variables[TIME].attrs)

    @property
    def labels(self) -> np.ndarray:
        """Labels of `time`."""
        return self.cells.labels

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of `time`."""
        return self.time_attrs

    @property
    def most_rows(self) -> int:
        """All transitions."""
        return len(self.cells)

    def places(self, batch: FlatBatch) -> np.ndarray:
        """Return the step of each transition, counted among `labels`."""
        return self.cells.steps_of(batch.time)

    def at(self, batch: FlatBatch) -> np.ndarray:
        """Return the label of `time`."""
        return batch.time

    def count(self, group: np.ndarray, size: int) -> np.ndarray:
        """Return how many episodes are longer than each step."""
        kept, steps = group >= 0, len(self.labels)
        last = np.bincount(group[kept] * (steps + 1) + self.cells.counts[kept], minlength=size * (steps + 1))
        return np.cumsum(last.reshape(size, steps + 1)[:, ::-1], axis=1)[:, ::-1][:, 1:]

    def narrowed(self, ds: xr.Dataset, start: int, stop: int) -> tuple[xr.Dataset, "FromStart"]:
        """Return a range of steps."""
        order = slice(start, stop) if self.cells.order is None else self.cells.order[start:stop]
        part = ds.isel({TIME: order})
        return part, FromStart.of(part)

    def take(self, episodes: np.ndarray) -> "FromStart":
        """Return that of some episodes."""
        return dataclasses.replace(self, cells=dataclasses.replace(self.cells, counts=self.cells.counts[episodes]))


@dataclasses.dataclass(frozen=True, eq=False)
class FromEvent(Alignment):
    """Steps stand where they are seen from a step of their episode: 0 is that step, and what is before it negative.

    Attributes
    ----------
    cells : Cells
    origin : array (episode,) int64
        The label of `time` that stands at 0.
    lags : array (place,) int64
        One after the other.
    long_name : str
    """

    cells: Cells
    origin: np.ndarray
    lags: np.ndarray
    long_name: str

    dim: ClassVar[str] = LAG

    @property
    def labels(self) -> np.ndarray:
        """Steps from the one at 0."""
        return self.lags

    @property
    def attrs(self) -> dict[str, Any]:
        """What the lags count from."""
        return {"long_name": self.long_name}

    @property
    def most_rows(self) -> int:
        """All transitions, or the window of each episode."""
        return min(len(self.cells), len(self.origin) * len(self.lags))

    def places(self, batch: FlatBatch) -> np.ndarray:
        """Return the place of each transition that lies within the window."""
        if not len(self.lags):
            return np.full(len(batch.time), -1)
        place = self.at(batch)
        place -= self.lags[0]
        if place.min(initial=0) >= 0 and place.max(initial=0) < len(self.lags):
            return place
        return np.where(place.view(np.uint64) < len(self.lags), place, -1)  # what is negative is a large number there

    def at(self, batch: FlatBatch) -> np.ndarray:
        """Return the steps from the one at 0."""
        return batch.time_plus(self._minus_origin)

    @functools.cached_property
    def _minus_origin(self) -> np.ndarray:
        """What takes a label of `time` to its place, (episode,)."""
        return -self.origin

    def count(self, group: np.ndarray, size: int) -> np.ndarray | None:
        """Return how many episodes have a transition at each lag."""
        labels, width = self.cells.labels, len(self.lags) + 1
        if len(labels) and labels[-1] - labels[0] >= len(labels):
            return None
        kept = group >= 0
        first = (labels[0] if len(labels) else 0) - self.origin - (self.lags[0] if len(self.lags) else 0)
        begun, ended = (
            np.bincount(group[kept] * width + np.clip(place, 0, width - 1)[kept], minlength=size * width)
            for place in (first, first + self.cells.counts)
        )
        return np.cumsum((begun - ended).reshape(size, width), axis=1)[:, :-1]

    def narrowed(self, ds: xr.Dataset, start: int, stop: int) -> tuple[xr.Dataset, "FromEvent"]:
        """Return a range of lags."""
        return ds, dataclasses.replace(self, lags=self.lags[start:stop])

    def take(self, episodes: np.ndarray) -> "FromEvent":
        """Return that of some episodes."""
        cells = dataclasses.replace(self.cells, counts=self.cells.counts[episodes])
        return dataclasses.replace(self, cells=cells, origin=self.origin[episodes])


@dataclasses.dataclass(frozen=True, eq=False)
class InWindows(Alignment):
    """Steps stand where a Dataset of windows has them."""

    lags: np.ndarray
    lag_attrs: dict[Any, Any]
    num_transitions: int

    dim: ClassVar[str] = LAG

    @classmethod
    def of(cls, ds: xr.Dataset) -> "InWindows":
        """Return that of a Dataset that `align` made."""
        return cls(ds.variables[LAG].values, ds.variables[LAG].attrs, int(ds.variables[MASK].values.sum()))

    @property
    def labels(self) -> np.ndarray:
        """Steps from the event."""
        return self.lags

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of `lag`."""
        return self.lag_attrs

    @property
    def most_rows(self) -> int:
        """All transitions."""
        return self.num_transitions

    def transitions(self, ds: xr.Dataset, fields: Iterable[str]) -> Iterator[FlatBatch]:
        """Yield transitions whose `time` is the position along `lag`."""
        return iter_windows(ds, fields)

    def places(self, batch: FlatBatch) -> np.ndarray:
        """Return the position along `lag`."""
        return batch.time

    def at(self, batch: FlatBatch) -> np.ndarray:
        """Return the steps from the event."""
        return self.lags[batch.time]

    def count(self, group: np.ndarray, size: int) -> None:
        """Tell nothing: the mask does."""

    def narrowed(self, ds: xr.Dataset, start: int, stop: int) -> tuple[xr.Dataset, "InWindows"]:
        """Return a range of lags."""
        part = ds.isel({LAG: slice(start, stop)})
        return part, InWindows.of(part)

    def take(self, episodes: np.ndarray) -> "InWindows":
        """Return the same."""
        return self
