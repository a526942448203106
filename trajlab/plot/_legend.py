"""Legends of all plots: what they say, and where they are written."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from trajlab.analysis.grouping.groups import Groups
from trajlab.names import LEFT_OUT_ATTR
from trajlab.plot import _legend_fit
from trajlab.plot._figure import Panels
from trajlab.plot._labels import is_narrow, is_tiny, points_of
from trajlab.plot._text import plural, safe, with_units

if TYPE_CHECKING:
    import matplotlib.axes

INSIDE_POINTS = (8, 6)
"""Size of letters in a legend inside of Axes; the smaller one where it would fill too much of them."""
NARROW_POINTS, TINY_POINTS = (7, 8), (6, 6)
"""Size of letters in a legend above narrow and tiny Axes, and of their labels then."""
MAX_ABOVE = 0.35
"""Part of what there is for a legend above Axes and for these that it may take, if smaller letters make it smaller."""
WIDE_COLUMN = 10.0
"""A column of a legend above Axes is at least so wide, if labels are that long."""


class Entries(NamedTuple):
    """What a legend says: one artist and one label each, and its title."""

    handles: list[Any]
    labels: list[str]
    title: str | None = None


def group_labels(groups: Groups, counts: Sequence[int] | np.ndarray | None = None) -> list[str]:
    """Return groups as texts for a legend: ``"ppo (1,200)"`` where they come with counts."""
    values = groups.labels
    texts = [f"{value:g}" if values.dtype.kind == "f" else str(value) for value in values]
    if len(set(texts)) < len(texts):
        texts = [str(value) for value in values]
    return texts if counts is None else [f"{text} ({count:,})" for text, count in zip(texts, counts, strict=True)]


def groups_title(groups: Groups, what: str | None = None) -> str:
    """Return what was grouped by, and `what` the counts are of: ``"run (episodes)"``."""
    title = with_units(str(groups.attrs["long_name"]), groups.attrs.get("units"))
    return title if what is None else f"{title} ({what})"


def member_counts(groups: Groups, transitions: np.ndarray) -> tuple[np.ndarray, str]:
    """Return how many episodes each group has, or `transitions` (group,) where it is a matter of these; and which."""
    if groups.of_episode is None:
        return transitions, "transitions"
    return np.bincount(groups.of_episode[groups.of_episode >= 0], minlength=groups.size), "episodes"


def dot(color: Any, marker: str = "o", filled: bool = True, line: Any = None) -> Any:
    """Return what stands for faint dots in a legend; with the colour of a `line` also for one through them."""
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"linestyle": "none"} if line is None else {"color": line, "linewidth": 2.0}
    face = color if filled else "none"
    return Line2D([], [], marker=marker, markersize=5, markeredgecolor=color, markerfacecolor=face, **style)


def line(color: Any, **style: Any) -> Any:
    """Return what stands for a line in a legend; of groups, in grey, for the lines of that style in all colours."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color, **{"linewidth": 2.0, **style})


def band(color: Any) -> Any:
    """Return what stands for a band in a legend."""
    from matplotlib.patches import Patch

    return Patch(color=color, alpha=0.35, linewidth=0)


def left_out(groups: Groups) -> list[str]:
    """Return a line on what is in no group and so not shown, where there is such."""
    number = groups.attrs.get(LEFT_OUT_ATTR, 0)
    what = "transition" if groups.of_episode is None else "episode"
    return [f"in no group: {plural(number, what)}"] if number else []


def write_legend(panels: Panels, handles: Sequence[Any], labels: Sequence[str], title: str | None = None) -> None:
    """Draw a legend below the panels of a figure of our own, or at the top of the first of the Axes given.

    It comes last, since it takes the room that titles and labels leave. A figure of our own grows with the rows of
    its legend. In Axes that are too small for it, it stands above them where a layout can make room for that; else
    long labels are shortened.
    """
    title = None if title is None else safe(title)
    labels = [" ".join(label.split()) for label in labels]
    if panels.figure is None:
        _write_given(panels.axes[0], handles, labels, title)
        return
    figure: Any = panels.figure
    points = points_of("legend.fontsize")
    texts, columns, rows = _legend_fit.arranged(labels, figure.get_figwidth() * 72 / points, _legend_fit.BESIDE_WIDE)
    figure.set_figheight(figure.get_figheight() + (rows - 1) * 1.25 * points / 72)
    style: dict[str, Any] = {"loc": "outside lower center", "frameon": False, "title_fontsize": "medium"}
    figure.legend(handles, texts, title=title, ncols=columns, **style)


def write_above(
    ax: "matplotlib.axes.Axes", handles: Sequence[Any], labels: Sequence[str], columns: int, points: float, **style: Any
) -> None:
    """Draw a legend between Axes and their title, where it takes nothing from the data."""
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "borderaxespad": 0.1, "borderpad": 0.2}
    own: dict[str, Any] = {"frameon": False, "columnspacing": 1.0, "handlelength": 1.4, **place, **style}
    ax.legend(handles, labels, ncols=columns, fontsize=points, title_fontsize=points, **own)
    rows = -(-len(labels) // columns) + (own.get("title") is not None)
    size, pad = ax.title.get_fontsize(), 6 + 1.5 * points * rows
    sides: tuple[Literal["center", "right"], ...] = ("center", "right")
    for side in sides:
        ax.set_title(ax.get_title(loc=side), loc=side, fontsize=size, pad=pad)


def _write_given(ax: "matplotlib.axes.Axes", handles: Sequence[Any], labels: Sequence[str], title: str | None) -> None:
    """Draw a legend at the top of Axes and make room for it there, or above them where it would take too much."""
    room, has_title = _legend_fit.room_of(ax), title is not None
    for points in INSIDE_POINTS:
        found, height = _legend_fit.arranged(labels, room.width / points), room.height / points
        if _legend_fit.share_of(found.rows + has_title, height) <= _legend_fit.MAX_SHARE:
            break
    else:
        if room.whole:
            _write_shortened_above(ax, handles, labels, title, room)
            return
        found = _legend_fit.arranged_short(labels, room.width / points, height, has_title)
    style: dict[str, Any] = {"loc": "upper center", "fontsize": points, "title_fontsize": points, "frameon": False}
    style |= {"ncols": found.columns, "columnspacing": 1.0, "handlelength": 1.4}
    legend = ax.legend(handles, found.texts, title=title, **style)
    legend.set_in_layout(False)  # a layout would make the Axes smaller for what is inside of them
    bottom, top = ax.get_ylim()
    share = min(_legend_fit.share_of(found.rows + has_title, height), _legend_fit.MOST_SHARE)
    ax.set_ylim(bottom, bottom + (top - bottom) / (1 - share))


def _write_shortened_above(
    ax: "matplotlib.axes.Axes",
    handles: Sequence[Any],
    labels: Sequence[str],
    title: str | None,
    room: _legend_fit.Room,
) -> None:
    """Draw a legend above Axes, ending where they do and not wider than the `room`; small Axes get small labels."""
    for size in ((INSIDE_POINTS[0], 0), NARROW_POINTS, TINY_POINTS)[is_narrow(ax) + is_tiny(ax) :]:
        points, others = size
        found = _legend_fit.arranged_apart(labels, room.whole / points, WIDE_COLUMN)
        if 1.5 * points * (found.rows + (title is not None)) <= MAX_ABOVE * room.height:
            break
    if others:
        _make_small(ax, others)
    style = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "labelspacing": 0.3, "title": title}
    write_above(ax, handles, found.texts, found.columns, points, **style)


def _make_small(ax: "matplotlib.axes.Axes", points: float) -> None:
    """Make the labels of Axes and their strip small."""
    ax.yaxis.label.set(y=1.0, horizontalalignment="right")  # it may be longer than the Axes are high
    for one in _legend_fit.in_same_place(ax):
        one.tick_params(labelsize=points)
        for axis in (one.xaxis, one.yaxis):
            axis.label.set_fontsize(points)
