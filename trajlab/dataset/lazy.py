"""Lazy arrays for xarray: indexing composes without a fetch, and a read moves just the cells asked for.

This is the only module that touches xarray's internals.
"""

import abc
import hashlib
import uuid
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from trajlab.errors import warn_user

READ_CELLS = 2**20
"""Cells read in one go; larger reads are made slab by slab, so that index arrays stay small."""

MUCH_BYTES = 2**30
"""Reads of more bytes than this warn where most of them are padding."""

Inner = tuple[Any, ...]
"""One int, slice or 1-D array for each axis behind the leading ones."""


class LazyArray(BackendArray, abc.ABC):
    """An array that is read by cells: its leading axes pointwise, the axes behind them orthogonally.

    Subclasses set `lead` (how many axes lead: 2 for episode and time, 1 for episode) and implement `read`.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    """

    lead = 2

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:
        """Set shape and dtype."""
        self.shape = tuple(int(size) for size in shape)
        self.dtype = np.dtype(dtype)
        self.token = uuid.uuid4().hex

    @abc.abstractmethod
    def read(self, cells: tuple[np.ndarray, ...], inner: Inner) -> np.ndarray:
        """Return the values (M, ...) of cells, given as `lead` index arrays (M,) that are in range."""

    def outer(self, keys: tuple[Any, ...]) -> np.ndarray:
        """Return the block that one int, slice or 1-D array per axis selects orthogonally, all in range."""
        vectors = [vector(key, size) for key, size in zip(keys[: self.lead], self.shape, strict=False)]
        self._warn_if_padded(vectors, keys[self.lead :])
        shape = tuple(len(indices) for indices in vectors)
        values = self._read_slabs(np.meshgrid(*vectors, indexing="ij", copy=False), keys[self.lead :])
        values = values.reshape(shape + values.shape[1:])
        return drop_scalars(values, keys[: self.lead])

    def cells_of(self, vectors: list[np.ndarray]) -> int | None:
        """Return how many cells of the block that `vectors` select hold data, or None where all do."""
        return None

    def _warn_if_padded(self, vectors: list[np.ndarray], inner: Inner) -> None:
        width = np.prod([len(vector(k, n)) for k, n in zip(inner, self.shape[self.lead :], strict=True)])
        total = int(np.prod([len(v) for v in vectors]) * width * self.dtype.itemsize)
        if total <= MUCH_BYTES:
            return
        held = self.cells_of(vectors)
        if held is not None and total > 4 * held * width * self.dtype.itemsize:
            warn_user(
                f"this read makes {total / 2**30:.1f} GB of which {held * width * self.dtype.itemsize / 2**30:.1f} GB "
                "are recorded; the rest is padding. tl.transitions(ds) gives the same rows without padding"
            )

    def _read_slabs(self, cells: Sequence[np.ndarray], inner: Inner) -> np.ndarray:
        """Read broadcast index arrays, any shape, as (M, ...), a slab of the first axis at a time."""
        shape = cells[0].shape
        per_row = int(np.prod(shape[1:], dtype=np.int64))
        step = max(1, READ_CELLS // max(per_row, 1))
        if len(shape) == 0 or shape[0] <= step:
            return self.read(tuple(c.ravel() for c in cells), inner)
        out: np.ndarray | None = None
        for start in range(0, shape[0], step):
            part = self.read(tuple(c[start : start + step].ravel() for c in cells), inner)
            if out is None:
                out = np.empty((shape[0] * per_row, *part.shape[1:]), part.dtype)
            out[start * per_row : start * per_row + len(part)] = part
        assert out is not None
        return out

    def points(self, keys: tuple[np.ndarray, ...]) -> np.ndarray:
        """Return the values at points: one index array per axis, in range, which broadcast together."""
        lead, behind = keys[: self.lead], keys[self.lead :]
        cells = np.broadcast_arrays(*lead)
        needed = [np.unique(key) for key in behind]
        values = self._read_slabs(list(cells), tuple(map(as_slice, needed)))
        places = [np.searchsorted(unique, key) for unique, key in zip(needed, behind, strict=True)]
        return np.asarray(values[(np.arange(cells[0].size).reshape(cells[0].shape), *places)])

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Return the values that an xarray indexer selects; IndexError where it is out of range."""
        checked = tuple(
            _in_range(k, size, axis) for axis, (k, size) in enumerate(zip(key.tuple, self.shape, strict=True))
        )
        if not isinstance(key, indexing.VectorizedIndexer):
            return self.outer(checked)
        arrays = tuple(k if isinstance(k, slice) else np.asarray(k) for k in checked)
        return self.points(indexing._arrayize_vectorized_indexer(indexing.VectorizedIndexer(arrays), self.shape).tuple)

    def __deepcopy__(self, memo: dict[int, Any]) -> "LazyArray":
        """Return itself: what it reads never changes."""
        return self


def count_cells(length: np.ndarray, labels: np.ndarray) -> int:
    """Return how many cells at the crossings of some episodes and steps are transitions.

    >>> count_cells(np.array([3, 1]), np.array([4, 2, 0]))
    3
    """
    return int(np.searchsorted(np.sort(labels), length).sum())


def drop_scalars(values: np.ndarray, keys: Sequence[Any]) -> np.ndarray:
    """Drop the leading axes whose key is an int."""
    axes = tuple(axis for axis, key in enumerate(keys) if not isinstance(key, slice | np.ndarray))
    return values.squeeze(axis=axes) if axes else values


def vector(key: Any, size: int) -> np.ndarray:
    """Return the indices that an int, slice or 1-D array selects from an axis."""
    return np.arange(size)[key] if isinstance(key, slice) else np.atleast_1d(np.asarray(key))


def as_slice(indices: np.ndarray) -> slice | np.ndarray:
    """Return non-negative indices as a slice where they ascend in equal steps, which is read faster everywhere."""
    if not len(indices):
        return slice(0, 0)
    step = int(indices[1] - indices[0]) if len(indices) > 1 else 1
    if step < 1 or indices[-1] - indices[0] != step * (len(indices) - 1) or not (np.diff(indices) == step).all():
        return indices
    return slice(int(indices[0]), int(indices[-1]) + 1, step)


def _in_range(key: Any, size: int, axis: int) -> Any:
    """Return a key with non-negative indices; raise IndexError where it is out of range."""
    if isinstance(key, slice):
        return key
    array = np.asarray(key)
    if array.size and (array.min() < -size or array.max() >= size):
        bad = array.min() if array.min() < -size else array.max()
        raise IndexError(f"index {bad} is out of range for axis {axis} of size {size}")
    array = np.where(array < 0, array + size, array)
    return int(array) if array.ndim == 0 else array


def _plain_slice(key: slice, size: int) -> slice:
    """Return the slice that selects the same without negative ends."""
    indices = range(size)[key]
    if not indices:
        return slice(0, 0)
    if len(indices) == size and indices.step > 0:
        return slice(None)
    return slice(indices.start, indices.stop if indices.stop >= 0 else None, indices.step)


class Lazy(indexing.LazilyIndexedArray):
    """xarray's lazy wrapper; tokenised by identity for dask, loaded by pickle, and lazy under pointwise keys."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        """Refuse: it cannot be written."""
        _refuse_setting()

    def _oindex_set(self, indexer: Any, value: Any) -> None:
        _refuse_setting()

    def _vindex_set(self, indexer: Any, value: Any) -> None:
        _refuse_setting()

    def _updated_key(self, new_key: indexing.ExplicitIndexer) -> indexing.BasicIndexer | indexing.OuterIndexer:
        """Compose with a further key, made plain first: xarray wraps indices below -size, in slices too."""
        sizes = zip(new_key.tuple, self.shape, strict=True)
        plain = tuple(
            _plain_slice(key, size) if isinstance(key, slice) else _in_range(key, size, axis)
            for axis, (key, size) in enumerate(sizes)
        )
        return super()._updated_key(indexing.OuterIndexer(plain))

    def _vindex_get(self, indexer: indexing.VectorizedIndexer) -> "LazyPoints":
        keys: list[Any] = []
        new = iter(indexer.tuple)
        ndim = next((k.ndim for k in indexer.tuple if isinstance(k, np.ndarray)), 0)
        for key, size in zip(self.key.tuple, self.array.shape, strict=True):
            indices = vector(key, size)
            if isinstance(key, (int, np.integer)):
                keys.append(indices.reshape((1,) * ndim))
                continue
            k = next(new)
            keys.append(indices[k] if isinstance(k, slice) else indices[_in_range(k, len(indices), len(keys))])
        behind = sum(isinstance(k, slice) for k in indexer.tuple)
        arrays = _arrayize(keys, indexer.tuple, self.key.tuple, ndim, behind)
        return LazyPoints(self.array, indexing.VectorizedIndexer(arrays))

    def transpose(self, order: Any) -> "LazyPoints":
        """Return the lazy transpose."""
        return LazyPoints(self.array, self.key).transpose(order)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return what tells this array from others, without reading it."""
        return ("trajlab", self.array.token, *map(_token, self.key.tuple))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the loaded values, as a plain array."""
        return np.asarray, (np.asarray(self.get_duck_array()),)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Lazy":
        """Return itself: it cannot be written."""
        return self


def _refuse_setting() -> NoReturn:
    """Raise TypeError: what was recorded cannot be written, a loaded copy can."""
    raise TypeError(
        "values of a lazy Dataset cannot be set, as they are read from the recording each time; load them into memory "
        "first: ds = ds.load(), or ds['name'] = ds['name'].load()"
    )


def _arrayize(
    keys: list[np.ndarray], new: tuple[Any, ...], old: tuple[Any, ...], ndim: int, behind: int
) -> tuple[np.ndarray, ...]:
    """Give all keys one number of axes: points first, then one axis for each slice, each of size 1 elsewhere."""
    out, place, kinds = [], 0, iter(new)
    for key, before in zip(keys, old, strict=True):
        kind = None if isinstance(before, (int, np.integer)) else next(kinds)
        if isinstance(kind, slice):
            out.append(key.reshape((1,) * (ndim + place) + (-1,) + (1,) * (behind - place - 1)))
            place += 1
        else:
            out.append(key.reshape(key.shape + (1,) * behind))
    return tuple(out)


def _token(key: Any) -> str:
    """Return a text that differs for different keys; the repr of a long array leaves its middle out."""
    if not isinstance(key, np.ndarray):
        return repr(key)
    return f"{key.shape}{hashlib.blake2b(key.tobytes(), digest_size=16).hexdigest()}"


class LazyPoints(indexing.LazilyVectorizedIndexedArray):
    """Lazy pointwise selection whose keys stay as small as they are: axes of size 1 are never spread out."""

    __slots__ = ()

    def _updated_key(self, new_key: indexing.ExplicitIndexer) -> indexing.VectorizedIndexer:
        shape = self.shape
        new = [_in_range(key, size, axis) for axis, (key, size) in enumerate(zip(new_key.tuple, shape, strict=True))]
        if isinstance(new_key, indexing.VectorizedIndexer):
            return indexing.VectorizedIndexer(tuple(_points_of(key, new, shape) for key in self.key.tuple))
        keys = list(self.key.tuple)
        for axis in reversed(range(len(shape))):
            keys = [_narrow(key, axis, new[axis], shape[axis]) for key in keys]
        return indexing.VectorizedIndexer(tuple(map(np.asarray, keys)))

    def __getitem__(self, indexer: indexing.ExplicitIndexer) -> "LazyPoints":
        """Compose with a further index."""
        self._check_and_raise_if_non_basic_indexer(indexer)
        return type(self)(self.array, self._updated_key(indexer))

    __setitem__ = Lazy.__setitem__
    _oindex_set = Lazy._oindex_set
    _vindex_set = Lazy._vindex_set
    __dask_tokenize__ = Lazy.__dask_tokenize__
    __reduce__ = Lazy.__reduce__

    def __deepcopy__(self, memo: dict[int, Any]) -> "LazyPoints":
        """Return itself: it cannot be written."""
        return self


def _narrow(key: np.ndarray, axis: int, new: Any, size: int) -> Any:
    """Index one axis of a key that may have size 1 where the whole has `size`."""
    if key.shape[axis] == size:
        return key[(slice(None),) * axis + (new,)]
    return key if isinstance(new, slice) or np.ndim(new) else key.take(0, axis=axis)


def _points_of(key: np.ndarray, new: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Index a key pointwise: axes of points first, then the sliced ones; they have size 1 where the key has."""
    at = [axis for axis, k in enumerate(new) if not isinstance(k, slice)]
    behind = [axis for axis, k in enumerate(new) if isinstance(k, slice)]
    picks = [new[axis] if key.shape[axis] == shape[axis] else 0 for axis in at]
    slices = [new[axis] if key.shape[axis] == shape[axis] else slice(None) for axis in behind]
    out = np.asarray(key.transpose(at + behind)[(*picks, *slices)])
    ndim = max((np.ndim(new[axis]) for axis in at), default=0)
    return out if out.ndim == ndim + len(behind) else out.reshape((1,) * ndim + out.shape)


def lazy_variable(dims: Sequence[str], array: LazyArray, attrs: dict[str, Any] | None = None) -> xr.Variable:
    """Return an xarray variable over a lazy array; making it reads nothing."""
    return xr.Variable(tuple(dims), Lazy(array), attrs)


def is_in_memory(variable: xr.Variable) -> bool:
    """Say whether a variable's values are in memory, so that reading them costs nothing."""
    return bool(variable._in_memory)


def lazy_base(variable: xr.Variable) -> tuple[LazyArray, tuple[Any, ...]] | None:
    """Return the lazy array beneath a variable and the orthogonal key on it, or None where it is not one of ours."""
    data = variable._data
    if isinstance(data, Lazy) and isinstance(data.array, LazyArray):
        return data.array, data.key.tuple
    return None
