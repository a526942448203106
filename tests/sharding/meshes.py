"""Meshes over the forced CPU devices, arrays split over them, and what a compiled function moves between devices."""

from __future__ import annotations

import re
from typing import Any

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

AXIS_TYPES = {"auto": AxisType.Auto, "explicit": AxisType.Explicit}
COLLECTIVE = re.compile(
    r"\b(all-gather|all-reduce|all-to-all|ragged-all-to-all|collective-\w+|reduce-scatter|send|recv)(-start)?\("
)


def make_mesh(kind: str, shape: tuple[int, ...] = (8,), names: tuple[str, ...] = ("d", "m")) -> jax.sharding.Mesh:
    """Return a mesh of this kind over the first devices."""
    count = 1
    for size in shape:
        count *= size
    names = names[: len(shape)]
    return jax.make_mesh(shape, names, (AXIS_TYPES[kind],) * len(shape), devices=jax.devices()[:count])


def put(tree: Any, mesh: jax.sharding.Mesh, *spec: Any) -> Any:
    """Split all JAX arrays of a tree over a mesh in the same way."""
    sharding = NamedSharding(mesh, P(*spec))
    return jax.tree.map(lambda x: jax.device_put(x, sharding) if isinstance(x, jax.Array) else x, tree)


def collectives(compiled: Any) -> set[str]:
    """Return the operations of a compiled function that move data between devices."""
    return {match[1] for match in COLLECTIVE.finditer(compiled.as_text())}


def blocks_of(recorder: Any) -> list[Any]:
    return recorder._session.log.blocks


def arrays_of(recorder: Any) -> list[jax.Array]:
    """Return the device arrays of all blocks."""
    return [array for block in blocks_of(recorder) for array in block.box[-1][0]]


def pointers(block: Any) -> list[int]:
    """Return where each device's part of each array lies."""
    return [shard.data.unsafe_buffer_pointer() for array in block.box[-1][0] for shard in array.addressable_shards]
