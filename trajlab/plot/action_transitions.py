"""Matrices of how often one action follows another."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.action_transitions import grouped_transitions
from trajlab.analysis.common import field_of, inner_dims, title_of
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import make_groups
from trajlab.analysis.labels import LabelsArgument
from trajlab.names import COUNT, NEXT_VALUE, NUM_TRANSITIONS_ATTR, PROBABILITY, VALUE
from trajlab.plot import _figure, _grid, _labels, _legend, _panels, _style, _text

if TYPE_CHECKING:
    import matplotlib.axes

SINGLE, PANEL = (6.0, 4.9), (4.0, 3.5)
"""Inches of a figure with a single matrix, and of one of several."""
SMALLEST, LARGEST = 5.5, 9.0
"""Points of numbers in cells: where there is room for smaller ones only, none are written."""


def plot_action_transitions(
    ds: xr.Dataset,
    field: str = "action",
    *,
    by: str | None = None,
    groups: GroupsArgument = None,
    labels: LabelsArgument = None,
    normalize: bool = True,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw `action_transitions` as a matrix: a row for each action, a column for the next one.

    One panel for each group and component, all in the colours of one bar. Where there is room the numbers stand in
    the cells. Rows of probabilities of fewer than 10 pairs are pale, and that of an action that nothing followed has
    the colour of the ground: it has none.

    Parameters
    ----------
    ds, field, by, groups, labels
        As in `action_transitions`.
    normalize : bool
        Draw `probability`, so that rows sum to 1; else `count`.
    ax : Axes or sequence of Axes, optional
        One per group and component, all components of a group together; they give room to the colour bar. Without, a
        figure is made.
    **kwargs
        For the matrices: `Axes.imshow`, as ``cmap="magma"`` or ``norm="log"``.

    Returns
    -------
    Axes or array of Axes
        An array, group by group, where there is more than one. The colour bar is a further Axes of the figure,
        labelled ``"<colorbar>"``.

    Raises
    ------
    KeyError, TypeError
        As `action_transitions`.
    ValueError
        As `action_transitions`, and when there are more than 24 panels, or `ax` does not hold one Axes for each.
    """
    ds, name = field_of(ds, field, like=np.int64, along=by)
    chosen = make_groups(ds, by, groups)
    names = _panels.panel_names(ds, name, chosen) or [name]
    result = grouped_transitions(ds, name, chosen, labels)
    size = _figure.figure_size(len(names), PANEL, (0.8, 0.6), single=SINGLE)
    panels = _figure.make_panels(len(names), ax, size=size, mend=_figure.select_mend(ds, name))
    drawn = result[PROBABILITY if normalize else COUNT]
    counts, matrices = (
        _panels.by_panel(variable, chosen, inner_dims(ds, name), (VALUE, NEXT_VALUE))
        for variable in (result[COUNT], drawn)
    )
    if counts.any():
        is_faded = normalize and "alpha" not in kwargs
        _draw(panels, matrices, drawn, counts.sum(axis=-1) if is_faded else None, kwargs)
    else:
        for ax_ in panels.axes:
            _labels.write_empty(ax_, "no pairs" if result.attrs[NUM_TRANSITIONS_ATTR] else "no episodes")
    pairs = counts.sum(axis=(-2, -1)).tolist()
    lines = _title(title_of(ds, name), result, pairs)
    if counts.any() and normalize:
        lines += _notes(counts.sum(axis=-1), "alpha" not in kwargs)
    lines += _text.not_shown(result.attrs) + _legend.left_out(chosen)
    if panels.figure is None and counts.any():
        lines.append(f"colour: {_text.label_of(drawn)}")
    _panels.write_names(panels, names, lines, [_text.plural(count, "pair") for count in pairs])
    return panels.result()


def _draw(
    panels: _figure.Panels, matrices: np.ndarray, drawn: xr.DataArray, pairs: np.ndarray | None, kwargs: dict[str, Any]
) -> None:
    """Draw matrices (panel, value, next value) of `drawn` in one scale of colours, and name rows and columns.

    Where the number of pairs (panel, value) is given, rows of few are pale.
    """
    from matplotlib.image import AxesImage

    defaults: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest", "origin": "upper"}
    defaults["cmap"] = _style.viridis(panels.axes[0])
    if "norm" not in kwargs:
        defaults |= {"vmin": 0, "vmax": float(np.nanmax(matrices))}
    style = _style.merged(AxesImage, defaults, kwargs)
    texts = _panels.value_texts(panels.axes[0], drawn)
    places = np.arange(len(texts))
    images = []
    for ax, matrix in zip(panels.axes, matrices, strict=True):
        images.append(ax.imshow(matrix, **style))
        ax.grid(visible=False)
    bar = panels.root.colorbar(images[0], ax=panels.axes)
    _labels.write_bar_label(panels, bar, "" if panels.figure is None else _text.label_of(drawn))
    if "norm" not in kwargs:
        _labels.plain_numbers(bar.ax.yaxis)
    if pairs is not None:
        for image, count in zip(images, pairs, strict=True):
            _grid.fade(image, np.broadcast_to(count[:, np.newaxis], matrices.shape[1:]))
    _label(panels, drawn, places, texts)
    for ax, image in zip(panels.axes, images, strict=True):
        _write_numbers(ax, image, "{:,.0f}" if drawn.dtype.kind == "i" else "{:.2f}")


def _label(panels: _figure.Panels, drawn: xr.DataArray, places: np.ndarray, texts: list[str]) -> None:
    """Name rows and columns; in a figure of our own those of the panels at its left and at its bottom."""
    for number, ax in enumerate(panels.axes):
        _labels.label_ticks(ax, places, texts)
        _labels.label_rows(ax, places, texts)
        if panels.is_left(number):
            _labels.write_ylabel(panels, ax, _text.label_of(drawn[VALUE]))
        else:
            ax.tick_params(labelleft=False)
        if panels.is_bottom(number):
            _labels.write_xlabel(ax, _text.label_of(drawn[NEXT_VALUE]))
        else:
            ax.tick_params(labelbottom=False)


def _write_numbers(ax: "matplotlib.axes.Axes", image: Any, form: str) -> None:
    """Write the numbers of a matrix into its cells, each in the form given, where there is room."""
    matrix = np.ma.filled(image.get_array().astype(float), np.nan)
    texts = [[form.format(number) for number in row] for row in matrix]
    longest = max(len(text) for row in texts for text in row)
    width, height = _labels.size_of(ax)
    points = min(0.85 * width / matrix.shape[1] / (0.62 * longest), 0.6 * height / matrix.shape[0], LARGEST)
    if points < SMALLEST:
        return
    colors = image.to_rgba(matrix, alpha=image.get_alpha())
    bright = (colors[..., 3:] * colors[..., :3] + (1 - colors[..., 3:]) * _style.ground_of(ax)) @ _style.BRIGHTNESS
    for row, column in zip(*np.nonzero(np.isfinite(matrix)), strict=True):
        style = {
            "color": "black" if bright[row, column] > 0.5 else "white",
            "fontsize": points,
            "ha": "center",
            "va": "center",
        }
        ax.text(column, row, texts[row][column], **style)


def _title(title: str, result: xr.Dataset, pairs: list[int]) -> list[str]:
    """Return what is drawn, and of how many pairs and episodes."""
    counted = f"{_text.plural(pairs[0], 'pair')} in" if len(pairs) == 1 else "pairs in"
    return [f"{title} and the next one: {counted} {_text.count_text(result.attrs)}"]


def _notes(pairs: np.ndarray, is_faded: bool) -> list[str]:
    """Return what the title says of rows (panel, value) of few pairs, and of none."""
    notes = _grid.pale_note(pairs, "pairs") if is_faded else []
    notes += [] if pairs.all() else ["no colour: nothing followed"]
    return ["; ".join(notes)] if notes else []
