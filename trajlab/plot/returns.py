"""Returns and lengths of episodes over training."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import field_of
from trajlab.analysis.cut import GroupsArgument
from trajlab.analysis.groups import Groups, make_groups
from trajlab.analysis.returns import check_discount, returns, running_median
from trajlab.dataset.fields import component_units
from trajlab.errors import unknown_name
from trajlab.names import COMPLETE, EPISODE, ITERATION, LENGTH, START_ITERATION, TIME
from trajlab.plot import _style, _text

if TYPE_CHECKING:
    import matplotlib.axes

MANY = 5000
"""More points than this are drawn as an image, so that a file of the figure stays small."""


def plot_returns(
    ds: xr.Dataset,
    *,
    reward: str = "reward",
    discount: float | int = 1.0,
    x: str | None = None,
    by: str | None = None,
    groups: GroupsArgument = None,
    ax: Any = None,
    **kwargs: Any,
) -> np.ndarray:
    """Draw the return and the length of each episode over training.

    Complete episodes are dots. Those that are not (cut, or their start was not seen) are open triangles:
    their length, and with rewards that are never negative their return, is a lower bound. The line is the
    median of complete episodes that started one after the other. With `by`, above all ``by="run"``, each group
    has dots and a line of its own.

    Parameters
    ----------
    ds, reward, discount
        As in `returns`. A reward with components gets a panel for each.
    x : str, optional
        Coordinate over `episode` to draw against: `start_iteration` by default, or `episode` where that is
        the same for all.
    by, groups
        As in `action_histogram`, but a coordinate over `episode` only. Groups are told apart by colour.
    ax : sequence of Axes, optional
        One for each return and one for the length; without, a figure is made.
    **kwargs
        For the dots: `Axes.scatter`.

    Returns
    -------
    array of Axes
        The returns, and the length last.

    Raises
    ------
    KeyError
        When there is no such field or coordinate.
    TypeError
        When the field does not hold numbers.
    ValueError
        As `returns`; when `by` cannot be grouped by; when the reward has more than 24 components, there are more
        than 24 groups, or `ax` does not hold as many Axes as there are panels.
    """
    check_discount(discount)
    ds, _ = field_of(ds, reward, along=x)
    ds, _ = field_of(ds, reward, along=by)
    chosen = _groups_of_episodes(ds, by, groups)
    result = returns(ds, reward=reward, discount=discount)
    name = str(result.attrs["field"])
    columns = result.values.reshape(result.shape[0], int(np.prod(result.shape[1:], dtype=np.int64)))
    titles = [_title(name, component) for component in _text.component_titles(ds, name)]
    _style.check_panels(ds, name, len(titles))
    along = _along(result, x)
    count = len(titles) + 1
    size = _style.SINGLE[0], 1.3 + 1.9 * count
    mend = ", the last of them for the length" + _style.select_mend(ds, name)
    panels = _style.make_panels(count, ax, columns=1, size=size, mend=mend)
    is_text = along.dtype.kind in "UOT"
    places = np.array([_text.safe(str(value)) for value in along.values], str) if is_text else along.values
    looks = [] if by is None else _style.looks_of(ds, panels, chosen)
    drawn: list[Drawn] = []
    for number, ax_ in enumerate(panels.axes):
        values = columns[:, number] if number < len(titles) else result[LENGTH].values
        drawn = _draw(ax_, places, values, result[COMPLETE].values, chosen, looks, kwargs)
    _label(ds, name, panels, result, along, titles)
    _text.write_title(panels, _title_lines(result, chosen, drawn, discount))
    if any(one.dots or one.rest for one in drawn):
        _legend(panels, chosen, looks, drawn)
    return np.asarray(panels.result())


def _groups_of_episodes(ds: xr.Dataset, by: str | None, groups: GroupsArgument) -> Groups:
    """Return the groups of `by`; raise ValueError where it is a matter of the transition, or they are too many."""
    if by is not None and by in ds.variables and ds[by].dims == (EPISODE, TIME):
        mend = "; group by 'start_iteration'" if by == ITERATION else ""
        raise ValueError(f"by={by!r} has a value per transition; expected a coordinate over episode{mend}")
    chosen = make_groups(ds, by, groups)
    _style.check_groups(ds, chosen)
    return chosen


def _title(name: str, component: str) -> str:
    """Return ``"return"``, ``"return[0]"`` or ``"return: speed"`` for a component of the reward called `name`."""
    return f"return{component[len(name) :]}" if component.startswith(name) else f"return: {component}"


def _along(result: xr.DataArray, x: str | None) -> xr.DataArray:
    """Return the coordinate that is drawn along x."""
    if x is None:
        starts = result[START_ITERATION]
        return starts if len(np.unique(starts.values)) > 1 else result[EPISODE]
    if x not in result.coords or result[x].dims != (EPISODE,):
        known = [str(n) for n, c in result.coords.items() if c.dims == (EPISODE,)]
        raise unknown_name("coordinate over episode for x=", x, known)
    return result[x]


@dataclasses.dataclass(frozen=True)
class Drawn:
    """What was drawn of one group: its artists for a legend (None where there are none), and numbers.

    Attributes
    ----------
    dots, rest, line
        What stands for complete episodes, for the others, and for the median.
    num_complete, num_rest : int
    each : int
        How many episodes a median is of.
    """

    dots: Any
    rest: Any
    line: Any
    num_complete: int
    num_rest: int
    each: int


def _draw(
    ax: "matplotlib.axes.Axes",
    along: np.ndarray,
    values: np.ndarray,
    complete: np.ndarray,
    chosen: Groups,
    looks: Sequence[_style.Look],
    kwargs: dict[str, Any],
) -> list[Drawn]:
    """Draw one value per episode, group by group; without groups dots, triangles and line differ in colour."""
    if not len(values):
        _text.write_empty(ax)
        return []
    if chosen.of_episode is None:
        colors = _style.cycle(ax)
        look = _style.Look(colors[0])
        return [
            _draw_group(ax, along, values, complete, np.ones(len(values), bool), look, colors[5], colors[1], kwargs)
        ]
    members = [chosen.of_episode == code for code in range(len(looks))]
    return [
        _draw_group(ax, along, values, complete, mine, look, look.color, look.color, kwargs)
        for mine, look in zip(members, looks, strict=True)
    ]


def _draw_group(
    ax: "matplotlib.axes.Axes",
    along: np.ndarray,
    values: np.ndarray,
    complete: np.ndarray,
    mine: np.ndarray,
    look: _style.Look,
    rest_color: Any,
    line_color: Any,
    kwargs: dict[str, Any],
) -> Drawn:
    """Draw the episodes of one group, those where `mine` (episode,) is True."""
    style: dict[str, Any] = {"s": float(np.clip(20_000 / len(values), 4, 20)), "rasterized": len(values) > MANY}
    ended, rest = mine & complete, mine & ~complete
    dots = triangles = line = None
    if ended.any():
        opacity = float(np.clip(1000 / len(values), 0.2, 0.8))
        own = {"color": look.color, "alpha": opacity, "linewidth": 0, "marker": look.marker or "o", **style}
        own, shown = _dot_style(own, kwargs, ended)
        ax.scatter(along[ended], values[ended], **own)
        dots = _text.dot(shown, look.marker or "o")
    if rest.any():
        own = {"marker": "^", "facecolors": "none", "edgecolors": rest_color, "linewidths": 0.9}
        ax.scatter(along[rest], values[rest], **{**own, **style, "s": style["s"] + 10, "zorder": 3})
        triangles = _text.dot(rest_color, "^", filled=False)
    places, medians, each = running_median(along[ended], values[ended])
    if len(places):
        marker = {"marker": look.marker, "markersize": 4.5} if look.marker else {}
        (line,) = ax.plot(places, medians, color=line_color, linewidth=2.0, zorder=4, **marker)
    return Drawn(dots, triangles, line, int(ended.sum()), int(rest.sum()), each)


def _legend(panels: _style.Panels, chosen: Groups, looks: Sequence[_style.Look], drawn: Sequence[Drawn]) -> None:
    """Name the groups, or else dots, triangles and line."""
    num_rest = sum(one.num_rest for one in drawn)
    if chosen.name is None:
        (one,) = drawn
        entries = {
            f"complete ({one.num_complete:,})": one.dots,
            f"not complete ({num_rest:,})": one.rest,
            f"median of every {one.each:,} complete": one.line,
        }
        shown = {label: artist for label, artist in entries.items() if artist is not None}
        _text.write_legend(panels, [*shown.values()], [*shown])
        return
    handles = [_text.dot(look.color, look.marker or "o", line=one.line) for look, one in zip(looks, drawn, strict=True)]
    labels = _text.group_labels(chosen, [one.num_complete for one in drawn])
    if num_rest:
        handles.append(_text.dot(_style.neutral(panels.axes[0]), "^", filled=False))
        labels.append(f"not complete ({num_rest:,})")
    _text.write_legend(panels, handles, labels, _text.groups_title(chosen, "complete episodes"))


def _title_lines(result: xr.DataArray, chosen: Groups, drawn: Sequence[Drawn], discount: float | int) -> list[str]:
    """Return what is drawn, and what the lines are where the legend names groups."""
    lines = [f"return and length of {_text.count_text(result.attrs)}"]
    sizes = sorted(one.each for one in drawn if one.line is not None)
    if chosen.name is not None and sizes:
        size = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
        lines.append(f"lines: median of every {size} complete")
    return [*lines, *_text.left_out(chosen), *([f"discount {discount:g}"] if discount != 1 else [])]


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


def _label(
    ds: xr.Dataset,
    name: str,
    panels: _style.Panels,
    result: xr.DataArray,
    along: xr.DataArray,
    titles: list[str],
) -> None:
    """Name the axes."""
    units = [*component_units(ds, name), result[LENGTH].attrs.get("units", "steps")]
    labels = [*titles, result[LENGTH].attrs.get("long_name", "episode length")]
    place = _text.label_of(along)
    for number, ax in enumerate(panels.axes):
        _text.write_ylabel(panels, ax, _text.with_units(labels[number], units[number]), share=0.9)
        _text.plain_numbers(ax.yaxis)
        if along.dtype.kind in "iu":
            _text.plain_numbers(ax.xaxis, whole=True)
        if panels.figure is not None and number < len(panels.axes) - 1:
            ax.sharex(panels.axes[-1])
            ax.tick_params(labelbottom=False)
        else:
            ax.set_xlabel(_text.safe(place))
