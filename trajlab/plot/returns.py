"""Returns and lengths of episodes over training."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import field_of
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_episode_groups
from trajlab.analysis.returns import check_discount, returns
from trajlab.dataset.fields import component_units
from trajlab.names import COMPLETE, FIELD_ATTR, LENGTH
from trajlab.plot import _figure, _labels, _legend, _style, _text
from trajlab.plot._dots import Colors, Drawn, Points, along_of, draw_all, draw_group, legend_of_all

if TYPE_CHECKING:
    import matplotlib.axes


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
        Coordinate or variable over `episode` to draw against: `start_iteration` by default. Where that is the same
        for all, `episode`, or with several runs, whose episodes are numbered one run after the other, `start_row`.
    by, groups
        As in `action_histogram`, but a coordinate over `episode` only. Groups are told apart by colour, and beyond 8
        by the form of their dots too; the legend gives the number of complete episodes in each.
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
        As `returns`; when `by` cannot be grouped by, or `groups` does not fit; when the reward has more than 24
        components, there are more than 24 groups that are no ranges of numbers, or `ax` does not hold as many Axes
        as there are panels.
    """
    check_discount(discount)
    ds, _ = field_of(ds, reward, along=(x, by))
    chosen = make_episode_groups(ds, by, groups)
    _style.check_groups(ds, chosen)
    result = returns(ds, reward=reward, discount=discount)
    name = str(result.attrs[FIELD_ATTR])
    columns = result.values.reshape(result.shape[0], int(np.prod(result.shape[1:], dtype=np.int64)))
    titles = [_title(name, component) for component in _text.component_titles(ds, name)]
    _figure.check_panels(ds, name, len(titles))
    along = along_of(ds, x)
    count = len(titles) + 1
    size = _figure.SINGLE[0], 1.3 + 1.9 * count
    mend = ", the last of them for the length" + _figure.select_mend(ds, name)
    panels = _figure.make_panels(count, ax, columns=1, size=size, mend=mend)
    is_text = along.dtype.kind in "UOT"
    places = np.array([_text.safe(str(value)) for value in along.values], str) if is_text else along.values
    looks = [] if by is None else _style.looks_of(ds, panels, chosen)
    drawn: list[Drawn] = []
    for number, ax_ in enumerate(panels.axes):
        values = columns[:, number] if number < len(titles) else result[LENGTH].values
        drawn = _draw(ax_, Points(places, values, result[COMPLETE].values), chosen, looks, kwargs)
    _label(ds, name, panels, result, along, titles)
    _labels.write_title(panels, _title_lines(result, chosen, drawn, discount))
    if drawn:
        _write_legend(panels, chosen, drawn)
    return np.asarray(panels.result())


def _title(name: str, component: str) -> str:
    """Return ``"return"``, ``"return[0]"`` or ``"return: speed"`` for a component of the reward called `name`."""
    return f"return{component[len(name) :]}" if component.startswith(name) else f"return: {component}"


def _draw(
    ax: "matplotlib.axes.Axes",
    points: Points,
    chosen: Groups,
    looks: Sequence[_style.Look],
    kwargs: dict[str, Any],
) -> list[Drawn]:
    """Draw one value per episode, group by group; without groups dots, triangles and line differ in colour."""
    if not len(points.values):
        _labels.write_empty(ax)
        return []
    if chosen.of_episode is None:
        return [draw_all(ax, points, kwargs)]
    members = [chosen.of_episode == code for code in range(len(looks))]
    return [
        draw_group(ax, points, mine, Colors(*[look.color] * 3), look.marker, len(looks), kwargs)
        for mine, look in zip(members, looks, strict=True)
    ]


def _write_legend(panels: _figure.Panels, chosen: Groups, drawn: Sequence[Drawn]) -> None:
    """Name the groups, or else dots, triangles and line."""
    num_rest = sum(one.num_rest for one in drawn)
    if chosen.name is None:
        _legend.write_legend(panels, *legend_of_all(drawn[0]))
        return
    handles = [_legend.dot(one.colors.dots, one.marker, line=one.colors.line if one.each else None) for one in drawn]
    labels = _legend.group_labels(chosen, [one.num_complete for one in drawn])
    if num_rest:
        handles.append(_legend.dot(_style.neutral(panels.axes[0]), "^", filled=False))
        labels.append(f"not complete ({num_rest:,})")
    _legend.write_legend(panels, handles, labels, _legend.groups_title(chosen, "complete episodes"))


def _title_lines(result: xr.DataArray, chosen: Groups, drawn: Sequence[Drawn], discount: float | int) -> list[str]:
    """Return what is drawn, and what the lines are where the legend names groups."""
    lines = [f"return and length of {_text.count_text(result.attrs)}"]
    sizes = sorted(one.each for one in drawn if one.each)
    if chosen.name is not None and sizes:
        size = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
        lines.append(f"lines: median of every {size} complete")
    return [*lines, *_legend.left_out(chosen), *([f"discount {discount:g}"] if discount != 1 else [])]


def _label(
    ds: xr.Dataset,
    name: str,
    panels: _figure.Panels,
    result: xr.DataArray,
    along: xr.DataArray,
    titles: list[str],
) -> None:
    """Name the axes."""
    units = [*component_units(ds, name), result[LENGTH].attrs.get("units", "steps")]
    labels = [*titles, result[LENGTH].attrs.get("long_name", "episode length")]
    place = _text.label_of(along)
    for number, ax in enumerate(panels.axes):
        _labels.write_ylabel(panels, ax, _text.with_units(labels[number], units[number]), share=0.9)
        _labels.plain_numbers(ax.yaxis)
        if along.dtype.kind in "iu":
            _labels.plain_numbers(ax.xaxis, whole=True)
        if panels.figure is not None and number < len(panels.axes) - 1:
            ax.sharex(panels.axes[-1])
            ax.tick_params(labelbottom=False)
        else:
            ax.set_xlabel(_text.safe(place))
