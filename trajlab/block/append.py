"""Writing a chunk into a block: the pure function for device arrays, and its counterpart for host arrays."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from trajlab.block.layout import FLAG_BITS, NOT_RECORDED, Layout, lead, step_axes
from trajlab.block.placement import Shardings, adopt, automatic, is_foreign, shardings_of


class Chunk(NamedTuple):
    """One chunk, checked, as `append` takes it.

    Attributes
    ----------
    fields : tuple of arrays
        One per field of this home, with the chunk's leading axes (a step's, where it is one).
    flags : tuple of arrays
        One per flag slot; empty where the flags live elsewhere.
    marks : array (width,) uint8 or None
        Marks that stand before the first row; of a partial step (k,), before its cells.
    mask : array (T, num_envs) bool or None
        False where a cell is no transition.
    columns : array (width,) int32 or None
        Which environments of the chunk are recorded; of a partial step (k,), where its arrays are of all.
    places : array (k,) int32 or None
        Columns of the log that a partial step fills; what is out of range is dropped.
    rows : array (k,) int32 or None
        Rows of these cells, relative to the row that the chunk is written to.
    picks : array (k,) int32 or None
        Which entries of a partial step's arrays (k, ...) go there; None for all in order.
    """

    fields: tuple[Any, ...]
    flags: tuple[Any, ...]
    marks: Any = None
    mask: Any = None
    columns: Any = None
    places: Any = None
    rows: Any = None
    picks: Any = None

    @property
    def is_part(self) -> bool:
        """Whether its arrays hold a step of only some environments."""
        return self.places is not None and self.columns is None

    def axes(self, layout: Layout, *, is_step: bool) -> str:
        """Return the letters of its arrays' leading axes."""
        if self.is_part:
            return "N"
        return step_axes(layout.axes) if is_step else layout.axes


def flag_bytes(flags: tuple[Any, ...], slots: tuple[str, ...], mask: Any, xp: Any) -> Any:
    """Return the byte of flags per cell (T, N) from the single flags, already (T, N), and the mask."""
    byte = sum(
        (xp.where(flag.astype(bool), FLAG_BITS[slot], np.uint8(0)) for flag, slot in zip(flags, slots, strict=True))
    )
    return byte if mask is None else xp.where(mask, byte, NOT_RECORDED)


def _as_rows(x: Any, chunk: Chunk, axes: str, is_step: bool) -> Any:
    """Return (T, width, ...), or (1, k, ...) for a partial step."""
    if chunk.is_part:
        x = x[None]
        return x if chunk.picks is None else x[:, chunk.picks]
    x = lead(x, axes, is_step=is_step)
    return x if chunk.columns is None else x[:, chunk.columns]


@functools.lru_cache(maxsize=256)
def device_append(
    layout: Layout, *, is_step: bool, want_flags: bool, shardings: Shardings = ()
) -> Callable[[tuple[jax.Array, ...], int, Chunk], tuple[tuple[jax.Array, ...], jax.Array | None]]:
    """Return the jitted, donated append for the device arrays of a layout.

    The function takes the block's arrays (capacity, width, ...), fields first and then the flags where
    they live on the device, a row of the block and a `Chunk`; it returns the arrays with the chunk written
    from that row on and, where `want_flags`, the chunk's own bytes of flags (T, width). The arrays lie, and
    stay, as `shardings` says; a chunk that is split alike moves nothing between devices.
    `dynamic_update_slice` clamps a row out of range without a word, so the caller checks that the chunk fits.
    """
    gives_flags = want_flags and layout.flags_home == "device"

    def write(arrays: tuple[jax.Array, ...], row: Any, chunk: Chunk) -> tuple[tuple[jax.Array, ...], jax.Array | None]:
        rows, flags = device_rows(chunk, layout, is_step=is_step)
        written = tuple(_write(arrays, row, rows if flags is None else [*rows, flags], chunk))
        if gives_flags and flags is not None and chunk.places is not None:
            flags = flags_row(flags, chunk.places, layout.width)
        return written, flags if gives_flags else None

    def append(arrays: tuple[jax.Array, ...], row: Any, chunk: Chunk) -> tuple[tuple[jax.Array, ...], jax.Array | None]:
        own = shardings_of(arrays)
        return automatic(write, (own, own[-1] if gives_flags else None))(arrays, row, chunk)

    if not shardings:
        return jax.jit(append, donate_argnums=0)
    return jax.jit(append, donate_argnums=0, out_shardings=(shardings, shardings[-1] if gives_flags else None))


def has_foreign(chunk: Chunk, shardings: Shardings) -> bool:
    """Say whether arrays of a chunk must be adopted by the log's mesh before JAX takes them."""
    return any(is_foreign(array, sharding) for array, sharding in _placed(chunk, shardings))


def _placed(chunk: Chunk, shardings: Shardings) -> list[tuple[Any, Any]]:
    """Return the arrays of a chunk with the shardings of the block's arrays that they are written into."""
    own = shardings or (None,) * (len(chunk.fields) + 1)
    return [*zip(chunk.fields, own, strict=False), *((array, own[-1]) for array in (*chunk.flags, chunk.mask))]


def adopted(chunk: Chunk, shardings: Shardings, axes: str) -> Chunk:
    """Return a chunk whose arrays JAX takes beside a block's; those split alike stay on their devices."""
    arrays = [adopt(array, sharding, axes) for array, sharding in _placed(chunk, shardings)]
    count = len(chunk.fields)
    return chunk._replace(fields=tuple(arrays[:count]), flags=tuple(arrays[count:-1]), mask=arrays[-1])


def device_rows(chunk: Chunk, layout: Layout, *, is_step: bool) -> tuple[list[jax.Array], jax.Array | None]:
    """Return what a chunk writes into the device arrays of a layout: rows of each field, and of the flags.

    The rows are (T, width, ...), those of a partial step (1, k, ...); the bytes of flags likewise, None where they
    live on the host.
    """
    rows = [
        _as_rows(jax.random.key_data(x) if field.is_key else x, chunk, layout.axes, is_step)
        for x, field in zip(chunk.fields, layout.at("device"), strict=True)
    ]
    if layout.flags_home != "device":
        return rows, None
    flags = tuple(_as_rows(x, chunk, layout.axes, is_step) for x in chunk.flags)
    mask = None if chunk.mask is None else _as_rows(chunk.mask, chunk, layout.axes, is_step)
    byte = flag_bytes(flags, layout.flag_slots, mask, jnp)
    # A step with few environments is so little work that XLA runs it at once; one more OR would not be.
    return rows, byte if chunk.marks is None else byte.at[0].set(byte[0] | chunk.marks)


def _write(arrays: tuple[jax.Array, ...], row: Any, rows: list[Any], chunk: Chunk) -> list[jax.Array]:
    if chunk.places is None:
        return [put_rows(array, x, row) for array, x in zip(arrays, rows, strict=True)]
    cells = row + chunk.rows, chunk.places
    return [array.at[cells].set(x[0], mode="drop", unique_indices=True) for array, x in zip(arrays, rows, strict=True)]


def put_rows(array: jax.Array, rows: jax.Array, row: Any) -> jax.Array:
    """Write rows (T, width, ...) into an array (capacity, width, ...) from `row` on, which must fit: JAX clamps."""
    return jax.lax.dynamic_update_slice_in_dim(array, rows, row, axis=0)


def host_append(
    arrays: tuple[np.ndarray, ...], row: Any, chunk: Chunk, layout: Layout, *, is_step: bool
) -> np.ndarray | None:
    """Write a chunk into the host arrays of a block from `row` on, in place.

    Returns the chunk's bytes of flags (T, width) where the flags live on the host, else None.
    """
    fields, flags = host_rows(chunk, layout, is_step=is_step)
    if flags is not None:
        _write_host(arrays[-1], row, flags, chunk)
        if chunk.places is not None:
            flags = flags_row(flags, chunk.places, layout.width)
    for array, rows in zip(arrays, fields, strict=False):
        _write_host(array, row, rows, chunk)
    return flags


def _write_host(array: np.ndarray, row: int, rows: np.ndarray, chunk: Chunk) -> None:
    if chunk.places is None and len(rows) == 1:
        array[row] = rows[0]  # where it lies there already, NumPy sees that and copies nothing
    elif chunk.places is None:
        array[row : row + len(rows)] = rows
    else:
        array[row + chunk.rows, chunk.places] = rows[0]


def host_rows(chunk: Chunk, layout: Layout, *, is_step: bool) -> tuple[list[np.ndarray], np.ndarray | None]:
    """Return what a chunk writes into the host arrays of a layout, as `device_rows` does; fields may be views."""
    fields = [_as_rows(x, chunk, layout.axes, is_step) for x in chunk.fields]
    if layout.flags_home != "host":
        return fields, None
    single = tuple(_as_rows(x, chunk, layout.axes, is_step) for x in chunk.flags)
    mask = None if chunk.mask is None else _as_rows(chunk.mask, chunk, layout.axes, is_step)
    flags = flag_bytes(single, layout.flag_slots, mask, np)
    if chunk.marks is not None:
        flags[0] |= chunk.marks
    return fields, flags


def flags_row(flags: Any, places: Any, width: int) -> Any:
    """Return the bytes of flags (1, k) of a partial step as a row (1, width) in which no other cell is recorded."""
    if isinstance(flags, np.ndarray):
        row = np.full((1, width), NOT_RECORDED)
        row[:, places] = flags
        return row
    return jnp.full((1, width), NOT_RECORDED).at[:, places].set(flags, mode="drop", unique_indices=True)
