"""What the arguments of a call mean: masks and choices of environments as arrays, and the number of an update."""

from typing import Any

import numpy as np

from trajlab.capture.plan import Plan

LIMIT = 2**62
"""Numbers of updates lie below this, so that those counted on from one fit into int64, too."""


def as_array(given: Any) -> Any:
    """Return a mask or a choice of environments that came as a list as an array; all else as it is."""
    return np.asarray(given) if isinstance(given, (list, tuple)) else given


def step_mask(envs: Any, plan: Plan) -> Any:
    """Return a bool mask over environments in the shape of a step's leading axes."""
    num_envs = plan.layout.num_envs
    if tuple(envs.shape) != (num_envs,):
        raise ValueError(
            f"envs is a mask of shape {tuple(envs.shape)}; expected ({num_envs},), one entry per environment"
        )
    return envs.reshape([size for _, size in plan.layout.sizes])


def as_iteration(given: Any) -> int:
    """Return the number of an update; raise TypeError where it is no whole number, ValueError where it is too large."""
    if type(given) is not int:
        number = np.asarray(given)
        if number.ndim or number.dtype.kind not in "iu":
            raise TypeError(f"iteration={given!r}; expected a whole number")
        given = int(number)
    if not -LIMIT < given < LIMIT:
        raise ValueError(f"iteration={given}; expected a number between -2**62 and 2**62, since it is kept as int64")
    return given
