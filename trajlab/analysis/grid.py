"""Bins of one or two components, and in which of them each transition is."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import as_rows
from trajlab.analysis.components import Component, needed_by
from trajlab.analysis.discrete import as_discrete, discrete_kind
from trajlab.analysis.grouping.cut import Numbers
from trajlab.analysis.kernels.bins import BinFinder, RangeFinder
from trajlab.analysis.kernels.counting import MAX_PLACES
from trajlab.analysis.kernels.masks import count_set, either
from trajlab.analysis.labels import MAX_RANGE
from trajlab.dataset.flat import FlatBatch, iter_flat
from trajlab.edges import as_edges, bin_middles, even_edges, whole_edges
from trajlab.errors import warn_user
from trajlab.names import X_BIN, X_BIN_LEFT, X_BIN_RIGHT, Y_BIN, Y_BIN_LEFT, Y_BIN_RIGHT

AXIS_NAMES = ((X_BIN, X_BIN_LEFT, X_BIN_RIGHT), (Y_BIN, Y_BIN_LEFT, Y_BIN_RIGHT))
"""The dim of each axis, and the coordinates of its edges."""

Bins = int | np.integer | Numbers | None
"""Of one axis: a number of bins, edges, or None for a default."""
BinsArgument = Bins | Sequence[Bins]


@dataclasses.dataclass(frozen=True, eq=False)
class Axis:
    """The bins of a component.

    Attributes
    ----------
    component : Component
    edges : array (bin + 1,) float64
    values : array (bin,) or None
        The whole number that each bin holds, where each holds one.
    kind : str
        What values are counted as where each has a bin, as `discrete_kind` says it; else "".
    """

    component: Component
    edges: np.ndarray
    values: np.ndarray | None = None
    kind: str = ""

    @property
    def size(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    @functools.cached_property
    def _finder(self) -> BinFinder:
        return BinFinder(self.edges)

    def places(self, batch: FlatBatch) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Return the bin of each transition (M,), and which have NaN or lie outside, None where none does."""
        values = self.component.values(batch)
        if self.values is not None:
            rows, missing = as_discrete(values, self.kind)
            place = (rows[:, 0].astype(self.values.dtype) - self.values[0]).astype(np.intp)
            if missing is None:
                return place, None, None
            return np.where(missing[:, 0], 0, place), missing[:, 0], None
        values = as_rows(values)[:, 0].astype(np.float64)
        if self._finder.holds(values):
            return self._finder.find(values), None, None
        nan, inside = np.isnan(values), (values >= self.edges[0]) & (values <= self.edges[-1])
        return self._finder.find(np.where(inside, values, self.edges[0])), nan, ~inside & ~nan

    def coords(self, names: tuple[str, str, str]) -> dict[str, Any]:
        """Return the coordinates of its dim: the middle (or the value) of each bin, and its edges."""
        attrs = {"long_name": self.component.title}
        attrs |= {"units": self.component.units} if self.component.units else {}
        middles = bin_middles(self.edges) if self.values is None else self.values
        arrays = zip(names, (middles, self.edges[:-1], self.edges[1:]), strict=True)
        return {name: (names[0], array, attrs) for name, array in arrays}


class Grid:
    """The bins of one or two components together.

    Attributes
    ----------
    axes : tuple of Axis
    num_nan, num_outside : int
        Transitions met so far that have NaN in a component, and further ones that lie outside of the bins.
    """

    def __init__(self, axes: Sequence[Axis]) -> None:
        """Start with nothing met."""
        self.axes = tuple(axes)
        self.num_nan = self.num_outside = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of bins along each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of all bins."""
        return int(np.prod(self.shape))

    @property
    def dims(self) -> tuple[str, ...]:
        """The dim of each axis."""
        return tuple(names[0] for _, names in zip(self.axes, AXIS_NAMES, strict=False))

    @property
    def needed(self) -> list[str]:
        """Variables that a batch must hold."""
        return needed_by(axis.component for axis in self.axes)

    def coords(self) -> dict[str, Any]:
        """Return the coordinates of all dims."""
        pairs = zip(self.axes, AXIS_NAMES, strict=False)
        return {name: coord for axis, names in pairs for name, coord in axis.coords(names).items()}

    def index(self, batch: FlatBatch, group: np.ndarray | None) -> np.ndarray:
        """Return the place ``group * size + bin`` of each transition (M,), the last axis running fastest.

        It is below 0 for one in no bin, in no group (one below 0), or of an agent that takes no part.
        """
        places = [axis.places(batch) for axis in self.axes]
        index = places[0][0]
        for axis, (place, _, _) in zip(self.axes[1:], places[1:], strict=True):
            index = index * axis.size + place
        dead = functools.reduce(either, (axis.component.missing(batch) for axis in self.axes))
        if group is not None:
            index = index + group * self.size
        nan, outside = (functools.reduce(either, (place[n] for place in places)) for n in (1, 2))
        index = _without(index, dead)
        self.num_nan += _num_in(index, nan)
        index = _without(index, nan)
        self.num_outside += _num_in(index, outside)
        return _without(index, outside)


def _without(index: np.ndarray, left_out: np.ndarray | None) -> np.ndarray:
    return index if left_out is None else np.where(left_out, np.intp(-1), index)


def _num_in(index: np.ndarray, mask: np.ndarray | None) -> int:
    return 0 if mask is None else count_set(mask, index < 0)


def report_nan(what: str, grid: Grid) -> None:
    """Warn of transitions that have NaN in a component."""
    if grid.num_nan:
        labels = " or ".join(repr(axis.component.label) for axis in grid.axes)
        warn_user(f"{what}: {grid.num_nan} transitions have NaN in {labels} and are in no bin; the attributes say so")


def make_grid(ds: xr.Dataset, components: Sequence[Component], bins: Any, default: int, num_groups: int) -> Grid:
    """Return the bins of one or two components.

    Parameters
    ----------
    ds : Dataset
    components : sequence of Component
    bins : int, sequence or None
        A number of bins for each axis, over the range of its finite values; for a single component also edges, for two
        a pair of numbers or edges. None, also in a pair, is a bin for each value of integers and bools that span at
        most 1,024, and else `default` of them.
    default, num_groups : int

    Raises
    ------
    ValueError
        When `bins` is anything else, or there would be more than 2**26 counts in all groups.
    """
    each = _each(bins, len(components))
    axes: list[Axis | None] = [
        Axis(component, given) if isinstance(given, np.ndarray) else None
        for component, given in zip(components, each, strict=True)
    ]
    open_ = [number for number, axis in enumerate(axes) if axis is None]
    kinds = [None if each[number] is not None else discrete_kind(ds, components[number].name) for number in open_]
    ranges = _ranges(ds, [components[number] for number in open_], kinds)
    for number, kind, ends in zip(open_, kinds, ranges, strict=True):
        axes[number] = _axis(components[number], kind, ends, each[number] or default)
    grid = Grid([axis for axis in axes if axis is not None])
    if num_groups * grid.size > MAX_PLACES:
        shape = " x ".join(map(str, grid.shape))
        raise ValueError(f"{shape} bins in {num_groups} groups; expected at most {MAX_PLACES:,} in all: fewer bins=")
    return grid


def _each(bins: Any, count: int) -> list[Any]:
    """Return for each of `count` axes a number of bins, edges (bin + 1,), or None."""
    is_list = isinstance(bins, Sequence | np.ndarray) and not isinstance(bins, str)
    given = list(bins) if is_list and count > 1 else [bins] * count
    if len(given) != count:
        raise _misfit(bins, count)
    return [_one(one, bins, count) for one in given]


def _one(given: Any, bins: Any, count: int) -> Any:
    if given is None:
        return None
    if isinstance(given, int | np.integer) and not isinstance(given, bool) and given > 0:
        if given > MAX_PLACES:
            raise ValueError(f"bins={bins!r}; expected at most {MAX_PLACES:,} in all")
        return int(given)
    edges = as_edges(given)
    if edges is None:
        raise _misfit(bins, count)
    return edges


def _misfit(bins: Any, count: int) -> ValueError:
    pair = "" if count == 1 else ", or a pair of these, one for each component"
    one = ", or at least two finite edges, ascending" if count == 1 else ""
    edges = "" if count == 1 else "; at least two finite edges, ascending, may stand in a pair for a number"
    return ValueError(f"bins={bins!r}; expected a number of bins, at least 1{one}{pair}{edges}")


def _ranges(ds: xr.Dataset, components: Sequence[Component], kinds: Sequence[str | None]) -> list[tuple[Any, Any]]:
    """Return the smallest and largest value of each component, finite ones where its kind is None; NaN for none."""
    floats = [RangeFinder() for _ in components]
    whole: list[tuple[int, int] | None] = [None for _ in components]
    for batch in iter_flat(ds, needed_by(components)) if components else ():
        for number, (component, kind) in enumerate(zip(components, kinds, strict=True)):
            dead = component.missing(batch)
            values = component.values(batch) if dead is None else component.values(batch)[~dead]
            if kind is None:
                floats[number].add(as_rows(values))
                continue
            rows, missing = as_discrete(values, kind)
            rows = rows if missing is None else rows[~missing]
            if rows.size:
                ends = [int(rows.min()), int(rows.max()), *(whole[number] or ())]
                whole[number] = min(ends), max(ends)
    return [
        (found.smallest, found.largest) if kind is None else ends or (np.nan, np.nan)
        for found, ends, kind in zip(floats, whole, kinds, strict=True)
    ]


def _axis(component: Component, kind: str | None, ends: tuple[Any, Any], bins: int) -> Axis:
    """Return the bins of a component: one for each value where it is of a kind, and does not span too many."""
    smallest, largest = ends
    if kind is None or np.isnan(float(smallest)):
        return Axis(component, even_edges(float(smallest), float(largest), bins))
    count = largest - smallest + 1
    if count <= MAX_RANGE:
        values = np.arange(count).astype(np.uint64 if kind == "u" and largest >= 2**63 else np.int64)
        values += values.dtype.type(smallest)
        return Axis(component, smallest - 0.5 + np.arange(count + 1.0), values, kind)
    return Axis(component, whole_edges(smallest, largest, bins))
