"""Fingerprints of cells, equal where the cells are: cells are compared wherever they lie, and none is fetched."""

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from trajlab.block.placement import NO_MESH
from trajlab.block.read import gather_host, host_view, is_host_readable, is_spread, parts_of, to_host

LANES = 2
"""Numbers of 32 bits that make up a fingerprint: two cells that differ share one once in 2**64."""


def fingerprints(arrays: Sequence[Any], which: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray | None:
    """Return a fingerprint uint32 (M, 2) of each of the cells ``arrays[which][rows, columns]``, which must exist.

    The arrays are blocks of one field. A NaN is equal to a NaN and 0.0 to -0.0. None where cells cannot be compared:
    their dtype has no fixed size, or they are split over several devices themselves, or not all of them are there.
    """
    dtype = arrays[0].dtype
    if dtype.kind not in "biufUS" and not _is_float(dtype):
        return None
    size = 1 << max(len(rows) - 1, 0).bit_length()
    used = np.unique(which)
    picks = [np.flatnonzero(which == number) for number in used]
    places = [(arrays[number], rows[here], columns[here]) for number, here in zip(used, picks, strict=True)]
    if all(is_host_readable(array) for array, *_ in places):
        cells = np.zeros((len(rows), *arrays[0].shape[2:]), dtype)
        for here, (array, its_rows, its_columns) in zip(picks, places, strict=True):
            cells[here] = gather_host(host_view(array), its_rows, its_columns, ())
        return _of_cells(cells)
    out = np.zeros((len(rows), LANES), np.uint32)
    for here, (array, its_rows, its_columns) in zip(picks, places, strict=True):
        found = _of_array(array, its_rows, its_columns, size)
        if found is None:
            return None
        out[here] = found
    return out


def _of_array(array: Any, rows: np.ndarray, columns: np.ndarray, size: int) -> np.ndarray | None:
    """Take fingerprints of cells of one array, where it lies; padded to `size`, so that it compiles but once."""
    if is_host_readable(array):
        return _of_cells(gather_host(host_view(array), rows, columns, ()))
    if is_spread(array):
        return _of_parts(array, rows, columns, size)
    count = len(rows)
    rows, columns = (np.pad(x.astype(np.int32), (0, size - count)) for x in (rows, columns))
    with jax.set_mesh(NO_MESH):
        return to_host(_on_device(array, rows, columns))[:count]


def _of_parts(array: jax.Array, rows: np.ndarray, columns: np.ndarray, size: int) -> np.ndarray | None:
    """Take fingerprints on each device of just the cells that lie there."""
    out, missing = np.zeros((len(rows), LANES), np.uint32), np.ones(len(rows), bool)
    for (of_rows, of_columns, *_), part in parts_of(array):
        if part.shape[2:] != array.shape[2:]:
            return None
        is_here = (rows >= of_rows.start) & (rows < of_rows.stop)
        here = np.flatnonzero(is_here & (columns >= of_columns.start) & (columns < of_columns.stop))
        if len(here):
            found = _of_array(part, rows[here] - of_rows.start, columns[here] - of_columns.start, size)
            assert found is not None  # a part lies on one device
            out[here], missing[here] = found, False
    return None if missing.any() else out


def _of_cells(cells: np.ndarray) -> np.ndarray:
    return _mixed(_host_words(cells), np)


def _is_float(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, np.floating))


def _plain(cells: Any, xp: ModuleType) -> Any:
    """Return cells with one kind of NaN and of zero."""
    if not _is_float(cells.dtype):
        return cells
    cells = xp.where(cells != cells, xp.full_like(cells, np.nan), cells)
    return xp.where(cells == xp.zeros_like(cells), xp.zeros_like(cells), cells)


def _host_words(cells: np.ndarray) -> np.ndarray:
    """Return the bytes of cells (M, ...) as uint32 (M, K), filled up with zeros."""
    size = math.prod(cells.shape[1:]) * cells.dtype.itemsize
    bytes_of = np.frombuffer(np.ascontiguousarray(_plain(cells, np)).tobytes(), np.uint8).reshape(len(cells), size)
    return (np.pad(bytes_of, ((0, 0), (0, -size % 4))) if size % 4 else bytes_of).view(np.uint32)


@jax.jit
def _on_device(array: jax.Array, rows: jax.Array, columns: jax.Array) -> jax.Array:
    cells = _plain(array[rows, columns], jnp)
    if cells.dtype == np.bool_:
        cells = cells.astype(np.uint8)
    size = math.prod(cells.shape[1:]) * cells.dtype.itemsize
    bytes_of = jax.lax.bitcast_convert_type(cells, np.uint8).reshape(len(cells), size)
    bytes_of = jnp.pad(bytes_of, ((0, 0), (0, -size % 4))).reshape(len(cells), -(-size // 4), 4)
    return _mixed(jax.lax.bitcast_convert_type(bytes_of, np.uint32), jnp)


def _mixed(words: Any, xp: ModuleType) -> Any:
    """Return (M, 2) numbers that each word (M, K) changes beyond recognition; NumPy and JAX give the same ones.

    Each word is mixed with its place by multiplications and shifts, with the multipliers of MurmurHash3's last step
    (Appleby, 2011), and the results are added up modulo 2**32, in two ways.
    """
    place = xp.arange(words.shape[1], dtype=np.uint32)[None]
    mixed = words ^ (place * np.uint32(0x9E3779B9) + np.uint32(0x7F4A7C15))
    for factor in (np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)):
        mixed = (mixed ^ (mixed >> np.uint32(16))) * factor
    mixed = mixed ^ (mixed >> np.uint32(13))
    lanes = (mixed, mixed * (mixed | np.uint32(1)) ^ place)
    return xp.stack([xp.sum(lane, axis=1, dtype=np.uint32) for lane in lanes], axis=1)
