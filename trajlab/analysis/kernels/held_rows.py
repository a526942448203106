"""Kernels that hold rows of several batches back, until counting them costs as much as passing over the counts."""

from collections.abc import Callable
from typing import Any

import numpy as np


class HeldRows:
    """Hands rows on in larger parts: a part at least as long as the table it is counted in costs little beside it.

    Rows are several arrays (M, ...) of equal length, or masks that may be None for all False.
    """

    def __init__(self, add: Callable[..., None], size: Callable[[], int]) -> None:
        """Hand rows to `add` once there are `size()` of them."""
        self._add, self._size = add, size
        self._parts: list[tuple[np.ndarray | None, ...]] = []
        self._count = 0

    def add(self, first: np.ndarray, *others: np.ndarray | None) -> None:
        """Take the rows of a batch."""
        self._parts.append((first, *others))
        self._count += len(first)
        if self._count >= self._size():
            self.flush()

    def flush(self) -> None:
        """Hand over what is held."""
        if self._parts:
            self._add(*map(self._joined, zip(*self._parts, strict=True)))
        self._parts, self._count = [], 0

    def _joined(self, arrays: tuple[np.ndarray | None, ...]) -> Any:
        if len(arrays) == 1 or all(array is None for array in arrays):
            return arrays[0]
        shapes = [array.shape[1:] for array in arrays if array is not None]
        lengths = [len(first) for first, *_ in self._parts if first is not None]
        masks = (
            np.zeros((length, *shapes[0]), bool) if array is None else array
            for length, array in zip(lengths, arrays, strict=True)
        )
        return np.concatenate(list(masks))


class PlaceCounter:
    """How often each place from 0 to `size` - 1 occurs; those below 0 are left out.

    >>> counter = PlaceCounter(3)
    >>> counter.add(np.array([2, -1, 2]))
    >>> counter.result()
    array([0, 0, 2])
    """

    def __init__(self, size: int) -> None:
        """Start with nothing counted."""
        self._counts = np.zeros(size, np.int64)
        self._held = HeldRows(self._count, lambda: size)

    def add(self, places: np.ndarray) -> None:
        """Count places (M,) of a batch."""
        self._held.add(places)

    def result(self) -> np.ndarray:
        """Return the counts (size,)."""
        self._held.flush()
        return self._counts

    def _count(self, places: np.ndarray) -> None:
        kept = places if places.min(initial=0) >= 0 else places[places >= 0]
        self._counts += np.bincount(kept, minlength=len(self._counts))
