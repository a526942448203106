"""Reading cells out of a block: the one gate where rows leave the device."""

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from trajlab.block.placement import NO_MESH
from trajlab.padding import shown_dtype


def to_host(array: Any) -> np.ndarray:
    """Return an array as NumPy; every read passes here, so tests count its bytes."""
    return np.asarray(array)


def gather(array: Any, rows: np.ndarray, columns: np.ndarray, inner: tuple[Any, ...] = ()) -> np.ndarray:
    """Return ``array[rows, columns]`` (M, ...) with `inner` applied to the remaining axes, orthogonally.

    Rows and columns must be in range (checked by the caller: JAX clamps). The result is an owned array in
    the dtype that the Dataset shows.
    """
    if not len(rows):
        out = gather_host(np.empty((0, 0, *array.shape[2:]), array.dtype), rows, columns, inner)
    elif is_host_readable(array):
        out = to_host(gather_host(host_view(array), rows, columns, inner))
    elif is_spread(array):
        out = _gather_parts(array, rows, columns, inner)
    else:
        out = _gather_device(array, rows, columns, inner)
    return out.astype(shown_dtype(out.dtype), copy=False)


def is_host_readable(array: Any) -> bool:
    """Say whether an array lies whole in the host's memory, so that a NumPy view of it costs nothing."""
    if isinstance(array, np.ndarray):
        return True
    devices = array.devices()
    return len(devices) == 1 and next(iter(devices)).platform == "cpu"


def is_spread(array: Any) -> bool:
    """Say whether an array lies on several devices, split over them or copied to each."""
    return isinstance(array, jax.Array) and len(array.devices()) > 1


def parts_of(array: jax.Array) -> Iterator[tuple[list[slice], jax.Array]]:
    """Yield the parts of an array that `is_spread`, each once: its place along each axis, and its data."""
    for shard in array.addressable_shards:
        if shard.replica_id == 0:
            yield [slice(*key.indices(size)) for key, size in zip(shard.index, array.shape, strict=True)], shard.data


def _gather_parts(array: jax.Array, rows: np.ndarray, columns: np.ndarray, inner: tuple[Any, ...]) -> np.ndarray:
    """Gather from each device just the cells that lie there, so that nothing moves between devices.

    Where cells are split themselves, they are fetched whole and `inner` is applied afterwards.
    """
    (_, first), *others = parts = list(parts_of(array))
    if not others:
        return gather(first, rows, columns, inner)
    is_cell_whole = all(part.shape[2:] == array.shape[2:] for _, part in parts)
    out: np.ndarray | None = None
    for (of_rows, of_columns, *of_cell), part in parts:
        is_here = (rows >= of_rows.start) & (rows < of_rows.stop)
        here = np.flatnonzero(is_here & (columns >= of_columns.start) & (columns < of_columns.stop))
        if len(here):
            wanted = rows[here] - of_rows.start, columns[here] - of_columns.start
            cells = gather(part, *wanted, inner if is_cell_whole else ())
            if out is None:
                out = np.empty((len(rows), *(cells.shape[1:] if is_cell_whole else array.shape[2:])), cells.dtype)
            out[(here, *(() if is_cell_whole else of_cell))] = cells
    assert out is not None
    return out if is_cell_whole else gather_host(out[None], np.zeros_like(rows), np.arange(len(rows)), inner)


def host_view(array: Any) -> np.ndarray:
    """Return a NumPy view. Drop it before the lock is released: JAX copies a donated array that has one."""
    return np.asarray(array)


def read_rows(array: Any, start: int, stop: int, *, copy: bool) -> np.ndarray:
    """Return ``array[start:stop]`` in the dtype that the Dataset shows; a view where it can be and not `copy`."""
    if is_host_readable(array):
        view = host_view(array)[start:stop]
        view.flags.writeable = False
        rows = to_host(view.copy() if copy else view)
    elif is_spread(array):
        rows = _read_parts(array, start, stop, copy=copy)
    else:
        with jax.set_mesh(NO_MESH):
            rows = to_host(_slice(array, start, size=stop - start))
    return rows.astype(shown_dtype(rows.dtype), copy=False)


def _read_parts(array: jax.Array, start: int, stop: int, *, copy: bool) -> np.ndarray:
    """Read rows from each device just as they lie there."""
    (_, first), *others = parts = list(parts_of(array))
    if not others:
        return read_rows(first, start, stop, copy=copy)
    out = np.empty((stop - start, *array.shape[1:]), shown_dtype(array.dtype))
    for (of_rows, *rest), part in parts:
        low, high = max(start, of_rows.start), min(stop, of_rows.stop)
        if low < high:
            rows = read_rows(part, low - of_rows.start, high - of_rows.start, copy=False)
            out[(slice(low - start, high - start), *rest)] = rows
    return out


@functools.partial(jax.jit, static_argnames="size")
def _slice(array: jax.Array, start: Any, *, size: int) -> jax.Array:
    return jax.lax.dynamic_slice_in_dim(array, start, size)


def gather_host(view: np.ndarray, rows: np.ndarray, columns: np.ndarray, inner: tuple[Any, ...]) -> np.ndarray:
    """Gather through a view: ints and slices of `inner` narrow it first, arrays pick from what was taken."""
    basic = tuple(slice(None) if isinstance(key, np.ndarray) else key for key in inner)
    if all(isinstance(key, slice) and key == slice(None) for key in basic) and view.flags.c_contiguous:
        flat = view.reshape(view.shape[0] * view.shape[1], *view.shape[2:])
        cells = flat.take(rows * view.shape[1] + columns, axis=0)
    else:
        cells = view[(slice(None), slice(None), *basic)][rows, columns]
    kept = [key for key in inner if isinstance(key, (slice, np.ndarray))]
    for axis, key in enumerate(kept):
        if isinstance(key, np.ndarray):
            cells = cells.take(key, axis=axis + 1)
    return cells


@functools.partial(jax.jit, static_argnames="axes")
def _take(
    array: jax.Array, rows: jax.Array, columns: jax.Array, keys: tuple[jax.Array, ...], axes: tuple[int, ...]
) -> jax.Array:
    cells = array[rows, columns]
    for axis, key in zip(axes, keys, strict=True):
        cells = jnp.take(cells, key, axis=axis + 1, mode="clip")
    return cells


def _gather_device(array: jax.Array, rows: np.ndarray, columns: np.ndarray, inner: tuple[Any, ...]) -> np.ndarray:
    """Gather on the device, padded to a power of two so that new lengths rarely compile."""
    count = len(rows)
    padded = max(1, 1 << (count - 1).bit_length()) if count else 1
    fill = padded - count
    rows, columns = (np.pad(x.astype(np.int32), (0, fill)) for x in (rows, columns))
    axes, keys, drop = [], [], []
    for axis, key in enumerate(inner):
        if isinstance(key, slice):
            if key == slice(None):
                continue
            key = np.arange(array.shape[axis + 2])[key]
        if np.ndim(key) == 0:
            drop.append(axis + 1)
        axes.append(axis)
        keys.append(np.atleast_1d(np.asarray(key, np.int32)))
    with jax.set_mesh(NO_MESH):
        out = to_host(_take(array, rows, columns, tuple(keys), tuple(axes)))[:count]
    return out.squeeze(axis=tuple(drop)) if drop else out
