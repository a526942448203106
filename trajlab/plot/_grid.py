"""Maps over the bins of two components: cells in colours, their axes and colour bars."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.names import X_BIN, X_BIN_LEFT, X_BIN_RIGHT, Y_BIN, Y_BIN_LEFT, Y_BIN_RIGHT
from trajlab.plot import _figure, _labels, _text

if TYPE_CHECKING:
    import matplotlib.axes

DIMS = (X_BIN, Y_BIN)
SINGLE, PANEL = (6.2, 4.9), (3.9, 3.4)
"""Inches of a figure with a single map, and of one of several."""
MAX_STRETCH = 6.0
"""A map is not drawn to scale where it would be so many times as long as wide."""

FEW, PALE = 10, 0.35
"""Cells whose action, mean or share is of fewer transitions than this are so opaque only."""


def size_of(count: int) -> tuple[float, float]:
    """Return the inches of a figure of so many maps."""
    return _figure.figure_size(count, PANEL, (0.8, 0.6), single=SINGLE)


def edges_of(result: xr.Dataset, dim: str) -> np.ndarray:
    """Return the edges (bin + 1,) along `x_bin` or `y_bin`."""
    left, right = (X_BIN_LEFT, X_BIN_RIGHT) if dim == X_BIN else (Y_BIN_LEFT, Y_BIN_RIGHT)
    return np.append(result[left].values, result[right].values[-1:])


def with_scale(style: Mapping[str, Any], maps: Any, lowest: float | None = None) -> dict[str, Any]:
    """Return keyword arguments with one scale of colours for all maps, from `lowest` on unless a norm is given."""
    norm = style.get("norm")
    if norm is not None and not isinstance(norm, str):
        norm.autoscale_None(maps.compressed())
        return dict(style)
    low = float(maps.min()) if lowest is None or norm is not None else lowest
    return {"vmin": low, "vmax": float(maps.max()), **style}


def draw_cells(ax: "matplotlib.axes.Axes", result: xr.Dataset, values: Any, style: Mapping[str, Any]) -> Any:
    """Draw values (x, y) of cells, those masked in the colour of the ground; return the mesh."""
    mesh = ax.pcolormesh(edges_of(result, X_BIN), edges_of(result, Y_BIN), np.swapaxes(values, 0, 1), **style)
    ax.grid(visible=False)
    return mesh


def fade(artist: Any, counts: np.ndarray) -> None:
    """Make cells of fewer than `FEW` pale; counts (row, column) are as the artist has its values."""
    artist.set_alpha(np.where(counts < FEW, PALE, 1.0))


def pale_note(counts: np.ndarray, what: str = "transitions") -> list[str]:
    """Return what the title says of pale cells, where counts of cells have such."""
    return [f"pale: fewer than {FEW} {what}"] if ((counts > 0) & (counts < FEW)).any() else []


def label_axes(panels: _figure.Panels, result: xr.Dataset) -> None:
    """Name both axes of each map, and draw it to scale where both have the same units."""
    for number, ax in enumerate(panels.axes):
        for dim, axis in ((X_BIN, ax.xaxis), (Y_BIN, ax.yaxis)):
            if result[dim].dtype.kind in "iu":
                _labels.plain_numbers(axis, whole=True)
        if panels.is_left(number):
            _labels.write_ylabel(panels, ax, _text.label_of(result[Y_BIN]))
        if panels.is_bottom(number):
            _labels.write_xlabel(ax, _text.label_of(result[X_BIN]))
        spans = [float(np.ptp(edges_of(result, dim))) if result.sizes[dim] else 1.0 for dim in DIMS]
        units = [result[dim].attrs.get("units", "") for dim in DIMS]
        is_counted = all(result[dim].dtype.kind in "iu" for dim in DIMS)
        if has_same_scale(units, is_counted, spans):
            ax.set_aspect("equal")


def label_strip(panels: _figure.Panels, number: int, strip: "matplotlib.axes.Axes", result: xr.Dataset) -> None:
    """Name both axes of the strip beneath one of several panels over `x_bin`, whose edges are the limits of both."""
    edges = edges_of(result, X_BIN)
    strip.set_xlim(edges[0], edges[-1])
    if result[X_BIN].dtype.kind in "iu":
        _labels.plain_numbers(strip.xaxis, whole=True)
    if panels.is_left(number):
        strip.set_ylabel("n")
    if panels.is_bottom(number):
        _labels.write_xlabel(strip, _text.label_of(result[X_BIN]))


def has_same_scale(units: Sequence[str], is_counted: bool, spans: Sequence[float]) -> bool:
    """Say whether two axes are drawn to one scale: they have the same units, or both count cells, and fit a panel."""
    is_same = units[0] == units[1] and (bool(units[0]) or is_counted)
    return is_same and 0 < max(spans) <= MAX_STRETCH * min(spans)
