"""Histograms of actions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.action_histogram import grouped_histogram
from trajlab.analysis.common import field_of, inner_dims, title_of
from trajlab.analysis.grouping.cut import GroupsArgument, Numbers
from trajlab.analysis.grouping.groups import make_groups
from trajlab.analysis.labels import LabelsArgument
from trajlab.names import (
    BIN,
    BIN_LEFT,
    BIN_RIGHT,
    COUNT,
    LABEL,
    NUM_TRANSITIONS_ATTR,
    SHARE,
    VALUE,
)
from trajlab.plot import _figure, _labels, _legend, _style, _text

if TYPE_CHECKING:
    import matplotlib.axes

MAX_BARS = 120
"""More bars than this become the outline of all of them."""
MAX_TICKS = 24
"""Up to so many values each has a tick of its own."""
MAX_BESIDE, MIN_LETTERS = 0.45, 12
"""Names beside lying bars take at most this part of the width, or so many letters."""


def plot_action_histogram(
    ds: xr.Dataset,
    field: str = "action",
    *,
    by: str | None = None,
    bins: int | Numbers | None = None,
    labels: LabelsArgument = None,
    groups: GroupsArgument = None,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw `action_histogram`: how often each action was taken, one panel per component.

    Without `by` the height is `count`. With it groups stand side by side in colours, and the height is
    `share`, since groups differ in their number of transitions, which the legend gives. Bars of actions with long
    names lie on their side.

    Parameters
    ----------
    ds, field, by, bins, labels, groups
        As in `action_histogram`.
    ax : Axes or sequence of Axes, optional
        One per component; without, a figure is made.
    **kwargs
        For the main artist: `Axes.bar`, or `Axes.stairs` where there are many bars, or for bins with `by`.

    Returns
    -------
    Axes or array of Axes
        An array, in the order of the components, where there is more than one.

    Raises
    ------
    KeyError, TypeError
        As `action_histogram`.
    ValueError
        As `action_histogram`, and when the field has more than 24 components, or `ax` does not hold one Axes for
        each, or there are more than 24 groups that are no ranges of numbers.
    """
    ds, name = field_of(ds, field, like=np.int64, along=by)
    titles = _text.component_titles(ds, name)
    _figure.check_panels(ds, name, len(titles))
    chosen = make_groups(ds, by, groups)
    _style.check_groups(ds, chosen)
    result = grouped_histogram(ds, name, chosen, bins, labels)
    panels = _figure.make_panels(len(titles), ax, share_y=True, mend=_figure.select_mend(ds, name))
    heights = _heights(result, by, inner_dims(ds, name), len(titles))
    looks = _style.looks_of(ds, panels, chosen)
    along = _text.axis_labels(ds, name)
    handles: list[Any] = []
    for number, ax_ in enumerate(panels.axes):
        handles = _draw(ax_, result, heights[:, number], looks, kwargs, 0.75 if panels.figure is not None else 0.55)
        _label(panels, number, along[number], by)
    counted = f"{result.attrs[NUM_TRANSITIONS_ATTR]:,} transitions of {_text.count_text(result.attrs)}"
    _labels.write_title(
        panels, [f"{title_of(ds, name)}: {counted}", *_text.not_shown(result.attrs), *_legend.left_out(chosen)]
    )
    if by is not None and handles:
        counts = _counted(result, by)
        title = _legend.groups_title(chosen, None if counts is None else "transitions")
        _legend.write_legend(panels, handles, _legend.group_labels(chosen, counts), title)
    return panels.result()


def _heights(result: xr.Dataset, by: str | None, inner: tuple[str, ...], components: int) -> np.ndarray:
    """Return what is drawn, (group, component, place)."""
    drawn = result[COUNT] if by is None else result[SHARE]
    place = drawn.dims[-1]
    lead = [] if by is None else [by]
    values = drawn.transpose(*lead, *inner, place).values
    return values.reshape(values.shape[0] if lead else 1, components, values.shape[-1])


def _counted(result: xr.Dataset, by: str) -> np.ndarray | None:
    """Return how many values each group's shares are of (group,); None where components differ in that."""
    counts = result[COUNT].transpose(by, ...).values.sum(axis=-1)
    counts = counts.reshape(len(counts), -1)
    return counts[:, 0] if counts.shape[1] and (counts == counts[:, :1]).all() else None


def _draw(
    ax: "matplotlib.axes.Axes",
    result: xr.Dataset,
    heights: np.ndarray,
    looks: Sequence[_style.Look],
    kwargs: dict[str, Any],
    share: float,
) -> list[Any]:
    """Draw heights (group, place); return one artist per group. `share` of the Axes' height is left to it."""
    if not result[COUNT].values.any():
        _labels.write_empty(ax, "no values" if result.attrs[NUM_TRANSITIONS_ATTR] else "no episodes")
        return []
    if BIN in result.dims:
        edges = np.append(result[BIN_LEFT].values, result[BIN_RIGHT].values[-1])
        return _draw_outlines(ax, edges, heights, looks, kwargs)
    places, texts = _places(result)
    if (np.diff(places) > 1).any():
        return _draw_needles(ax, places, heights, looks, kwargs)
    if heights.size <= MAX_BARS:
        return _draw_bars(ax, places, heights, looks, texts, kwargs, share)
    if texts is not None:
        _labels.label_ticks(ax, places, texts)
    edges = np.append(places - 0.5, places[-1] + 0.5)
    return _draw_outlines(ax, edges, heights, looks, kwargs)


def _places(result: xr.Dataset) -> tuple[np.ndarray, list[str] | None]:
    """Return where each value stands, and the texts of the ticks where each has its own."""
    values = result[VALUE].values
    if LABEL in result.coords:
        texts = [str(text) for text in result[LABEL].values]
        is_dense = values.dtype.kind in "iu" and not (np.diff(values) != 1).any()
        return values.astype(float) if is_dense else np.arange(float(len(values))), texts
    if values.dtype.kind not in "iub":
        return np.arange(float(len(values))), [str(value) for value in values]
    return values.astype(float), [str(value) for value in values] if len(values) <= MAX_TICKS else None


def _draw_bars(
    ax: "matplotlib.axes.Axes",
    places: np.ndarray,
    heights: np.ndarray,
    looks: Sequence[_style.Look],
    texts: list[str] | None,
    kwargs: dict[str, Any],
    share: float,
) -> list[Any]:
    """Draw bars, groups side by side; lying, from top to bottom, where their names are long."""
    from matplotlib.patches import Rectangle

    sideways = texts is not None and _labels.needs_sideways(ax, texts)
    thick = 0.8 / len(heights)
    across = "height" if sideways else "width"
    artists = []
    for number, (height, look) in enumerate(zip(heights, looks, strict=True)):
        at = places + (number - (len(heights) - 1) / 2) * thick
        style = _style.merged(Rectangle, {"width": thick, **look.fill(ax)}, kwargs)
        style[across] = style.pop("width")
        artists.append((ax.barh if sideways else ax.bar)(at, height, **style))
    if sideways:
        letters = int(MAX_BESIDE * _labels.size_of(ax)[0] / (0.62 * _labels.points_of("ytick.labelsize")))
        names = _labels.broken_rows(ax, texts or (), max(letters, MIN_LETTERS), share)
        ax.set_yticks(places, [_text.safe(name) for name in names])
        if not ax.yaxis_inverted():
            ax.invert_yaxis()
    elif texts is not None:
        _labels.label_ticks(ax, places, texts)
    return artists


def _draw_outlines(
    ax: "matplotlib.axes.Axes",
    edges: np.ndarray,
    heights: np.ndarray,
    looks: Sequence[_style.Look],
    kwargs: dict[str, Any],
) -> list[Any]:
    from matplotlib.patches import StepPatch

    style: dict[str, Any] = {"fill": True} if len(heights) == 1 else {"linewidth": 1.6}
    return [
        ax.stairs(
            np.nan_to_num(height),
            edges,
            **_style.merged(StepPatch, {**style, "color": look.color, "linestyle": look.linestyle}, kwargs),
        )
        for height, look in zip(heights, looks, strict=True)
    ]


def _draw_needles(
    ax: "matplotlib.axes.Axes",
    places: np.ndarray,
    heights: np.ndarray,
    looks: Sequence[_style.Look],
    kwargs: dict[str, Any],
) -> list[Any]:
    """Draw values that are far apart, one line each."""
    from matplotlib.collections import LineCollection

    artists = [
        ax.vlines(
            places,
            0,
            np.nan_to_num(height),
            **_style.merged(
                LineCollection, {"color": look.color, "linewidth": 1.0, "linestyle": look.linestyle}, kwargs
            ),
        )
        for height, look in zip(heights, looks, strict=True)
    ]
    ax.set_ylim(bottom=0)
    return artists


def _label(panels: _figure.Panels, number: int, label: str, by: str | None) -> None:
    """Name both axes of a panel; in a figure of our own all panels share the height, named once a row."""
    ax = panels.axes[number]
    sideways = ax.yaxis_inverted()
    height = ax.xaxis if sideways else ax.yaxis
    if sideways:
        ax.set_ylabel(_text.safe(label))
    else:
        _labels.write_xlabel(ax, label)
    if by is not None:
        _labels.plain_shares(height)
    else:
        _labels.plain_numbers(height, whole=True)
    text = "share of the group's transitions" if by is not None else "transitions"
    if sideways:
        _labels.write_xlabel(ax, text, share=1 - MAX_BESIDE)
        return
    if panels.is_left(number):
        _labels.write_ylabel(panels, ax, text, share=0.95)
