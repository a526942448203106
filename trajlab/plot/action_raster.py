"""Images of the actions of all episodes: a row for each episode, a column for each step."""

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.action_raster import order_of, raster_attrs
from trajlab.analysis.common import field_of, title_of
from trajlab.analysis.labels import LabelsArgument, check_labels
from trajlab.dataset.fields import component_units
from trajlab.names import EPISODE, LENGTH, TIME
from trajlab.plot import _figure, _labels, _legend, _panels, _style, _text
from trajlab.plot._pixels import MAX_NAMED, Pixels, Thin, ordinal, read_pixels, thinned

if TYPE_CHECKING:
    import matplotlib.axes

MAX_COLORS = 8
"""Up to so many values have a colour and a name in a legend each; more stand along a colour bar."""
LETTERS = 24
"""Longer names beside a colour bar lose their middle."""
PANEL = (4.0, 3.0)
"""Inches of one of several panels."""


def plot_action_raster(
    ds: xr.Dataset,
    field: str = "action",
    *,
    sort: str | None = LENGTH,
    episodes: int | Iterable[int] | None = None,
    labels: LabelsArgument = None,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw `action_raster` as an image: a row for each episode, from top to bottom in its order, coloured by action.

    Up to 8 actions have a colour each, named by a legend; more actions, and continuous fields, stand along a colour
    bar. Beside the rows stands what they are sorted by. What is no transition, is NaN, or belongs to an agent that is
    done has the colour of the ground. One panel per component.

    Where there are more episodes, or steps, than the image has pixels, every so many-th is drawn, and the title says
    so; no other is read.

    Parameters
    ----------
    ds, field, sort, episodes, labels
        As in `action_raster`. The field holds bools, text or numbers.
    ax : Axes or sequence of Axes, optional
        One per component; without, a figure is made.
    **kwargs
        For the images: `Axes.imshow`, as ``cmap="magma"``.

    Returns
    -------
    Axes or array of Axes
        An array, in the order of the components, where there is more than one. A colour bar is a further Axes of the
        figure, labelled ``"<colorbar>"``.

    Raises
    ------
    KeyError
        As `action_raster`.
    TypeError
        As `action_raster`, and when the field holds neither numbers nor text.
    ValueError
        As `action_raster`; when the field has more than 24 components, `ax` does not hold one Axes for each, or
        `labels` do not fit it.
    """
    ds, name = field_of(ds, field, like=np.int64, along=sort)
    titles = _text.component_titles(ds, name)
    _figure.check_panels(ds, name, len(titles))
    names = check_labels(labels)
    order, key = order_of(ds, sort, episodes)
    size = _figure.figure_size(len(titles), PANEL, (0.0, 0.9), single=_figure.SINGLE)
    panels = _figure.make_panels(len(titles), ax, size=size, mend=_figure.select_mend(ds, name))
    thin = thinned(ds, name, order, panels.axes[0])
    pixels = read_pixels(thin.ds, name, names)
    entries: _legend.Entries | None = None
    if np.isfinite(pixels.image).any():
        entries = _draw(panels, ds, name, pixels, _extent(thin), kwargs)
    else:
        for ax_ in panels.axes:
            _labels.write_empty(ax_)
    _label(panels, thin.ds[TIME], key[order])
    lines = [f"{title_of(ds, name)}: {thin.rows_text(_text.count_text(raster_attrs(ds, name, order, sort)))}"]
    notes = [] if sort is None else [f"sorted by {_text.label_of(key.assign_attrs(units=None))}"]
    notes += [f"every {ordinal(thin.steps)} step"] if thin.steps > 1 else []
    lines += ["; ".join(notes)] if notes else []
    lines += [f"not shown: {pixels.num_nan:,} NaN"] if pixels.num_nan else []
    _panels.write_names(panels, titles, lines)
    if entries is not None:
        _legend.write_legend(panels, *entries)
    return panels.result()


def _is_even(time: np.ndarray) -> bool:
    """Say whether steps are as far from each other everywhere."""
    return len(np.unique(np.diff(time))) <= 1


def _extent(thin: Thin) -> tuple[float, float, float, float]:
    """Return where an image lies: along x at its steps, or where they are not evenly spaced at their places."""
    time = thin.ds[TIME].values if _is_even(thin.ds[TIME].values) else np.arange(thin.ds.sizes[TIME])
    each = time[1] - time[0] if len(time) > 1 else 1
    return float(time[0]) - 0.5, float(time[-1] + each) - 0.5, thin.ds.sizes[EPISODE] * thin.rows - 0.5, -0.5


def _draw(
    panels: _figure.Panels,
    ds: xr.Dataset,
    name: str,
    pixels: Pixels,
    extent: tuple[float, float, float, float],
    kwargs: dict[str, Any],
) -> _legend.Entries | None:
    """Draw an image for each component, and colour bars; or return what a legend says in their place."""
    from matplotlib.image import AxesImage

    style: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest", "origin": "upper", "extent": extent}
    style |= _colors(panels.axes[0], pixels.texts, kwargs)
    style = _style.merged(AxesImage, style, {key: value for key, value in kwargs.items() if key != "cmap"})
    images = []
    for number, ax in enumerate(panels.axes):
        images.append(ax.imshow(np.ma.masked_invalid(pixels.image[..., number]), **style))
        ax.grid(visible=False)
    if pixels.texts is not None:
        return _name_values(panels, images[0], pixels.texts, title_of(ds, name))
    for ax, image, units in zip(panels.axes, images, component_units(ds, name), strict=True):
        label = _text.with_units(title_of(ds, name), units)
        bar = panels.root.colorbar(image, ax=ax)
        _labels.write_bar_label(panels, bar, "" if panels.figure is None else label, of_all=False)
        _labels.plain_numbers(bar.ax.yaxis)
    return None


def _colors(ax: "matplotlib.axes.Axes", texts: list[str] | None, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return colour map and scale: of numbers, or of places among values with these names."""
    import matplotlib
    from matplotlib.colors import BoundaryNorm, ListedColormap

    given: Any = kwargs.get("cmap")
    if given is None and texts is not None and len(texts) <= MAX_COLORS:
        given = ListedColormap(_style.cycle(ax)[: len(texts)])
    given = _style.viridis(ax) if given is None else given
    cmap = matplotlib.colormaps[given] if isinstance(given, str) else given
    return (
        {"cmap": cmap}
        if texts is None
        else {"cmap": cmap, "norm": BoundaryNorm(np.arange(len(texts) + 1) - 0.5, cmap.N)}
    )


def _name_values(panels: _figure.Panels, image: Any, texts: list[str], title: str) -> _legend.Entries | None:
    """Return what a legend says of the colours of values, or where these are many name them along a colour bar."""
    from matplotlib.patches import Patch

    if len(texts) <= MAX_COLORS:
        colors = image.cmap(image.norm(np.arange(len(texts))))
        return _legend.Entries([Patch(color=color) for color in colors], texts, title)
    step = -(-len(texts) // MAX_NAMED)
    bar = panels.root.colorbar(image, ax=panels.axes, ticks=np.arange(0, len(texts), step))
    _labels.write_bar_label(panels, bar, "" if panels.figure is None else title)
    bar.ax.set_yticklabels([_text.safe(text) for text in _text.told_apart(texts, LETTERS)[::step]])
    bar.ax.minorticks_off()
    return None


def _label(panels: _figure.Panels, time: xr.DataArray, key: xr.DataArray) -> None:
    """Name steps, and rows by what they are sorted by."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    rows = [_key_text(value) for value in key.values.tolist()]
    steps = [] if _is_even(time.values) else [f"{step:,}" for step in time.values.tolist()]
    for number, ax in enumerate(panels.axes):
        for axis, texts in ((ax.xaxis, steps), (ax.yaxis, rows)):
            _labels.plain_numbers(axis, whole=True)
            if texts:
                axis.set_major_formatter(FuncFormatter(functools.partial(_text_at, texts)))
        ax.yaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
        if panels.is_left(number):
            _labels.write_ylabel(panels, ax, _text.label_of(key))
        if panels.is_bottom(number):
            _labels.write_xlabel(ax, _text.time_label(time))


def _key_text(value: Any) -> str:
    """Return a value beside a row as a text."""
    return _text.safe(
        f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
    )


def _text_at(texts: list[str], place: float, _: int) -> str:
    """Return the text that stands at a place, nothing where there is none."""
    return texts[round(place)] if 0 <= round(place) < len(texts) and place == round(place) else ""
