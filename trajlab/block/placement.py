"""Where a log's device arrays lie: split over its first chunk's devices by environment as that is, never over time."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

Shardings = tuple[Sharding, ...]
"""Of a block's device arrays, in their order; empty where JAX may choose."""
NO_MESH = Mesh(np.empty((), object), ())
"""To be set around a call: within a mesh that the user has set, JAX refuses arrays that lie on other devices."""


def explicit_mesh(sharding: Any) -> Any:
    """Return the mesh of a sharding if axes of it are explicit, which makes the split part of an array's type."""
    mesh = getattr(sharding, "mesh", None)
    return mesh if mesh is not None and AxisType.Explicit in mesh.axis_types else None


def given_sharding(array: Any) -> NamedSharding | None:
    """Return how an array is split over a mesh, as far as is known: a traced one tells of explicit axes only."""
    is_traced = isinstance(array, jax.core.Tracer)
    sharding = jax.typeof(array).sharding if is_traced else getattr(array, "sharding", None)
    is_known = isinstance(sharding, NamedSharding) and (isinstance(sharding.mesh, Mesh) or explicit_mesh(sharding))
    return sharding if is_known else None


def _rows_of(array: Any, letters: str, width: int) -> NamedSharding | None:
    """Return how the rows (T, width, ...) of one array lie; several axes of environments are merged."""
    given = given_sharding(array)
    if given is None:
        return None
    spec = [*given.spec, *[None] * (array.ndim - len(given.spec))]
    names = sum((_names(spec[axis]) for axis, letter in enumerate(letters) if letter not in "UT"), ())
    if width % _ways(given.mesh, names):
        names = ()
    return NamedSharding(given.mesh, PartitionSpec(None, names or None, *spec[len(letters) :]))


def _names(entry: Any) -> tuple[str, ...]:
    """Return the mesh axes that one array axis is split over."""
    return () if entry is None else entry if isinstance(entry, tuple) else (entry,)


def _ways(mesh: Any, entry: Any) -> int:
    """Return in how many parts an array axis is split."""
    return math.prod(mesh.shape[name] for name in _names(entry))


def rows_shardings(arrays: Sequence[Any], letters: str, width: int) -> list[NamedSharding | None]:
    """Return how the rows (T, width, ...) of a chunk's arrays are to lie; None for all where none is over a mesh.

    `letters` names the arrays' leading axes. An array that is not split at all, replicated or on one device only, goes
    with the others' environments.
    """
    own = [_rows_of(array, letters, width) for array in arrays]
    named = [sharding for sharding in own if sharding is not None]
    if not named:
        return [None] * len(own)
    explicit = [sharding for sharding in named if explicit_mesh(sharding)]
    leader = next((s for s in explicit or named if s.spec[1] is not None), (explicit or named)[0])
    rest = NamedSharding(leader.mesh, PartitionSpec(None, leader.spec[1]))
    return [s if s and any(s.spec) and (not explicit or s.mesh == leader.mesh) else rest for s in own]


def block_shardings(fields: Sequence[Any], flags: Sequence[Any], letters: str, width: int) -> Shardings:
    """Return where the device arrays of a log are to lie, given the arrays of its first chunk."""
    arrays = [*fields, *flags]
    first = next((array for array in arrays if isinstance(array, jax.Array) and array.committed), None)
    if first is None:
        return ()
    placed = rows_shardings(arrays, letters, width)
    of_flags = placed[len(fields) :]
    if of_flags:
        placed[len(fields) :] = [next((s for s in of_flags if s and any(s.spec)), of_flags[0])]
    devices = np.array(list(first.sharding.devices_indices_map(first.shape)))
    alone, everywhere = SingleDeviceSharding(devices[0]), NamedSharding(Mesh(devices, ("device",)), PartitionSpec())
    return tuple(sharding or (alone if len(devices) == 1 else everywhere) for sharding in placed)


def is_foreign(array: Any, sharding: Any) -> bool:
    """Say whether JAX would refuse an array beside one of this sharding, for their meshes, on the same devices."""
    has_place = isinstance(array, jax.Array) and array.committed
    return has_place and explicit_mesh(array.sharding) != explicit_mesh(sharding)


def adopt(array: Any, sharding: Any, letters: str) -> Any:
    """Return an array that `is_foreign` as one that is not; it stays on its devices where it is split alike."""
    if not is_foreign(array, sharding):
        return array
    mesh = explicit_mesh(sharding)
    if mesh is None:
        own = array.sharding
        mesh = Mesh(own.mesh.devices, own.mesh.axis_names, axis_types=(AxisType.Auto,) * own.mesh.devices.ndim)
        return jax.device_put(array, NamedSharding(mesh, own.spec))
    major = next(axis for axis, letter in enumerate(letters) if letter not in "UT")
    spec: list[Any] = [None] * len(letters) + list(sharding.spec[2:])[: array.ndim - len(letters)]
    spec[major] = sharding.spec[1]
    if array.shape[major] % _ways(mesh, spec[major]):
        spec[major] = None
    return jax.device_put(array, NamedSharding(mesh, PartitionSpec(*spec)))


def shardings_of(arrays: Any) -> Any:
    """Return how arrays are split as far as their types tell, which is all that is known while JAX traces."""
    return jax.tree.map(lambda array: jax.typeof(array).sharding, arrays)


def automatic(function: Callable[..., Any], shardings: Any) -> Callable[..., Any]:
    """Return a function for arrays of a mesh in which none of its axes is explicit, and whose results lie as said.

    With explicit axes JAX would ask after many a step how its result is split; so it finds out by itself.
    """
    mesh = next((mesh for s in jax.tree.leaves(shardings) if (mesh := explicit_mesh(s))), None)
    if mesh is None:
        return function
    kinds = zip(mesh.axis_names, mesh.axis_types, strict=True)
    axes = tuple(name for name, kind in kinds if kind == AxisType.Explicit)
    return jax.sharding.auto_axes(function, axes=axes, out_sharding=shardings)
