"""Traces of a field over the steps of an episode."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import xarray as xr

from trajlab.analysis.alignment.alignments import Alignment
from trajlab.analysis.alignment.argument import (
    AlignArgument,
    WindowArgument,
    choose_alignment,
    trace_groups,
    traced_field,
)
from trajlab.analysis.choice import chosen_places
from trajlab.analysis.common import inner_dims, title_of
from trajlab.analysis.grouping.cut import GroupsArgument, Numbers
from trajlab.analysis.grouping.groups import Groups
from trajlab.analysis.state_trace import DEFAULT_QUANTILES, grouped_trace
from trajlab.dataset.fields import component_units
from trajlab.dataset.windows import as_steps
from trajlab.names import (
    ALIGN_ATTR,
    EPISODE,
    LAG,
    LEFT_OUT_ATTR,
    MEAN,
    NUM_TRANSITIONS_ATTR,
    QUANTILE,
    QUANTILES,
    STD,
    TIME,
    N,
)
from trajlab.plot import _figure, _labels, _legend, _panels, _style, _text
from trajlab.plot._curves import mark_lone_steps
from trajlab.plot._single_episodes import single_lines
from trajlab.plot._strip import draw_alive, split_strip

if TYPE_CHECKING:
    import matplotlib.axes

DEFAULT_EPISODES = 20


class _Drawn(NamedTuple):
    """Artists of one component: the line of each group's mean, and by its name one of each kind."""

    means: list[Any]
    kinds: dict[str, Any]


def plot_state_trace(
    ds: xr.Dataset,
    field: str,
    *,
    by: str | None = None,
    quantiles: Numbers | Literal[False] | None = DEFAULT_QUANTILES,
    groups: GroupsArgument = None,
    align: AlignArgument = "start",
    window: WindowArgument = None,
    parts: int | None = None,
    episodes: int | Iterable[int] | Literal[False] = DEFAULT_EPISODES,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw `state_trace`: the mean at each step, quantiles, and beneath them how many episodes are alive.

    The mean is a line; quantiles are bands from the lowest to the highest, the second lowest to the second
    highest and so on, and a dashed line for the middle one; without quantiles the band is the mean plus and
    minus the standard deviation. Single episodes stand faintly behind. One panel per component.

    Parameters
    ----------
    ds, field, by, quantiles, groups, align, window, parts
        As in `state_trace`. Groups are told apart by colour, and beyond 8 by markers too; the legend gives the
        number of episodes in each, and says in grey what is drawn of each. A vertical line stands at an event, or at
        the last step.
    episodes : int, iterable of int or False
        How many single episodes to draw: evenly spread over all, in their order, whatever their length. Or
        their numbers (labels of `episode`), or False for none.
    ax : Axes or sequence of Axes, optional
        One per component, each of which gives a strip at its bottom to the number of episodes; without, a
        figure is made.
    **kwargs
        For the line of the mean: `Axes.plot`.

    Returns
    -------
    Axes or array of Axes
        An array, in the order of the components, where there is more than one. The strips with the number of
        episodes are further Axes of the figure, labelled ``"n"``.

    Raises
    ------
    KeyError
        As `state_trace`, and when `episodes` names one that is not there.
    TypeError
        As `state_trace`.
    ValueError
        As `state_trace`, and when `episodes` is negative, the field has more than 24 components, or `ax` does not
        hold one Axes for each, or there are more than 24 groups that are no ranges of numbers.
    """
    ds, name = traced_field(ds, field, by)
    titles = _text.component_titles(as_steps(ds), name)
    _figure.check_panels(ds, name, len(titles))
    ds, alignment, attrs = choose_alignment(ds, name, align, window, parts)
    chosen = trace_groups(ds, by, groups)
    _style.check_groups(ds, chosen)
    singles = chosen_places(ds[EPISODE].values, 0 if episodes is False else episodes)
    result = grouped_trace(ds, name, chosen, quantiles, alignment).assign_attrs(attrs)
    panels = _figure.make_panels(len(titles), ax, mend=_figure.select_mend(ds, name))
    strips = [split_strip(ax_) for ax_ in panels.axes]
    arrays = _arrays(result, chosen, alignment, inner_dims(ds, name))
    looks = _style.looks_of(ds, panels, chosen)
    drawn = _Drawn([], {})
    behind = single_lines(ds, name, singles, alignment, chosen.of_episode, panels, looks)
    for number, ax_ in enumerate(panels.axes):
        ax_.add_collection(behind[number])
        mine = {key: array[number] for key, array in arrays.items()}
        drawn = _draw(ax_, result, alignment, mine, looks, kwargs)
        draw_alive(strips[number], alignment.labels, mine[N], by is None, looks, alignment.width)
    _label(ds, name, panels, strips, result, alignment, chosen, titles)
    if drawn.means:
        _legend.write_legend(panels, *_entries(panels.axes[0], result, chosen, drawn, len(singles)))
    return panels.result()


def _arrays(result: xr.Dataset, groups: Groups, alignment: Alignment, inner: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return mean, std, n (component, group, place) and quantiles (component, group, quantile, place)."""
    out = {
        key: _panels.by_component(result[key].broadcast_like(result[MEAN]), groups, inner, (alignment.dim,))
        for key in (MEAN, STD, N)
    }
    if QUANTILES in result:
        bands = result[QUANTILES].sortby(QUANTILE)
        out[QUANTILES] = _panels.by_component(bands, groups, inner, (QUANTILE, alignment.dim))
    return out


def _draw(
    ax: "matplotlib.axes.Axes",
    result: xr.Dataset,
    alignment: Alignment,
    arrays: dict[str, np.ndarray],
    looks: Sequence[_style.Look],
    kwargs: dict[str, Any],
) -> _Drawn:
    """Draw one component, arrays (group, place, ...)."""
    drawn = _Drawn([], {})
    if not result.attrs[NUM_TRANSITIONS_ATTR]:
        _labels.write_empty(ax)
        return drawn
    from matplotlib.lines import Line2D

    time = alignment.labels
    if alignment.dim == LAG:
        ax.axvline(0, color=_style.neutral(ax), linewidth=1.0, zorder=1.5)
    for group, look in enumerate(looks):
        color = look.color
        mean, std = arrays[MEAN][group], arrays[STD][group]
        bands = arrays[QUANTILES][group] if QUANTILES in arrays else np.stack([mean - std, mean + std])
        pairs = len(bands) // 2
        style = {"color": color, "linewidth": 0, "alpha": 0.2 if len(looks) == 1 else 0.13}
        for pair in range(pairs):
            artist = ax.fill_between(time, bands[pair], bands[-1 - pair], zorder=2, **style)
            drawn.kinds[_band_name(result, pair)] = artist
        if len(bands) % 2:
            (line,) = ax.plot(time, bands[pairs], color=color, linewidth=1.0, linestyle=(0, (4, 2)), zorder=3)
            drawn.kinds[_band_name(result, pairs)] = line
        style = {"color": color, "linewidth": 1.8, "zorder": 4}
        if look.marker:
            style |= {"marker": look.marker, "markersize": 4, "markevery": 0.1}
        (line,) = ax.plot(time, mean, **_style.merged(Line2D, style, kwargs))
        drawn.kinds[MEAN] = line
        drawn.means.append(line)
        mark_lone_steps(ax, time, mean, color)
    return drawn


def _band_name(result: xr.Dataset, pair: int) -> str:
    """Return what the band, or the middle line, is called: ``"10–90 %"``, ``"median"``."""
    if QUANTILES not in result:
        return "± standard deviation"
    levels = np.sort(result[QUANTILE].values) * 100
    low, high = levels[pair], levels[-1 - pair]
    if low == high:
        return "median" if low == 50 else f"{low:g} % quantile"
    return f"{low:g}–{high:g} %"


def _label(
    ds: xr.Dataset,
    name: str,
    panels: _figure.Panels,
    strips: Sequence["matplotlib.axes.Axes"],
    result: xr.Dataset,
    alignment: Alignment,
    chosen: Groups,
    titles: Sequence[str],
) -> None:
    """Name the axes and write the title."""
    title = title_of(ds, name)
    units = component_units(ds, name)
    axis = result[alignment.dim]
    label_x = _text.time_label(axis) if alignment.dim == TIME else _text.safe(_text.label_of(axis))
    for number, (ax, strip) in enumerate(zip(panels.axes, strips, strict=True)):
        label = titles[number] if titles[number] != name else title
        _labels.write_ylabel(panels, ax, _text.with_units(label, units[number]))
        strip.set_ylabel("n")
        if panels.is_bottom(number):
            _labels.write_xlabel(strip, label_x)
    lines = [f"{title}: {_text.count_text(result.attrs)}", f"n: {result[N].attrs['long_name']}"]
    _labels.write_title(panels, lines + _left_out(result) + _legend.left_out(chosen))


def _left_out(result: xr.Dataset) -> list[str]:
    """Return a line on the episodes that do not take part, where there are such."""
    number = result.attrs.get(LEFT_OUT_ATTR, 0)
    why = {"end": "cut", "fraction": "not complete", "event": "without the event"}.get(result.attrs.get(ALIGN_ATTR, ""))
    return [f"not shown: {number:,} {why}"] if number else []


def _entries(
    ax: "matplotlib.axes.Axes", result: xr.Dataset, chosen: Groups, drawn: _Drawn, num_singles: int
) -> _legend.Entries:
    """Return what the legend says: the groups, and what is drawn of each; in grey where groups differ in colour."""
    grey = _style.neutral(ax)
    kinds = {key: drawn.kinds[key] for key in sorted(drawn.kinds, key=lambda key: key != MEAN)}
    singles = {_text.plural(num_singles, "single episode"): _legend.line(grey, linewidth=0.6)} if num_singles else {}
    if chosen.name is None:
        return _legend.Entries([*kinds.values(), *singles.values()], [*kinds, *singles])
    from matplotlib.lines import Line2D

    kinds = {
        key: _legend.line(grey, linestyle=artist.get_linestyle(), linewidth=artist.get_linewidth())
        if isinstance(artist, Line2D)
        else _legend.band(grey)
        for key, artist in kinds.items()
    } | singles
    counts, what = _legend.member_counts(chosen, _panels.total_along(result[N], chosen.name))
    labels = [*_legend.group_labels(chosen, counts), *kinds]
    return _legend.Entries([*drawn.means, *kinds.values()], labels, _legend.groups_title(chosen, what))
