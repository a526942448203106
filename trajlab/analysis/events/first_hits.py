"""Transitions in which a condition holds: all of them, or some among which is the first of each episode."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from trajlab.analysis.common import as_rows
from trajlab.analysis.kernels.minima import first_rows
from trajlab.dataset.flat import FlatBatch
from trajlab.dataset.successive import Successive


class Hits(NamedTuple):
    """Transitions and components in which a condition holds.

    Attributes
    ----------
    episode, time : array (K,) of int
        Position along `episode`, label of `time`.
    component : array (K,) of int, or 0
    """

    episode: np.ndarray
    time: np.ndarray
    component: np.ndarray | int

    def among(self, episodes: np.ndarray | None) -> "Hits":
        """Return them where the episodes of a part stand as `episodes` says; None where they are all."""
        return self if episodes is None else self._replace(episode=episodes[self.episode])


def all_hits(batch: FlatBatch, holds: np.ndarray) -> Hits:
    """Return all places in which a condition `holds` (M, component)."""
    row, component = _row_and_component(np.flatnonzero(holds), holds.shape[1])
    return Hits(*batch.locate(row), component)


def first_hits(one: Successive, name: str) -> Iterator[Hits]:
    """Yield places in which a field of bools holds, among them the first of each episode.

    Most fields that are once True are so for long. So streams of transitions in which no episode ends are looked
    through for the first time alone, and others for the times at which they become True.
    """
    rows = as_rows(one.batch.values[name])
    holds = rows.reshape(len(rows) // one.ahead, one.ahead, rows.shape[1])
    inner = one.last[one.last < len(rows) - one.ahead]
    is_broken = np.zeros(one.ahead, bool)
    is_broken[inner % one.ahead] = True
    is_broken[one.absent % one.ahead] = True
    broken = np.flatnonzero(is_broken)
    if 2 * len(broken) > one.ahead:
        yield _beginnings(one, holds, np.arange(one.ahead))
        return
    yield _first_in_streams(one, holds, np.flatnonzero(~is_broken))
    if len(broken):
        yield _beginnings(one, holds[:, broken], broken)


def _first_in_streams(one: Successive, holds: np.ndarray, streams: np.ndarray) -> Hits:
    """Return the first places in which (row, stream, component) holds in `streams`, in which no episode ends."""
    first = first_rows(holds.reshape(len(holds), -1)).reshape(holds.shape[1:])[streams]
    episode, time = one.batch.locate(streams)
    stream, component = np.nonzero(first >= 0)
    return Hits(episode[stream], time[stream] + first[stream, component], component)


def _beginnings(one: Successive, holds: np.ndarray, streams: np.ndarray) -> Hits:
    """Return where (row, one of `streams`, component) begins to hold: it does, and not in the step before."""
    begins = np.empty_like(holds)
    begins[:1] = holds[:1]
    np.less(holds[:-1], holds[1:], out=begins[1:])
    place = np.full(one.ahead, -1)
    place[streams] = np.arange(len(streams))
    row, stream = np.divmod(one.last, one.ahead)
    is_inner = (row < len(holds) - 1) & (place[stream] >= 0)
    after = row[is_inner] + 1, place[stream[is_inner]]
    begins[after] = holds[after]
    row, stream = np.divmod(one.absent, one.ahead)
    is_there = place[stream] >= 0
    begins[row[is_there], place[stream[is_there]]] = False
    places, component = _row_and_component(np.flatnonzero(begins), holds.shape[2])
    if len(streams) < one.ahead:
        row, stream = np.divmod(places, len(streams))
        places = row * one.ahead + streams[stream]
    return Hits(*one.batch.locate(places), component)


def _row_and_component(cells: np.ndarray, components: int) -> tuple[np.ndarray, np.ndarray | int]:
    """Return the row, and the component, of cells that are counted through."""
    return (cells, 0) if components == 1 else divmod(cells, max(components, 1))
