"""Joined arrays taken apart when they are joined again, so that reading never goes through more than one of them."""

import dataclasses
import functools
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab.dataset.joined import Frame, JoinedArray
from trajlab.dataset.lazy import as_slice, lazy_base, vector

Run = tuple[int, np.ndarray]
"""A part of a joined array by its number, and which of the part's entries follow one another in a selection."""


@dataclasses.dataclass(frozen=True, eq=False)
class Flattener:
    """Gives the parts of which variables are joined: themselves, or the parts they were joined from before.

    Variables that were joined and selected alike get the same frame.

    Attributes
    ----------
    frame : Frame
        How the variables themselves stand one behind the other.
    """

    frame: Frame

    @functools.cached_property
    def _frames(self) -> dict[Hashable, tuple[Frame, list[list[Run] | None]]]:
        return {}

    def __call__(self, variables: Sequence[xr.Variable], lead: int) -> tuple[Frame, list[xr.Variable | None]]:
        """Return the frame and the parts of variables over the same axes, of which `lead` are episode and time."""
        bases = [_joined_base(variable, lead) for variable in variables]
        key = tuple(None if base is None else (id(base[0].frame), _key_text(base[1][0])) for base in bases)
        if key not in self._frames:
            self._frames[key] = self._flattened(bases)
        frame, runs = self._frames[key]
        parts: list[xr.Variable | None] = []
        for variable, base, own in zip(variables, bases, runs, strict=True):
            if base is None or own is None:
                parts.append(variable.copy(deep=False))
            else:
                parts += [_taken(base[0].parts[number], entries) for number, entries in own]
        return frame, parts

    def _flattened(
        self, bases: Sequence[tuple[JoinedArray, tuple[Any, ...]] | None]
    ) -> tuple[Frame, list[list[Run] | None]]:
        """Return the frame of all parts, and for each variable the runs of its parts, or None where it stays whole."""
        sizes: list[int] = []
        places: list[np.ndarray | None] = []
        found = []
        for base, size, outer in zip(bases, self.frame.sizes, self.frame.places, strict=True):
            runs = None if base is None else _runs(base[0].frame, vector(base[1][0], base[0].shape[0]))
            found.append(runs)
            if base is None or runs is None:
                sizes.append(size)
                places.append(outer)
            else:
                sizes += [len(entries) for _, entries in runs]
                places += [_composed(outer, base[0].frame.places[number]) for number, _ in runs]
        whole = [runs is None for runs in found]
        frame = self.frame if all(whole) else dataclasses.replace(self.frame, sizes=tuple(sizes), places=tuple(places))
        return frame, found


def _joined_base(variable: xr.Variable, lead: int) -> tuple[JoinedArray, tuple[Any, ...]] | None:
    """Return the joined array beneath a variable, and its key, where nothing but episodes is selected of it."""
    base = lazy_base(variable)
    array, key = base or (None, ())
    if not isinstance(array, JoinedArray) or array.lead != lead:
        return None
    is_whole = all(isinstance(k, slice) and k == slice(None) for k in key[1:])
    return (array, key) if is_whole and isinstance(key[0], slice | np.ndarray) else None


def _key_text(key: Any) -> str | bytes:
    return key.tobytes() if isinstance(key, np.ndarray) else str(key)


def _runs(frame: Frame, first: np.ndarray) -> list[Run] | None:
    """Return what is selected of the parts, in order; None where it would be in more runs than there are parts."""
    owner = np.searchsorted(frame.starts, first, side="right") - 1
    begins = np.flatnonzero(np.diff(owner, prepend=-1))
    if len(begins) > len(frame.sizes):
        return None
    return [
        (int(number), entries - frame.starts[number])
        for number, entries in zip(owner[begins], np.split(first, begins[1:]), strict=False)
    ]


def _composed(outer: np.ndarray | None, inner: np.ndarray | None) -> np.ndarray | None:
    """Return where a part has each label of the whole, from where the joined array has it, and where the part that."""
    if outer is None or inner is None:
        return inner if outer is None else outer
    return np.where(outer >= 0, inner[outer], -1)


def _taken(part: xr.Variable | None, entries: np.ndarray) -> xr.Variable | None:
    """Return some entries of a part, lazily; a part that is whole as it is."""
    if part is None or np.array_equal(entries, np.arange(part.shape[0])):
        return part
    return part[as_slice(entries)]
