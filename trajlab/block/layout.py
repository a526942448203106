"""What a log stores: one column of arrays per field, and one byte of flags per cell."""

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

Home = Literal["device", "host"]

TERMINATED, TRUNCATED, DONE = np.uint8(1), np.uint8(2), np.uint8(4)
NOT_RECORDED = np.uint8(8)
RESET, GAP = np.uint8(16), np.uint8(32)
ENDS = np.uint8(TERMINATED | TRUNCATED | DONE)
MARKS = np.uint8(RESET | GAP)

FLAG_BITS = {"terminated": TERMINATED, "truncated": TRUNCATED, "done": DONE}


@dataclasses.dataclass(frozen=True)
class Field:
    """One stored field.

    Attributes
    ----------
    name : str
        Name in the Dataset, or, where `hidden`, a name that only the log knows.
    source : str
        Name in the chunk.
    shape : tuple of int
        Shape of one cell, as stored.
    dtype : numpy.dtype
        As stored; PRNG keys are stored as their uint32 key data.
    home : {"device", "host"}
        JAX arrays live on the device, NumPy arrays on the host.
    moved : bool
        Read one row earlier in its environment's column.
    role : str
        The slot of the convention it fills, or ``""``.
    hidden : bool
        Stored to make other variables from, but no variable itself.
    is_key : bool
        Recorded as PRNG keys.
    """

    name: str
    source: str
    shape: tuple[int, ...]
    dtype: np.dtype
    home: Home
    moved: bool = False
    role: str = ""
    hidden: bool = False
    is_key: bool = False

    @property
    def cell_bytes(self) -> int:
        """Bytes of one cell."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclasses.dataclass(frozen=True)
class Layout:
    """All that is fixed for a log by its first chunk.

    Attributes
    ----------
    fields : tuple of Field
    flag_slots : tuple of str
        Which of ``"terminated"``, ``"truncated"``, ``"done"`` a chunk carries, in the order of their arrays.
    flags_home : {"device", "host"}
    axes : str
        Letters of the chunk's leading axes.
    sizes : tuple of (str, int)
        Sizes of the axes other than T and U, in their order; their product is the number of environments.
    columns : tuple of int or None
        The environments that are recorded; None for all.
    """

    fields: tuple[Field, ...]
    flag_slots: tuple[str, ...]
    flags_home: Home
    axes: str
    sizes: tuple[tuple[str, int], ...]
    columns: tuple[int, ...] | None = None

    @functools.cached_property
    def num_envs(self) -> int:
        """Number of environments in a chunk."""
        return math.prod(size for _, size in self.sizes)

    @functools.cached_property
    def width(self) -> int:
        """Number of environments recorded."""
        return self.num_envs if self.columns is None else len(self.columns)

    @functools.cached_property
    def row_bytes(self) -> int:
        """Bytes of one row, flags included."""
        return self.width * (1 + sum(field.cell_bytes for field in self.fields))

    def at(self, home: Home) -> tuple[Field, ...]:
        """Return the fields that live on the device or the host."""
        return tuple(field for field in self.fields if field.home == home)


def step_axes(axes: str) -> str:
    """Return the letters of a single step's leading axes: those of a chunk without T and U."""
    return axes.replace("T", "").replace("U", "")


def lead(x: Any, axes: str, *, is_step: bool) -> Any:
    """Return a chunk's array, NumPy or JAX, as (T, N, ...).

    Updates (U) are joined to time; letters other than T and U are merged into the environments in the
    arrays' order. A step lacks the axes T and U and gets T = 1.
    """
    if is_step:
        axes = step_axes(axes)
        x, axes = x[None], "T" + axes
    if axes == "TN":
        return x
    time = [axes.index(letter) for letter in "UT" if letter in axes]
    others = [i for i in range(len(axes)) if i not in time]
    inner = list(range(len(axes), x.ndim))
    rows = math.prod(x.shape[i] for i in time)
    envs = math.prod(x.shape[i] for i in others)
    return x.transpose(time + others + inner).reshape(rows, envs, *x.shape[len(axes) :])


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
            f"it lies elsewhere than the first chunk, {lie}; expected {_devices_text(home)}. Put it there: "
            "jax.device_put(chunk, sharding); or use one Recorder for each"
        ]
    return []


def _devices_text(devices: tuple[Any, ...]) -> str:
    """Return devices as ``"cpu:0"`` or ``"4 devices, cpu:0,1,2,3"``."""
    numbers = ",".join(str(device.id) for device in devices[:16]) + ",..." * (len(devices) > 16)
    count = f"{len(devices)} devices, " if len(devices) > 1 else ""
    return f"{count}{devices[0].platform}:{numbers}"
