"""Heat maps of how a field is distributed over time or training."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import field_of, inner_dims, title_of
from trajlab.analysis.grouping.cut import GroupsArgument, Numbers
from trajlab.analysis.grouping.training import make_fine_groups
from trajlab.analysis.state_histogram import grouped_state_histogram
from trajlab.names import (
    BIN,
    BIN_LEFT,
    BIN_RIGHT,
    COUNT,
    NUM_TRANSITIONS_ATTR,
    SHARE,
    TIME,
    VALUE,
)
from trajlab.plot import _figure, _labels, _legend, _panels, _style, _text
from trajlab.plot._strip import split_strip
from trajlab.plot._training import Places, draw_bars

if TYPE_CHECKING:
    import matplotlib.axes

MAX_ROWS = 24
"""Up to so many whole numbers each has a tick of its own."""


def plot_state_histogram(
    ds: xr.Dataset,
    field: str,
    *,
    over: str = TIME,
    bins: int | Numbers | None = None,
    groups: GroupsArgument = None,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw `state_histogram` as a heat map: a column for each range, its colour the share of each bin.

    One panel per component, all with the same bins and in one scale of colours, and beneath each how many transitions a
    column has. Where the components' ranges differ, draw one at a time, as in ``ds.isel(obs_dim_0=[2])``. Colours go by
    the square root of the share, so that rare values are seen beside frequent ones. Columns of numbers stand where the
    numbers do and reach to halfway between ranges. One without a value has no colour.

    Parameters
    ----------
    ds, field, over, bins, groups
        As in `state_histogram`.
    ax : Axes or sequence of Axes, optional
        One per component, each of which gives a strip at its bottom to the number of transitions, and room to a
        colour bar; without, a figure is made.
    **kwargs
        For the heat maps: `Axes.pcolormesh`, as ``cmap="magma"``, ``vmax=0.2`` or ``norm="linear"``.

    Returns
    -------
    Axes or array of Axes
        An array, in the order of the components, where there is more than one. The strips and colour bars are
        further Axes of the figure, labelled ``"n"`` and ``"<colorbar>"``.

    Raises
    ------
    KeyError, TypeError
        As `state_histogram`.
    ValueError
        As `state_histogram`, and when the field has more than 24 components, or `ax` does not hold one Axes for each.
    """
    ds, name = field_of(ds, field, along=over)
    titles = _text.component_titles(ds, name)
    _figure.check_panels(ds, name, len(titles))
    chosen = make_fine_groups(ds, over, groups)
    result = grouped_state_histogram(ds, name, chosen, bins)
    panels = _figure.make_panels(len(titles), ax, mend=_figure.select_mend(ds, name))
    strips = [split_strip(ax_) for ax_ in panels.axes]
    places = Places.of(ds, result, chosen, groups)
    place = BIN if BIN in result.dims else VALUE
    counts, shares = (
        _panels.by_component(result[key], chosen, inner_dims(ds, name), (place,)) for key in (COUNT, SHARE)
    )
    for strip, count in zip(strips, counts, strict=True):
        draw_bars(strip, places, count.sum(axis=-1))
    if counts.any():
        _draw(panels, strips, result, shares[:, places.which], places, kwargs)
    else:
        for ax_ in panels.axes:
            _labels.write_empty(ax_, "no values" if result.attrs[NUM_TRANSITIONS_ATTR] else "no episodes")
    for strip in strips:
        places.finish(strip, chosen)
    labels = _text.axis_labels(ds, name)
    _label(panels, strips, labels)
    _panels.write_names(panels, labels, _title_lines(title_of(ds, name), result) + _legend.left_out(chosen))
    return panels.result()


def _draw(
    panels: _figure.Panels,
    strips: list[Any],
    result: xr.Dataset,
    shares: np.ndarray,
    places: Places,
    kwargs: dict[str, Any],
) -> None:
    """Draw shares (panel, place, bin) in one scale of colours, with a bar at the right of each row of panels."""
    from matplotlib.collections import QuadMesh
    from matplotlib.colors import PowerNorm

    given = dict(kwargs)
    if "norm" not in given:  # by their square root, as most shares are far below the largest
        given["norm"] = PowerNorm(0.5, given.pop("vmin", 0), given.pop("vmax", float(np.nanmax(shares))))
    style = _style.merged(QuadMesh, {"cmap": _style.viridis(panels.axes[0]), "rasterized": True}, given)
    along = places.left, places.right
    if places.labels is not None:
        along = places.middle - 0.5, places.middle + 0.5
    columns = np.append(along[0], along[1][-1])
    rows, texts = _rows(result)
    for number, (ax, strip, share) in enumerate(zip(panels.axes, strips, shares, strict=True)):
        image = ax.pcolormesh(columns, rows, np.ma.masked_invalid(share.T), **style)
        ax.grid(visible=False)
        ax.set_ylim(rows[0], rows[-1])
        if texts is not None:
            _labels.label_rows(ax, (rows[:-1] + rows[1:]) / 2, texts)
        else:
            _labels.plain_numbers(ax.yaxis, whole=BIN not in result.dims)
        if (number + 1) % panels.columns == 0 or ax is panels.axes[-1]:
            bar = panels.root.colorbar(image, ax=[ax, strip], label="share")
            if "norm" not in kwargs:
                _labels.plain_shares(bar.ax.yaxis)


def _rows(result: xr.Dataset) -> tuple[np.ndarray, list[str] | None]:
    """Return the edges of rows along y, and what they are called where each has a tick of its own."""
    if BIN in result.dims:
        return np.append(result[BIN_LEFT].values, result[BIN_RIGHT].values[-1]), None
    values = result[VALUE].values
    if values.dtype.kind not in "iu":
        return np.arange(len(values) + 1) - 0.5, [str(value) for value in values]
    edges = np.append(values.astype(np.float64), float(values[-1]) + 1) - 0.5
    return edges, [str(value) for value in values] if len(values) <= MAX_ROWS else None


def _label(panels: _figure.Panels, strips: list[Any], labels: list[str]) -> None:
    """Name the axes of a single panel, or of those at the left and at the bottom of a figure of our own."""
    if len(labels) == 1:
        _labels.write_ylabel(panels, panels.axes[0], labels[0])
    for number, strip in enumerate(strips):
        strip.set_ylabel("n" if panels.is_left(number) else "")
        if not panels.is_bottom(number):
            strip.set_xlabel("")


def _title_lines(title: str, result: xr.Dataset) -> list[str]:
    """Return what is drawn of how many transitions, what the strip is, and what is not shown."""
    counted = f"{result.attrs[NUM_TRANSITIONS_ATTR]:,} transitions of {_text.count_text(result.attrs)}"
    return [f"{title}: {counted}", "n: transitions", *_text.not_shown(result.attrs)]
