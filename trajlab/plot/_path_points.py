"""The points of single episodes' paths through two components, their colours, and where paths begin and end."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import xarray as xr

from trajlab.analysis.common import as_rows
from trajlab.analysis.components import Component, needed_by
from trajlab.analysis.kernels.masks import either
from trajlab.dataset.fields import final_fields
from trajlab.dataset.flat import FlatBatch, iter_flat
from trajlab.names import CUT, END_REASON, EPISODE, FINAL_KNOWN, LENGTH, START_SEEN, TERMINATED, TRUNCATED

START, END = "start", "end"
MARKS = (START, TERMINATED, TRUNCATED, END, CUT)
"""What paths are marked by: `END` where only that it is one is known, or an agent is done before its episode."""


@dataclasses.dataclass(frozen=True, eq=False)
class Points:
    """Points of paths, episode after episode and step after step.

    Attributes
    ----------
    places : array (M, 2) float64
        No point is there where a component belongs to an agent that is done.
    episode, time : array (M,) of int
        Position along `episode`, and step.
    color : array (M,) float64
        What colours the line to the next point, NaN for that of no transition.
    has_end : array (episode,) of bool
        Whether the last point is the end of the path: the episode's, or that of an agent that is done before.
    """

    places: np.ndarray
    episode: np.ndarray
    time: np.ndarray
    color: np.ndarray
    has_end: np.ndarray

    @property
    def is_finite(self) -> np.ndarray:
        """Which points can be drawn (M,)."""
        return np.isfinite(self.places).all(axis=1)

    def links(self) -> np.ndarray:
        """Return which points (M,) have a line to the next one: both finite, and a step apart."""
        out = np.zeros(len(self.time), bool)
        ok, time, episode = self.is_finite, self.time, self.episode
        out[:-1] = ok[:-1] & ok[1:] & (episode[1:] == episode[:-1]) & (time[1:] == time[:-1] + 1)
        return out

    def marks(self, ds: xr.Dataset) -> dict[str, np.ndarray]:
        """Return at which points (M,) each of `MARKS` stands."""
        is_first = (self.time == 0) & ds[START_SEEN].values[self.episode]
        is_last = np.append(self.episode[1:] != self.episode[:-1], np.ones(min(len(self.episode), 1), bool))
        is_last &= self.has_end[self.episode]
        lived = self.time >= ds[LENGTH].values[self.episode] - 1
        reason = np.where(lived, ds[END_REASON].values.astype(str)[self.episode], END)
        reason[~np.isin(reason, MARKS)] = END
        places = {START: is_first} | {mark: is_last & (reason == mark) for mark in MARKS[1:]}
        return {mark: mine & self.is_finite for mark, mine in places.items()}


def read_points(ds: xr.Dataset, place: Sequence[Component], color: Component | None) -> Points:
    """Return the points of all episodes of a Dataset; without a component for the colour, it is the step."""
    found: list[tuple[np.ndarray, ...]] = []
    wanted = [*place, *([] if color is None else [color])]
    for batch in iter_flat(ds, needed_by(wanted)):
        xy = np.stack([_floats(component, batch) for component in place], axis=1)
        shade = batch.time.astype(np.float64) if color is None else _floats(color, batch)
        dead = either(place[0].missing(batch), place[1].missing(batch))
        if color is not None and (is_done := color.missing(batch)) is not None:
            shade = np.where(is_done, np.nan, shade)
        found.append((xy, batch.episode, batch.time, shade, np.zeros(len(xy), bool) if dead is None else dead))
    nothing = (np.zeros((0, 2)), np.zeros(0, np.intp), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, bool))
    xy, episode, time, shade, dead = (np.concatenate(arrays) for arrays in zip(nothing, *found, strict=True))
    is_last = time == ds[LENGTH].values[episode] - 1
    has_end, goes_on = np.zeros((2, ds.sizes[EPISODE]), bool)
    has_end[episode[is_last | dead]] = True
    goes_on[episode[is_last & ~dead]] = True
    final, which = _finals(ds, place, goes_on)
    xy = np.concatenate([xy[~dead], final])
    shade = np.concatenate([shade[~dead], np.full(len(which), np.nan)])
    time = np.concatenate([time[~dead], ds[LENGTH].values[which]])
    episode = np.concatenate([episode[~dead], which])
    order = np.lexsort((time, episode))
    return Points(xy[order], episode[order], time[order], shade[order], has_end)


def final_of(ds: xr.Dataset, place: Sequence[Component]) -> str | None:
    """Return the variable of final observations that has both components, or None."""
    names = {field: name for name, field in final_fields(ds).items()}
    fields = {component.field for component in place}
    return names.get(place[0].field) if len(fields) == 1 else None


def _finals(ds: xr.Dataset, place: Sequence[Component], goes_on: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return final points (K, 2) of the episodes that go on to one, as far as it is known, and which those are."""
    name = final_of(ds, place)
    if name is None:
        return np.zeros((0, 2)), np.zeros(0, np.intp)
    which = np.flatnonzero(goes_on & ds[FINAL_KNOWN].values.astype(bool))
    variable = ds.variables[name]
    columns = [variable[(which, *component.index)].values for component in place]
    return np.stack([as_rows(column)[:, 0].astype(np.float64) for column in columns], axis=1), which


def _floats(component: Component, batch: FlatBatch) -> np.ndarray:
    return as_rows(component.values(batch))[:, 0].astype(np.float64)
