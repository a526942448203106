"""A Dataset in parts that fit into memory padded: ranges of episodes, of similar length where they may be moved."""

from collections.abc import Iterable, Iterator

import numpy as np
import xarray as xr

from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import component_count, is_per_transition
from trajlab.dataset.lazy import as_slice, is_in_memory, lazy_base
from trajlab.names import EPISODE, TIME

MAX_BYTES = 2**25
"""Bytes that all fields of a part may take, padded, where one episode takes no more."""


def iter_parts(ds: xr.Dataset) -> Iterator[tuple[np.ndarray, xr.Dataset]]:
    """Yield every episode of a Dataset once, in parts no longer along `time` than their longest episode.

    Yields
    ------
    episodes : array (part,)
        Their positions along `episode`.
    part : Dataset
        As lazy as `ds`.
    """
    cells = Cells.of(ds)
    fields = [variable for variable in ds.variables.values() if is_per_transition(variable)]
    can_move = may_move(fields)
    order = np.argsort(cells.counts, kind="stable") if can_move else np.arange(len(cells.counts))
    width = sum(variable.dtype.itemsize * component_count(variable) for variable in fields)
    step = 1 if can_move else max((stored_chunk(variable) for variable in fields), default=1)
    for start, stop in padded_ranges(cells.counts[order], max(MAX_BYTES // max(width, 1), 1), step):
        episodes = order[start:stop]
        longest = int(cells.counts[episodes].max(initial=0))
        times = slice(0, longest) if cells.order is None else cells.order[:longest]
        yield episodes, ds.isel({EPISODE: as_slice(episodes), TIME: times})


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
