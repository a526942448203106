"""Shares of episodes that reached events by each step."""

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.events.conditions import Conditions
from trajlab.analysis.events.first_times import FirstTimes, find_first
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_episode_groups
from trajlab.analysis.milestones import grouped_milestones
from trajlab.dataset.schema import validate
from trajlab.names import EPISODE, EVENT, MEDIAN, SHARE, START_SEEN, TIME, N
from trajlab.plot import _figure, _legend, _panels, _style, _text
from trajlab.plot._incidence import Curves, draw_curves, entries, panel_notes

if TYPE_CHECKING:
    import matplotlib.axes


def plot_milestones(
    ds: xr.Dataset,
    conditions: Conditions,
    *,
    by: str | None = None,
    groups: GroupsArgument = None,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw `milestones`: the share of episodes that have reached each event by each step, and how many are at risk.

    A line for each event, with a dot at the median of those that reach it; the final share is written. With `by` there
    is a panel for each group, or, for a single event, a line.

    Parameters
    ----------
    ds, conditions, by, groups
        As in `milestones`.
    ax : Axes or sequence of Axes, optional
        One per panel, each of which gives a strip at its bottom to the number of episodes at risk; without, a figure
        is made.
    **kwargs
        For the lines: `Axes.step`.

    Returns
    -------
    Axes or array of Axes
        An array where there are several panels. The strips are further Axes of the figure, labelled ``"n"``.

    Raises
    ------
    KeyError, TypeError
        As `milestones`.
    ValueError
        As `milestones`, and when there are more than 24 panels or lines, or `ax` does not hold one Axes for each
        panel.
    """
    validate(ds)
    chosen = make_episode_groups(ds, by, groups)
    first, text = find_first(ds, conditions, "plot_milestones")
    names = event_names(first)
    is_single = len(names) == 1
    titles = [""] if is_single else _panels.group_names(chosen) or [_legend.groups_title(chosen)]
    if is_single:
        _style.check_groups(ds, chosen)
    check_lines(len(names), "events")
    result = grouped_milestones(ds, first, text, chosen)
    by_group = is_single and chosen.name is not None
    num_lines = chosen.size if is_single else len(names) if chosen.size else 0
    curves = _curves(result, len(titles), num_lines)
    panels = _figure.make_panels(len(titles), ax)
    looks = _style.looks_of_kinds(panels.axes[0], num_lines)
    if by_group:
        looks = _style.looks_of(ds, panels, chosen)
    lines = draw_curves(panels, result, curves, looks, kwargs)
    if by_group:
        names = _legend.group_labels(chosen, _members(ds, chosen))
    what = f"{text}, of" if is_single and text != "condition" else "milestones of"
    texts = [
        f"{what} {_text.count_text(result.attrs)}",
        "reached by each step; n: episodes at risk",
    ]
    texts += _text.unseen_starts(result.attrs) + _legend.left_out(chosen)
    _panels.write_names(panels, titles, texts, panel_notes(names if lines else [], curves))
    if lines:
        title = _legend.groups_title(chosen, "episodes") if by_group else None
        _legend.write_legend(panels, *entries(panels, lines, names, curves, title))
    return panels.result()


def event_names(first: FirstTimes) -> list[str]:
    """Return what each event is called, and each component of it."""
    inner = [dim for dim in first.dims if dim != EPISODE]
    sizes = dict(zip(first.dims, first.times.shape, strict=True))
    labels = [
        [str(label) for label in np.asarray(first.coords[dim])]
        if dim in first.coords
        else [str(place) if dim == EVENT else f"{dim}={place}" for place in range(sizes[dim])]
        for dim in inner
    ]
    return [", ".join(parts) or "reached" for parts in itertools.product(*labels)]


def check_lines(count: int, what: str) -> None:
    """Raise ValueError where there are more lines than can be told apart."""
    if count > _style.MAX_KINDS:
        raise ValueError(f"{count} {what}; at most {_style.MAX_KINDS} are told apart in a plot: choose some")


def _members(ds: xr.Dataset, groups: Groups) -> np.ndarray:
    """Return how many episodes of each group are counted."""
    assert groups.of_episode is not None
    of_episode = groups.of_episode[ds[START_SEEN].values.astype(bool)]
    return np.bincount(of_episode[of_episode >= 0], minlength=groups.size)


def _curves(result: xr.Dataset, panels: int, lines: int) -> Curves:
    """Return what is drawn, each panel's lines together."""
    lead, steps = (panels, lines), result.sizes[TIME]
    share, at_risk = (result[key].values.reshape(*lead, steps) for key in (SHARE, N))
    return Curves(share, at_risk, result[MEDIAN].values.reshape(lead))
