"""Areas of actions: which share a colour, and their shares stacked."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.names import COUNT, LABEL, VALUE
from trajlab.plot import _figure, _labels, _panels, _style

if TYPE_CHECKING:
    import matplotlib.axes

MAX_AREAS = 8
"""Where there are more actions, the most frequent ones have a colour each and the others one together."""


def areas_of(result: xr.Dataset) -> tuple[np.ndarray, list[str]]:
    """Return which values (value, area) are drawn together, and what the areas are called."""
    texts = [str(text) for text in result[LABEL if LABEL in result.coords else VALUE].values]
    if len(texts) <= MAX_AREAS:
        return np.eye(len(texts)), texts
    totals = _panels.total_along(result[COUNT], VALUE)
    single = np.sort(np.argsort(-totals, kind="stable")[: MAX_AREAS - 1])
    areas = np.eye(len(texts))[:, single]
    rest = 1 - areas.sum(axis=1)
    return np.column_stack([areas, rest]), [*(texts[value] for value in single), f"{len(texts) - len(single)} others"]


def area_colors(ax: "matplotlib.axes.Axes", areas: np.ndarray) -> list[str]:
    """Return a colour for each area of `areas_of`: grey for the others, where several are drawn together."""
    colors = [*_style.cycle(ax)[: areas.shape[1]]]
    if areas.shape[1] == MAX_AREAS and areas[:, -1].sum() > 1:
        colors[-1] = _style.neutral(ax)
    return colors


def stack_areas(
    ax: "matplotlib.axes.Axes", edges: np.ndarray, share: np.ndarray, colors: Sequence[str], style: Mapping[str, Any]
) -> list[Any]:
    """Draw the shares (place, area) of areas on each other between edges (place + 1,); return one artist per area."""
    from matplotlib.patches import StepPatch

    below = np.zeros(len(share))
    artists = []
    for top, color in zip(np.cumsum(share, axis=1).T, colors, strict=True):
        own = _style.merged(StepPatch, {"fill": True, "color": color, "linewidth": 0}, style)
        artists.append(add_steps(ax, top, edges, baseline=below, **own))
        below = top
    return artists


def scale_shares(panels: _figure.Panels, ax: "matplotlib.axes.Axes") -> None:
    """Let the y axis of a panel go from 0 to 1, with few ticks where it may be small."""
    ax.set_ylim(0, 1)
    ax.set_yticks([0.5, 1] if panels.figure is None else [0, 0.25, 0.5, 0.75, 1])
    _labels.plain_shares(ax.yaxis)


def add_steps(
    ax: "matplotlib.axes.Axes", values: np.ndarray, edges: np.ndarray, *, baseline: Any = 0, **style: Any
) -> Any:
    """Draw values (place,) as steps between edges (place + 1,) and return the artist, as `Axes.stairs` does.

    That looks for limits along each step by itself, which takes seconds for tens of thousands of them.
    """
    from matplotlib.patches import StepPatch

    own = {"linewidth": 0} if style.get("fill") else {"fill": False}
    patch = StepPatch(values, edges, baseline=baseline, **{**own, **style})
    heights = np.append(values, 0 if baseline is None else baseline).astype(np.float64)
    low, high = np.fmin.reduce(heights), np.fmax.reduce(heights)
    patch.sticky_edges.y.append(low)
    ax.add_artist(patch)
    ax.update_datalim([(edges[0], low), (edges[-1], high)])
    ax.autoscale_view()
    return patch
