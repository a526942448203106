"""Episodes cut into equal parts, and the mean of a field over each: alignment by fraction."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from trajlab.analysis.alignment.alignments import Alignment
from trajlab.analysis.common import as_rows
from trajlab.analysis.kernels.moments import sum_by_index
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.cells import Cells
from trajlab.dataset.flat import FlatBatch
from trajlab.dataset.ordered import iter_whole
from trajlab.names import ALIVE, FRACTION, MASK

MAX_OVERLAPS = 2**18
"""Overlaps of transitions with parts held at once, or those of one episode."""


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
        offsets = self.cells.offsets
        for batch, span in iter_whole(ds, fields):
            first, last = int(span.episodes[0]), int(span.episodes[-1]) + 1
            overlaps = np.cumsum(self.cells.counts[first:last] + self.parts)
            begin = first
            while begin < last:
                before = overlaps[begin - first - 1] if begin > first else 0
                end = first + int(np.searchsorted(overlaps, before + MAX_OVERLAPS, side="right"))
                end = max(end, begin + 1)
                rows = slice(int(offsets[begin] - offsets[first]), int(offsets[end] - offsets[first]))
                yield self._means({key: array[rows] for key, array in batch.values.items()}, begin, end)
                begin = end

    def _means(self, values: Mapping[str, np.ndarray], begin: int, end: int) -> FlatBatch:
        """Return the means of some whole episodes, `begin` to `end`."""
        length = self.cells.counts[begin:end]
        row, place, weight = overlaps_of(length, self.parts)
        size = len(length) * self.parts
        batch = FlatBatch(values, lambda: np.zeros(0, np.intp), lambda: np.zeros(0, np.int64))
        out: dict[str, np.ndarray] = {}
        for key, array in values.items():
            rows = as_rows(array).astype(np.float64)
            if key in (ALIVE, MASK):
                found = sum_by_index(place, (rows[row] == 1) * weight[:, np.newaxis], size) > 0
            else:
                found = self._weighted(rows, self.alive.missing(batch, array.shape), row, place, weight, size)
            out[key] = found.reshape(size, *array.shape[1:])
        episode = np.repeat(np.arange(begin, end), self.parts)
        return FlatBatch(out, lambda: episode, lambda: np.tile(np.arange(self.parts), len(length)))

    @staticmethod
    def _weighted(
        rows: np.ndarray, missing: np.ndarray | None, row: np.ndarray, place: np.ndarray, weight: np.ndarray, size: int
    ) -> np.ndarray:
        """Return the means (size, component) of rows that are not missing, NaN where all are."""
        weights = np.broadcast_to(weight[:, np.newaxis], (len(row), rows.shape[1]))
        taken = rows[row]
        if missing is not None:
            is_missing = missing[row]
            weights, taken = np.where(is_missing, 0.0, weights), np.where(is_missing, 0.0, taken)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return sum_by_index(place, taken * weights, size) / sum_by_index(place, weights, size)

    def places(self, batch: FlatBatch) -> np.ndarray:
        """Return the place of each part."""
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


def overlaps_of(length: np.ndarray, parts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which transitions overlap with which equal parts of their episodes, and by how much.

    Parameters
    ----------
    length : array (episode,) int64
        Lengths of episodes that stand one behind the other.
    parts : int

    Returns
    -------
    row : array (overlap,)
        The transition, all counted through, ascending.
    place : array (overlap,)
        ``episode * parts + part``, ascending.
    weight : array (overlap,) float64
        The overlap as a share of the part.

    Examples
    --------
    >>> overlaps_of(np.array([3]), 2)
    (array([0, 1, 1, 2]), array([0, 0, 1, 1]), array([0.66666667, 0.33333333, 0.33333333, 0.66666667]))
    """
    episode = np.repeat(np.arange(len(length)), length)
    start = np.cumsum(length) - length
    time, of = np.arange(len(episode)) - start[episode], length[episode]
    first, last = time * parts // of, ((time + 1) * parts - 1) // of
    count = last - first + 1
    row = np.repeat(np.arange(len(episode)), count)
    part = np.arange(len(row)) - np.repeat(np.cumsum(count) - count - first, count)
    time, of = time[row], of[row]
    covered = np.minimum((time + 1) * parts, (part + 1) * of) - np.maximum(time * parts, part * of)
    return row, episode[row] * parts + part, covered / of
