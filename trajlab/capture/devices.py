"""On which devices the arrays of a chunk lie, and whether a log takes them from there."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np


def devices_of(arrays: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the devices, in order, that JAX would compute on with these arrays; () where none lies on a device."""
    there = [array for array in arrays.values() if hasattr(array, "committed")]
    for array in sorted(there, key=lambda array: not array.committed)[:1]:
        return tuple(array.sharding.devices_indices_map(array.shape))
    return ()


def placement_problems(arrays: Mapping[str, Any], home: tuple[Any, ...]) -> list[str]:
    """Return what keeps JAX from writing a chunk's arrays, by name, into a log that lies on the devices `home`.

    An array that is not committed to its devices is no problem, since JAX moves it.
    """
    places: dict[tuple[Any, ...], list[str]] = {}
    for name, array in arrays.items():
        if getattr(array, "committed", False):
            places.setdefault(devices_of({name: array}), []).append(name)
    lie = "; ".join(f"{', '.join(map(repr, names))} on {_devices_text(place)}" for place, names in places.items())
    if len(places) > 1:
        return [
            f"its arrays lie on different devices, {lie}; JAX takes only arrays that are all on the same ones, in the "
            "same order. Put them there: jax.device_put(chunk, sharding)"
        ]
    if places and set(places) != {home}:
        return [
            f"it lies elsewhere than the first one, {lie}; expected {_devices_text(home)}. Put it there: "
            "jax.device_put(chunk, sharding); or use one Recorder for each"
        ]
    return []


def _devices_text(devices: tuple[Any, ...]) -> str:
    """Return devices as ``"cpu:0"`` or ``"4 devices, cpu:0,1,2,3"``."""
    numbers = ",".join(str(device.id) for device in devices[:16]) + ",..." * (len(devices) > 16)
    count = f"{len(devices)} devices, " if len(devices) > 1 else ""
    return f"{count}{devices[0].platform}:{numbers}"


def check_not_deleted(arrays: Mapping[str, Any]) -> None:
    """Raise ValueError where one of the arrays, by name, has been deleted or donated; traced ones cannot have been."""
    for name, leaf in arrays.items():
        if isinstance(leaf, (np.ndarray, jax.core.Tracer)):  # asked first: jax.Array is slow to say
            continue
        if isinstance(leaf, jax.Array) and leaf.is_deleted():
            raise ValueError(f"the array of {name!r} has been deleted or donated; record it before it is donated")
