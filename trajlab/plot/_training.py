"""Axes along training: where groups of episodes stand, and how many episodes each has."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups
from trajlab.analysis.grouping.training import edges_along, is_along
from trajlab.names import FIRST, LAST
from trajlab.plot import _labels, _legend, _style
from trajlab.plot._strip import scale_counts

if TYPE_CHECKING:
    import matplotlib.axes

GAP = 0.1
"""Half of the room between bars of groups that have no order."""


@dataclasses.dataclass(frozen=True, eq=False)
class Places:
    """Where groups stand along x.

    Attributes
    ----------
    which : array (place,) intp
        The groups that are drawn: along numbers those with an episode.
    left, right : array (place,)
        The ends of their bars.
    middle : array (place,)
        Halfway between a group's smallest and largest value.
    labels : list of str or None
        Their names; None along numbers.
    """

    which: np.ndarray
    left: np.ndarray
    right: np.ndarray
    middle: np.ndarray
    labels: list[str] | None

    @classmethod
    def of(cls, ds: xr.Dataset, result: xr.Dataset, groups: Groups, asked: GroupsArgument) -> "Places":
        """Return the places of the groups of a result, for which `asked` was given as `groups`."""
        if not is_along(ds, groups, asked):
            which = np.arange(groups.size)
            labels = ["all"] if groups.name is None else _legend.group_labels(groups)
            return cls(which, which - 0.5 + GAP, which + 0.5 - GAP, which.astype(float), labels)
        first, last = (result[key].values.astype(np.float64) for key in (FIRST, LAST))
        which = np.flatnonzero(np.isfinite(first) & np.isfinite(last))
        first, last = first[which], last[which]
        edges = edges_along((first, last)) if len(which) else np.zeros(1)
        return cls(which, edges[:-1], edges[1:], (first + last) / 2, None)

    def finish(self, ax: "matplotlib.axes.Axes", groups: Groups) -> None:
        """Name the x axis and its places."""
        if len(self.which):
            ax.set_xlim(self.left[0], self.right[-1])
        if self.labels is not None:
            _labels.label_ticks(ax, self.middle, _labels.broken_labels(ax, self.labels))
        else:
            _labels.plain_numbers(ax.xaxis, whole=groups.values.dtype.kind in "iu")
        if groups.name is not None:
            _labels.write_xlabel(ax, _legend.groups_title(groups).replace("_", " "))


def draw_bars(ax: "matplotlib.axes.Axes", places: Places, counts: np.ndarray, rest: np.ndarray | None = None) -> None:
    """Draw how many episodes each group has (group,), and on top of that, fainter, how many `rest` (group,)."""
    grey: Any = _style.neutral(ax)
    counts = counts[places.which]
    rest = np.zeros_like(counts) if rest is None else rest[places.which]
    width, middle = places.right - places.left, (places.left + places.right) / 2
    ax.bar(middle, counts, width, color=grey, alpha=0.6, linewidth=0)
    if rest.any():
        ax.bar(middle, rest, width, bottom=counts, color=grey, alpha=0.25, linewidth=0)
    scale_counts(ax, int((counts + rest).max(initial=0)))
    ax.set_ylabel("n")
