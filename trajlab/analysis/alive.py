"""How many episodes are alive at each step, and where a transition stands among groups and steps."""

import numpy as np
import xarray as xr

from trajlab.analysis.groups import Groups
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.cells import Cells
from trajlab.dataset.flat import FlatBatch, iter_flat


def count_alive(ds: xr.Dataset, groups: Groups, cells: Cells, alive: AliveRows) -> np.ndarray:
    """Return how many transitions stand at each place (group * time * agent,), from lengths alone where these tell."""
    steps = len(cells.labels)
    if groups.is_per_episode and not alive.needed:
        group = np.zeros(len(cells.counts), np.intp) if groups.of_episode is None else groups.of_episode
        kept = group >= 0
        last = np.bincount(group[kept] * (steps + 1) + cells.counts[kept], minlength=groups.size * (steps + 1))
        table = last.reshape(groups.size, steps + 1)
        return np.cumsum(table[:, ::-1], axis=1)[:, ::-1][:, 1:].reshape(-1)
    counts = np.zeros(groups.size * steps * alive.num_agents, np.int64)
    for batch in iter_flat(ds, [*groups.fields, *alive.needed]):
        index, taking_part = place_of(batch, groups, cells), alive.cells(batch)
        index = index if taking_part is None else alive_index(index, taking_part, alive)
        counts += np.bincount(index[index >= 0], minlength=len(counts))
    return counts


def place_of(batch: FlatBatch, groups: Groups, cells: Cells) -> np.ndarray:
    """Return the place ``group * len(time) + step`` of each transition, below 0 for one in no group."""
    step = cells.steps_of(batch.time)
    group = groups.index(batch)
    return step if group is None else step + group * len(cells.labels)


def alive_index(index: np.ndarray, cells: np.ndarray, alive: AliveRows) -> np.ndarray:
    """Return places ``index * agents + agent`` of what `AliveRows.cells` gave; below 0 where those of `index` are."""
    row = cells // alive.num_agents
    return index[row] * alive.num_agents + (cells - row * alive.num_agents)
