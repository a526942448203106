"""The parts of the page that shows a whole recording: which fields it has room for, and by which plots."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import xarray as xr

from trajlab.analysis.common import require_numeric, title_of
from trajlab.analysis.discrete import discrete_kind
from trajlab.analysis.labels import LabelsArgument
from trajlab.analysis.returns import returns
from trajlab.dataset.fields import MAX_COMPONENTS, component_count, field_names, has_own_name, is_numeric, resolve_field
from trajlab.names import AGENT, CUT, END_REASON, EPISODE, MEDIAN, RETURN, ROLE_ATTR
from trajlab.plot import _text
from trajlab.plot.action_histogram import plot_action_histogram
from trajlab.plot.learning_curve import plot_learning_curve
from trajlab.plot.outcomes import plot_outcomes
from trajlab.plot.state_trace import plot_state_trace
from trajlab.plot.survival import plot_survival

MAX_SHOWN = 4
"""Components of a field that are shown."""
BINS = 25
"""Of actions that are not counted one by one; a small panel shows no more."""


@dataclasses.dataclass(frozen=True)
class Part:
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


def overview_parts(
    ds: xr.Dataset, state: str | Sequence[str] | None, along: str, told: dict[str, Any], labels: LabelsArgument
) -> Iterator[Part]:
    """Yield what there is to draw, in the order of the page.

    Curves over training go `along` a coordinate. `told` are the arguments `by` and `groups` of what tells groups apart,
    empty where there is a single one.
    """
    traced = _fields_of_state(ds, state)
    if not ds.sizes[EPISODE]:
        return
    for name in _fields_of_role(ds, "reward")[:1]:
        part = _first_components(ds, name, MAX_SHOWN)
        if RETURN not in part.variables:
            part = part.assign_coords({RETURN: returns(part, reward=name)})
        yield Part("return", _names(ds, part, name, "return"), functools.partial(_draw_curve, part, along))
    if (ds[END_REASON].values != CUT).any():
        lengths, ends = "episode length", "how episodes end"
        yield Part(lengths, [lengths], functools.partial(_draw_lengths, ds, told), MEDIAN, (-0.02, 1.02))
        yield Part(ends, [ends], lambda axes: plot_outcomes(ds, by=along, ax=axes), "", (0, 1))
    actions = _shared_out(ds, _fields_of_role(ds, "action"))
    is_binned = {name: discrete_kind(ds, name) is None for name, _ in actions}
    for name, most in actions:
        part, title = _first_components(ds, name, most), title_of(ds, name)
        takes_labels = not is_binned[name] or all(is_binned.values())  # where all are, the histogram refuses them
        options = told | ({"bins": BINS} if is_binned[name] else {}) | ({"labels": labels} if takes_labels else {})
        yield Part(title, _names(ds, part, name, title)[:most], functools.partial(_draw_actions, part, name, options))
    for name, most in traced:
        part, title = _first_components(ds, name, most), title_of(ds, name)
        options = told | ({"episodes": False} if told else {})
        yield Part(title, _names(ds, part, name, title)[:most], functools.partial(_draw_state, part, name, options))


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
