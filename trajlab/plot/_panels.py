"""Panels for each group and component: what they are called, and what is drawn in each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from trajlab.analysis.grouping.groups import Groups
from trajlab.names import LABEL, VALUE
from trajlab.plot import _figure, _labels, _legend, _text

if TYPE_CHECKING:
    import matplotlib.axes

LETTERS = (7, 24)
"""Longer names of values lose their middle: the first in narrow Axes, the second in wide ones."""


def group_names(groups: Groups) -> list[str]:
    """Return a name for the panel of each group.

    Raises
    ------
    ValueError
        When there are more of them than a figure has room for.
    """
    if groups.name is None:
        return [""]
    if groups.size > _figure.MAX_PANELS:
        some = [label.item() for label in groups.labels[:2]]
        raise ValueError(
            f"by={groups.name!r} has {groups.size} groups, one panel each; at most {_figure.MAX_PANELS} are drawn. "
            f"Choose or join groups, as in groups={{'some': {some!r}}}"
        )
    title = _legend.groups_title(groups)
    return [f"{title}: {label}" for label in _legend.group_labels(groups)]


def panel_names(ds: xr.Dataset, field: str, groups: Groups) -> list[str]:
    """Return a name for each group and component of a field, all components of a group together.

    Raises
    ------
    ValueError
        When there are more of them than a figure has room for.
    """
    components = _text.component_titles(ds, field)
    _figure.check_panels(ds, field, len(components))
    if groups.name is None:
        return components
    count = groups.size * len(components)
    if count > _figure.MAX_PANELS:
        some = [label.item() for label in groups.labels[:2]]
        raise ValueError(
            f"by={groups.name!r} has {groups.size} groups, and {field!r} {len(components)} components: {count} panels; "
            f"at most {_figure.MAX_PANELS} are drawn. Choose or join groups, as in groups={{'some': {some!r}}}"
        )
    labels = group_names(groups)
    return [f"{label}, {name}" if len(components) > 1 else label for label in labels for name in components]


def total_along(variable: xr.DataArray, dim: str) -> np.ndarray:
    """Return the sums of a variable along one of its dims, over all others."""
    return variable.sum([other for other in variable.dims if other != dim]).values


def by_panel(variable: xr.DataArray, groups: Groups, inner: Sequence[str], last: Sequence[str]) -> np.ndarray:
    """Return values (panel, *last) of a variable over groups, the dims `inner` and `last`, as `panel_names` orders."""
    values = variable.transpose(*groups.dims, *inner, *last).values
    lead = values.shape[: values.ndim - len(last)]
    return values.reshape(int(np.prod(lead)), *values.shape[len(lead) :])


def by_component(variable: xr.DataArray, groups: Groups, inner: Sequence[str], last: Sequence[str]) -> np.ndarray:
    """Return values (component, group, *last) of a variable over groups, the dims `inner` and `last`."""
    values = variable.transpose(*inner, *groups.dims, *last).values
    components = int(np.prod([variable.sizes[dim] for dim in inner], dtype=np.int64))
    return values.reshape(components, groups.size, *(variable.sizes[dim] for dim in last))


def write_names(
    panels: _figure.Panels, names: Sequence[str], lines: Sequence[str], notes: Sequence[str] | None = None
) -> None:
    """Write the title `lines` of a plot, and where there are several panels the name of each, with a note below it."""
    if len(panels.axes) > 1:
        for number, (ax, name) in enumerate(zip(panels.axes, names, strict=True)):
            _labels.write_panel_title(ax, [name] if notes is None else [name, notes[number]])
        if panels.figure is None:
            lines = [*lines, *panels.axes[0].get_title().split("\n")]
    _labels.write_title(panels, lines, centered=True)


def value_texts(ax: "matplotlib.axes.Axes", variable: xr.DataArray) -> list[str]:
    """Return what each value is called, shortened where it would take too much room beside the Axes."""
    names = [str(value) for value in variable[LABEL if LABEL in variable.coords else VALUE].values]
    room = _labels.size_of(ax)[0] / (0.62 * _labels.points_of("ytick.labelsize"))
    return _text.told_apart(names, int(np.clip(room / 2, *LETTERS)))
