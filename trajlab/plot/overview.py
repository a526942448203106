"""A whole recording on one page."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import require_numeric, title_of
from trajlab.analysis.discrete import discrete_kind
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import is_category, make_episode_groups
from trajlab.analysis.labels import LabelsArgument
from trajlab.analysis.returns import returns
from trajlab.dataset.fields import MAX_COMPONENTS, component_count, field_names, has_own_name, is_numeric, resolve_field
from trajlab.dataset.schema import validate
from trajlab.errors import whole_number
from trajlab.names import (
    AGENT,
    CUT,
    END_REASON,
    EPISODE,
    MEDIAN,
    RETURN,
    ROLE_ATTR,
    START_ITERATION,
    START_ROW,
)
from trajlab.plot import _style, _text
from trajlab.plot._page import finish_panel, write_frame
from trajlab.plot.action_histogram import plot_action_histogram
from trajlab.plot.learning_curve import plot_learning_curve
from trajlab.plot.outcomes import plot_outcomes
from trajlab.plot.state_trace import plot_state_trace
from trajlab.plot.survival import plot_survival

MAX_SHOWN = 4
"""Components of a field that are shown."""
PHASES = 4
"""Ranges that numbers are cut into where there are more of them."""
COLUMNS = 3
PANEL = (3.7, 2.7)
"""Inches of a panel."""
BINS = 25
"""Of actions that are not counted one by one; a small panel shows no more."""


@dataclasses.dataclass(frozen=True)
class _Part:
    """Some panels that one function draws.

    Attributes
    ----------
    title : str
        What they show.
    names : list of str
        What stands above each of them; none where there is no room for any.
    draw : callable
        Draws them into a list of Axes.
    legend : str or None
        How the entries begin that they need in a legend of their own, beside that of the page; None for none.
    limits : pair of float or None
        Ends of the y axis; None for those of what is drawn.
    """

    title: str
    names: Sequence[str]
    draw: Callable[[list[Any]], Any]
    legend: str | None = None
    limits: tuple[float, float] | None = None

    @property
    def count(self) -> int:
        """How many panels they are."""
        return len(self.names)


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
    parts = list(_parts(ds, _fields_of_state(ds, state), _along(ds, by), told, labels))
    count = max(sum(part.count for part in parts), 1)
    _check_parts(ds, parts, count)
    columns = min(columns, count)
    size = _style.size_of(count, PANEL, (0.0, 0.8), columns)
    panels = _style.make_panels(count, None, columns=columns, size=size, laid_out=False)
    rest = panels.axes
    for part in parts:
        mine, rest = rest[: part.count], rest[part.count :]
        if mine:
            part.draw(mine)
        for ax, title in zip(mine, part.names, strict=True):
            finish_panel(ax, title, part.limits, part.legend)
    if not parts:
        _text.write_empty(panels.axes[0])
    write_frame(ds, panels, chosen, bool(told), [part.title for part in parts if not part.count])
    _style.lay_out(panels.root)
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


def _check_parts(ds: xr.Dataset, parts: Sequence[_Part], count: int) -> None:
    if not any(part.count for part in parts) and ds.sizes[EPISODE]:
        raise ValueError(
            "plot_overview: no reward, no action, no observation of numbers and no episode that ended; name fields to "
            f"draw: state={field_names(ds)[:2]!r}"
        )
    if count > _style.MAX_PANELS:
        raise ValueError(
            f"plot_overview: there would be {count} panels; at most {_style.MAX_PANELS} are drawn. Name fewer fields "
            "in state="
        )


def _fields_of_state(ds: xr.Dataset, state: str | Sequence[str] | None) -> list[tuple[str, int]]:
    """Return fields to trace, and how many components of each."""
    if state is not None:
        wanted = state if isinstance(state, Iterable) and not isinstance(state, str) else [state]
        names = [resolve_field(ds, name) for name in wanted]
        for name in names:
            require_numeric(ds.variables[name], name, "plot_overview")
        return [(name, MAX_SHOWN) for name in names]
    known = _fields_of_role(ds, "observation")
    traced = [name for name in known if _is_traced(ds.variables[name])]
    return _shared_out(ds, traced) + [(name, 0) for name in known if name not in traced]


def _is_traced(variable: xr.Variable) -> bool:
    """Say whether a part of the observation is drawn where none is asked for: no image, no board."""
    own = [dim for dim in variable.dims[2:] if dim != AGENT]
    return component_count(variable) <= MAX_COMPONENTS and len(own) <= 1


def _shared_out(ds: xr.Dataset, names: Sequence[str]) -> list[tuple[str, int]]:
    """Return fields of numbers, and how many components of each there is room for, the first ones first."""
    room, out = MAX_SHOWN, []
    for name in names:
        if is_numeric(ds.variables[name]) or discrete_kind(ds, name) is not None:
            out.append((name, room))
            room -= min(component_count(ds.variables[name]), room)
    return out


def _fields_of_role(ds: xr.Dataset, role: str) -> list[str]:
    """Return the fields that were recorded in a role, as several parts of an action are."""
    variables = {name: ds.variables[name] for name in field_names(ds)}
    return [
        name
        for name, variable in variables.items()
        if variable.attrs.get(ROLE_ATTR) == role and has_own_name(variable, name) and component_count(variable)
    ]


def _parts(
    ds: xr.Dataset, state: Sequence[tuple[str, int]], along: str, told: dict[str, Any], labels: LabelsArgument
) -> Iterator[_Part]:
    """Yield what there is to draw, in the order of the page.

    `told` are the arguments `by` and `groups` of what tells groups apart, empty where there is a single one.
    """
    if not ds.sizes[EPISODE]:
        return
    for name in _fields_of_role(ds, "reward")[:1]:
        part = _first_components(ds, name, MAX_SHOWN)
        if RETURN not in part.variables:
            part = part.assign_coords({RETURN: returns(part, reward=name)})
        yield _Part("return", _names(ds, part, name, "return"), functools.partial(_draw_curve, part, along))
    if (ds[END_REASON].values != CUT).any():
        lengths, ends = "episode length", "how episodes end"
        yield _Part(lengths, [lengths], functools.partial(_draw_lengths, ds, told), MEDIAN, (-0.02, 1.02))
        yield _Part(ends, [ends], lambda axes: plot_outcomes(ds, by=along, ax=axes), "", (0, 1))
    actions = _shared_out(ds, _fields_of_role(ds, "action"))
    is_binned = {name: discrete_kind(ds, name) is None for name, _ in actions}
    for name, most in actions:
        part, title = _first_components(ds, name, most), title_of(ds, name)
        takes_labels = not is_binned[name] or all(is_binned.values())  # where all are, the histogram refuses them
        options = told | ({"bins": BINS} if is_binned[name] else {}) | ({"labels": labels} if takes_labels else {})
        yield _Part(title, _names(ds, part, name, title)[:most], functools.partial(_draw_actions, part, name, options))
    for name, most in state:
        part, title = _first_components(ds, name, most), title_of(ds, name)
        options = told | ({"episodes": False} if told else {})
        yield _Part(title, _names(ds, part, name, title)[:most], functools.partial(_draw_state, part, name, options))


def _first_components(ds: xr.Dataset, name: str, most: int) -> xr.Dataset:
    """Return the Dataset with the first components of a field only, at most so many, or all where it is none."""
    if not most:
        return ds
    kept: dict[Any, slice] = {}
    for dim in reversed(ds[name].dims[2:]):
        kept[dim] = slice(0, min(ds.sizes[dim], most))
        most //= max(kept[dim].stop, 1)
    return ds.isel(kept)


def _names(ds: xr.Dataset, part: xr.Dataset, name: str, title: str) -> list[str]:
    """Return what the components in `part` are called, ``"obs[0]"`` or ``"obs: angle"``, and how many there are."""
    total, labels = component_count(ds.variables[name]), _text.component_titles(part, name)
    if total == 1:
        return [title]
    names = [f"{title}{own[len(name) :]}" if own.startswith(name) else f"{title}: {own}" for own in labels]
    return names if len(names) == total else [f"{names[0]} ({len(names)} of {total} components)", *names[1:]]


def _draw_lengths(ds: xr.Dataset, told: dict[str, Any], axes: list[Any]) -> None:
    plot_survival(ds, **told, ax=axes).set_ylabel("share still alive")


def _draw_curve(ds: xr.Dataset, along: str, axes: list[Any]) -> None:
    plot_learning_curve(ds, by=along, ax=axes)


def _draw_actions(ds: xr.Dataset, name: str, options: dict[str, Any], axes: list[Any]) -> None:
    plot_action_histogram(ds, name, **options, ax=axes)


def _draw_state(ds: xr.Dataset, name: str, options: dict[str, Any], axes: list[Any]) -> None:
    plot_state_trace(ds, name, **options, quantiles=(0.1, 0.9), ax=axes)
