"""Ranges of episodes that are read together, and whether they may be read in any order."""

from collections.abc import Iterable, Iterator

import numpy as np
import xarray as xr

from trajlab.dataset.lazy import is_in_memory, lazy_base
from trajlab.names import EPISODE


def may_move(fields: Iterable[xr.Variable]) -> bool:
    """Say whether episodes may be read in any order; those of dask and of files lie in chunks."""
    return all(is_in_memory(variable) or lazy_base(variable) is not None for variable in fields)


def stored_chunk(variable: xr.Variable) -> int:
    """Return how many episodes one chunk of a dask or file-backed array holds, 1 where it has none."""
    if variable.chunks is not None:
        return max(variable.chunks[0], default=1)
    preferred = variable.encoding.get("preferred_chunks") or {}
    return max(int(preferred.get(EPISODE, 1)), 1)


def padded_ranges(counts: np.ndarray, most: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of episodes that take at most so many cells as a padded block, or else `step` episodes.

    They end at multiples of `step`, so that no chunk is read twice.
    """
    start = 0
    while start < len(counts):
        ahead = counts[start : start + max(most // max(int(counts[start]), 1), 1)]
        block = np.maximum.accumulate(ahead) * np.arange(1, len(ahead) + 1)
        stop = start + int(np.searchsorted(block, most, side="right"))
        if stop < len(counts):
            stop = max(stop // step * step, min(start + step, len(counts)))
        yield start, stop
        start = stop
