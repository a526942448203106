"""How all plots look: figures, colours, titles, labels and legends. Nothing here sets a global option."""

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.dataset.fields import component_labels
from trajlab.names import units_name

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

CYCLE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
"""Colours for kinds: those of Okabe & Ito (2008), "Color Universal Design"; told apart by all."""
DARK_CYCLE = ("#56B4E9", "#E69F00", "#2CC295", "#E89AC6", "#F0E442", "#F07A3A", "#4C9BE0", "#BBBBBB")
"""The same hues, bright enough for a dark ground."""

MAX_PANELS = 24
PANEL_WIDTH, PANEL_HEIGHT = 3.4, 2.3
"""Inches of one of several panels."""
SINGLE = (6.4, 4.2)
"""Inches of a figure with a single panel."""


@dataclasses.dataclass(frozen=True, eq=False)
class Panels:
    """The Axes to draw in, one per panel, and the figure where this package made it."""

    axes: list["matplotlib.axes.Axes"]
    figure: "matplotlib.figure.Figure | None"

    def result(self) -> Any:
        """Return the Axes where there is a single one, else an array of them."""
        if len(self.axes) == 1:
            return self.axes[0]
        out = np.empty(len(self.axes), object)
        out[:] = self.axes
        return out


def make_panels(count: int, ax: Any, *, columns: int | None = None, size: tuple[float, float] | None = None) -> Panels:
    """Return `count` Axes: those given, or those of a new figure.

    Raises
    ------
    ValueError
        When another number of Axes was given.
    """
    if ax is not None:
        given = list(np.ravel(np.asarray(ax, object)))
        if len(given) != count:
            raise ValueError(
                f"ax= has {len(given)} Axes, but there are {count} panels to draw; expected a sequence of {count} "
                "Axes, or select single components first, as in ds.isel(obs_dim_0=[0])"
            )
        return Panels(given, None)
    import matplotlib.pyplot as plt

    columns = columns or columns_of(count)
    rows = -(-count // columns)
    if size is None:
        size = SINGLE if count == 1 else (PANEL_WIDTH * columns, PANEL_HEIGHT * rows + 0.9)
    figure = plt.figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(h_pad=0.03, w_pad=0.05)  # type: ignore[union-attr]
    grid = figure.add_gridspec(rows, columns)
    axes: list[Any] = []
    for number in range(count):
        axes.append(figure.add_subplot(grid[number // columns, number % columns]))
    return Panels(axes, figure)


def columns_of(count: int) -> int:
    """Return how many of `count` panels stand side by side."""
    return count if count <= 3 else 2 if count == 4 else 3


def check_panels(ds: xr.Dataset, field: str, count: int) -> None:
    """Raise ValueError when a field has more components than a figure has room for."""
    if count > MAX_PANELS:
        dim, size = ds[field].dims[-1], ds[field].shape[-1]
        shape = " x ".join(map(str, ds[field].shape[2:]))
        raise ValueError(
            f"{field!r} has {count} components ({shape}); at most {MAX_PANELS} are drawn, one panel each. "
            f"Select some: ds.isel({dim}={list(range(min(size, 3)))})"
        )


def component_titles(ds: xr.Dataset, field: str) -> list[str]:
    """Return the name of each component: its label where that is a text, as in ``x``, else as in ``obs[0]``."""
    dims = ds[field].dims[2:]
    titles = component_labels(ds, field, dims)
    if dims and all(dim in ds.coords and ds[dim].dtype.kind in "UOT" for dim in dims):
        return [title[len(field) + 1 : -1].replace(",", ", ") for title in titles]
    return titles


def component_units(ds: xr.Dataset, field: str) -> list[str]:
    """Return the unit of each component, "" where it has none."""
    shape = ds[field].shape[2:]
    units = np.full(shape, str(ds[field].attrs.get("units", "")), object)
    for axis, dim in enumerate(ds[field].dims[2:]):
        if units_name(str(dim)) in ds.coords:
            own = ds[units_name(str(dim))].values.astype(str)
            units[...] = own.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return [str(unit) for unit in units.reshape(-1)]


def with_units(label: str, units: Any) -> str:
    """Return ``"height [m]"``."""
    return f"{label} [{units}]" if units not in (None, "", "1") else label


def label_of(variable: xr.DataArray) -> str:
    """Return a variable's `long_name` (else its name) and units."""
    return with_units(str(variable.attrs.get("long_name", variable.name)), variable.attrs.get("units"))


def is_dark(ax: "matplotlib.axes.Axes") -> bool:
    """Say whether the ground of the Axes is dark."""
    from matplotlib.colors import to_rgba

    *rgb, alpha = to_rgba(ax.get_facecolor())
    if alpha < 0.5:
        rgb = list(to_rgba(ax.get_figure(root=True).get_facecolor())[:3])
    return float(np.dot(rgb, (0.299, 0.587, 0.114))) < 0.5


def cycle(ax: "matplotlib.axes.Axes") -> tuple[str, ...]:
    """Return colours for kinds that stand out from the ground of the Axes."""
    return DARK_CYCLE if is_dark(ax) else CYCLE


def neutral(ax: "matplotlib.axes.Axes") -> str:
    """Return a grey that is seen on the ground of the Axes."""
    return "0.7" if is_dark(ax) else "0.45"


def group_colors(ax: "matplotlib.axes.Axes", count: int, ordered: bool) -> list[Any]:
    """Return a colour per group: along viridis where groups have an order, else of different hues."""
    if not ordered and count <= len(CYCLE):
        return list(cycle(ax)[:count])
    import matplotlib

    ends = (0.2, 1.0) if is_dark(ax) else (0.0, 0.87)
    return list(matplotlib.colormaps["viridis"](np.linspace(*ends, count)))


def is_ordered(ds: xr.Dataset, by: str | None) -> bool:
    """Say whether what is grouped by has an order: numbers, but not bools."""
    return by is not None and ds[by].dtype.kind in "iuf"


def group_labels(result: xr.Dataset, by: str) -> list[str]:
    """Return the groups of a result as texts for a legend."""
    values = result[by].values
    return [f"{value:g}" if values.dtype.kind == "f" else str(value) for value in values]


def group_title(result: xr.Dataset, by: str) -> str:
    """Return what to write above the groups of a legend."""
    return label_of(result[by]) if "long_name" in result[by].attrs else by.replace("_", " ")


def count_text(attrs: Mapping[str, Any]) -> str:
    """Return ``"500 episodes (12 cut)"``."""
    episodes, cut = attrs["num_episodes"], attrs["num_cut"]
    text = f"{episodes:,} episode{'' if episodes == 1 else 's'}"
    return f"{text} ({cut:,} cut)" if cut else text


def write_title(panels: Panels, lines: Sequence[str]) -> None:
    """Write a title over all panels of a figure of our own, or over the first of the Axes given."""
    first = panels.axes[0]
    figure: Any = panels.figure
    if figure is not None and len(panels.axes) > 1:
        width = figure.get_figwidth()
        figure.suptitle(_wrapped(lines, width, _points("figure.titlesize")), fontsize=_points("axes.titlesize"))
        return
    root: Any = first.get_figure(root=True)
    width = first.get_position().width * root.get_figwidth() if figure is None else figure.get_figwidth() * 0.85
    own = first.get_title()
    text = _wrapped([*lines, own] if own else lines, width, _points("axes.titlesize"))
    first.set_title(text)


def _points(option: str) -> float:
    """Return a font size in points."""
    import matplotlib
    from matplotlib.font_manager import FontProperties

    return FontProperties(size=matplotlib.rcParams[option]).get_size_in_points()


def _wrapped(lines: Sequence[str], inches: float, points: float) -> str:
    """Break lines that are longer than a width; letters are about half as wide as high."""
    most = max(int(inches * 72 / (0.53 * points)), 12)
    return "\n".join(part for line in lines for part in textwrap.wrap(line, most))


def write_legend(panels: Panels, handles: Sequence[Any], labels: Sequence[str], title: str | None = None) -> None:
    """Draw a legend below the panels of a figure of our own, or inside the first of the Axes given."""
    if panels.figure is None:
        panels.axes[0].legend(handles, labels, title=title, fontsize="small", title_fontsize="small")
        return
    letters = max(len(label) for label in labels) + 5
    room = panels.figure.get_figwidth() * 72 / (0.55 * _points("legend.fontsize"))
    columns = int(np.clip(room // letters, 1, len(labels)))
    panels.figure.legend(
        handles, labels, title=title, loc="outside lower center", ncols=columns, frameon=False, title_fontsize="medium"
    )


def dot(color: Any, marker: str = "o", filled: bool = True) -> Any:
    """Return what stands for faint dots in a legend."""
    from matplotlib.lines import Line2D

    face = color if filled else "none"
    return Line2D([], [], linestyle="none", marker=marker, markersize=5, markeredgecolor=color, markerfacecolor=face)


def write_empty(ax: "matplotlib.axes.Axes", text: str = "no episodes") -> None:
    """Say in the middle of empty Axes that there is nothing to draw."""
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color=neutral(ax))


def label_ticks(ax: "matplotlib.axes.Axes", places: Sequence[float] | np.ndarray, labels: Sequence[str]) -> None:
    """Write a text at places along x: level where there is room, else slanted, and only some where they are many."""
    root: Any = ax.get_figure(root=True)
    room = ax.get_position().width * root.get_figwidth() * 72
    points = _points("xtick.labelsize")
    most = max(int(room / (1.3 * points)), 2)
    step = -(-len(labels) // most)
    labels, places = list(labels)[::step], np.asarray(places)[::step]
    longest = max((len(label) for label in labels), default=0)
    ax.set_xticks(places, labels)
    if longest * 0.62 * points * len(labels) > room:
        angle = 35 if len(labels) * 3 * points < room else 90
        for text in ax.get_xticklabels():
            text.set(rotation=angle, ha="right", va="center" if angle == 90 else "top", rotation_mode="anchor")


def plain_numbers(axis: Any, *, whole: bool = False, most: int | str = "auto") -> None:
    """Write large numbers with separators instead of powers of ten; with `whole` tick at whole numbers only."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    if whole:
        axis.set_major_locator(MaxNLocator(most, integer=True, steps=[1, 2, 5, 10]))


def write_ylabel(panels: Panels, ax: "matplotlib.axes.Axes", label: str, share: float = 0.75) -> None:
    """Write a label along y, broken where it is longer than the panel is high; `share` of which is the Axes'."""
    root: Any = ax.get_figure(root=True)
    height = ax.get_position().height * root.get_figheight()
    if panels.figure is not None:
        rows = panels.axes[0].get_subplotspec().get_topmost_subplotspec().get_gridspec().nrows  # type: ignore[union-attr]
        height = (panels.figure.get_figheight() - 1.2) / rows * share
    ax.set_ylabel(_wrapped([label], height, _points("axes.labelsize")))
