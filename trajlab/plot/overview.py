"""A whole recording on one page."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import is_category, make_episode_groups
from trajlab.analysis.labels import LabelsArgument
from trajlab.dataset.fields import field_names
from trajlab.dataset.schema import validate
from trajlab.errors import whole_number
from trajlab.names import END_REASON, EPISODE, START_ITERATION, START_ROW
from trajlab.plot import _figure, _labels, _style
from trajlab.plot._overview_parts import Part, overview_parts
from trajlab.plot._page import finish_panel, write_frame

PHASES = 4
"""Ranges that numbers are cut into where there are more of them."""
COLUMNS = 3
PANEL = (3.7, 2.7)
"""Inches of a panel."""


def plot_overview(
    ds: xr.Dataset,
    *,
    state: str | Sequence[str] | None = None,
    by: str = START_ITERATION,
    groups: GroupsArgument = None,
    labels: LabelsArgument = None,
    columns: int = COLUMNS,
) -> np.ndarray:
    """Draw a recording on one page: returns, lengths, ends and actions over training, and traces of the state.

    Each panel is one of the plots of its own name, on their defaults: `plot_learning_curve`, `plot_survival`,
    `plot_outcomes`, `plot_action_histogram` and `plot_state_trace`; but continuous actions have 25 bins, and bands of
    states go from 10 to 90 %. What a recording lacks has no panel: returns without a reward, lengths and ends where no
    episode ended.

    Parameters
    ----------
    ds : Dataset
        With whole episodes, where it has a reward: not sliced in `time`.
    state : str or sequence of str, optional
        Fields of numbers to draw traces of, the first 4 components of each; by default the observation, and the first 4
        of all its parts, those apart that have more than 64 or several dims beside that of agents, as images and
        boards have. Of actions and rewards, too, the first 4 are shown. Others are selected first, as in
        ``ds.isel(obs_dim_0=[4, 5])``.
    by : str
        A coordinate over `episode`. Curves over training go along it; lengths, actions and states are told apart by
        the groups of it: by default each value, and 4 ranges where there are more numbers. Where all episodes have
        the same `start_iteration`, curves go along `start_row`; with ``"end_reason"`` along `start_iteration`.
    groups
        Other groups for lengths, actions and states, as in `action_histogram`.
    labels : sequence or mapping, optional
        Names of the actions, as in `action_histogram`; where there are several, of those that are not binned.
    columns : int
        How many panels stand side by side, each of 3.7 inches: fewer for a narrow page.

    Returns
    -------
    array of Axes
        One per panel, in the order of the page. The strips with the number of episodes are further Axes of the figure,
        labelled ``"n"``.

    Raises
    ------
    KeyError
        When there is no such field or coordinate.
    TypeError
        When a field of `state` does not hold numbers, or `columns` is no whole number.
    ValueError
        When `ds` is not valid, or there is a reward and steps were sliced away; when `by` is a matter of the
        transition, `groups` or `labels` do not fit, there are more than 24 panels, or groups that are no ranges of
        numbers, or there is nothing to show.
    """
    validate(ds)
    columns = whole_number("columns", columns)
    if by not in ds.variables and not ds.sizes[EPISODE]:
        by = START_ITERATION  # a recorder that was off has no coordinate of the user's
    asked = groups is not None
    groups = PHASES if not asked and _has_many_numbers(ds, by) else groups
    chosen = make_episode_groups(ds, by, groups)
    _style.check_groups(ds, chosen)
    told: dict[str, Any] = {"by": by, "groups": groups} if chosen.size > 1 or asked else {}
    parts = list(overview_parts(ds, state, _along(ds, by), told, labels))
    count = max(sum(part.count for part in parts), 1)
    _check_parts(ds, parts, count)
    columns = min(columns, count)
    size = _figure.figure_size(count, PANEL, (0.0, 0.8), columns)
    panels = _figure.make_panels(count, None, columns=columns, size=size, laid_out=False)
    rest = panels.axes
    for part in parts:
        mine, rest = rest[: part.count], rest[part.count :]
        if mine:
            part.draw(mine)
        for ax, title in zip(mine, part.names, strict=True):
            finish_panel(ax, title, part.limits, part.legend)
    if not parts:
        _labels.write_empty(panels.axes[0])
    write_frame(ds, panels, chosen, bool(told), [part.title for part in parts if not part.count])
    _figure.lay_out(panels.root)
    return np.array([panels.result()], object).ravel()


def _has_many_numbers(ds: xr.Dataset, by: str) -> bool:
    """Say whether a coordinate holds so many different numbers that they are cut into ranges."""
    if by not in ds.variables or ds[by].dims != (EPISODE,) or is_category(ds, by):
        return False
    return ds[by].dtype.kind in "iuf" and len(np.unique(ds[by].values)) > PHASES


def _along(ds: xr.Dataset, by: str) -> str:
    """Return the coordinate that curves over training go along."""
    by = START_ITERATION if by == END_REASON else by  # of which `outcomes` are no outcome
    is_single = by == START_ITERATION and len(np.unique(ds[by].values)) < 2
    return START_ROW if is_single else by


def _check_parts(ds: xr.Dataset, parts: Sequence[Part], count: int) -> None:
    if not any(part.count for part in parts) and ds.sizes[EPISODE]:
        raise ValueError(
            "plot_overview: no reward, no action, no observation of numbers and no episode that ended; name fields to "
            f"draw: state={field_names(ds)[:2]!r}"
        )
    if count > _figure.MAX_PANELS:
        raise ValueError(
            f"plot_overview: there would be {count} panels; at most {_figure.MAX_PANELS} are drawn. Name fewer fields "
            "in state="
        )
