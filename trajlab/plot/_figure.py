"""Figures of all plots: the Axes to draw in, how many there may be, and how large they are."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

MAX_PANELS = 24
PANEL = (3.4, 2.3)
"""Inches of one of several panels."""
SINGLE = (6.4, 4.2)
"""Inches of a figure with a single panel."""
STRIP_RATIOS = [4, 1]
"""Heights of the two rows that a panel has in a figure of our own: where it has a strip, the second is the strip's."""


@dataclasses.dataclass(frozen=True, eq=False)
class Panels:
    """The Axes to draw in, one per panel.

    Attributes
    ----------
    axes : list of Axes
    figure : Figure or None
        The figure, where this package made it.
    columns : int
        How many panels stand side by side; 1 for Axes that were given, of which each is labelled by itself.
    """

    axes: list["matplotlib.axes.Axes"]
    figure: "matplotlib.figure.Figure | None"
    columns: int = 1

    @property
    def root(self) -> Any:
        """The whole figure that the Axes are in."""
        return self.axes[0].get_figure(root=True)

    def is_left(self, number: int) -> bool:
        """Say whether a panel has the labels along y: it is the first of its row, or was given."""
        return number % self.columns == 0

    def is_bottom(self, number: int) -> bool:
        """Say whether a panel has the labels along x: none is below it, or it was given."""
        return self.figure is None or number >= len(self.axes) - self.columns

    def result(self) -> Any:
        """Return the Axes where there is a single one, else an array of them."""
        if len(self.axes) == 1:
            return self.axes[0]
        out = np.empty(len(self.axes), object)
        out[:] = self.axes
        return out


def make_panels(
    count: int,
    ax: Any,
    *,
    columns: int | None = None,
    size: tuple[float, float] | None = None,
    share_y: bool = False,
    laid_out: bool = True,
    mend: str = "",
) -> Panels:
    """Return `count` Axes: those given, or those of a new figure, which may share their y axis.

    `mend` says what else can be done where another number of Axes was given. A figure that is not to be `laid_out`
    at once waits for `lay_out`.

    Raises
    ------
    ValueError
        When another number of Axes was given.
    """
    if ax is not None:
        given = list(np.ravel(np.asarray(ax, object)))
        if len(given) != count:
            raise ValueError(
                f"ax= has {len(given)} Axes, but there are {count} panels to draw; expected {count} Axes, as in "
                f"ax=plt.subplots({count})[1]{mend}"
            )
        wrong = [one for one in given if not hasattr(one, "transAxes")]
        if wrong:
            raise TypeError(
                f"ax= has {wrong[0]!r}, which is no Axes of Matplotlib's; expected {count}, as of plt.subplots"
            )
        return Panels(given, None)
    import matplotlib.pyplot as plt

    columns = columns or columns_of(count)
    rows = -(-count // columns)
    if size is None:
        size = figure_size(count, PANEL, (0.0, 0.9), columns, SINGLE)
    figure = plt.figure(figsize=size, layout="none")
    if laid_out:
        lay_out(figure)
    grid = figure.add_gridspec(2 * rows, columns, height_ratios=STRIP_RATIOS * rows)
    axes: list[Any] = []
    for number in range(count):
        shared = axes[0] if share_y and axes else None
        row = 2 * (number // columns)
        axes.append(figure.add_subplot(grid[row : row + 2, number % columns], sharey=shared))
    return Panels(axes, figure, columns)


def lay_out(figure: "matplotlib.figure.Figure") -> None:
    """Give a figure the layout that makes room for titles, labels and legends."""
    figure.set_layout_engine("constrained", h_pad=0.03, w_pad=0.05)


def select_mend(ds: xr.Dataset, field: str) -> str:
    """Return what to do about too few Axes for the components of a field; nothing where it has no components."""
    dims = ds[field].dims[2:]
    return f"; or select components first: ds.isel({ {str(dim): [0] for dim in dims}!r})" if dims else ""


def columns_of(count: int) -> int:
    """Return how many of `count` panels stand side by side."""
    return count if count <= 3 else 2 if count == 4 else 3


def figure_size(
    count: int,
    panel: tuple[float, float],
    margin: tuple[float, float],
    columns: int | None = None,
    single: tuple[float, float] | None = None,
) -> tuple[float, float]:
    """Return the inches of a figure of `count` panels of a size, with a `margin` for what all share.

    Where there is a `single` panel the figure may have a size of its own.
    """
    if count == 1 and single is not None:
        return single
    columns = columns or columns_of(count)
    return panel[0] * columns + margin[0], panel[1] * -(-count // columns) + margin[1]


def check_panels(ds: xr.Dataset, field: str, count: int) -> None:
    """Raise ValueError when a field has no component, or more of them than a figure has room for."""
    variable = ds[field].variable
    check_components(field, dict(zip(variable.dims[2:], variable.shape[2:], strict=True)), count)


def check_components(name: str, inner: Mapping[Any, int], count: int) -> None:
    """Raise ValueError when there is no component, or more than a figure has room for; `inner` has dims' sizes."""
    if not count:
        raise ValueError(
            f"{name!r} has components of shape {tuple(inner.values())}, so none to draw; expected at least 1"
        )
    if count > MAX_PANELS:
        shape = " x ".join(map(str, inner.values()))
        raise ValueError(
            f"{name!r} has {count} components ({shape}); at most {MAX_PANELS} are drawn, one panel each. "
            f"Select some: ds.isel({some_components(inner)!r})"
        )


def some_components(inner: Mapping[Any, int]) -> dict[str, list[int]]:
    """Return a selection of as few components as there is room for: whole last dims, and some of those before.

    >>> some_components({"row": 84, "column": 84}), some_components({"player": 10, "unit": 5})
    ({'row': [0, 1, 2], 'column': [0, 1, 2]}, {'player': [0, 1, 2]})
    """
    room, chosen = MAX_PANELS, {}
    for dim, size in reversed([*inner.items()]):
        if size > room:
            chosen[str(dim)] = [*range(min(room, 3))]
        room //= len(chosen.get(str(dim), range(size))) or 1
    return dict(reversed(chosen.items()))
