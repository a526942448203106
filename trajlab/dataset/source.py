"""What a Dataset reads from: a log as it stood, and the episodes found in it."""

import abc
import dataclasses
from typing import Any

import numpy as np

from trajlab.block.block import Block
from trajlab.block.read import gather_host
from trajlab.block.view import LogView
from trajlab.dataset.lazy import Inner, LazyArray, count_cells
from trajlab.names import At
from trajlab.padding import padding_value, shown_dtype
from trajlab.segment import Episodes, RankMap


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """A log's rows at one moment, with the table of its episodes.

    Attributes
    ----------
    view : LogView
    ranks : RankMap
    episodes : Episodes
    iteration_rows, iterations : array (K,) int64
        Row from which each iteration holds, ascending, and its number.
    first_row : int
        Number of rows that the recording has given up before the log's first.
    """

    view: LogView
    ranks: RankMap
    episodes: Episodes
    iteration_rows: np.ndarray
    iterations: np.ndarray
    first_row: int = 0

    @property
    def longest(self) -> int:
        """Length of the longest episode, 0 where there is none."""
        return int(self.episodes.length.max(initial=0))

    def rows(self, episode: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Return the rows of transitions, or of the cell before the first (-1) or after the last one."""
        return self.ranks.rows(self.episodes.column[episode], self.episodes.start[episode] + time)

    def read(self, name: str, episode: np.ndarray, time: np.ndarray, inner: Inner = ()) -> np.ndarray:
        """Return one stored field at places as `rows` takes them, all (M,)."""
        return self.view.read(name, self.rows(episode, time), self.episodes.column[episode], inner)

    def iteration_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the iteration of each row."""
        return self.iterations[np.searchsorted(self.iteration_rows, rows, side="right") - 1]


class PerTransition(LazyArray):
    """An array (episode, time, ...) over a source, padded where no transition is."""

    def __init__(self, source: Source, inner: tuple[int, ...], dtype: Any) -> None:
        """Show `source` with the given inner shape and dtype."""
        super().__init__((len(source.episodes.length), source.longest, *inner), dtype)
        self.source = source

    def read(self, cells: tuple[np.ndarray, ...], inner: Inner) -> np.ndarray:
        """Return the values of cells, padding where they lie past an episode's end."""
        episode, time = cells
        there = time < self.source.episodes.length[episode]
        if there.all():
            return self.recorded(episode, time, inner)
        values = self.recorded(episode[there], time[there], inner)
        out = np.full((len(episode), *values.shape[1:]), padding_value(self.dtype), self.dtype)
        out[there] = values
        return out

    @abc.abstractmethod
    def recorded(self, episode: np.ndarray, time: np.ndarray, inner: Inner) -> np.ndarray:
        """Return the values of transitions."""

    def cells_of(self, vectors: list[np.ndarray]) -> int:
        """Return how many cells of a block are transitions."""
        episode, time = vectors
        return count_cells(self.source.episodes.length[episode], time)


class RowArray(PerTransition):
    """A value for each cell of the log, so that rows of it can be read as they lie."""

    @abc.abstractmethod
    def rows_between(self, block: Block, start: int, stop: int) -> np.ndarray:
        """Return rows `start` to `stop` of the log (rows, width, ...), all of a block; not to be written."""


class FieldArray(RowArray):
    """One recorded field."""

    def __init__(self, source: Source, name: str) -> None:
        """Show the field `name` of the source's log."""
        _, self.field = source.view.index_of(name)
        super().__init__(source, self.field.shape, shown_dtype(self.field.dtype))

    def recorded(self, episode: np.ndarray, time: np.ndarray, inner: Inner) -> np.ndarray:
        """Return the values of transitions; a moved field's stand one cell earlier."""
        return self.source.read(self.field.name, episode, time - int(self.field.moved), inner)

    def rows_between(self, block: Block, start: int, stop: int) -> np.ndarray:
        """Return rows of the log, perhaps a view of it."""
        return self.source.view.read_rows(self.field.name, block, start, stop)


class MadeArray(RowArray):
    """A value that was made for each cell of the log."""

    def __init__(self, source: Source, values: np.ndarray) -> None:
        """Show `values` (rows, width, ...) at the transitions of a source."""
        super().__init__(source, values.shape[2:], values.dtype)
        self.values = values

    def recorded(self, episode: np.ndarray, time: np.ndarray, inner: Inner) -> np.ndarray:
        """Return the values of transitions."""
        rows, columns = self.source.rows(episode, time), self.source.episodes.column[episode]
        return gather_host(self.values, rows, columns, inner)

    def rows_between(self, block: Block, start: int, stop: int) -> np.ndarray:
        """Return rows of the values, a view."""
        return self.values[start:stop]


class EpisodeFieldArray(LazyArray):
    """One recorded field at the first or the last transition of each episode."""

    lead = 1

    def __init__(self, source: Source, name: str, at: At) -> None:
        """Show the field `name` of the source's log."""
        self.each, self.at = FieldArray(source, name), at
        super().__init__((self.each.shape[0], *self.each.shape[2:]), self.each.dtype)

    def read(self, cells: tuple[np.ndarray, ...], inner: Inner) -> np.ndarray:
        """Return the values of some episodes."""
        (episode,) = cells
        time = np.zeros_like(episode) if self.at == "first" else self.each.source.episodes.length[episode] - 1
        return self.each.recorded(episode, time, inner)


class IterationArray(RowArray):
    """The iteration of each transition."""

    def __init__(self, source: Source) -> None:
        """Show the iterations of a source."""
        super().__init__(source, (), np.int64)

    def recorded(self, episode: np.ndarray, time: np.ndarray, inner: Inner) -> np.ndarray:
        """Return the iteration in which each transition's action was taken."""
        return self.source.iteration_of(self.source.rows(episode, time))

    def rows_between(self, block: Block, start: int, stop: int) -> np.ndarray:
        """Return the iteration of each cell, a view of one value for each row."""
        iteration = self.source.iteration_of(np.arange(start, stop))
        return np.broadcast_to(iteration[:, np.newaxis], (stop - start, self.source.view.layout.width))


class MaskArray(LazyArray):
    """True where a transition is."""

    def __init__(self, length: np.ndarray, longest: int) -> None:
        """Show the mask of episodes of the given lengths, `longest` steps wide."""
        super().__init__((len(length), longest), np.bool_)
        self.length = length

    def read(self, cells: tuple[np.ndarray, ...], inner: Inner) -> np.ndarray:
        """Return ``time < length``."""
        episode, time = cells
        return time < self.length[episode]


class FinalArray(LazyArray):
    """The final value of one observation leaf, per episode.

    For each episode `origin` says which of `names` holds it (-1: not known) and `offset` at which cell,
    counted from the episode's first transition.
    """

    lead = 1

    def __init__(self, source: Source, names: tuple[str, ...], origin: np.ndarray, offset: np.ndarray) -> None:
        """Show the final values that `origin` and `offset` point to."""
        _, field = source.view.index_of(names[0])
        super().__init__((len(origin), *field.shape), shown_dtype(field.dtype))
        self.source, self.names, self.origin, self.offset = source, names, origin, offset

    def read(self, cells: tuple[np.ndarray, ...], inner: Inner) -> np.ndarray:
        """Return the final values of some episodes, padding where they are not known."""
        (episode,) = cells
        out: np.ndarray | None = None
        origin = self.origin[episode]
        for number in [n for n in range(len(self.names)) if (origin == n).any()] or [0]:
            here = np.flatnonzero(origin == number)
            values = self.source.read(self.names[number], episode[here], self.offset[episode[here]], inner)
            if out is None:
                out = np.full((len(episode), *values.shape[1:]), padding_value(self.dtype), self.dtype)
            out[here] = values
        assert out is not None
        return out

    def cells_of(self, vectors: list[np.ndarray]) -> int:
        """Return how many of some episodes have a known final value."""
        return int((self.origin[vectors[0]] >= 0).sum())
