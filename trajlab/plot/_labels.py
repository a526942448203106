"""Titles, names of axes and ticks, written on Axes as there is room for them."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trajlab.plot._figure import Panels
from trajlab.plot._style import neutral
from trajlab.plot._text import safe, told_apart

if TYPE_CHECKING:
    import matplotlib.axes

NARROW, TINY = 3.0, 2.0
"""Axes of fewer inches have a smaller title; the second a yet smaller one, that goes on above their labels."""
SLANTED = (7, 24)
"""Least and most letters of labels that are slanted."""


def write_title(panels: Panels, lines: Sequence[str], *, centered: bool = False) -> None:
    """Write a title over all panels of a figure of our own, or over the first of the Axes given.

    Unless it is to be `centered`, it stands at the right of bars that lie on their side.
    """
    first = panels.axes[0]
    figure: Any = panels.figure
    if figure is not None and len(panels.axes) > 1:
        points = points_of("figure.labelsize")
        figure.suptitle(_wrapped(lines, figure.get_figwidth(), points), fontsize=points)
        return
    inches = _width(first) / 72 if figure is None else figure.get_figwidth() * 0.85
    small = figure is None and is_tiny(first)
    points = points_of("axes.labelsize") * (1.0 if inches > NARROW else 0.7 if small else 0.85)
    # Long names to its left make the Axes narrow, and leave room there; so do labels of small Axes.
    goes_left = small and not _has_bar(first)
    sideways = goes_left or (first.yaxis_inverted() and ((figure is None and is_narrow(first)) or not centered))
    inches *= 1.15 if goes_left else 1.0
    first.set_title(_wrapped(lines, inches, points), fontsize=points, loc="right" if sideways else "center")
    first.title.set_fontsize(points)  # wherever it stands, this is the size that is known of it


def _has_bar(ax: "matplotlib.axes.Axes") -> bool:
    """Say whether a colour bar stands at the right of the Axes."""
    drawn: list[Any] = [*ax.collections, *ax.images]
    return any(artist.colorbar is not None for artist in drawn)


def is_narrow(ax: "matplotlib.axes.Axes") -> bool:
    """Say whether Axes have little room for text beside what they show."""
    return bool(_width(ax) < 72 * NARROW)


def is_tiny(ax: "matplotlib.axes.Axes") -> bool:
    """Say whether Axes are so small that all of their text has to be."""
    return bool(_width(ax) < 72 * TINY)


def write_panel_title(ax: "matplotlib.axes.Axes", lines: Sequence[str]) -> None:
    """Write what one of several panels shows above it, broken where a line is longer than the panel is wide."""
    points = 0.9 * points_of("axes.labelsize")
    ax.set_title(_wrapped(lines, _width(ax) / 72, points), fontsize=points)


def points_of(option: str) -> float:
    """Return a font size in points."""
    import matplotlib
    from matplotlib.font_manager import FontProperties

    options: Any = matplotlib.rcParams
    return FontProperties(size=options[option]).get_size_in_points()


def _wrapped(lines: Sequence[str], inches: float, points: float) -> str:
    """Break lines that are longer than a width; letters are about half as wide as high."""
    most = max(int(inches * 72 / (0.53 * points)), 15)
    return safe("\n".join(part for line in lines for part in textwrap.wrap(line, most)))


def write_empty(ax: "matplotlib.axes.Axes", what: str = "no episodes") -> None:
    """Say in the middle of empty Axes that there is nothing to draw."""
    ax.text(0.5, 0.5, what, transform=ax.transAxes, ha="center", va="center", color=neutral(ax))
    ax.set_yticks([])


def needs_sideways(ax: "matplotlib.axes.Axes", labels: Sequence[str]) -> bool:
    """Say whether texts are so long that they are better read beside horizontal bars than below upright ones."""
    longest = max((len(label) for label in labels), default=0)
    return longest > 8 and bool(longest * len(labels) * 0.62 * points_of("xtick.labelsize") > 1.4 * _width(ax))


def label_ticks(ax: "matplotlib.axes.Axes", places: Sequence[float] | np.ndarray, labels: Sequence[str]) -> None:
    """Write a text at places along x: level where there is room, else slanted, and only some where they are many."""
    points = points_of("xtick.labelsize")
    most = max(int(_width(ax) / (1.3 * points)), 2)
    step = max(-(-len(labels) // most), 1)
    labels, places = list(labels)[::step], np.asarray(places)[::step]
    longest = max((len(line) for label in labels for line in label.split("\n")), default=0)
    ax.set_xticks(places, [safe(label) for label in labels])
    if longest * 0.62 * points * len(labels) > _width(ax):
        for text in ax.get_xticklabels():
            text.set(rotation=40, ha="right", va="top", rotation_mode="anchor")


def broken_labels(ax: "matplotlib.axes.Axes", labels: Sequence[str]) -> list[str]:
    """Return texts for places along x in lines no longer than there is room for side by side.

    Where that is for fewer than 12 letters they will be slanted: on one line, of at most 24, or fewer in small Axes.
    """
    whole = _width(ax) / (0.62 * points_of("xtick.labelsize"))
    room = int(whole / max(len(labels), 1))
    if room < 12:
        return told_apart(labels, int(np.clip(whole / 2.2, *SLANTED)))
    return ["\n".join(textwrap.wrap(label, room)) for label in labels]


def broken_rows(ax: "matplotlib.axes.Axes", labels: Sequence[str], letters: int, share: float = 0.75) -> list[str]:
    """Return texts for places along y in lines of so many letters, shortened where there is no room for all lines.

    `share` is the part of the Axes' height that a layout and a legend will leave.
    """
    room = share * size_of(ax)[1] / max(len(labels), 1)
    lines = max(int(room / (1.3 * points_of("ytick.labelsize"))), 1)
    broken, most = [textwrap.wrap(label, letters) for label in labels], letters * lines
    while max(map(len, broken), default=0) > lines and most > letters // 2:
        broken = [textwrap.wrap(label, letters) for label in told_apart(labels, most)]
        most -= 1
    return ["\n".join(one) for one in broken]


def label_rows(ax: "matplotlib.axes.Axes", places: Sequence[float] | np.ndarray, labels: Sequence[str]) -> None:
    """Write a text at places along y, only some where they are many."""
    most = max(int(size_of(ax)[1] / (1.3 * points_of("ytick.labelsize"))), 2)
    step = max(-(-len(labels) // most), 1)
    ax.set_yticks(np.asarray(places)[::step], [safe(label) for label in list(labels)[::step]])


def size_of(ax: "matplotlib.axes.Axes") -> tuple[float, float]:
    """Return how wide and how high the Axes are, in points."""
    root: Any = ax.get_figure(root=True)
    parent: Any = ax.get_figure(root=False)
    box, whole, scale = ax.get_position(), parent.bbox, 72 / root.dpi
    return box.width * whole.width * scale, box.height * whole.height * scale


def _width(ax: "matplotlib.axes.Axes") -> float:
    return size_of(ax)[0]


def plain_numbers(axis: Any, *, whole: bool = False) -> None:
    """Write large numbers with separators instead of powers of ten; with `whole` tick at whole numbers only."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    if whole:
        axis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))


def plain_shares(axis: Any) -> None:
    """Write numbers from 0 to 1 as percentages."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0))


def write_xlabel(ax: "matplotlib.axes.Axes", label: str, share: float = 1.0) -> None:
    """Write a label along x, broken where it is longer than the `share` of the panel's width that is left to it."""
    ax.set_xlabel(_wrapped([label], share * _width(ax) / 72, points_of("axes.labelsize")))


def write_bar_label(panels: Panels, bar: Any, label: str, *, of_all: bool = True) -> None:
    """Write a label beside a colour bar, of all panels or of a single one, broken where it is longer than the bar."""
    height = size_of(panels.axes[0])[1] / 72
    if panels.figure is not None:
        rows = 1 if of_all else -(-len(panels.axes) // panels.columns)
        height = (panels.figure.get_figheight() - (1.2 if len(panels.axes) == 1 else 1.7)) / rows
    bar.set_label(_wrapped([label], height, points_of("axes.labelsize")))


def write_ylabel(panels: Panels, ax: "matplotlib.axes.Axes", label: str, share: float = 0.75) -> None:
    """Write a label along y, broken where it is longer than the panel is high; `share` of which is the Axes'."""
    height = size_of(ax)[1] / 72
    height *= 1.0 if height > 0.8 * TINY else 0.6  # a layout will make small Axes much smaller
    if panels.figure is not None:
        rows = -(-len(panels.axes) // panels.columns)
        height = (panels.figure.get_figheight() - 1.2) / rows * share
    ax.set_ylabel(_wrapped([label], height, points_of("axes.labelsize")))
