"""Legends of all plots: what stands for a group, what it is called, and where that fits."""

import functools
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from trajlab.analysis.grouping.groups import Groups
from trajlab.names import LEFT_OUT_ATTR
from trajlab.plot._style import STRIP_RATIOS, Panels
from trajlab.plot._text import is_narrow, is_tiny, plural, points_of, safe, shortened, with_units

if TYPE_CHECKING:
    import matplotlib.axes

INSIDE_POINTS = (8, 6)
"""Size of letters in a legend inside of Axes; the smaller one where it would fill too much of them."""
NARROW_POINTS, TINY_POINTS = (7, 8), (6, 6)
"""Size of letters in a legend above narrow and tiny Axes, and of their labels then."""
MAX_SHARE = 0.6
"""Part of the Axes' height that a legend inside of them may take."""
MAX_ABOVE = 0.35
"""Part of what there is for a legend above Axes and for these that it may take, if smaller letters make it smaller."""
NARROWEST = 7.0
"""A column of a legend inside of Axes is not narrower than so many letters are high, if there is another."""
WIDE_COLUMN = 10.0
"""A column of a legend above Axes is at least so wide, if labels are that long."""
GAPS = 1.25
"""How many times as wide and high as Axes a layout has the place that they and their labels are in."""
FEW_LETTERS = 7
"""No label is broken or shortened to fewer letters."""


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
    texts, columns, rows = _arranged(labels, figure.get_figwidth() * 72 / points, 4.8)
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
    width, height, whole = _room(ax)
    for points in INSIDE_POINTS:
        texts, columns, rows = _arranged(labels, width / points, 3.2)
        share = (1.6 * (rows + (title is not None)) + 1.5) * points / height
        if share <= MAX_SHARE:
            break
    else:
        if whole:
            _write_shortened_above(ax, handles, labels, title, whole, height)
            return
        rows = max(int((MAX_SHARE * height / points - 1.5) / 1.6) - (title is not None), 1)
        columns = min(-(-len(labels) // rows), max(int(width / points / NARROWEST), 1))
        rows = -(-len(labels) // columns)
        texts = _shortened(labels, width / points / columns - 3.2)
        share = min((1.6 * (rows + (title is not None)) + 1.5) * points / height, 0.85)
    style: dict[str, Any] = {"loc": "upper center", "fontsize": points, "title_fontsize": points, "frameon": False}
    legend = ax.legend(handles, texts, title=title, ncols=columns, columnspacing=1.0, handlelength=1.4, **style)
    legend.set_in_layout(False)  # a layout would make the Axes smaller for what is inside of them
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom, bottom + (top - bottom) / (1 - share))


def _write_shortened_above(
    ax: "matplotlib.axes.Axes",
    handles: Sequence[Any],
    labels: Sequence[str],
    title: str | None,
    room: float,
    height: float,
) -> None:
    """Draw a legend above Axes, ending where they do and at most `room` points wide; small Axes get small labels.

    The `height` in points is what there is for the legend and the Axes.
    """
    for size in ((INSIDE_POINTS[0], 0), NARROW_POINTS, TINY_POINTS)[is_narrow(ax) + is_tiny(ax) :]:
        texts, columns = _in_columns(labels, room / size[0])
        rows = -(-len(labels) // columns) + (title is not None)
        if 1.5 * size[0] * rows <= MAX_ABOVE * height:
            break
    points, others = size
    if others:
        _make_small(ax, others)
    style = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "labelspacing": 0.3, "title": title}
    write_above(ax, handles, texts, columns, points, **style)


def _in_columns(labels: Sequence[str], room: float) -> tuple[list[str], int]:
    """Return labels shortened for as many columns as leave them apart, and the number of these."""
    longest = max(map(_width, labels)) + 3.2
    for columns in range(int(np.clip(room // min(longest, WIDE_COLUMN), 1, len(labels))), 0, -1):
        texts = _shortened(labels, room / columns - 3.2)
        if len(set(texts)) == len(set(labels)):
            break
    return texts, columns


def _make_small(ax: "matplotlib.axes.Axes", points: float) -> None:
    """Make the labels of Axes and their strip small."""
    ax.yaxis.label.set(y=1.0, horizontalalignment="right")  # it may be longer than the Axes are high
    for one in _in_same_place(ax):
        one.tick_params(labelsize=points)
        for axis in (one.xaxis, one.yaxis):
            axis.label.set_fontsize(points)


def _shortened(labels: Sequence[str], room: float) -> list[str]:
    """Return labels without their middle where there is less room; `room` as a multiple of the letters' size."""
    return [safe(_within(label, room)) for label in labels]


def _within(label: str, room: float) -> str:
    letters = _letters_within(label, room)
    while letters > FEW_LETTERS and _width(shortened(label, letters)) > room:
        letters -= 1
    return shortened(label, letters)


def _room(ax: "matplotlib.axes.Axes") -> tuple[float, float, float]:
    """Return about how many points wide and high Axes are, and how wide with their labels; the last 0 if fixed.

    Where there is a layout they have yet to become smaller by their titles and labels.
    """
    root: Any = ax.get_figure(root=True)
    scale = 72 / root.dpi
    box, place = ax.get_window_extent(), ax.get_subplotspec()
    if root.get_layout_engine() is None or place is None:
        return 0.85 * box.width * scale, 0.9 * box.height * scale, 0.0
    from matplotlib.transforms import Bbox

    mine = _in_same_place(ax)
    inner = Bbox.union([other.get_window_extent() for other in mine])
    tight = [other.get_tightbbox(for_layout_only=True) for other in mine]
    outer = Bbox.union([box for box in tight if box is not None])
    width, height = GAPS * inner.width, GAPS * inner.height
    beside, above = outer.width - inner.width, outer.height - inner.height
    left, high = max(width - beside, 1.0), max(height - above, 1.0) * box.height / inner.height
    return 0.95 * scale * left, 0.95 * scale * high, 0.95 * scale * (left + inner.x0 - outer.x0)


def _in_same_place(ax: "matplotlib.axes.Axes") -> list["matplotlib.axes.Axes"]:
    """Return all Axes that share the place of these in a figure: their strip, too."""
    root: Any = ax.get_figure(root=True)
    mine: Any = ax.get_subplotspec()
    grid = mine.get_gridspec()
    is_split = grid.ncols == 1 and grid.get_height_ratios() == STRIP_RATIOS
    places = [(other, other.get_subplotspec()) for other in root.axes]
    return [
        other
        for other, place in places
        if place is not None and (place == mine or (is_split and place.get_gridspec() is grid))
    ]


def _arranged(labels: Sequence[str], room: float, beside: float) -> tuple[list[str], int, int]:
    """Return labels, broken where they are too long, and in how many columns and rows of text they stand.

    `room` is the width there is, and `beside` what each column takes beside its letters, as multiples of the
    letters' size.
    """
    broken = [textwrap.wrap(label, _letters_within(label, room - beside)) or [label] for label in labels]
    longest = max(_width(line) for lines in broken for line in lines)
    columns = int(np.clip(room // (longest + beside), 1, len(labels)))
    rows = -(-len(labels) // columns) * max(map(len, broken))
    return [safe("\n".join(lines)) for lines in broken], columns, rows


def _letters_within(label: str, room: float) -> int:
    """Return how many letters like those of a label there is room for."""
    width = _width(label)
    return max(int(room / width * len(label)), FEW_LETTERS) if width else FEW_LETTERS


@functools.cache
def _width(text: str) -> float:
    """Return the width of a text, as a multiple of the size of its letters."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=10), ismath=False)[0]) / 10
