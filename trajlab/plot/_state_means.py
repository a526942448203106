"""Means of a continuous action over the bins of a state: lines over one component, maps over two."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import inner_dims
from trajlab.analysis.grouping.groups import Groups
from trajlab.names import MEAN, STD, X_BIN, N
from trajlab.plot import _figure, _grid, _labels, _legend, _panels, _style, _text
from trajlab.plot._strip import draw_counts, split_strip

if TYPE_CHECKING:
    import matplotlib.axes

DIVERGING = "coolwarm"
"""Its middle, a light grey, stands out from bright and dark grounds."""


def draw_lines(
    panels: _figure.Panels, ds: xr.Dataset, name: str, result: xr.Dataset, groups: Groups, kwargs: dict[str, Any]
) -> tuple[list[str], _legend.Entries]:
    """Draw lines of the mean, a band of the deviation and strips, a panel for each component.

    Return lines of a title, and what the legend says.
    Lines are level within a bin, and have gaps where a bin is empty.
    """
    from matplotlib.lines import Line2D

    inner, looks = inner_dims(ds, name), _style.looks_of(ds, panels, groups)
    edges = _grid.edges_of(result, X_BIN)
    along = np.repeat(edges, 2)[1:-1]
    arrays = {
        key: _panels.by_component(result[key].broadcast_like(result[MEAN]), groups, inner, (X_BIN,))
        for key in (MEAN, STD, N)
    }
    labels = _text.axis_labels(ds, name)
    handles: list[Any] = []
    for number, ax in enumerate(panels.axes):
        strip, handles = split_strip(ax), []
        for group, look in enumerate(looks):
            mean, std = (np.repeat(arrays[key][number, group], 2) for key in (MEAN, STD))
            shade = 0.2 if len(looks) == 1 else 0.13
            band = ax.fill_between(along, mean - std, mean + std, color=look.color, alpha=shade, linewidth=0, zorder=2)
            own = {"color": look.color, "linewidth": 1.6, "linestyle": look.linestyle, "zorder": 4}
            handles += ax.plot(along, mean, **_style.merged(Line2D, own, kwargs))
            if groups.name is None:
                handles.append(band)
        draw_counts(strip, edges, arrays[N][number], groups.name is None, looks)
        _labels.write_ylabel(panels, ax, labels[number])
        _grid.label_strip(panels, number, strip, result)
    lines, drawn = [f"n: {result[N].attrs['long_name']}"], ["mean", "± standard deviation"]
    if groups.name is None:
        return lines, _legend.Entries(handles, drawn)
    grey, counts = _style.neutral(panels.axes[0]), arrays[N][0].sum(axis=-1)
    handles += [_legend.line(grey), _legend.band(grey)]
    labels = _legend.group_labels(groups, counts) + drawn
    return lines, _legend.Entries(handles, labels, _legend.groups_title(groups, "n"))


def draw_maps(
    panels: _figure.Panels, ds: xr.Dataset, name: str, result: xr.Dataset, groups: Groups, kwargs: dict[str, Any]
) -> tuple[list[str], None]:
    """Draw maps of the mean, each component in a scale of colours of its own; return lines of a title."""
    from matplotlib.collections import QuadMesh

    inner = inner_dims(ds, name)
    means = np.ma.masked_invalid(_panels.by_panel(result[MEAN], groups, inner, _grid.DIMS))
    counts = _panels.by_panel(result[N].broadcast_like(result[MEAN]), groups, inner, _grid.DIMS)
    labels = _text.axis_labels(ds, name)
    style = _style.merged(QuadMesh, {"rasterized": True}, kwargs)
    for number, ax in enumerate(panels.axes):
        component = number % len(labels)
        same = slice(component, None, len(labels))
        firm = counts[same] >= (1 if "alpha" in kwargs else _grid.FEW)
        mesh = _grid.draw_cells(ax, result, means[number], _scaled(ax, style, means[same], firm))
        is_last = number == len(panels.axes) - 1
        if len(labels) > 1 or is_last:
            has_own = len(labels) > 1
            bar = panels.root.colorbar(mesh, ax=ax if has_own else panels.axes, extend=_beyond(mesh, means[same]))
            _labels.write_bar_label(panels, bar, f"mean of {labels[component]}", of_all=not has_own)
        if "alpha" not in kwargs:
            _grid.fade(mesh, counts[number].T)
    _grid.label_axes(panels, result)
    return _grid.pale_note(counts) if "alpha" not in kwargs else [], None


def _scaled(ax: "matplotlib.axes.Axes", style: dict[str, Any], means: Any, firm: np.ndarray) -> dict[str, Any]:
    """Return keyword arguments with colours that span the means of `firm` cells, of all where none is.

    Where nothing else is asked for and means have both signs, the middle of a diverging map is 0.
    """
    firm = firm & ~np.ma.getmaskarray(means)
    spanned = means[firm] if firm.any() else means
    is_open = not style.keys() & {"cmap", "norm", "vmin", "vmax"}
    if is_open and spanned.count() and spanned.min() < 0 < spanned.max():
        most = float(abs(spanned).max())
        return {"cmap": DIVERGING, "vmin": -most, "vmax": most, **style}
    return _grid.with_scale({"cmap": _style.viridis(ax), **style}, spanned)


def _beyond(mesh: Any, means: Any) -> str:
    """Return at which ends of the colour bar there are means beyond it."""
    low, high = mesh.get_clim()
    is_below, is_above = bool((means < low).any()), bool((means > high).any())
    return "both" if is_below and is_above else "min" if is_below else "max" if is_above else "neither"
