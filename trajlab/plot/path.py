"""Paths of single episodes through two components."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.choice import chosen_places
from trajlab.analysis.common import made_by
from trajlab.analysis.components import Component, components_of
from trajlab.dataset.fields import field_names
from trajlab.names import CUT, EPISODE, FINAL_KNOWN, TERMINATED, TIME, TRUNCATED
from trajlab.plot import _figure, _grid, _labels, _legend, _style, _text
from trajlab.plot._path_points import END, START, Points, final_of, read_points

if TYPE_CHECKING:
    import matplotlib.axes

DEFAULT_EPISODES = 30
MAX_NAMED = 8
"""Up to so many episodes have their numbers in the title."""
MARKERS = {START: "o", TERMINATED: "s", TRUNCATED: "^", END: "D", CUT: "x"}


def plot_path(
    ds: xr.Dataset,
    x: str,
    y: str,
    *,
    episodes: int | Iterable[int] | None = None,
    color: Any = "time",
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes":
    """Draw the paths of single episodes through two components of the state, coloured by time.

    A path goes from step to step, and where both components are of the observation on to the final one, if that is
    known. Its first step has a circle, and its last point a square where the episode terminated, a triangle where it
    was truncated, a cross where it was cut, and a diamond where only that it ended is known. There is no mark where the
    first step is not the episode's start (`start_seen` is False, or `time` was sliced), nor where the last one is not
    its end. Steps whose neighbours are not in the Dataset are dots. NaN is not drawn, and neither are steps of an agent
    that is done: where that is before the others are, its path ends with a diamond.

    Nothing is computed, so there is no function that returns it: the points are what
    ``stack_fields(ds).sel(field=[x, y])`` has at each step, and behind the last one those of `final_obs`.

    Parameters
    ----------
    ds : Dataset
    x, y : str
        Components, called as in `stack_fields`: ``"obs[x]"``, ``"obs[0]"``, ``"state.height"``.
    episodes : int or iterable of int, optional
        How many to draw, evenly spread over all in their order, by default at most 30; or their numbers (labels of
        `episode`).
    color : str or color
        ``"time"``; or a component, as ``"reward"``, whose value in a transition is the colour of the line to the next
        step; or one of Matplotlib's colours for all.
    ax : Axes, optional
        It gives room to the colour bar. Without, a figure is made.
    **kwargs
        For the lines: `matplotlib.collections.LineCollection`, as ``linewidth=2`` or ``cmap="magma"``.

    Returns
    -------
    Axes
        The colour bar is a further Axes of the figure, labelled ``"<colorbar>"``.

    Raises
    ------
    KeyError
        When there is no such component, or `episodes` names one that is not there.
    TypeError
        When a component does not hold numbers.
    ValueError
        When `ds` is not valid, `episodes` is negative, or `ax` is not a single Axes.
    """
    labels = [x, y, *([color] if _is_component(ds, color) else [])]
    ds, components = components_of(ds, labels, "plot_path")
    place, shade = components[:2], components[2] if len(components) > 2 else None
    which = chosen_places(ds[EPISODE].values, DEFAULT_EPISODES if episodes is None else episodes)
    part = ds.isel({EPISODE: which})
    points = read_points(part, place, shade)
    panels = _figure.make_panels(1, ax)
    (ax_,) = panels.axes
    lines = [f"paths of {_which(ds, which)}"]
    marks: dict[str, Any] = {}
    if len(points.time):
        bar = _draw_lines(ax_, points, color if shade is None else TIME, kwargs)
        if bar is not None:
            title = _text.time_label(ds[TIME]) if shade is None else _text.with_units(shade.title, shade.units)
            beside = panels.root.colorbar(bar, ax=ax_)
            _labels.write_bar_label(panels, beside, title)
            if shade is None and "norm" not in kwargs:
                _labels.plain_numbers(beside.ax.yaxis, whole=True)
        ax_.autoscale_view()
        _set_scale(ax_, place, points)
        marks = _draw_marks(ax_, points, part)
        lines += _left_out(part, place, points)
    else:
        _labels.write_empty(ax_)
    _labels.write_xlabel(ax_, _text.with_units(place[0].title, place[0].units))
    _labels.write_ylabel(panels, ax_, _text.with_units(place[1].title, place[1].units))
    _labels.write_title(panels, lines, centered=True)
    if marks:
        _legend.write_legend(panels, [*marks.values()], [*marks])
    return ax_


def _is_component(ds: xr.Dataset, color: Any) -> bool:
    """Say whether a colour is neither that of time nor one of Matplotlib's; a field wins over these."""
    from matplotlib.colors import is_color_like

    if not isinstance(color, str) and color is not None and not is_color_like(color):
        raise TypeError(
            f"color={color!r}; expected 'time', a component such as 'reward', or one of Matplotlib's colours"
        )
    return isinstance(color, str) and color != TIME and (color in field_names(ds) or not is_color_like(color))


def _which(ds: xr.Dataset, which: np.ndarray) -> str:
    """Return ``"30 of 2,000 episodes (400 cut)"``, or their numbers before that where they are few of more."""
    of_all = _text.count_text(made_by(ds, "plot_path", ""))
    if len(which) == ds.sizes[EPISODE]:
        return of_all
    if not 0 < len(which) <= MAX_NAMED:
        return f"{len(which):,} of {of_all}"
    numbers = ", ".join(str(number) for number in ds[EPISODE].values[which])
    of_all = of_all.replace(" (", ", ").removesuffix(")")
    return f"episode{'' if len(which) == 1 else 's'} {numbers} ({len(which)} of {of_all})"


def _draw_lines(ax: "matplotlib.axes.Axes", points: Points, color: Any, kwargs: dict[str, Any]) -> Any:
    """Draw the lines of paths in one colour, or for "time" in those of the points; return what a bar is to show."""
    import matplotlib
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection

    links = points.links()
    lone = points.is_finite & ~links & ~np.append(False, links[:-1])
    places = points.places[lone].T
    dots: dict[str, Any] = {"s": 6, "linewidth": 0, "zorder": 2}
    style = _style.merged(LineCollection, {"linewidth": 1.2, "capstyle": "round", "zorder": 2}, kwargs)
    if not (isinstance(color, str) and color == TIME):
        starts, stops = _runs(links, np.zeros((len(links), 1)))
        style.setdefault("color", color)
        ax.add_collection(LineCollection(_cut(points.places, starts, stops), **style))
        ax.scatter(*places, color=style["color"], **dots)
        return None
    cmap = matplotlib.colormaps.get_cmap(style.pop("cmap", _style.viridis(ax, of_lines=True)))
    cmap = cmap.with_extremes(bad=_style.neutral(ax))
    scale = ScalarMappable(style.pop("norm", _norm(points)), cmap)
    shades = np.ma.masked_invalid(points.color)
    starts, stops = _runs(links, scale.to_rgba(shades))
    lines = LineCollection(_cut(points.places, starts, stops), norm=scale.norm, cmap=cmap, **style)
    lines.set_array(shades[starts])
    ax.add_collection(lines)
    ax.scatter(*places, color=scale.to_rgba(shades[lone]), **dots)
    return lines


def _norm(points: Points) -> Any:
    """Return a scale over all finite values that colour a line."""
    from matplotlib.colors import Normalize

    values = points.color[np.isfinite(points.color)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    return Normalize(low, high if high > low else low + 1)


def _runs(links: np.ndarray, colors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and last of the points (M,) whose lines to the next follow each other in one of colors (M, C).

    They are drawn as one line, which looks the same and takes less time.
    """
    goes_on = np.zeros(len(links), bool)
    goes_on[1:] = links[1:] & links[:-1] & (colors[1:] == colors[:-1]).all(axis=1)
    return np.flatnonzero(links & ~goes_on), np.flatnonzero(links & ~np.append(goes_on[1:], False))


def _cut(places: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> list[np.ndarray]:
    """Return the places (K, 2) of each run, to the point after its last one."""
    return [places[start : stop + 2] for start, stop in zip(starts, stops, strict=True)]


def _draw_marks(ax: "matplotlib.axes.Axes", points: Points, part: xr.Dataset) -> dict[str, Any]:
    """Mark where paths start and end; return an artist for each entry of the legend."""
    ink = "0.95" if _style.is_dark(ax) else "0.1"
    size = float(np.clip(30 / np.sqrt(part.sizes[EPISODE]), 2.5, 7))
    handles: dict[str, Any] = {}
    for name, mine in points.marks(part).items():
        if mine.any():
            face = ax.get_facecolor() if name == START else ink
            style: dict[str, Any] = {"markerfacecolor": face, "markeredgecolor": ink, "markersize": size, "zorder": 4}
            style |= {"markeredgewidth": size / 3, "markersize": size + 1} if name == CUT else {}
            (handles[f"{name} ({mine.sum():,})"],) = ax.plot(
                *points.places[mine].T, linestyle="none", marker=MARKERS[name], **style
            )
    return handles


def _set_scale(ax: "matplotlib.axes.Axes", place: Sequence[Component], points: Points) -> None:
    """Draw both axes to one scale where they have the same units, and tick whole numbers at whole numbers."""
    finite = points.places[points.is_finite]
    spans = [float(span) for span in np.ptp(finite, axis=0)] if len(finite) else [0.0, 0.0]
    is_counted = all(component.is_whole for component in place)
    if _grid.has_same_scale([component.units for component in place], is_counted, spans):
        ax.set_aspect("equal", adjustable="datalim")
    for component, axis in zip(place, (ax.xaxis, ax.yaxis), strict=True):
        if component.is_whole:
            _labels.plain_numbers(axis, whole=True)


def _left_out(part: xr.Dataset, place: Sequence[Component], points: Points) -> list[str]:
    """Return lines on what the paths do not show."""
    out = []
    if final_of(part, place) is not None and (unknown := int((~part[FINAL_KNOWN].values.astype(bool)).sum())):
        out.append(f"final observation not known: {unknown:,}")
    if num_nan := int((~points.is_finite).sum()):
        out.append(f"not shown: {_text.plural(num_nan, 'point')} with NaN")
    if (points.links() & ~np.isfinite(points.color)).any():
        out.append("grey: colour is NaN")
    return out
