"""Rows of several batches held back, until there are as many as there are counts to pass over."""

from collections.abc import Callable
from typing import Any

import numpy as np


class Held:
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
