"""The strip beneath a plot, of how many episodes or transitions its values are of."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trajlab.plot import _figure, _labels, _style
from trajlab.plot._areas import add_steps

if TYPE_CHECKING:
    import matplotlib.axes


LOW = 25.0
"""A strip of fewer points has no room for two labels."""


def split_strip(ax: "matplotlib.axes.Axes") -> "matplotlib.axes.Axes":
    """Take a strip from the bottom of the Axes, and return it as Axes that share their x axis."""
    parent: Any = ax.get_figure(root=False)
    place = ax.get_subplotspec()
    if place is not None:
        above, below = _two_rows(place)
        ax.set_subplotspec(above)
        strip = parent.add_subplot(below, sharex=ax, label="n")
    else:
        left, bottom, width, height = ax.get_position().bounds
        ax.set_position((left, bottom + 0.24 * height, width, 0.76 * height))
        strip = parent.add_axes((left, bottom, width, 0.19 * height), sharex=ax, label="n")
    ax.tick_params(labelbottom=False)
    return strip


def _two_rows(place: Any) -> tuple[Any, Any]:
    """Return a place in a grid in two parts: rows of the grid where it has such, so that what they hold is aligned."""
    grid, rows, columns = place.get_gridspec(), place.rowspan, place.colspan
    heights = grid.get_height_ratios()
    if len(rows) == 2 and [heights[row] for row in rows] == _figure.STRIP_RATIOS:
        across = slice(columns.start, columns.stop)
        return grid[rows.start, across], grid[rows.start + 1, across]
    parts = place.subgridspec(2, 1, height_ratios=_figure.STRIP_RATIOS, hspace=0.0)
    return parts[0], parts[1]


def draw_alive(
    ax: "matplotlib.axes.Axes",
    time: np.ndarray,
    counts: np.ndarray,
    is_filled: bool,
    looks: Sequence[_style.Look],
    width: float = 1.0,
) -> None:
    """Draw how many episodes each step's values are of, `counts` (group, time); each step is `width` wide."""
    edges = (np.append(time, time[-1] + width) if len(time) else np.array([0.0, width])) - width / 2
    draw_counts(ax, edges, counts if len(time) else np.zeros((len(counts), 1)), is_filled, looks)
    _labels.plain_numbers(ax.xaxis, whole=width == 1)


def draw_counts(
    ax: "matplotlib.axes.Axes", edges: np.ndarray, counts: np.ndarray, is_filled: bool, looks: Sequence[_style.Look]
) -> None:
    """Draw counts (group, place) between edges (place + 1,), as a filled area or a line for each group."""
    for count, look in zip(counts, looks, strict=True):
        if is_filled:
            add_steps(ax, count, edges, fill=True, color=_style.neutral(ax), alpha=0.6)
        else:
            add_steps(ax, count, edges, baseline=None, color=look.color, linewidth=1.2, linestyle=look.linestyle)
    scale_counts(ax, int(counts.max(initial=0)))


def scale_counts(ax: "matplotlib.axes.Axes", most: int) -> None:
    """Let the y axis of a strip go from 0 to the largest count, and tick only these."""
    ax.set_ylim(0, max(most * 1.1, 1))
    ticks = [0, most] if most else [0]
    ax.set_yticks(ticks if _labels.size_of(ax)[1] > LOW else ticks[-1:])
    _labels.plain_numbers(ax.yaxis)
