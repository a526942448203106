"""Traces of a field over the steps of an episode."""

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr

from trajlab.analysis.common import as_rows, field_of, inner_dims, title_of
from trajlab.analysis.cut import GroupsArgument, Numbers
from trajlab.analysis.groups import Groups, make_groups
from trajlab.analysis.states import DEFAULT_QUANTILES, grouped_trace
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.fields import component_units
from trajlab.dataset.flat import iter_flat
from trajlab.dataset.views import unknown_episode
from trajlab.names import EPISODE, MEAN, NUM_TRANSITIONS_ATTR, QUANTILE, QUANTILES, STD, TIME, N
from trajlab.plot import _legend, _style, _text
from trajlab.plot._alive import draw_alive, mark_lone_steps, split_strip

if TYPE_CHECKING:
    import matplotlib.axes

DEFAULT_EPISODES = 20


def plot_state_trace(
    ds: xr.Dataset,
    field: str,
    *,
    by: str | None = None,
    quantiles: Numbers | Literal[False] | None = DEFAULT_QUANTILES,
    groups: GroupsArgument = None,
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
    ds, field, by, quantiles, groups
        As in `state_trace`. Groups are told apart by colour, and beyond 8 by markers too; the legend gives the
        number of episodes in each.
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
    ds, name = field_of(ds, field, along=by)
    titles = _text.component_titles(ds, name)
    _style.check_panels(ds, name, len(titles))
    chosen = make_groups(ds, by, groups)
    _style.check_groups(ds, chosen)
    singles = _choose_episodes(ds, episodes)
    result = grouped_trace(ds, name, chosen, quantiles)
    panels = _style.make_panels(len(titles), ax, mend=_style.select_mend(ds, name))
    strips = [split_strip(ax_) for ax_ in panels.axes]
    arrays = _arrays(result, by, inner_dims(ds, name), len(titles))
    looks = _style.looks_of(ds, panels, chosen)
    handles: dict[str, Any] = {}
    behind = _single_lines(ds, name, singles, chosen.of_episode, panels, looks)
    for number, ax_ in enumerate(panels.axes):
        ax_.add_collection(behind[number])
        handles = _draw(ax_, result, {key: array[..., number] for key, array in arrays.items()}, looks, kwargs)
        draw_alive(strips[number], result[TIME].values, arrays[N][..., number], by, looks)
    drawn = [key for key in handles if not key.startswith("group ")] if by is not None else []
    _label(ds, name, panels, strips, result, chosen, len(singles), titles, drawn)
    _name_drawn(panels, result, chosen, handles)
    return panels.result()


def _choose_episodes(ds: xr.Dataset, episodes: int | Iterable[int] | Literal[False]) -> np.ndarray:
    """Return positions along `episode` of those to draw singly."""
    total = ds.sizes[EPISODE]
    if isinstance(episodes, int | np.integer):
        if episodes < 0:
            raise ValueError(f"episodes={episodes}; expected how many to draw, a list of their numbers, or False")
        return np.unique(np.linspace(0, total - 1, min(int(episodes), total)).round().astype(np.intp))
    labels = np.asarray(list(episodes), np.int64)
    places = ds.indexes[EPISODE].get_indexer(labels)
    if (places < 0).any():
        raise unknown_episode(int(labels[places < 0][0]), ds[EPISODE].values)
    return places


def _arrays(result: xr.Dataset, by: str | None, inner: tuple[str, ...], components: int) -> dict[str, np.ndarray]:
    """Return mean, std, n (group, time, component) and quantiles (group, quantile, time, component)."""
    lead = [] if by is None else [by]
    out = {}
    for key in (MEAN, STD, N):
        values = result[key].broadcast_like(result[MEAN]).transpose(*lead, TIME, *inner).values
        out[key] = values.reshape(values.shape[0] if lead else 1, result.sizes[TIME], components)
    if QUANTILES in result:
        values = result[QUANTILES].sortby(QUANTILE).transpose(*lead, QUANTILE, TIME, *inner).values
        shape = (values.shape[0] if lead else 1, result.sizes[QUANTILE], result.sizes[TIME], components)
        out[QUANTILES] = values.reshape(shape)
    return out


def _single_lines(
    ds: xr.Dataset,
    name: str,
    which: np.ndarray,
    group: np.ndarray | None,
    panels: _style.Panels,
    looks: Sequence[_style.Look],
) -> list[Any]:
    """Return for each component a collection of single episodes, each in the colour of its group."""
    from matplotlib.collections import LineCollection

    part = ds.isel({EPISODE: which})
    alive = AliveRows.of(part, name)
    found = []
    for batch in iter_flat(part, [name, *alive.needed]):
        rows, dead = as_rows(batch.values[name]).astype(np.float64), alive.missing(batch, batch.values[name].shape)
        found.append((batch.episode, batch.time, rows if dead is None else np.where(dead, np.nan, rows)))
    grey = _style.neutral(panels.axes[0])
    shade: list[Any] = [grey] * len(which)
    if group is not None:
        shade = [looks[code].color if code >= 0 else grey for code in group[which]]
    lines: list[list[np.ndarray]] = [[] for _ in panels.axes]
    if found:
        episode, time, rows = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        order = np.lexsort((time, episode))
        episode, time, rows = episode[order], time[order], rows[order]
        edges = np.searchsorted(episode, np.arange(len(which) + 1))
        for component, segments in enumerate(lines):
            points = np.column_stack([time, rows[:, component]])
            segments += [points[a:b] for a, b in itertools.pairwise(edges)]
    style: dict[str, Any] = {"linewidths": 0.6, "alpha": 0.35, "zorder": 1}
    return [LineCollection(segments, colors=shade or grey, **style) for segments in lines]


def _draw(
    ax: "matplotlib.axes.Axes",
    result: xr.Dataset,
    arrays: dict[str, np.ndarray],
    looks: Sequence[_style.Look],
    kwargs: dict[str, Any],
) -> dict[str, Any]:
    """Draw one component, arrays (group, time, ...); return an artist for each entry of the legend."""
    if not result.attrs[NUM_TRANSITIONS_ATTR]:
        _text.write_empty(ax)
        return {}
    from matplotlib.lines import Line2D

    time = result[TIME].values
    handles: dict[str, Any] = {}
    for group, look in enumerate(looks):
        color = look.color
        mean, std = arrays[MEAN][group], arrays[STD][group]
        bands = arrays[QUANTILES][group] if QUANTILES in arrays else np.stack([mean - std, mean + std])
        pairs = len(bands) // 2
        style = {"color": color, "linewidth": 0, "alpha": 0.2 if len(looks) == 1 else 0.13}
        for pair in range(pairs):
            artist = ax.fill_between(time, bands[pair], bands[-1 - pair], zorder=2, **style)
            handles[_band_name(result, pair)] = artist
        if len(bands) % 2:
            (line,) = ax.plot(time, bands[pairs], color=color, linewidth=1.0, linestyle=(0, (4, 2)), zorder=3)
            handles[_band_name(result, pairs)] = line
        style = {"color": color, "linewidth": 1.8, "zorder": 4}
        if look.marker:
            style |= {"marker": look.marker, "markersize": 4, "markevery": 0.1}
        (line,) = ax.plot(time, mean, **_style.merged(Line2D, style, kwargs))
        handles["mean"] = line
        handles[f"group {group}"] = line
        mark_lone_steps(ax, time, mean, color)
    return handles


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
    panels: _style.Panels,
    strips: Sequence["matplotlib.axes.Axes"],
    result: xr.Dataset,
    chosen: Groups,
    num_singles: int,
    titles: Sequence[str],
    drawn: Sequence[str],
) -> None:
    """Name the axes and write the title, which says what is `drawn` where the legend names groups."""
    title = title_of(ds, name)
    units = component_units(ds, name)
    time = _text.time_label(result[TIME])
    columns = _style.columns_of(len(titles)) if panels.figure is not None else 1
    for number, (ax, strip) in enumerate(zip(panels.axes, strips, strict=True)):
        label = titles[number] if titles[number] != name else title
        _text.write_ylabel(panels, ax, _text.with_units(label, units[number]))
        strip.set_ylabel("n")
        if panels.figure is None or number >= len(titles) - columns:
            strip.set_xlabel(time)
    what = sorted(drawn, key=lambda key: key != "mean")
    singly = [f"{num_singles} drawn singly"] if num_singles else []
    alive = f"n: {result['n'].attrs['long_name']}"
    lines = [f"{title}: {_text.count_text(result.attrs)}", "; ".join([", ".join([*what, *singly]), alive]).lstrip("; ")]
    _text.write_title(panels, lines + _legend.left_out(chosen))


def _name_drawn(panels: _style.Panels, result: xr.Dataset, chosen: Groups, handles: dict[str, Any]) -> None:
    groups = [handles.pop(key) for key in list(handles) if key.startswith("group ")]
    if chosen.name is not None and groups:
        counts, what = _legend.member_counts(
            chosen, result[N].sum([d for d in result[N].dims if d != chosen.name]).values
        )
        _legend.write_legend(panels, groups, _legend.group_labels(chosen, counts), _legend.groups_title(chosen, what))
    elif handles:
        order = sorted(handles, key=lambda key: key != "mean")
        _legend.write_legend(panels, [handles[key] for key in order], order)
