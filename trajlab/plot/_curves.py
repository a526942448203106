"""Curves with gaps: what stands alone in them is marked, since no line is drawn to it."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import matplotlib.axes


def lone_places(is_there: np.ndarray) -> np.ndarray:
    """Return which places (place,) of those that are there have no neighbour that is.

    >>> lone_places(np.array([True, False, True, True]))
    array([ True, False, False, False])
    """
    beside = np.concatenate([[False], is_there, [False]])
    return is_there & ~beside[:-2] & ~beside[2:]


def mark_lone_steps(ax: "matplotlib.axes.Axes", time: np.ndarray, curve: np.ndarray, color: Any) -> None:
    """Mark where a curve has no neighbour to draw a line to."""
    lone = lone_places(np.isfinite(curve))
    if lone.any():
        ax.plot(time[lone], curve[lone], color=color, linestyle="none", marker="o", markersize=4, zorder=4)
