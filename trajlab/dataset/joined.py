"""One lazy array over the variables of several Datasets, and reading blocks and points of any variable."""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab.dataset.lazy import Inner, LazyArray, as_slice, count_cells, drop_scalars, lazy_base, vector


@dataclasses.dataclass(frozen=True, eq=False)
class Frame:
    """How parts stand one behind the other along the first axis.

    Attributes
    ----------
    sizes : tuple of int
        How many entries of the first axis each part fills.
    places : tuple of array (time,) of int, or None
        For each part and each entry of the whole's second axis, where the part has it, -1 where it does not;
        None where the second axes are the same, or only one axis leads.
    length : array (episode,) of int, optional
    time : array (time,) of int, optional
        Lengths of episodes and labels of steps, from which cells that hold data are counted.
    """

    sizes: tuple[int, ...]
    places: tuple[np.ndarray | None, ...]
    length: np.ndarray | None = None
    time: np.ndarray | None = None

    @functools.cached_property
    def starts(self) -> np.ndarray:
        """Return the first entry of each part."""
        return np.cumsum([0, *self.sizes])[:-1]

    def holding(self, first: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield each part that holds some entries of the first axis: its number, which they are, and where in it."""
        owner = np.searchsorted(self.starts, first, side="right") - 1
        order = np.argsort(owner, kind="stable")
        numbers, begins = np.unique(owner[order], return_index=True)
        for number, here in zip(numbers, np.split(order, begins[1:]), strict=False):
            yield int(number), here, first[here] - self.starts[number]

    def within(self, number: int, second: np.ndarray) -> tuple[np.ndarray | slice, np.ndarray]:
        """Return which entries of the second axis a part has, and where in it."""
        places = self.places[number]
        if places is None:
            return slice(None), second
        found = places[second]
        there = np.flatnonzero(found >= 0)
        return there, found[there]


class JoinedArray(LazyArray):
    """Parts put one behind the other along the first axis, padded where they lack an entry of the second.

    What is asked for orthogonally is asked of the parts orthogonally, and points as points, so that each of
    them, whether lazy, in memory or in a file, reads as little as it can.
    """

    def __init__(
        self,
        frame: Frame,
        parts: Sequence[xr.Variable | None],
        shape: Sequence[int],
        dtype: Any,
        padding: Any,
        *,
        lead: int,
    ) -> None:
        """Join variables over the same axes as the whole; None is a part that is padding alone."""
        super().__init__(shape, dtype)
        self.frame, self.parts, self.padding, self.lead = frame, tuple(parts), padding, lead
        assert sum(frame.sizes) == self.shape[0]
        assert len(frame.sizes) == len(frame.places) == len(self.parts)

    def read(self, cells: tuple[np.ndarray, ...], inner: Inner) -> np.ndarray:
        """Return cells, point by point from each part that holds some."""
        out = self._padded((len(cells[0]),), inner)
        for number, here, first in self.frame.holding(cells[0]):
            variable = self.parts[number]
            if variable is None:
                continue
            if self.lead == 1:
                out[here] = read_points(variable, (first,), inner)
                continue
            there, second = self.frame.within(number, cells[1][here])
            out[here[there]] = read_points(variable, (first[there], second), inner)
        return out

    def outer(self, keys: tuple[Any, ...]) -> np.ndarray:
        """Return a block, as one block of each part that holds some of it."""
        vectors = [vector(key, size) for key, size in zip(keys[: self.lead], self.shape, strict=False)]
        inner = keys[self.lead :]
        self._warn_if_padded(vectors, inner)
        out = self._padded(tuple(len(v) for v in vectors), inner)
        for number, here, first in self.frame.holding(vectors[0]):
            variable = self.parts[number]
            if variable is None:
                continue
            if self.lead == 1:
                out[as_slice(here)] = read_block(variable, (as_slice(first), *inner))
                continue
            there, second = self.frame.within(number, vectors[1])
            block = read_block(variable, (as_slice(first), as_slice(second), *inner))
            _put(out, here, there, block)
        return drop_scalars(out, keys[: self.lead])

    def cells_of(self, vectors: list[np.ndarray]) -> int | None:
        """Return how many cells of a block hold data."""
        length, time = self.frame.length, self.frame.time
        if length is None or time is None:
            return None
        return count_cells(length[vectors[0]], time[vectors[1]])

    def _padded(self, lead: tuple[int, ...], inner: Inner) -> np.ndarray:
        sizes = zip(inner, self.shape[self.lead :], strict=True)
        shape = tuple(len(vector(key, size)) for key, size in sizes if isinstance(key, slice | np.ndarray))
        return np.full((*lead, *shape), self.padding, self.dtype)


def _put(out: np.ndarray, first: np.ndarray, second: np.ndarray | slice, block: np.ndarray) -> None:
    """Write a block at the crossings of two selections, as slices where they are."""
    rows, columns = as_slice(first), second if isinstance(second, slice) else as_slice(second)
    if isinstance(rows, slice) or isinstance(columns, slice):
        out[rows, columns] = block
    else:
        out[np.ix_(rows, columns)] = block


# Reading any variable -------------------------------------------------------------------------------------------------


def read_block(variable: xr.Variable, keys: tuple[Any, ...]) -> np.ndarray:
    """Return what one int, slice or 1-D array per axis selects orthogonally from a variable of any kind."""
    return np.asarray(variable[keys].values)


def read_points(variable: xr.Variable, cells: Sequence[np.ndarray], inner: Inner = ()) -> np.ndarray:
    """Return the points (M, ...) of a variable: index arrays (M,) for its leading axes, `inner` for the others."""
    lazy = lazy_base(variable)
    if lazy is not None and lazy[0].lead == len(cells) and not any(isinstance(k, int) for k in lazy[1][: len(cells)]):
        return _read_lazy(*lazy, cells, inner)
    point = "_point"
    keys: list[Any] = [xr.Variable(point, cell) for cell in cells]
    keys += [
        xr.Variable(dim, key) if isinstance(key, np.ndarray) else key
        for dim, key in zip(variable.dims[len(cells) :], inner, strict=True)
    ]
    return np.asarray(variable[tuple(keys)].transpose(point, ...).values)


def _read_lazy(array: LazyArray, key: tuple[Any, ...], cells: Sequence[np.ndarray], inner: Inner) -> np.ndarray:
    """Read points of a lazy array beneath its orthogonal key; this spares xarray's broadcasting of all indices."""
    new = iter((*cells, *inner))
    keys: tuple[Any, ...] = tuple(
        k if isinstance(k, int) else _selected(k, next(new), size) for k, size in zip(key, array.shape, strict=True)
    )
    return array.read(keys[: array.lead], keys[array.lead :])


def _selected(key: Any, new: Any, size: int) -> Any:
    """Return the key that selects `new` of what `key` selects from an axis."""
    return new if isinstance(key, slice) and key == slice(None) else vector(key, size)[new]
