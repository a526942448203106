"""Shares of actions over the steps of an episode, stacked."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.action_rates import grouped_rates
from trajlab.analysis.common import field_of, inner_dims, title_of
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_groups
from trajlab.analysis.labels import LabelsArgument
from trajlab.names import NUM_TRANSITIONS_ATTR, SHARE, TIME, VALUE, N
from trajlab.plot import _figure, _labels, _legend, _panels, _style, _text
from trajlab.plot._areas import area_colors, areas_of, scale_shares, stack_areas
from trajlab.plot._strip import draw_alive, split_strip

if TYPE_CHECKING:
    import matplotlib.axes


def plot_action_rates(
    ds: xr.Dataset,
    field: str = "action",
    *,
    by: str | None = None,
    groups: GroupsArgument = None,
    labels: LabelsArgument = None,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw `action_rates`: the share of each action at each step, stacked, and beneath how many episodes are alive.

    One panel for each group and component. Where there are more than 8 actions, the 7 most frequent ones have a
    colour each, and the others are one grey area.

    Parameters
    ----------
    ds, field, by, groups, labels
        As in `action_rates`.
    ax : Axes or sequence of Axes, optional
        One per group and component, all components of a group together, each of which gives a strip at its bottom
        to the number of episodes; without, a figure is made.
    **kwargs
        For the areas: `Axes.stairs`.

    Returns
    -------
    Axes or array of Axes
        An array, group by group, where there is more than one. The strips with the number of episodes are further
        Axes of the figure, labelled ``"n"``.

    Raises
    ------
    KeyError, TypeError
        As `action_rates`.
    ValueError
        As `action_rates`, and when there are more than 24 panels, or `ax` does not hold one Axes for each.
    """
    ds, name = field_of(ds, field, like=np.int64, along=by)
    chosen = make_groups(ds, by, groups)
    names = _panels.panel_names(ds, name, chosen) or [name]
    result = grouped_rates(ds, name, chosen, labels)
    panels = _figure.make_panels(len(names), ax, mend=_figure.select_mend(ds, name))
    strips = [split_strip(ax_) for ax_ in panels.axes]
    handles: list[Any] = []
    areas, texts = areas_of(result)
    lines = [f"{title_of(ds, name)}: {_text.count_text(result.attrs)}", f"n: {result[N].attrs['long_name']}"]
    if result.attrs[NUM_TRANSITIONS_ATTR] and chosen.size:
        handles = _draw(panels, strips, result, chosen, inner_dims(ds, name), areas, kwargs)
    else:
        for ax_, strip in zip(panels.axes, strips, strict=True):
            _labels.write_empty(ax_)
            draw_alive(strip, np.zeros(0), np.zeros((0, 0), np.int64), True, [])
    _label(panels, strips, result)
    lines += _text.not_shown(result.attrs)
    _panels.write_names(panels, names, lines + _legend.left_out(chosen))
    if handles:
        _legend.write_legend(panels, handles, texts, title_of(ds, name))
    return panels.result()


def _draw(
    panels: _figure.Panels,
    strips: Sequence["matplotlib.axes.Axes"],
    result: xr.Dataset,
    groups: Groups,
    inner: Sequence[str],
    areas: np.ndarray,
    kwargs: dict[str, Any],
) -> list[Any]:
    """Draw the areas of each panel, and the strips; return one artist per area."""
    time = result[TIME].values
    edges = np.append(time, time[-1] + 1) - 0.5
    shares = _panels.by_panel(result[SHARE], groups, inner, (TIME, VALUE)) @ areas
    alive = _panels.by_panel(result[N].broadcast_like(result[SHARE].isel({VALUE: 0})), groups, inner, (TIME,))
    handles: list[Any] = []
    for ax, strip, share, n in zip(panels.axes, strips, shares, alive, strict=True):
        handles = stack_areas(ax, edges, share, area_colors(ax, areas), kwargs)
        ax.set_xlim(edges[0], edges[-1])
        draw_alive(strip, time, n[np.newaxis], True, [_style.Look(None)])
    return handles


def _label(panels: _figure.Panels, strips: Sequence["matplotlib.axes.Axes"], result: xr.Dataset) -> None:
    for number, (ax, strip) in enumerate(zip(panels.axes, strips, strict=True)):
        if result.attrs[NUM_TRANSITIONS_ATTR]:
            scale_shares(panels, ax)
        if panels.is_left(number):
            _labels.write_ylabel(panels, ax, "share of transitions")
            strip.set_ylabel("n")
        if panels.is_bottom(number):
            _labels.write_xlabel(strip, _text.time_label(result[TIME]))
