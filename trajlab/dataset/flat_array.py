"""A value for each transition, held without padding and shown over episode and time."""

import abc
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab import names
from trajlab.block.read import gather_host
from trajlab.dataset.lazy import Inner, LazyArray, count_cells, lazy_variable
from trajlab.dataset.padding_attrs import about_padding
from trajlab.padding import padding_value


class FlatArray(LazyArray):
    """Values of whole episodes, one behind the other, as an array (episode, time, ...); padding is made when read."""

    def __init__(self, inner: Sequence[int], dtype: Any, length: np.ndarray, time: np.ndarray) -> None:
        """Show values (M, *inner), `length` of them for each episode; `time` labels the steps, in any order."""
        super().__init__((len(length), len(time), *inner), dtype)
        self.length, self.time = length, time
        self.offsets = np.cumsum(length) - length

    @property
    @abc.abstractmethod
    def values(self) -> np.ndarray:
        """Those of all transitions, (M, ...)."""

    def outer(self, keys: tuple[Any, ...]) -> np.ndarray:
        """Return the block that keys select; whole neighbouring episodes are copied as they lie."""
        episodes, steps, *inner = keys
        if all(isinstance(key, slice) for key in keys):
            which, until = range(self.shape[0])[episodes], len(range(self.shape[1])[steps])
            length = self.length[episodes]
            is_whole = which.step == 1 and length.max(initial=0) <= until
            if is_whole and np.array_equal(self.time[steps], np.arange(until)) and len(which):
                self._warn_if_padded([np.arange(self.shape[0])[episodes], np.arange(until)], tuple(inner))
                first = int(self.offsets[which.start])
                values = self.values[(slice(first, first + int(length.sum())), *inner)]
                out = np.full((len(which), until, *values.shape[1:]), padding_value(self.dtype), self.dtype)
                out[np.arange(until) < length[:, np.newaxis]] = values
                return out
        return super().outer(keys)

    def read(self, cells: tuple[np.ndarray, ...], inner: Inner) -> np.ndarray:
        """Return the values of cells, padding where they lie past an episode's end."""
        episode, step = cells[0], self.time[cells[1]]
        there = step < self.length[episode]
        if there.all():
            return self._at(self.offsets[episode] + step, inner)
        values = self._at(self.offsets[episode[there]] + step[there], inner)
        out = np.full((len(episode), *values.shape[1:]), padding_value(self.dtype), self.dtype)
        out[there] = values
        return out

    def _at(self, places: np.ndarray, inner: Inner) -> np.ndarray:
        return gather_host(self.values[np.newaxis], np.zeros_like(places), places, inner)

    def cells_of(self, vectors: list[np.ndarray]) -> int:
        """Return how many cells of a block are transitions."""
        return count_cells(self.length[vectors[0]], self.time[vectors[1]])


class FlatInMemory(FlatArray):
    """Values that are there."""

    def __init__(self, values: np.ndarray, length: np.ndarray, time: np.ndarray) -> None:
        """Show `values` (M, ...), `length` of them for each episode; `time` labels the steps, in any order."""
        super().__init__(values.shape[1:], values.dtype, length, time)
        self._values = values

    @property
    def values(self) -> np.ndarray:
        """Those of all transitions, (M, ...)."""
        return self._values


class FlatWhenRead(FlatArray):
    """Values that are read, all of them, when some are first asked for."""

    def __init__(self, like: xr.Variable, length: np.ndarray, read: Callable[[], np.ndarray]) -> None:
        """Show what `read` returns, (M, ...), in the shape of a variable with all steps in order."""
        super().__init__(like.shape[2:], like.dtype, length, np.arange(like.shape[1]))
        self._read = functools.cache(read)

    @property
    def values(self) -> np.ndarray:
        """Those of all transitions, (M, ...), read by now."""
        return self._read()


def flat_variable(values: np.ndarray, ds: xr.Dataset, dims: Sequence[str], attrs: dict[str, Any]) -> xr.Variable:
    """Return values (M, ...) as a lazy variable of a Dataset, over episode, time and `dims`.

    They stand in the order of its episodes and then of time; no step of an episode may be missing.
    """
    array = FlatInMemory(values, ds[names.LENGTH].values, ds[names.TIME].values)
    return lazy_variable((names.EPISODE, names.TIME, *dims), array, about_padding(values.dtype) | attrs)
