"""Survival curves of episode length."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_episode_groups
from trajlab.analysis.survival import check_confidence, grouped_survival
from trajlab.dataset.schema import validate
from trajlab.names import LOWER, MEDIAN, NUM_EPISODES_ATTR, SURVIVAL, TIME, UPPER, N
from trajlab.plot import _figure, _labels, _legend, _style, _text
from trajlab.plot._strip import draw_alive, split_strip

if TYPE_CHECKING:
    import matplotlib.axes


def plot_survival(
    ds: xr.Dataset,
    *,
    by: str | None = None,
    groups: GroupsArgument = None,
    confidence: float = 0.95,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes":
    """Draw `survival`: the share of episodes that last longer than each number of steps, and how many are at risk.

    The line is the estimate, with the median marked where it is reached; the band is its interval.

    Parameters
    ----------
    ds, by, groups, confidence
        As in `survival`. The legend gives the number of episodes in each group.
    ax : Axes, optional
        It gives a strip at its bottom to the number of episodes at risk; without, a figure is made.
    **kwargs
        For the line: `Axes.step`.

    Returns
    -------
    Axes
        The strip is a further Axes of the figure, labelled ``"n"``.

    Raises
    ------
    KeyError, ValueError
        As `survival`; also when there are more than 24 groups that are no ranges of numbers.
    """
    check_confidence(confidence)
    validate(ds)
    chosen = make_episode_groups(ds, by, groups)
    _style.check_groups(ds, chosen)
    result = grouped_survival(ds, chosen, confidence)
    panels = _figure.make_panels(1, ax)
    (ax_,) = panels.axes
    strip = split_strip(ax_)
    ax_.set_ylim(-0.02, 1.02)
    looks = _style.looks_of(ds, panels, chosen)
    time, lead = result[TIME].values, (chosen.size, result.sizes[TIME])
    lines: list[Any] = []
    if result.attrs[NUM_EPISODES_ATTR] and chosen.size:
        curves = {key: result[key].values.reshape(lead) for key in (SURVIVAL, LOWER, UPPER)}
        lines = _draw(ax_, time, curves, result[MEDIAN].values.reshape(chosen.size), looks, kwargs)
    else:
        _labels.write_empty(ax_)
    draw_alive(strip, time, result[N].values.reshape(lead), by is None, looks)
    _label(panels, strip, result, chosen)
    if lines:
        _legend.write_legend(panels, *_entries(panels, chosen, lines, result, confidence))
    return ax_


def _draw(
    ax: "matplotlib.axes.Axes",
    time: np.ndarray,
    curves: dict[str, np.ndarray],
    median: np.ndarray,
    looks: Sequence[_style.Look],
    kwargs: dict[str, Any],
) -> list[Any]:
    """Draw curves (group, time), and a dot at each median; return the lines."""
    from matplotlib.lines import Line2D

    lines = []
    for group, look in enumerate(looks):
        low, high = curves[LOWER][group], curves[UPPER][group]
        ax.fill_between(time, low, high, step="post", color=look.color, alpha=0.18, linewidth=0, zorder=2)
        style = _style.merged(Line2D, {"color": look.color, "linewidth": 1.8, "linestyle": look.linestyle}, kwargs)
        lines += ax.step(time, curves[SURVIVAL][group], where="post", zorder=4, **style)
        if np.isfinite(median[group]):
            ax.plot(median[group], 0.5, color=look.color, linestyle="none", marker="o", markersize=5, zorder=5)
    return lines


def _entries(
    panels: _figure.Panels, chosen: Groups, lines: Sequence[Any], result: xr.Dataset, confidence: float
) -> _legend.Entries:
    """Return what the legend says: groups, with the number of their episodes and their median; and what is drawn."""
    medians = result[MEDIAN].values.reshape(-1)
    interval = f"{100 * confidence:g} % interval"
    if chosen.name is None:
        color = lines[0].get_color()
        mark = _legend.dot(color) if np.isfinite(medians[0]) else _legend.line("none")
        return _legend.Entries([lines[0], _legend.band(color), mark], ["estimate", interval, _median_text(medians[0])])
    labels = _legend.group_labels(chosen, result[N].isel({TIME: 0}).values)
    if panels.figure is not None:  # Axes given are narrow
        labels = [f"{label}: {_median_text(value)}" for label, value in zip(labels, medians, strict=True)]
    grey = _style.neutral(panels.axes[0])
    drawn = {interval: _legend.band(grey)} | ({MEDIAN: _legend.dot(grey)} if np.isfinite(medians).any() else {})
    title = _legend.groups_title(chosen, "episodes")
    return _legend.Entries([*lines, *drawn.values()], [*labels, *drawn], title)


def _median_text(value: float) -> str:
    return f"median {value:,.0f}" if np.isfinite(value) else "median not reached"


def _label(panels: _figure.Panels, strip: "matplotlib.axes.Axes", result: xr.Dataset, chosen: Groups) -> None:
    (ax,) = panels.axes
    if result.attrs[NUM_EPISODES_ATTR]:
        ax.set_yticks(np.linspace(0, 1, 6 if panels.figure is not None else 3))  # a legend may stand above the highest
    _labels.write_ylabel(panels, ax, "share of episodes still alive")
    strip.set_ylabel("n")
    _labels.write_xlabel(strip, _text.label_of(result[TIME]))
    lines = [f"survival of {_text.count_text(result.attrs)}", "n: episodes at risk"]
    _labels.write_title(panels, lines + _text.unseen_starts(result.attrs) + _legend.left_out(chosen))
