"""The least that an append in JAX takes: one jitted call of contiguous writes into donated arrays."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp


class Bare:
    """Arrays of so many rows per field; a chunk that would go beyond their end begins at row 0 again."""

    def __init__(self, chunk: Mapping[str, jax.Array], rows: int) -> None:
        """Allocate for chunks (T, N, ...) like this one."""
        self.rows, self.next = rows, 0
        shapes = {name: ((rows, *x.shape[1:]), x.dtype) for name, x in chunk.items()}
        self.arrays = jax.jit(lambda: {name: jnp.zeros(*shape) for name, shape in shapes.items()})()

    def append(self, chunk: Mapping[str, jax.Array]) -> None:
        """Write a chunk (T, N, ...)."""
        self._write(_append, chunk, len(next(iter(chunk.values()))))

    def append_step(self, step: Mapping[str, jax.Array]) -> None:
        """Write one step (N, ...)."""
        self._write(_append_step, step, 1)

    def _write(self, function: Any, values: Mapping[str, jax.Array], length: int) -> None:
        start = self.next if self.next + length <= self.rows else 0
        self.arrays = function(self.arrays, start, values)
        self.next = start + length

    def wait(self) -> None:
        """Wait until all is written."""
        jax.block_until_ready(self.arrays)


def _put(arrays: dict[str, jax.Array], row: Any, values: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    return {name: jax.lax.dynamic_update_slice_in_dim(arrays[name], x, row, axis=0) for name, x in values.items()}


_append = jax.jit(_put, donate_argnums=0)
_append_step = jax.jit(
    lambda arrays, row, step: _put(arrays, row, {name: x[None] for name, x in step.items()}), donate_argnums=0
)
