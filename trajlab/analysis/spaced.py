"""Whole episodes of a field, those of a group side by side and with room between them, tile by tile."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import xarray as xr

from trajlab.analysis.common import as_rows, evenly_spread
from trajlab.analysis.kernels.spacing import Spacing, alike_in_length
from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import component_count
from trajlab.dataset.flat_whole import read_flat, read_into
from trajlab.dataset.lazy import as_slice
from trajlab.names import EPISODE, LENGTH, TIME

MAX_PLACES, MAX_BYTES = 2**24, 2**28
"""What is held at once, where a single episode takes no more."""
TILE_PLACES = 2**17
"""Places of a tile, where a single episode takes no more: threads take turns less often where it is large."""

SAMPLED = 9
"""Episodes of each group that tell where its values lie."""


class SpacedTile(NamedTuple):
    """Episodes of one group, with `gap` places or more before, between and behind them.

    Attributes
    ----------
    group : int
    values : array (place, component)
        In the field's dtype; in the places between episodes the group's `fill`.
    starts, stops : array (episode,) of int
        First place of each, and the one behind its last, ascending.
    gap : int
    """

    group: int
    values: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    gap: int


class SpacedEpisodes:
    """The episodes of a Dataset that are in some group, each in one, for a field whose every transition counts."""

    def __init__(self, ds: xr.Dataset, name: str, of_episode: np.ndarray | None) -> None:
        """Take a field, and the group of each episode, below 0 for none; None for a single group of all."""
        self._ds = xr.Dataset({key: ds.variables[key] for key in (name, LENGTH, TIME)})
        self._name, self._counts, self._group = name, Cells.of(ds).counts, of_episode
        self._episodes = np.flatnonzero(self._counts if of_episode is None else (self._counts > 0) & (of_episode >= 0))

    def samples(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield each group with the values (M, component) of some of its episodes."""
        if not len(self._episodes):
            return
        group = np.zeros(len(self._episodes), np.int8) if self._group is None else self._group[self._episodes]
        order = np.argsort(group, kind="stable")
        edges = _ends(group[order])
        codes = group[order[edges[:-1]]].tolist()
        some = [begin + evenly_spread(end - begin, SAMPLED) for begin, end in pairwise(edges.tolist())]
        chosen = [self._episodes[order[places]] for places in some]
        rows_of = np.array([self._counts[episodes].sum() for episodes in chosen])
        for first, last in pairwise(_ends(np.cumsum(rows_of) // self._most).tolist()):
            rows = as_rows(read_flat(self._of(np.concatenate(chosen[first:last])), [self._name])[self._name])
            yield from zip(codes[first:last], np.split(rows, np.cumsum(rows_of[first:last])[:-1]), strict=True)

    def tiles(self, most: int, fill: np.ndarray) -> Iterator[list[SpacedTile]]:
        """Yield all episodes, as tiles of what is held in memory at once.

        `most` is the most places that are needed between them, `fill` (group, component) is what they hold.
        """
        for chosen, gap in alike_in_length(self._counts[self._episodes], most):
            for episodes in self._ranges(self._episodes if chosen is None else self._episodes[chosen], gap):
                yield self._read(episodes, gap, fill)

    def _ranges(self, episodes: np.ndarray, gap: int) -> Iterator[np.ndarray]:
        """Yield ranges of episodes, so many as may be held at once, or else a single one."""
        yield from np.split(episodes, _ends(np.cumsum(self._counts[episodes] + gap) // self._most)[1:-1])

    @property
    def _most(self) -> int:
        """How many places may be held at once."""
        variable = self._ds.variables[self._name]
        width = variable.dtype.itemsize * component_count(variable)
        return max(min(MAX_PLACES, MAX_BYTES // max(width, 1)), 1)

    def _read(self, episodes: np.ndarray, gap: int, fill: np.ndarray) -> list[SpacedTile]:
        """Return some episodes as tiles."""
        variable = self._ds.variables[self._name]
        counts = self._counts[as_slice(episodes)]
        given = None if self._group is None else self._group[episodes]
        spacing = Spacing.of(counts, gap, group=given)
        group = np.zeros(len(counts), np.int8) if given is None else given[spacing.order]
        edges, starts, stops = _ends(group), spacing.starts, spacing.stops
        values = np.empty((spacing.size, *variable.shape[2:]), variable.dtype)
        rows = values.reshape(len(values), fill.shape[1])
        for begin, end in pairwise(edges.tolist()):
            rows[starts[begin] - gap : stops[end - 1] + gap] = fill[group[begin]]
        read_into({self._name: values}, self._of(episodes), spacing.first)
        tiles = []
        for begin, end in pairwise(np.union1d(edges, _ends(stops // TILE_PLACES)).tolist()):
            offset = int(starts[begin]) - gap
            tile = rows[offset : int(stops[end - 1]) + gap]
            own = starts[begin:end] - offset, stops[begin:end] - offset
            tiles.append(SpacedTile(int(group[begin]), tile, *own, gap))
        return tiles

    def _of(self, episodes: np.ndarray) -> xr.Dataset:
        """Return some episodes."""
        return self._ds.isel({EPISODE: as_slice(episodes)})


def _ends(numbers: np.ndarray) -> np.ndarray:
    """Return where equal neighbours end, 0 and the length among them.

    >>> _ends(np.array([4, 4, 5]))
    array([0, 2, 3])
    """
    return np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1, [len(numbers)]])
