"""Maps of how often two components have which values together."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.components import components_of
from trajlab.analysis.grid import BinsArgument
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import make_groups
from trajlab.analysis.occupancy import grouped_occupancy
from trajlab.names import COUNT, NUM_TRANSITIONS_ATTR, SHARE
from trajlab.plot import _figure, _grid, _labels, _legend, _panels, _style, _text

if TYPE_CHECKING:
    import matplotlib.axes


def plot_occupancy(
    ds: xr.Dataset,
    x: str,
    y: str,
    *,
    bins: BinsArgument = None,
    by: str | None = None,
    groups: GroupsArgument = None,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw `occupancy` as a map: where the policy is, or which parts of an action go together.

    Without `by` the colour is `count`. With it there is a panel for each group, all in the colours of one bar, and the
    colour is `share`, since groups differ in their number of transitions. Bins without any have the colour of the
    ground. The map is to scale where both components have the same units, or have a bin for each value and no units.

    Parameters
    ----------
    ds, x, y, bins, by, groups
        As in `occupancy`.
    ax : Axes or sequence of Axes, optional
        One per group; they give room to the colour bar. Without, a figure is made.
    **kwargs
        For the maps: `Axes.pcolormesh`, as ``cmap="magma"`` or, where a few bins hold nearly all, ``norm="log"``.

    Returns
    -------
    Axes or array of Axes
        An array where there is more than one. The colour bar is a further Axes of the figure, labelled
        ``"<colorbar>"``.

    Raises
    ------
    KeyError, TypeError
        As `occupancy`.
    ValueError
        As `occupancy`, and when there are more than 24 groups, or `ax` does not hold one Axes for each.
    """
    ds, (first, second) = components_of(ds, [x, y], "occupancy", along=by)
    chosen = make_groups(ds, by, groups)
    names = _panels.group_names(chosen)
    result = grouped_occupancy(ds, (first, second), chosen, bins)
    panels = _figure.make_panels(max(len(names), 1), ax, size=_grid.size_of(max(len(names), 1)))
    drawn = result[COUNT if by is None else SHARE]
    counts, maps = (_panels.by_panel(v, chosen, (), _grid.DIMS) for v in (result[COUNT], drawn))
    lines = [f"occupancy: {_text.count_text(result.attrs)}", *_text.not_shown(result.attrs)]
    if counts.any():
        _draw(panels, result, drawn, np.ma.masked_where(counts == 0, maps), kwargs)
        _grid.label_axes(panels, result)
        if panels.figure is None:
            lines.append(f"colour: {_text.label_of(drawn)}")
    else:
        for ax_ in panels.axes:
            _labels.write_empty(ax_, "no transitions" if result.attrs[NUM_TRANSITIONS_ATTR] else "no episodes")
    totals = [_text.plural(int(count.sum()), "transition") for count in counts]
    if len(names) == 1:
        lines[0] = f"occupancy: {totals[0]} of {_text.count_text(result.attrs)}"
    _panels.write_names(panels, names, lines + _legend.left_out(chosen), totals)
    return panels.result()


def _draw(panels: _figure.Panels, result: xr.Dataset, drawn: xr.DataArray, maps: Any, kwargs: dict[str, Any]) -> None:
    """Draw maps (panel, x, y) of `drawn` in one scale of colours."""
    from matplotlib.collections import QuadMesh

    style = _style.merged(QuadMesh, {"cmap": _style.viridis(panels.axes[0]), "rasterized": True}, kwargs)
    style = _grid.with_scale(style, maps, lowest=0)
    meshes = [_grid.draw_cells(ax, result, values, style) for ax, values in zip(panels.axes, maps, strict=True)]
    bar = panels.root.colorbar(meshes[0], ax=panels.axes)
    _labels.write_bar_label(panels, bar, "" if panels.figure is None else _text.label_of(drawn))
    if "norm" not in kwargs:
        _labels.plain_numbers(bar.ax.yaxis, whole=drawn.name == COUNT)
