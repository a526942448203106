"""Which episodes are asked for: so many, evenly spread, or those of some numbers."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from trajlab.analysis.common import evenly_spread
from trajlab.dataset.views import unknown_episode


def chosen_places(numbers: np.ndarray, episodes: Any) -> np.ndarray:
    """Return the places of the episodes asked for among the numbers (episode,) of all, as they were asked for.

    Raises
    ------
    TypeError
        When `episodes` is neither how many nor their numbers.
    KeyError
        When there is no episode of such a number.
    ValueError
        When it is below 0.
    """
    problem = f"episodes={episodes!r}; expected how many, at least 0, or a list of their numbers"
    is_list = isinstance(episodes, Iterable) and not isinstance(episodes, str) and getattr(episodes, "ndim", 1) > 0
    wanted = np.asarray(list(episodes) if is_list else episodes)
    if not is_list and isinstance(episodes, int) and not isinstance(episodes, bool):
        wanted = np.asarray(min(episodes, len(numbers)))  # also one that no array holds
    if wanted.ndim > 1 or (wanted.size and wanted.dtype.kind not in "iu"):
        mend = ": ds['episode'][flags]" if wanted.dtype.kind == "b" and wanted.ndim else ""
        raise TypeError(problem + mend)
    if not wanted.ndim:
        if wanted < 0:
            raise ValueError(problem)
        return evenly_spread(len(numbers), int(wanted))
    unknown = wanted[~np.isin(wanted, numbers)]
    if len(unknown):
        raise unknown_episode(int(unknown[0]), numbers)
    order = np.argsort(numbers, kind="stable")
    return order[np.searchsorted(numbers, wanted.astype(np.int64), sorter=order)]
