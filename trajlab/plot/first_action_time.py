"""Shares of episodes that have taken each action by each step."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import field_of, inner_dims, title_of
from trajlab.analysis.first_action_time import find_first_actions
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import make_episode_groups
from trajlab.analysis.labels import LabelsArgument
from trajlab.analysis.milestones import grouped_milestones
from trajlab.names import LABEL, MEDIAN, NUM_REACHED, SHARE, TIME, VALUE, N
from trajlab.plot import _figure, _legend, _panels, _style, _text
from trajlab.plot._incidence import Curves, draw_curves, entries, panel_notes

if TYPE_CHECKING:
    import matplotlib.axes


def plot_first_action_time(
    ds: xr.Dataset,
    field: str = "action",
    *,
    by: str | None = None,
    groups: GroupsArgument = None,
    labels: LabelsArgument = None,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw from `first_action_time` the share of episodes that have taken each action by each step, as `milestones`.

    A line for each action, with a dot at the median of those that take it; the final share is written. One panel for
    each group and component. Of more than 24 actions, those that most episodes take are drawn.

    Parameters
    ----------
    ds, field, labels
        As in `first_action_time`.
    by, groups
        As in `action_histogram`, but a coordinate or variable over `episode` only.
    ax : Axes or sequence of Axes, optional
        One per group and component, all components of a group together, each of which gives a strip at its bottom
        to the number of episodes at risk; without, a figure is made.
    **kwargs
        For the lines: `Axes.step`.

    Returns
    -------
    Axes or array of Axes
        An array where there are several panels. The strips are further Axes of the figure, labelled ``"n"``.

    Raises
    ------
    KeyError, TypeError
        As `first_action_time`.
    ValueError
        As `first_action_time`, and when `by` is a matter of the transition, there are more than 24 panels, or `ax` does
        not hold one Axes for each.
    """
    ds, name = field_of(ds, field, like=np.int64, along=by)
    chosen = make_episode_groups(ds, by, groups)
    titles = _panels.panel_names(ds, name, chosen) or [name]
    first, attrs = find_first_actions(ds, name, labels)
    result = grouped_milestones(ds, first, name, chosen)
    drawn, total = _most_taken(result)
    panels = _figure.make_panels(len(titles), ax, mend=_figure.select_mend(ds, name))
    actions = [str(text) for text in drawn[LABEL if LABEL in drawn.coords else VALUE].values] if chosen.size else []
    inner = inner_dims(ds, name)
    share, at_risk = (_panels.by_panel(drawn[key], chosen, inner, (VALUE, TIME)) for key in (SHARE, N))
    curves = Curves(share, at_risk, _panels.by_panel(drawn[MEDIAN], chosen, inner, (VALUE,)))
    lines = draw_curves(panels, result, curves, _style.looks_of_kinds(panels.axes[0], len(actions)), kwargs)
    title = title_of(ds, name)
    texts = [
        f"first time of each {title}: {_text.count_text(result.attrs)}",
        "n: episodes at risk",
    ]
    if len(actions) < total:
        texts.append(f"{len(actions)} of {total:,} values, those that most episodes have")
    texts += _text.not_shown(attrs)
    notes = panel_notes(actions if lines else [], curves)
    _panels.write_names(panels, titles, texts + _text.unseen_starts(result.attrs) + _legend.left_out(chosen), notes)
    if lines:
        _legend.write_legend(panels, *entries(panels, lines, actions, curves, title))
    return panels.result()


def _most_taken(result: xr.Dataset) -> tuple[xr.Dataset, int]:
    """Return as many values as can be told apart, those that most episodes reach, and how many there are."""
    total = result.sizes[VALUE]
    if total <= _style.MAX_KINDS:
        return result, total
    counts = _panels.total_along(result[NUM_REACHED], VALUE)
    return result.isel({VALUE: np.sort(np.argsort(-counts, kind="stable")[: _style.MAX_KINDS])}), total
