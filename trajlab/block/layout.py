"""What a log stores: one column of arrays per field, and one byte of flags per cell."""

import dataclasses
import functools
import math
from typing import Any, Literal

import numpy as np

Home = Literal["device", "host"]

TERMINATED, TRUNCATED, DONE = np.uint8(1), np.uint8(2), np.uint8(4)
NOT_RECORDED = np.uint8(8)
RESET, GAP = np.uint8(16), np.uint8(32)
ENDS = np.uint8(TERMINATED | TRUNCATED | DONE)
MARKS = np.uint8(RESET | GAP)

EVERY_AGENT = "*"
"""Marks a field with an axis of agents; one that belongs to a single agent is marked with its name."""

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
    agent : str
        ``"*"`` where the first axis of a cell is that of agents, an agent's name where the field is its alone.
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
    agent: str = ""

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
