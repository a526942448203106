"""Curves over the steps of an episode: lone steps of theirs, and the strip beneath of how many episodes are alive."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trajlab.plot import _style, _text

if TYPE_CHECKING:
    import matplotlib.axes


MAX_SINGLE = 1000
"""Of more places neighbours with equal counts are drawn as one: Matplotlib takes up to a second for 20,000 of them."""


def split_strip(ax: "matplotlib.axes.Axes") -> "matplotlib.axes.Axes":
    """Take a strip from the bottom of the Axes, and return it as Axes that share their x axis."""
    parent: Any = ax.get_figure(root=False)
    place = ax.get_subplotspec()
    if place is not None:
        grid = place.subgridspec(2, 1, height_ratios=[4, 1], hspace=0.0)
        ax.set_subplotspec(grid[0])
        strip = parent.add_subplot(grid[1], sharex=ax, label="n")
    else:
        left, bottom, width, height = ax.get_position().bounds
        ax.set_position((left, bottom + 0.24 * height, width, 0.76 * height))
        strip = parent.add_axes((left, bottom, width, 0.19 * height), sharex=ax, label="n")
    ax.tick_params(labelbottom=False)
    return strip


def draw_alive(
    ax: "matplotlib.axes.Axes",
    time: np.ndarray,
    counts: np.ndarray,
    by: str | None,
    looks: Sequence[_style.Look],
    width: float = 1.0,
) -> None:
    """Draw how many episodes each step's values are from, `counts` (group, time); each step is `width` wide."""
    edges = (np.append(time, time[-1] + width) if len(time) else np.array([0.0, width])) - width / 2
    draw_counts(ax, edges, counts if len(time) else np.zeros((len(counts), 1)), by is None, looks)
    _text.plain_numbers(ax.xaxis, whole=width == 1)


def draw_counts(
    ax: "matplotlib.axes.Axes", edges: np.ndarray, counts: np.ndarray, is_filled: bool, looks: Sequence[_style.Look]
) -> None:
    """Draw counts (group, place) between edges (place + 1,), as a filled area or a line for each group."""
    for count, look in zip(counts, looks, strict=True):
        values, ends = _joined(count, edges)
        if is_filled:
            ax.stairs(values, ends, fill=True, color=_style.neutral(ax), alpha=0.6)
        else:
            ax.stairs(values, ends, baseline=None, color=look.color, linewidth=1.2, linestyle=look.linestyle)
    most = int(counts.max(initial=0))
    ax.set_ylim(0, max(most * 1.1, 1))
    ax.set_yticks([0, most] if most else [0])
    _text.plain_numbers(ax.yaxis)


def _joined(count: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return counts (place,) and edges (place + 1,), with neighbours of equal counts as one where places are many."""
    if len(count) <= MAX_SINGLE:
        return count, edges
    is_new = np.append(True, count[1:] != count[:-1])
    return count[is_new], edges[np.append(is_new, True)]


def mark_lone_steps(ax: "matplotlib.axes.Axes", time: np.ndarray, curve: np.ndarray, color: Any) -> None:
    """Mark where a curve has no neighbour to draw a line to."""
    there = np.isfinite(np.concatenate([[np.nan], curve, [np.nan]]))
    lone = there[1:-1] & ~there[:-2] & ~there[2:]
    if lone.any():
        ax.plot(time[lone], curve[lone], color=color, linestyle="none", marker="o", markersize=4, zorder=4)
