"""Masks where None stands for one that is not set anywhere, which saves making and passing over it."""

import numpy as np


def either(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """Return where one of two masks is set."""
    if one is None or other is None:
        return other if one is None else one
    return one | other


def but_not(mask: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """Return where a mask is set and another one is not."""
    return mask if mask is None or other is None else mask & ~other


def count_set(mask: np.ndarray | None, other: np.ndarray | None = None) -> int:
    """Return in how many places a mask is set and another one is not.

    >>> count_set(np.array([True, True, False]), np.array([False, True, False]))
    1
    """
    left = but_not(mask, other)
    return 0 if left is None else int(left.sum())
