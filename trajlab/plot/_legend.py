"""Legends of all plots: what stands for a group, what it is called, and where that fits."""

import functools
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trajlab.analysis.grouping.groups import Groups
from trajlab.names import LEFT_OUT_ATTR
from trajlab.plot._style import Panels
from trajlab.plot._text import plural, points_of, safe, shortened, with_units

if TYPE_CHECKING:
    import matplotlib.axes

INSIDE_POINTS = (8, 6)
"""Size of letters in a legend inside of Axes; the smaller one where it would fill too much of them."""
MAX_SHARE = 0.6
"""Part of the Axes' height that a legend inside of them may take."""
NARROWEST = 7.0
"""A column of a legend inside of Axes is not narrower than so many letters are high, if there is another."""
LAYOUT_POINTS = (72, 86)
"""What a layout leaves to ticks, labels and titles beside and above small Axes."""
FEW_LETTERS = 7
"""No label is broken or shortened to fewer letters."""


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


def line(color: Any) -> Any:
    """Return what stands for a line in a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color, linewidth=2.0)


def left_out(groups: Groups) -> list[str]:
    """Return a line on what is in no group and so not shown, where there is such."""
    number = groups.attrs.get(LEFT_OUT_ATTR, 0)
    what = "transition" if groups.of_episode is None else "episode"
    return [f"in no group: {plural(number, what)}"] if number else []


def write_legend(panels: Panels, handles: Sequence[Any], labels: Sequence[str], title: str | None = None) -> None:
    """Draw a legend below the panels of a figure of our own, or at the top of the first of the Axes given.

    A figure of our own grows with the rows of its legend. In Axes long labels are shortened where too little
    would be left for the data.
    """
    title = None if title is None else safe(title)
    labels = [" ".join(label.split()) for label in labels]
    if panels.figure is None:
        _write_inside(panels.axes[0], handles, labels, title)
        return
    figure: Any = panels.figure
    points = points_of("legend.fontsize")
    texts, columns, rows = _arranged(labels, figure.get_figwidth() * 72 / points, 4.8)
    figure.set_figheight(figure.get_figheight() + (rows - 1) * 1.25 * points / 72)
    style: dict[str, Any] = {"loc": "outside lower center", "frameon": False, "title_fontsize": "medium"}
    figure.legend(handles, texts, title=title, ncols=columns, **style)


def _write_inside(ax: "matplotlib.axes.Axes", handles: Sequence[Any], labels: Sequence[str], title: str | None) -> None:
    width, height = _room(ax)
    for points in INSIDE_POINTS:
        texts, columns, rows = _arranged(labels, width / points, 3.2)
        share = (1.6 * (rows + (title is not None)) + 1.5) * points / height
        if share <= MAX_SHARE:
            break
    else:
        rows = max(int((MAX_SHARE * height / points - 1.5) / 1.6) - (title is not None), 1)
        columns = min(-(-len(labels) // rows), max(int(width / points / NARROWEST), 1))
        rows = -(-len(labels) // columns)
        texts = [safe(shortened(label, _letters_within(label, width / points / columns - 3.2))) for label in labels]
        share = min((1.6 * (rows + (title is not None)) + 1.5) * points / height, 0.85)
    style: dict[str, Any] = {"loc": "upper center", "fontsize": points, "title_fontsize": points, "frameon": False}
    legend = ax.legend(handles, texts, title=title, ncols=columns, columnspacing=1.0, handlelength=1.4, **style)
    legend.set_in_layout(False)  # a layout would make the Axes smaller for what is inside of them
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom, bottom + (top - bottom) / (1 - share))


def _room(ax: "matplotlib.axes.Axes") -> tuple[float, float]:
    """Return about how many points wide and high Axes are that a layout, where there is one, has yet to fit in."""
    root: Any = ax.get_figure(root=True)
    box = ax.get_position()
    width, height = box.width * root.get_figwidth() * 72, box.height * root.get_figheight() * 72
    if root.get_layout_engine() is None:
        return 0.85 * width, 0.9 * height
    beside, above = LAYOUT_POINTS
    return max(min(0.85 * width, 1.25 * width - beside), 40.0), max(min(0.9 * height, 1.25 * height - above), 40.0)


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
