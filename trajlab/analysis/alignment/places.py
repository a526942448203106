"""How many transitions stand at each place of a trace, and where one stands among groups and places."""

import numpy as np
import xarray as xr

from trajlab.analysis.alignment.alignments import Alignment, FromStart
from trajlab.analysis.grouping.groups import Groups
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.flat import FlatBatch
from trajlab.names import MASK


def count_alive(ds: xr.Dataset, groups: Groups, alignment: Alignment, alive: AliveRows) -> np.ndarray:
    """Return how many transitions stand at each place (group * place * agent,), from lengths alone where these tell."""
    if groups.is_per_episode and not alive.needed:
        group = np.zeros(len(ds[MASK]), np.intp) if groups.of_episode is None else groups.of_episode
        table = alignment.count(group, groups.size)
        if table is not None:
            return table.reshape(-1)
    counts = np.zeros(groups.size * len(alignment.labels) * alive.num_agents, np.int64)
    for batch in alignment.batches(ds, [*groups.fields, *alive.needed] or [MASK]):
        index, taking_part = place_of(batch, groups, alignment), alive.cells(batch)
        index = index if taking_part is None else alive_index(index, taking_part, alive)
        counts += np.bincount(index[index >= 0] if index.min(initial=0) < 0 else index, minlength=len(counts))
    return counts


def place_of(batch: FlatBatch, groups: Groups, alignment: Alignment) -> np.ndarray:
    """Return ``group * places + place`` of each transition, below 0 for one in no group or at no place."""
    size = len(alignment.labels)
    if groups.of_episode is not None and isinstance(alignment, FromStart) and not alignment.cells.has_gaps:
        return alignment.cells.steps_of(batch.time_plus(groups.first_places(size)))
    place, group = alignment.places(batch), groups.index(batch)
    if group is None:
        return place
    index = place + group * size
    return index if alignment.is_total else np.where(place < 0, -1, index)


def alive_index(index: np.ndarray, cells: np.ndarray, alive: AliveRows) -> np.ndarray:
    """Return places ``index * agents + agent`` of what `AliveRows.cells` gave; below 0 where those of `index` are."""
    row = cells // alive.num_agents
    return index[row] * alive.num_agents + (cells - row * alive.num_agents)
