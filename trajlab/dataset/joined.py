"""One lazy array over the variables of several Datasets, and reading blocks and points of any variable."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab.dataset.lazy import Inner, LazyArray, as_slice, lazy_base, vector


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """What fills some of the first axis of a joined array.

    Attributes
    ----------
    size : int
        How many entries of the first axis it fills.
    variable : xarray.Variable or None
        Over the same axes as the whole; None for padding alone.
    places : array (time,) of int, or None
        For each entry of the whole's second axis, where the part has it, -1 where it does not; None where the
        second axes are the same, or where only one axis leads.
    """

    size: int
    variable: xr.Variable | None
    places: np.ndarray | None = None


class JoinedArray(LazyArray):
    """Parts put one behind the other along the first axis, padded where they lack an entry of the second.

    What is asked for orthogonally is asked of the parts orthogonally, and points as points, so that each of
    them, whether lazy, in memory or in a file, reads as little as it can.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        shape: Sequence[int],
        dtype: Any,
        padding: Any,
        *,
        lead: int,
        held: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Join parts; `held` gives lengths (episode,) and labels (time,), from which cells with data are counted."""
        super().__init__(shape, dtype)
        self.parts, self.padding, self.lead, self.held = tuple(parts), padding, lead, held
        self.starts = np.concatenate([[0], np.cumsum([part.size for part in parts])])[:-1].astype(np.int64)
        assert sum(part.size for part in parts) == self.shape[0]

    def read(self, cells: tuple[np.ndarray, ...], inner: Inner) -> np.ndarray:
        """Return cells, point by point from each part that holds some."""
        out = self._padded((len(cells[0]),), inner)
        for part, start, here in self._holding(cells[0]):
            if part.variable is None:
                continue
            first, rest = cells[0][here] - start, tuple(axis[here] for axis in cells[1:])
            if part.places is not None:
                second = part.places[rest[0]]
                there = second >= 0
                here, first, rest = here[there], first[there], (second[there],)
            out[here] = read_points(part.variable, (first, *rest), inner)
        return out

    def outer(self, keys: tuple[Any, ...]) -> np.ndarray:
        """Return a block, as one block of each part that holds some of it."""
        vectors = [vector(key, size) for key, size in zip(keys[: self.lead], self.shape, strict=False)]
        inner = keys[self.lead :]
        self._warn_if_padded(vectors, inner)
        out = self._padded(tuple(len(v) for v in vectors), inner)
        for part, start, here in self._holding(vectors[0]):
            if part.variable is None:
                continue
            wanted, targets = [vectors[0][here] - start, *vectors[1:]], [as_slice(here)]
            if part.places is not None:
                places = part.places[vectors[1]]
                there = np.flatnonzero(places >= 0)
                wanted[1], targets = places[there], [as_slice(here), as_slice(there)]
            block = read_block(part.variable, (*map(as_slice, wanted), *inner))
            if sum(isinstance(target, np.ndarray) for target in targets) > 1:
                out[np.ix_(*targets)] = block
            else:
                out[tuple(targets)] = block
        return drop_scalars(out, keys[: self.lead])

    def cells_of(self, vectors: list[np.ndarray]) -> int | None:
        """Return how many cells of a block hold data."""
        if self.held is None:
            return None
        length, time = self.held
        return int(np.searchsorted(np.sort(time[vectors[1]]), length[vectors[0]]).sum())

    def _holding(self, first: np.ndarray) -> Iterator[tuple[Part, int, np.ndarray]]:
        """Yield each part that holds some entries of the first axis, its start, and which of them."""
        owner = np.searchsorted(self.starts, first, side="right") - 1
        for number in np.unique(owner):
            yield self.parts[number], int(self.starts[number]), np.flatnonzero(owner == number)

    def _padded(self, lead: tuple[int, ...], inner: Inner) -> np.ndarray:
        sizes = zip(inner, self.shape[self.lead :], strict=True)
        shape = tuple(len(vector(key, size)) for key, size in sizes if isinstance(key, slice | np.ndarray))
        return np.full((*lead, *shape), self.padding, self.dtype)


def drop_scalars(values: np.ndarray, keys: Sequence[Any]) -> np.ndarray:
    """Drop the leading axes whose key is an int."""
    axes = tuple(axis for axis, key in enumerate(keys) if not isinstance(key, slice | np.ndarray))
    return values.squeeze(axis=axes) if axes else values


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
