"""One value per episode: dots for complete episodes, triangles for the others, and a median along them."""

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr

from trajlab.analysis.returns import running_median
from trajlab.errors import require_text, unknown_name
from trajlab.names import EPISODE, RUN, START_ITERATION, START_ROW
from trajlab.plot import _legend, _style

if TYPE_CHECKING:
    import matplotlib.axes

MANY = 5000
"""More points than this are drawn as an image, so that a file of the figure stays small."""


class Points(NamedTuple):
    """One value per episode (episode,), where it stands, and whether the episode is complete."""

    along: np.ndarray
    values: np.ndarray
    complete: np.ndarray


class Colors(NamedTuple):
    """Colours of what is drawn of a group."""

    dots: Any
    rest: Any
    line: Any


@dataclasses.dataclass(frozen=True)
class Drawn:
    """What was drawn of a group, for a legend and a title.

    Attributes
    ----------
    colors : Colors
        As they are drawn; of dots that have one each the default.
    marker : str
        Of the dots.
    num_complete, num_rest : int
    each : int
        How many episodes a median is of; 0 where no line is drawn.
    """

    colors: Colors
    marker: str
    num_complete: int
    num_rest: int
    each: int


def along_of(ds: xr.Dataset, x: Any) -> xr.DataArray:
    """Return what is drawn along x."""
    if x is None:
        starts = ds[START_ITERATION]
        if len(np.unique(starts.values)) > 1:
            return starts
        has_runs = RUN in ds.coords and len(np.unique(ds[RUN].values)) > 1
        return ds[START_ROW] if has_runs else ds[EPISODE]
    require_text("x", x, "a coordinate over episode")
    if x not in ds.variables or ds[x].dims != (EPISODE,):
        known = [str(name) for name, variable in ds.variables.items() if variable.dims == (EPISODE,)]
        raise unknown_name("coordinate over episode to draw against,", x, known)
    return ds[x]


def draw_all(ax: "matplotlib.axes.Axes", points: Points, kwargs: dict[str, Any]) -> Drawn:
    """Draw all episodes as one group, whose dots, triangles and line differ in colour."""
    blue, orange, vermilion = (_style.cycle(ax)[place] for place in (0, 1, 5))
    everything = np.ones(len(points.values), bool)
    return draw_group(ax, points, everything, Colors(blue, vermilion, orange), "", 1, kwargs)


def legend_of_all(drawn: Drawn) -> tuple[list[Any], list[str]]:
    """Return artists that stand for dots, triangles and line, those of them that there are, and what they are."""
    entries = {
        f"complete ({drawn.num_complete:,})": drawn.num_complete and _legend.dot(drawn.colors.dots),
        f"not complete ({drawn.num_rest:,})": drawn.num_rest and _legend.dot(drawn.colors.rest, "^", filled=False),
        f"median of every {drawn.each:,} complete": drawn.each and _legend.line(drawn.colors.line),
    }
    entries = {label: artist for label, artist in entries.items() if artist}
    return [*entries.values()], [*entries]


def draw_group(
    ax: "matplotlib.axes.Axes",
    points: Points,
    mine: np.ndarray,
    colors: Colors,
    marker: str,
    num_groups: int,
    kwargs: dict[str, Any],
) -> Drawn:
    """Draw the episodes of one of several groups, those where `mine` (episode,) is True.

    The more there are the smaller and fainter the dots; a group that is small beside others keeps large ones.
    """
    along, values, complete = points
    crowd = max(int(mine.sum()) * num_groups, 1)
    size, opacity = float(np.clip(20_000 / crowd, 4, 20)), float(np.clip(1000 / crowd, 0.2, 0.8))
    shape: dict[str, Any] = {"s": size, "rasterized": len(values) > MANY, "zorder": 2 - float(mine.mean())}
    ended, rest = mine & complete, mine & ~complete
    if ended.any():
        own = {"color": colors.dots, "alpha": opacity, "linewidth": 0, "marker": marker or "o", **shape}
        own, shown = _dot_style(own, kwargs, ended)
        ax.scatter(along[ended], values[ended], **own)
        colors = colors._replace(dots=shown)
    if rest.any():
        clear = float(np.clip(1000 / (int(rest.sum()) * num_groups), 0.3, 1))  # many would hide all dots
        own = {"marker": "^", "facecolors": "none", "edgecolors": colors.rest, "linewidths": 0.9, "alpha": clear}
        ax.scatter(along[rest], values[rest], **{**own, **shape, "s": size + 10, "zorder": 3})
    places, medians, each = running_median(along[ended], values[ended])
    if len(places):
        style: dict[str, Any] = {"linewidth": 2.0, "zorder": 4, "markersize": 4.5}
        ax.plot(places, medians, color=colors.line, marker=marker, **style)
    return Drawn(colors, marker or "o", int(ended.sum()), int(rest.sum()), each)


def _dot_style(defaults: dict[str, Any], kwargs: dict[str, Any], chosen: np.ndarray) -> tuple[dict[str, Any], Any]:
    """Return what `scatter` is called with, and the colour that stands for the dots in a legend."""
    from matplotlib.collections import PathCollection
    from matplotlib.colors import is_color_like

    own = _style.merged(PathCollection, defaults, kwargs)
    if "c" in own and "color" not in kwargs:
        own.pop("color", None)
    if "c" in own and not is_color_like(own["c"]) and np.shape(own["c"])[:1] == chosen.shape:
        own["c"] = np.asarray(own["c"])[chosen]  # a colour or number for each episode
    found = (own.get(key) for key in ("color", "c", "facecolor"))
    return own, next((color for color in found if is_color_like(color)), defaults["color"])
