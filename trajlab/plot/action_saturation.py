"""Shares of actions at their bounds, stacked."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.action_saturation import Limits, grouped_saturation, saturation_fields
from trajlab.analysis.bounds import PerComponent
from trajlab.analysis.common import inner_dims, title_of
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_groups
from trajlab.names import (
    CLIPPED,
    COUNT,
    EXECUTED_ATTR,
    HIGH,
    HIGH_ATTR,
    LOW,
    LOW_ATTR,
    NUM_TRANSITIONS_ATTR,
    SHARE,
    SIDE,
    SIDES,
    TOLERANCE_ATTR,
)
from trajlab.plot import _figure, _labels, _legend, _panels, _style, _text

if TYPE_CHECKING:
    import matplotlib.axes

WIDTH = 0.8
"""Of a bar, where the next one is 1 apart."""
COLORS = {LOW: 0, HIGH: 5, CLIPPED: 2}
"""Which colours of the cycle bars have; those of what is inside are grey."""


def plot_action_saturation(
    ds: xr.Dataset,
    field: str = "action",
    *,
    low: PerComponent | None = None,
    high: PerComponent | None = None,
    tolerance: PerComponent = 0.0,
    executed: str | None = None,
    by: str | None = None,
    groups: GroupsArgument = None,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw `action_saturation`: how often an action is at its low bound, inside, and at its high bound, stacked.

    Without `by` there is a bar for each component. With it each component has a panel, and each group a bar. With
    `executed` a diamond stands at `clipped`, or where there are no bounds a bar of its own. `mean_difference`, in other
    units, is not drawn.

    Parameters
    ----------
    ds, field, low, high, tolerance, executed, by, groups
        As in `action_saturation`. The names of groups come with the number of transitions, where there are bounds.
    ax : Axes or sequence of Axes, optional
        One, or with `by` one per component; without, a figure is made.
    **kwargs
        For the bars: `Axes.bar`.

    Returns
    -------
    Axes or array of Axes
        An array, in the order of the components, where there is more than one.

    Raises
    ------
    KeyError, TypeError
        As `action_saturation`.
    ValueError
        As `action_saturation`, and when with `by` the field has more than 24 components, or `ax` does not hold as many
        Axes as there are panels.
    """
    ds, name, other = saturation_fields(ds, field, executed, by)
    chosen = make_groups(ds, by, groups)
    titles = _text.component_titles(ds, name)
    if by is not None:
        _figure.check_panels(ds, name, len(titles))
    result = grouped_saturation(ds, name, chosen, Limits(low, high, tolerance), other)
    panels = _figure.make_panels(len(titles) if by is not None else 1, ax, mend=_figure.select_mend(ds, name))
    bars, counts = _bars(result, chosen, inner_dims(ds, name))
    handles: dict[str, Any] = {}
    for number, ax_ in enumerate(panels.axes):
        shares = {key: values[number] for key, values in bars.items()}
        if not any(np.isfinite(values).any() for values in shares.values()):
            _labels.write_empty(ax_, "no values" if result.attrs[NUM_TRANSITIONS_ATTR] else "no episodes")
            continue
        totals = None if counts is None else counts[number].sum(axis=-1)
        handles = _draw(ax_, titles if by is None else _legend.group_labels(chosen, totals), shares, kwargs)
        what = None if counts is None else "transitions"
        _label(panels, number, title_of(ds, name) if by is None else _legend.groups_title(chosen, what))
    _panels.write_names(panels, titles, _title_lines(title_of(ds, name), result, chosen))
    if handles:
        texts = {key: key for key in handles} | {CLIPPED: f"other than {result.attrs.get('executed')}"}
        if counts is not None and panels.figure is not None and len(titles) == 1:  # Axes given are narrow
            total = counts.sum(axis=tuple(range(counts.ndim - 1)))
            texts |= {side: f"{side} ({number:,})" for side, number in zip(SIDES, total, strict=True)}
        _legend.write_legend(panels, [*handles.values()], [texts[key] for key in handles])
    return panels.result()


def _bars(
    result: xr.Dataset, groups: Groups, inner: tuple[str, ...]
) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
    """Return the shares (panel, bar) of each side, as far as they are known, and of what was clipped; and the counts.

    These are (panel, bar, side), None where there are no bounds.
    """

    def bars(key: str, last: tuple[str, ...]) -> np.ndarray:
        values = _panels.by_component(result[key], groups, inner, last)
        return values if groups.dims else values.swapaxes(0, 1)  # without groups each component is a bar

    counts = bars(COUNT, (SIDE,)) if COUNT in result else None
    shares = {} if counts is None else dict(zip(SIDES, np.moveaxis(bars(SHARE, (SIDE,)), -1, 0), strict=True))
    return shares | ({CLIPPED: bars(CLIPPED, ())} if CLIPPED in result else {}), counts


def _draw(
    ax: "matplotlib.axes.Axes", names: list[str], shares: dict[str, np.ndarray], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Draw shares (bar,) one on the other, sideways where names are long, and what was clipped; return the artists."""
    from matplotlib.patches import Rectangle

    beside = 0.62 * _labels.points_of("ytick.labelsize") * max(map(len, names))
    sideways = _labels.needs_sideways(ax, names) and beside < 0.6 * _labels.size_of(ax)[0]
    places, below = np.arange(len(names)), np.zeros(len(names))
    marks = shares.get(CLIPPED) if len(shares) > 1 else None
    handles: dict[str, Any] = {}
    for side, share in shares.items():
        if share is marks:
            continue
        height, inside = np.nan_to_num(share), side not in COLORS
        look = {"color": _style.neutral(ax), "alpha": 0.25} if inside else {"color": _style.cycle(ax)[COLORS[side]]}
        style = _style.merged(Rectangle, {"width": WIDTH, "linewidth": 0, **look}, kwargs)
        if sideways:
            handles[side] = ax.barh(places, height, height=style.pop("width"), left=below, **style)
        else:
            handles[side] = ax.bar(places, height, bottom=below, **style)
        below = below + height
    if marks is not None:
        style = {"color": ax.xaxis.label.get_color(), "markeredgecolor": ax.get_facecolor(), "markersize": 7}
        at = (marks, places) if sideways else (places, marks)
        (handles[CLIPPED],) = ax.plot(*at, linestyle="none", marker="D", zorder=4, clip_on=False, **style)
    ends = -0.5 - (1 - WIDTH) / 2, len(names) - 0.5 + (1 - WIDTH) / 2
    if sideways:
        ax.set_ylim(*ends[::-1])
        _labels.label_rows(ax, places, names)
    else:
        ax.set_xlim(*ends)
        _labels.label_ticks(ax, places, _labels.broken_labels(ax, names))
    return handles


def _label(panels: _figure.Panels, number: int, label: str) -> None:
    """Name both axes of a panel; in a figure of our own those at its left and at its bottom."""
    ax = panels.axes[number]
    sideways = ax.yaxis_inverted()
    along: Any = ax.xaxis if sideways else ax.yaxis
    (ax.set_xlim if sideways else ax.set_ylim)(0, 1)
    along.set_ticks(np.linspace(0, 1, 5) if panels.figure is not None else [0, 0.5, 1])
    _labels.plain_shares(along)
    share = "share of transitions"
    if panels.is_left(number):
        _labels.write_ylabel(panels, ax, label if sideways else share)
    if panels.is_bottom(number):
        _labels.write_xlabel(ax, share if sideways else label)


def _title_lines(title: str, result: xr.Dataset, chosen: Groups) -> list[str]:
    """Return what is drawn, between which bounds, of how many transitions."""
    low, high, tolerance = (result.attrs.get(key) for key in (LOW_ATTR, HIGH_ATTR, TOLERANCE_ATTR))
    bounds = f"its bounds {low:g} and {high:g}" if isinstance(low, float) and isinstance(high, float) else "its bounds"
    what = f"{title} at {bounds}" if COUNT in result else f"{title} other than {result.attrs[EXECUTED_ATTR]}"
    lines = [
        what + (f", within {tolerance:g}" if isinstance(tolerance, float) and tolerance else ""),
        f"{result.attrs[NUM_TRANSITIONS_ATTR]:,} transitions of {_text.count_text(result.attrs)}",
    ]
    return lines + _text.not_shown(result.attrs) + _legend.left_out(chosen)
