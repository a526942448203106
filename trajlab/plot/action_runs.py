"""Maps of how long each action is repeated."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.action_runs import grouped_runs
from trajlab.analysis.common import field_of, inner_dims, title_of
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import make_groups
from trajlab.analysis.labels import LabelsArgument
from trajlab.names import COUNT, MEAN, NUM_OPEN, NUM_TRANSITIONS_ATTR, RUN_LENGTH, VALUE, N
from trajlab.plot import _figure, _labels, _legend, _panels, _style, _text

if TYPE_CHECKING:
    import matplotlib.axes

ROW = 0.26
"""Inches of an action in a figure of our own."""
WIDTH, PANEL_WIDTH = 6.4, 4.0
"""Inches of a figure with a single panel, and of one of several."""
MAX_ROWS = 20
"""A figure does not grow with more actions than this."""
DOT = (1.5, 5.0)
"""Points of a dot: in narrow rows it is not wider than a row, as far as it then can be seen."""
LONG = 40
"""Where runs are longer than this, lengths stand on a logarithmic scale."""
SHARE_TEXT = "share of runs at least so long"


def plot_action_runs(
    ds: xr.Dataset,
    field: str = "action",
    *,
    by: str | None = None,
    groups: GroupsArgument = None,
    labels: LabelsArgument = None,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw `action_runs`: a row for each action, coloured by the share of its runs that are at least so long.

    A row ends with the longest run; the dot is the mean length. Beside an action stands how many runs it has. Lengths
    stand on a logarithmic scale where there are long ones. One panel for each group and component.

    Parameters
    ----------
    ds, field, by, groups, labels
        As in `action_runs`.
    ax : Axes or sequence of Axes, optional
        One per group and component, all components of a group together; they give room to the colour bar. Without, a
        figure is made.
    **kwargs
        For the maps: `Axes.pcolormesh`, as ``cmap="magma"``, or ``norm="log"`` for the longest runs.

    Returns
    -------
    Axes or array of Axes
        An array, group by group, where there is more than one. The colour bar is a further Axes of the figure,
        labelled ``"<colorbar>"``.

    Raises
    ------
    KeyError, TypeError
        As `action_runs`.
    ValueError
        As `action_runs`, and when there are more than 24 panels, or `ax` does not hold one Axes for each.
    """
    ds, name = field_of(ds, field, like=np.int64, along=by)
    chosen = make_groups(ds, by, groups)
    names = _panels.panel_names(ds, name, chosen) or [name]
    result = grouped_runs(ds, name, chosen, labels)
    size = _size(len(names), result.sizes[VALUE])
    panels = _figure.make_panels(len(names), ax, size=size, mend=_figure.select_mend(ds, name))
    n, num_open, mean, counts = (
        _panels.by_panel(result[key], chosen, inner_dims(ds, name), dims)
        for key, dims in ((N, (VALUE,)), (NUM_OPEN, (VALUE,)), (MEAN, (VALUE,)), (COUNT, (VALUE, RUN_LENGTH)))
    )
    if n.any():
        _draw(panels, result, counts, n, mean, kwargs)
    else:
        for ax_ in panels.axes:
            _labels.write_empty(ax_, "no runs" if result.attrs[NUM_TRANSITIONS_ATTR] else "no episodes")
    lines = _title(title_of(ds, name), result, int(n.sum()), int(num_open.sum()))
    if panels.figure is None and n.any():
        lines.append(f"colour: {SHARE_TEXT}")
    notes = [_text.plural(int(number), "run") for number in n.sum(axis=-1)]
    _panels.write_names(panels, names, lines + _legend.left_out(chosen), notes)
    return panels.result()


def _size(count: int, values: int) -> tuple[float, float]:
    """Return the inches of a figure of so many panels, each with a row for each value."""
    height = max(ROW * min(values, MAX_ROWS), 1.0) + 0.9
    panel, margin = ((WIDTH, height), (0.0, 0.8)) if count == 1 else ((PANEL_WIDTH, height), (0.8, 0.8))
    return _figure.figure_size(count, panel, margin)


def at_least(counts: np.ndarray) -> np.ndarray:
    """Return the share of runs (..., length) that are at least so long, NaN where there are none.

    >>> at_least(np.array([[2, 1, 1], [0, 0, 0]]))
    array([[1.  , 0.5 , 0.25],
           [ nan,  nan,  nan]])
    """
    longer = np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1]
    return np.where(longer > 0, longer, np.nan) / np.maximum(longer[..., :1], 1)


def _draw(
    panels: _figure.Panels,
    result: xr.Dataset,
    counts: np.ndarray,
    n: np.ndarray,
    mean: np.ndarray,
    kwargs: dict[str, Any],
) -> None:
    """Draw counts (panel, value, length), numbers and means (panel, value) in one scale of colours."""
    from matplotlib.collections import QuadMesh

    lengths = result[RUN_LENGTH].values
    edges = np.append(0.5, lengths + 0.5)  # between lengths that were seen the share is that of the longer one
    defaults = {"cmap": _style.viridis(panels.axes[0])} | ({} if "norm" in kwargs else {"vmin": 0, "vmax": 1})
    style = _style.merged(QuadMesh, defaults, kwargs)
    rows = np.arange(result.sizes[VALUE])
    shares = np.ma.masked_invalid(at_least(counts))
    texts = _panels.value_texts(panels.axes[0], result[N])
    maps = []
    for number, ax in enumerate(panels.axes):
        maps.append(ax.pcolormesh(edges, np.append(-0.5, rows + 0.5), shares[number], **style))
        points = float(np.clip(0.8 * _labels.size_of(ax)[1] / len(rows), *DOT))
        dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": points, "color": "white"}
        ax.plot(mean[number], rows, markeredgecolor="black", markeredgewidth=0.16 * points, zorder=3, **dots)
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.grid(visible=False)
        _scale(ax, int(lengths[-1]))
    bar = panels.root.colorbar(maps[0], ax=panels.axes)
    _labels.write_bar_label(panels, bar, "" if panels.figure is None else SHARE_TEXT)
    for number, ax in enumerate(panels.axes):
        is_left = panels.is_left(number)
        _labels.label_rows(
            ax, rows, [f"{text if is_left else ''} ({count:,})" for text, count in zip(texts, n[number], strict=True)]
        )
        if is_left:
            _labels.write_ylabel(panels, ax, _text.label_of(result[VALUE]))
        if panels.is_bottom(number):
            _labels.write_xlabel(ax, _text.label_of(result[RUN_LENGTH]))


def _scale(ax: "matplotlib.axes.Axes", longest: int) -> None:
    """Set the scale of lengths."""
    from matplotlib.ticker import NullFormatter

    if longest > LONG:
        ax.set_xscale("log")
        ax.xaxis.set_minor_formatter(NullFormatter())
    _labels.plain_numbers(ax.xaxis, whole=longest <= LONG)
    ax.set_xlim(0.5, longest + 0.5)


def _title(title: str, result: xr.Dataset, n: int, num_open: int) -> list[str]:
    """Return the lines over the plot."""
    lines = [f"{title}: {_text.plural(n, 'run')} in {_text.count_text(result.attrs)}"]
    if n:
        lines.append("dots: mean length; (n): runs")
    if num_open:
        lines.append(f"{num_open:,} might have gone on")
    return lines + _text.not_shown(result.attrs)
