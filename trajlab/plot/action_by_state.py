"""Which actions are taken in which states, as stacked shares, curves and maps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.action_by_state import grouped_by_state, state_and_action
from trajlab.analysis.common import inner_dims, title_of
from trajlab.analysis.grid import BinsArgument
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_groups
from trajlab.analysis.labels import LabelsArgument
from trajlab.names import (
    AGENT,
    COUNT,
    MEAN,
    NUM_NAN_ATTR,
    NUM_STATE_NAN_ATTR,
    NUM_TRANSITIONS_ATTR,
    SHARE,
    VALUE,
    X_BIN,
    N,
)
from trajlab.plot import _figure, _grid, _labels, _legend, _panels, _state_means, _style, _text
from trajlab.plot._areas import area_colors, areas_of, scale_shares, stack_areas
from trajlab.plot._strip import draw_counts, split_strip

if TYPE_CHECKING:
    import matplotlib.axes


def plot_action_by_state(
    ds: xr.Dataset,
    state: str | Sequence[str],
    action: str = "action",
    *,
    bins: BinsArgument = None,
    by: str | None = None,
    groups: GroupsArgument = None,
    labels: LabelsArgument = None,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw `action_by_state`: which actions are taken where.

    Of one component of the state: the shares of all actions in each bin, stacked; or the mean of a continuous action
    as a line, with plus and minus the standard deviation as a band. A strip beneath shows the number of transitions.

    Of two: a map in which the most frequent action of each bin has its colour (the first, where several are as
    frequent), or the mean of a continuous action, from blue over grey at 0 to red where there are means of both signs.
    Bins with fewer than 10 transitions are pale, and the colours of means span those of the others. Bins without any
    have the colour of the ground.

    There is a panel for each group and component of the action; only lines of several groups share one. Where there are
    more than 8 actions, the 7 most frequent ones have a colour each, and the others are grey.

    Parameters
    ----------
    ds, state, action, bins, by, groups, labels
        As in `action_by_state`.
    ax : Axes or sequence of Axes, optional
        One per panel, all components of a group together; without, a figure is made.
    **kwargs
        For areas and lines: `Axes.stairs`; for maps: `Axes.pcolormesh`.

    Returns
    -------
    Axes or array of Axes
        An array, group by group, where there is more than one. Strips and colour bars are further Axes of the figure,
        labelled ``"n"`` and ``"<colorbar>"``.

    Raises
    ------
    KeyError, TypeError
        As `action_by_state`.
    ValueError
        As `action_by_state`, and when there are more than 24 panels, or `ax` does not hold one Axes for each.
    """
    ds, components, name = state_and_action(ds, state, action, by)
    chosen = make_groups(ds, by, groups)
    result = grouped_by_state(ds, components, name, chosen, bins, labels)
    is_map, inner = len(components) == 2, inner_dims(ds, name)
    if MEAN in result and not is_map:
        _style.check_groups(ds, chosen)
        names = _text.component_titles(ds, name)
        _figure.check_panels(ds, name, len(names))
    else:
        names = _panels.panel_names(ds, name, chosen) or [name]
    size = _grid.size_of(len(names)) if is_map else None
    panels = _figure.make_panels(len(names), ax, size=size, mend=_figure.select_mend(ds, name))
    lines = [f"{title_of(ds, name)} by state: {_counted(result)}"]
    entries: _legend.Entries | None = None
    if not (result[N].values.any() and chosen.size):
        for ax_ in panels.axes:
            _labels.write_empty(ax_, "no transitions" if result.attrs[NUM_TRANSITIONS_ATTR] else "no episodes")
    elif MEAN in result:
        draw = _state_means.draw_maps if is_map else _state_means.draw_lines
        notes, entries = draw(panels, ds, name, result, chosen, kwargs)
        lines += notes
    else:
        draw_discrete = _draw_most_frequent if is_map else _draw_shares
        areas, texts = areas_of(result)
        handles, notes = draw_discrete(panels, result, chosen, inner, areas, kwargs)
        entries = _legend.Entries(handles, texts, title_of(ds, name))
        lines += notes
    lines += _text.not_shown(result.attrs, NUM_STATE_NAN_ATTR)
    if num_nan := result.attrs[NUM_NAN_ATTR]:
        lines.append(f"NaN: {_text.plural(num_nan, 'action')}")
    _panels.write_names(
        panels, names, lines + _legend.left_out(chosen), _notes(result, chosen, inner) if is_map else None
    )
    if entries is not None:
        _legend.write_legend(panels, *entries)
    return panels.result()


def _notes(result: xr.Dataset, groups: Groups, inner: tuple[str, ...]) -> list[str]:
    """Return how many transitions each map is of."""
    template = result[MEAN] if MEAN in result else result[COUNT].sum(VALUE)
    counts = _panels.by_panel(result[N].broadcast_like(template), groups, inner, _grid.DIMS)
    return [_text.plural(int(count.sum()), "transition") for count in counts]


def _counted(result: xr.Dataset) -> str:
    """Return ``"1,200 transitions of 30 episodes (2 cut)"``, without the former where agents differ in it."""
    of_episodes = _text.count_text(result.attrs)
    if AGENT in result[N].dims:
        return of_episodes
    return f"{_text.plural(int(result[N].sum()), 'transition')} of {of_episodes}"


def _draw_shares(
    panels: _figure.Panels,
    result: xr.Dataset,
    groups: Groups,
    inner: tuple[str, ...],
    areas: np.ndarray,
    kwargs: dict[str, Any],
) -> tuple[list[Any], list[str]]:
    """Draw stacked shares in each bin, and strips; return one artist per area, and what to say in the title."""
    edges = _grid.edges_of(result, X_BIN)
    shares = _panels.by_panel(result[SHARE], groups, inner, (X_BIN, VALUE)) @ areas
    counts = _panels.by_panel(result[N].broadcast_like(result[SHARE].isel({VALUE: 0})), groups, inner, (X_BIN,))
    handles: list[Any] = []
    for number, (ax, share, n) in enumerate(zip(panels.axes, shares, counts, strict=True)):
        strip = split_strip(ax)
        handles = stack_areas(ax, edges, share, area_colors(ax, areas), kwargs)
        scale_shares(panels, ax)
        draw_counts(strip, edges, n[np.newaxis], True, [_style.Look(None)])
        if panels.is_left(number):
            _labels.write_ylabel(panels, ax, "share of transitions", share=0.5)
        _grid.label_strip(panels, number, strip, result)
    return handles, [f"n: {result[N].attrs['long_name']}"]


def _draw_most_frequent(
    panels: _figure.Panels,
    result: xr.Dataset,
    groups: Groups,
    inner: tuple[str, ...],
    areas: np.ndarray,
    kwargs: dict[str, Any],
) -> tuple[list[Any], list[str]]:
    """Draw the most frequent action of each bin; return one artist per area, and what to say in the title."""
    from matplotlib.collections import QuadMesh
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    counts = _panels.by_panel(result[COUNT], groups, inner, (*_grid.DIMS, VALUE))
    totals = counts.sum(axis=-1)
    most = np.ma.masked_where(totals == 0, areas.argmax(axis=1)[counts.argmax(axis=-1)])
    colors = area_colors(panels.axes[0], areas)
    scale = {"cmap": ListedColormap(colors), "vmin": -0.5, "vmax": len(colors) - 0.5}
    style = _style.merged(QuadMesh, {**scale, "rasterized": True}, kwargs)
    for ax, values, n in zip(panels.axes, most, totals, strict=True):
        mesh = _grid.draw_cells(ax, result, values, style)
        if "alpha" not in kwargs:
            _grid.fade(mesh, n.T)
    _grid.label_axes(panels, result)
    pale = _grid.pale_note(totals) if "alpha" not in kwargs else []
    return [Patch(color=color) for color in colors], ["; ".join(["the most frequent action", *pale])]
