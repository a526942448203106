"""Autocorrelation of a field by lag."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.autocorrelation import grouped_autocorrelation
from trajlab.analysis.common import field_of, inner_dims, title_of
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_groups
from trajlab.names import AUTOCORRELATION, LAG, NUM_TRANSITIONS_ATTR, N
from trajlab.plot import _figure, _labels, _legend, _panels, _style, _text
from trajlab.plot._curves import mark_lone_steps
from trajlab.plot._strip import draw_alive, split_strip

if TYPE_CHECKING:
    import matplotlib.axes

ROOM_FOR_DOT = 6
"""Points that a lag has to be wide for a dot at each."""


def plot_autocorrelation(
    ds: xr.Dataset,
    field: str,
    *,
    max_lag: int | None = None,
    by: str | None = None,
    groups: GroupsArgument = None,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw `autocorrelation`: the correlation at each lag, and beneath it how many pairs there are.

    A line at 0 is where nothing is left in common. One panel per component.

    Parameters
    ----------
    ds, field, max_lag, by, groups
        As in `autocorrelation`. Groups are told apart by colour, and beyond 8 by markers too; the legend gives the
        number of pairs one step apart in each.
    ax : Axes or sequence of Axes, optional
        One per component, each of which gives a strip at its bottom to the number of pairs; without, a figure is made.
    **kwargs
        For the line: `Axes.plot`.

    Returns
    -------
    Axes or array of Axes
        An array, in the order of the components, where there is more than one. The strips with the number of pairs are
        further Axes of the figure, labelled ``"n"``.

    Raises
    ------
    KeyError, TypeError
        As `autocorrelation`.
    ValueError
        As `autocorrelation`, and when the field has more than 24 components, `ax` does not hold one Axes for each, or
        there are more than 24 groups that are no ranges of numbers.
    """
    ds, name = field_of(ds, field, along=by)
    titles = _text.component_titles(ds, name)
    _figure.check_panels(ds, name, len(titles))
    chosen = make_groups(ds, by, groups)
    _style.check_groups(ds, chosen)
    result = grouped_autocorrelation(ds, name, chosen, max_lag)
    panels = _figure.make_panels(len(titles), ax, mend=_figure.select_mend(ds, name))
    strips = [split_strip(ax_) for ax_ in panels.axes]
    looks = _style.looks_of(ds, panels, chosen)
    inner = inner_dims(ds, name)
    curves, counts = (
        _panels.by_component(result[key].broadcast_like(result[AUTOCORRELATION]), chosen, inner, (LAG,))
        for key in (AUTOCORRELATION, N)
    )
    lags = result[LAG].values
    lines: list[Any] = []
    for number, (ax_, strip) in enumerate(zip(panels.axes, strips, strict=True)):
        if result.attrs[NUM_TRANSITIONS_ATTR]:
            lines = _draw(ax_, lags, curves[number], looks, kwargs)
        else:
            _labels.write_empty(ax_)
        draw_alive(strip, lags, counts[number], by is None, looks)
    _label(ds, name, panels, strips, result, chosen, titles)
    if chosen.name is not None and lines:
        lag = min(1, len(lags) - 1)
        labels = _legend.group_labels(chosen, _panels.total_along(result[N].isel({LAG: lag}), chosen.name))
        _legend.write_legend(panels, lines, labels, _legend.groups_title(chosen, f"pairs at lag {lag}"))
    return panels.result()


def _draw(
    ax: "matplotlib.axes.Axes",
    lags: np.ndarray,
    curves: np.ndarray,
    looks: Sequence[_style.Look],
    kwargs: dict[str, Any],
) -> list[Any]:
    """Draw curves (group, lag) of one component; return the lines."""
    from matplotlib.lines import Line2D

    ax.axhline(0, color=_style.neutral(ax), linewidth=0.8, zorder=1)
    lines = []
    for curve, look in zip(curves, looks, strict=True):
        style: dict[str, Any] = {"color": look.color, "linewidth": 1.6, "zorder": 3}
        if look.marker or _labels.size_of(ax)[0] > ROOM_FOR_DOT * len(lags):
            style |= {"marker": look.marker or "o", "markersize": 3.5}
        lines += ax.plot(lags, curve, **_style.merged(Line2D, style, kwargs))
        mark_lone_steps(ax, lags, curve, look.color)
    lowest = min(0.0, float(np.nanmin(curves, initial=0.0)))
    ax.set_ylim(max(lowest * 1.1, -1.0) - 0.05, 1.05)
    return lines


def _label(
    ds: xr.Dataset,
    name: str,
    panels: _figure.Panels,
    strips: Sequence["matplotlib.axes.Axes"],
    result: xr.Dataset,
    chosen: Groups,
    titles: Sequence[str],
) -> None:
    """Name the axes and write the title."""
    title = title_of(ds, name)
    for number, (ax, strip) in enumerate(zip(panels.axes, strips, strict=True)):
        _labels.write_ylabel(panels, ax, titles[number] if len(titles) > 1 else "autocorrelation")
        strip.set_ylabel("n")
        if panels.is_bottom(number):
            _labels.write_xlabel(strip, _text.label_of(result[LAG]))
    lines = [f"autocorrelation of {title}: {_text.count_text(result.attrs)}", f"n: {result[N].attrs['long_name']}"]
    _labels.write_title(panels, lines + _legend.left_out(chosen))
