"""Episodes cut into equal parts, and the mean of a field over each: alignment by fraction."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from trajlab.analysis.alignment.alignments import Alignment
from trajlab.analysis.common import as_rows
from trajlab.analysis.kernels.part_means import mean_in_parts
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.cells import Cells
from trajlab.dataset.flat import FlatBatch
from trajlab.dataset.ordered import iter_whole
from trajlab.dataset.ranges import may_move
from trajlab.names import ALIVE, EPISODE, FRACTION, LENGTH, MASK, TIME

MAX_ROWS = 2**18
"""Transitions read at once where episodes come in order of length: more of them are as long as each other."""
MAX_OVERLAPS = 2**18
"""Overlaps of transitions with parts held at once, or those of one episode."""
MAX_SORTED = 2**21
"""Transitions sorted by the length of their episodes at once, where the Dataset cannot be read in that order."""


@dataclasses.dataclass(frozen=True, eq=False)
class InParts(Alignment):
    """Equal parts of whole episodes: each episode has one value in each, its mean there.

    Transition `t` of `L` covers the episode from ``t / L`` to ``(t + 1) / L``, and counts in a part as far as it
    covers it. So an episode shorter than the parts has a value in each, too.

    Attributes
    ----------
    cells : Cells
        Of whole episodes.
    parts : int
        How many parts an episode has.
    first, stop : int
        Which of them have a place.
    name : str
        The field.
    alive : AliveRows
        Those of the field.
    """

    cells: Cells
    parts: int
    first: int
    stop: int
    name: str
    alive: AliveRows

    dim: ClassVar[str] = FRACTION
    counted: ClassVar[str] = "complete episodes"

    @property
    def labels(self) -> np.ndarray:
        """The middle of each part."""
        return (np.arange(self.first, self.stop) + 0.5) / self.parts

    @property
    def attrs(self) -> dict[str, Any]:
        """What it is a fraction of."""
        return {"long_name": "fraction of the episode", "units": "1"}

    @property
    def most_rows(self) -> int:
        """One for each part of each episode."""
        return len(self.cells.counts) * (self.stop - self.first)

    @property
    def width(self) -> float:
        """How wide a part is."""
        return 1 / self.parts

    def packs(self, dtype: np.dtype) -> np.dtype:
        """Return the dtype of means."""
        return np.dtype(np.float64)

    def batches(self, ds: xr.Dataset, fields: Iterable[str]) -> Iterator[FlatBatch]:
        """Yield the means (episode * part, ...) of each part of each episode in place of transitions.

        Of `alive` it is whether an agent takes part in any transition there. `time` is the number of the part.
        """
        fields = list(fields)
        order, most = np.arange(len(self.cells.counts)), MAX_SORTED
        if may_move(ds.variables[name] for name in fields):
            order, most = np.argsort(self.cells.counts, kind="stable"), MAX_ROWS
            ds = xr.Dataset({name: ds.variables[name] for name in (*fields, LENGTH, TIME)}).isel({EPISODE: order})
        for batch, span in iter_whole(ds, fields, most):
            values, length, episodes = _by_length(batch.values, span.counts, order[span.episodes])
            stops = np.cumsum(length)
            for begin, end in _ranges(length + self.parts):
                rows = slice(int(stops[begin] - length[begin]), int(stops[end - 1]))
                part = {key: array[rows] for key, array in values.items()}
                yield self._means(part, length[begin:end], episodes[begin:end])

    def _means(self, values: Mapping[str, np.ndarray], length: np.ndarray, episodes: np.ndarray) -> FlatBatch:
        """Return the means of some whole episodes of these lengths."""
        size = len(length) * self.parts
        batch = FlatBatch(values, lambda: np.zeros(0, np.intp), lambda: np.zeros(0, np.int64))
        out: dict[str, np.ndarray] = {}
        for key, array in values.items():
            rows = as_rows(array)
            if key in (ALIVE, MASK):
                found = mean_in_parts(rows == 1, None, length, self.parts) > 0
            else:
                missing = self.alive.missing(batch, array.shape)
                found = mean_in_parts(rows, missing, length, self.parts)
            out[key] = found.reshape(size, *array.shape[1:])
        return FlatBatch(
            out, lambda: np.repeat(episodes, self.parts), lambda: np.tile(np.arange(self.parts), len(length))
        )

    def places(self, batch: FlatBatch) -> np.ndarray:
        """Return the place of each part."""
        if (self.first, self.stop) == (0, self.parts):
            return batch.time
        inside = (batch.time >= self.first) & (batch.time < self.stop)
        return np.where(inside, batch.time - self.first, -1)

    def at(self, batch: FlatBatch) -> np.ndarray:
        """Return the middle of what a transition (not a part) covers."""
        return (batch.time + 0.5) / self.cells.counts[batch.episode]

    def count(self, group: np.ndarray, size: int) -> np.ndarray:
        """Return how many episodes there are: each has a value in each part."""
        return np.repeat(np.bincount(group[group >= 0], minlength=size)[:, np.newaxis], self.stop - self.first, axis=1)

    def narrowed(self, ds: xr.Dataset, start: int, stop: int) -> tuple[xr.Dataset, "InParts"]:
        """Return some of the parts."""
        return ds, dataclasses.replace(self, first=self.first + start, stop=self.first + stop)

    def take(self, episodes: np.ndarray) -> "InParts":
        """Return that of some episodes."""
        return dataclasses.replace(self, cells=dataclasses.replace(self.cells, counts=self.cells.counts[episodes]))


def _by_length(
    values: Mapping[str, np.ndarray], length: np.ndarray, episodes: np.ndarray
) -> tuple[Mapping[str, np.ndarray], np.ndarray, np.ndarray]:
    """Return whole episodes with those of one length, which are cut alike, side by side."""
    if (np.diff(length) >= 0).all():
        return values, length, episodes
    order = np.argsort(length, kind="stable")
    first, length = (np.cumsum(length) - length)[order], length[order]
    rows = np.arange(length.sum()) + np.repeat(first - (np.cumsum(length) - length), length)
    return {key: array[rows] for key, array in values.items()}, length, episodes[order]


def _ranges(overlaps: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield ranges of episodes with at most `MAX_OVERLAPS` overlaps (episode,), or else a single one."""
    stops = np.cumsum(overlaps)
    begin = 0
    while begin < len(stops):
        before = stops[begin - 1] if begin else 0
        end = max(int(np.searchsorted(stops, before + MAX_OVERLAPS, side="right")), begin + 1)
        yield begin, end
        begin = end
