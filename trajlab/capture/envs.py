"""Which environments a call means: indices, a slice or a bool mask, checked against their number."""

from typing import Any

import numpy as np


def env_columns(envs: Any, num_envs: int, what: str) -> np.ndarray:
    """Return the numbers (k,) int64 of the environments that `envs` selects.

    Parameters
    ----------
    envs : int, sequence of int, slice, or bool array (num_envs,)
    num_envs : int
        How many environments there are.
    what : str
        The argument's name, for messages.

    Raises
    ------
    ValueError
        When an index is out of range or repeated, or a mask has the wrong shape.
    TypeError
        When it is none of these.
    """
    if isinstance(envs, slice):
        return np.arange(num_envs)[envs]
    array = np.atleast_1d(np.asarray(envs))
    if array.dtype == bool:
        if array.shape != (num_envs,):
            raise ValueError(
                f"{what} is a mask of shape {array.shape}; expected ({num_envs},), one entry per environment"
            )
        return np.flatnonzero(array)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(f"{what}={envs!r}; expected environment numbers, a slice or a bool mask")
    array = array.astype(np.int64)
    outside = array[(array < 0) | (array >= num_envs)]
    if outside.size:
        raise ValueError(f"{what} holds {outside.tolist()}; there are {num_envs} environments, 0 to {num_envs - 1}")
    unique, counts = np.unique(array, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"{what} repeats {unique[counts > 1].tolist()}; give each environment once")
    return array
