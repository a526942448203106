"""A block: rows of every field in memory of a fixed size, on the device and on the host."""

import functools
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from trajlab.block.append import Chunk, host_append
from trajlab.block.layout import Field, Layout
from trajlab.block.placement import Shardings


class Block:
    """A fixed number of rows of every field; once sealed it is never written again.

    The device arrays stand in a list whose last entry is the current one: a donated append is stored there
    by C code, without a bytecode between the call and the store at which an interrupt could lose them.
    """

    def __init__(self, start: int, capacity: int, layout: Layout, shardings: Shardings = ()) -> None:
        """Allocate `capacity` rows whose first is row `start` of the log."""
        self.start = start
        self.capacity = capacity
        self.layout = layout
        self.box: list[tuple[tuple[jax.Array, ...], Any]] = [(_device_arrays(layout, capacity, shardings), None)]
        self.host = _host_arrays(layout, capacity)

    @classmethod
    def sealed(cls, layout: Layout, arrays: tuple[Any, ...]) -> Self:
        """Return a block of arrays (rows, width, ...) that are complete: one for each field on the device."""
        block = cls.__new__(cls)
        block.start, block.capacity, block.layout = 0, len(arrays[0]), layout
        block.box, block.host = [(arrays, None)], ()
        return block

    def array(self, index: int, field: Field) -> Any:
        """Return the array (capacity, width, ...) of a field, the `index`-th of those that share its home."""
        return self.box[-1][0][index] if field.home == "device" else self.host[index]

    def flags(self) -> Any:
        """Return the bytes of flags (capacity, width)."""
        return self.box[-1][0][-1] if self.layout.flags_home == "device" else self.host[-1]

    def place(self) -> tuple[Any, ...]:
        """Return where the device arrays lie, which JAX compiles for; a chunk may commit them there."""
        arrays = self.box[-1][0]
        return (arrays[0].sharding, arrays[0].committed) if arrays else ()

    def is_lost(self) -> bool:
        """Say whether an interrupted call took the device arrays with it; only an empty block can be."""
        return any(array.is_deleted() for array in self.box[-1][0])

    def append(self, function: Any, row: int, device: Chunk, host: Chunk, *, is_step: bool) -> Any:
        """Write a chunk that fits, its device part by `function`; return its bytes of flags (T, width)."""
        flags = host_append(self.host, row, host, self.layout, is_step=is_step)
        if self.box[-1][0]:
            self.box.extend(map(function, (self.box[-1][0],), (row,), (device,)))
            del self.box[:-1]
        return self.box[-1][1] if flags is None else flags

    def nbytes(self) -> dict[str, int]:
        """Return the bytes held in each home."""
        return {
            "device": sum(array.nbytes for array in self.box[-1][0]),
            "host": sum(array.nbytes for array in self.host),
        }


def _device_arrays(layout: Layout, capacity: int, shardings: Shardings) -> tuple[jax.Array, ...]:
    specs = tuple((field.shape, field.dtype) for field in layout.at("device"))
    if layout.flags_home == "device":
        specs += (((), np.dtype(np.uint8)),)
    return _zeros(specs, capacity, layout.width, shardings)() if specs else ()


@functools.lru_cache(maxsize=256)
def _zeros(specs: tuple[tuple[tuple[int, ...], np.dtype], ...], rows: int, width: int, shardings: Shardings) -> Any:
    """Return a jitted function that allocates all arrays of a block in one call, each part on its own device."""
    return jax.jit(
        lambda: tuple(jnp.zeros((rows, width, *shape), dtype) for shape, dtype in specs),
        out_shardings=shardings or None,
    )


def _host_arrays(layout: Layout, capacity: int) -> tuple[np.ndarray, ...]:
    arrays = [np.empty((capacity, layout.width, *f.shape), f.dtype) for f in layout.at("host")]
    if layout.flags_home == "host":
        arrays.append(np.empty((capacity, layout.width), np.uint8))
    return tuple(arrays)
