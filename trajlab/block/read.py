"""Reading cells out of a block: the one gate where rows leave the device."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

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
        out = _gather_host(np.empty((0, 0, *array.shape[2:]), array.dtype), rows, columns, inner)
    elif is_host_readable(array):
        out = to_host(_gather_host(host_view(array), rows, columns, inner))
    else:
        out = _gather_device(array, rows, columns, inner)
    return out.astype(shown_dtype(out.dtype), copy=False)


def is_host_readable(array: Any) -> bool:
    """Say whether an array lies whole in the host's memory, so that a NumPy view of it costs nothing."""
    if isinstance(array, np.ndarray):
        return True
    devices = array.devices()
    return len(devices) == 1 and next(iter(devices)).platform == "cpu"


def host_view(array: Any) -> np.ndarray:
    """Return a NumPy view. Drop it before the lock is released: JAX copies a donated array that has one."""
    return np.asarray(array)


def read_rows(array: Any, start: int, stop: int, *, copy: bool) -> np.ndarray:
    """Return ``array[start:stop]`` in the dtype that the Dataset shows; a view where it can be and not `copy`."""
    if is_host_readable(array):
        view = host_view(array)[start:stop]
        view.flags.writeable = False
        rows = to_host(view.copy() if copy else view)
    else:
        rows = to_host(_slice(array, start, size=stop - start))
    return rows.astype(shown_dtype(rows.dtype), copy=False)


@functools.partial(jax.jit, static_argnames="size")
def _slice(array: jax.Array, start: Any, *, size: int) -> jax.Array:
    return jax.lax.dynamic_slice_in_dim(array, start, size)


def _gather_host(view: np.ndarray, rows: np.ndarray, columns: np.ndarray, inner: tuple[Any, ...]) -> np.ndarray:
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
    out = to_host(_take(array, rows, columns, tuple(keys), tuple(axes)))[:count]
    return out.squeeze(axis=tuple(drop)) if drop else out
