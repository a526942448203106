"""Figures and colours of all plots. Nothing here sets a global option."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.grouping.groups import Groups, is_category
from trajlab.names import CUT, DONE, END_REASON, TERMINATED, TRUNCATED

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

CYCLE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#999999")
"""Colours for kinds: those of Okabe & Ito (2008), "Color Universal Design"; told apart by all."""
DARK_CYCLE = ("#56B4E9", "#E69F00", "#2CC295", "#E89AC6", "#F0E442", "#F07A3A", "#FFFFFF", "#999999")
"""The same hues, bright enough for a dark ground."""

SHAPES = (("", "-", ""), ("s", "--", "////"), ("D", ":", "...."))
"""Marker, line style and hatch that go with the colours; the second and third where the colours are used again."""
END_COLORS = {TERMINATED: 0, TRUNCATED: 1, DONE: 2}
"""Which colours of the cycle end reasons have, in every plot."""
MAX_KINDS = len(CYCLE) * len(SHAPES)

BRIGHTNESS = np.array([0.299, 0.587, 0.114])
"""How much red, green and blue add to how bright a colour looks."""

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
        size = size_of(count, PANEL, (0.0, 0.9), columns, SINGLE)
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


def merged(artist: type, defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of an artist: the defaults, and over them those given, by whichever alias.

    A colour of the face or the edge alone replaces only that part of a default `color`, which Matplotlib would
    let win over both; a `color` replaces defaults of both.
    """
    from matplotlib.cbook import normalize_kwargs

    foreign = [name for name in ("by", "groups", "labels", "bins") if name in given]
    if foreign:
        raise TypeError(
            f"{foreign[0]}={given[foreign[0]]!r}: this plot has no such argument; select what to draw first, as in "
            "ds.sel(episode=ds['end_reason'] == 'terminated'), and draw one after the other"
        )
    own: dict[str, Any] = normalize_kwargs(dict(given), artist)
    for alias in ("colors", "c")[: 1 if artist.__name__ == "PathCollection" else 2]:  # dots may have a `c` each
        if alias in own:
            own.setdefault("color", own.pop(alias))
    out = dict(defaults)
    parts = {"facecolor", "edgecolor"} & own.keys()
    if parts and "color" not in own and "color" in out:
        color = out.pop("color")
        out |= {"facecolor": color, "edgecolor": color}
    if "color" in own:
        out = {key: value for key, value in out.items() if key not in ("facecolor", "edgecolor")}
    return out | own


def columns_of(count: int) -> int:
    """Return how many of `count` panels stand side by side."""
    return count if count <= 3 else 2 if count == 4 else 3


def size_of(
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


def ground_of(ax: "matplotlib.axes.Axes") -> np.ndarray:
    """Return red, green and blue of the ground of the Axes, that of the figure where theirs is seen through."""
    from matplotlib.colors import to_rgba

    *rgb, alpha = to_rgba(ax.get_facecolor())
    if alpha < 0.5:
        root: Any = ax.get_figure(root=True)
        rgb = list(to_rgba(root.get_facecolor())[:3])
    return np.array(rgb)


def is_dark(ax: "matplotlib.axes.Axes") -> bool:
    """Say whether the ground of the Axes is dark."""
    return float(ground_of(ax) @ BRIGHTNESS) < 0.5


def cycle(ax: "matplotlib.axes.Axes") -> tuple[str, ...]:
    """Return colours for kinds that stand out from the ground of the Axes."""
    return DARK_CYCLE if is_dark(ax) else CYCLE


def viridis(ax: "matplotlib.axes.Axes", *, of_lines: bool = False) -> Any:
    """Return the part of viridis that stands out from the ground of the Axes; thin lines cannot be as pale as cells."""
    import matplotlib
    from matplotlib.colors import ListedColormap

    colors = matplotlib.colormaps["viridis"](np.linspace(*_viridis_ends(ax, of_lines), 256))
    return ListedColormap(colors, "part of viridis")


def _viridis_ends(ax: "matplotlib.axes.Axes", of_lines: bool) -> tuple[float, float]:
    return (0.2, 1.0) if is_dark(ax) else (0.0, 0.87 if of_lines else 1.0)


def neutral(ax: "matplotlib.axes.Axes") -> str:
    """Return a grey that is seen on the ground of the Axes."""
    return "0.7" if is_dark(ax) else "0.45"


@dataclasses.dataclass(frozen=True)
class Look:
    """How one group is told from others: by colour, and where all of them are in use by shape as well."""

    color: Any
    marker: str = ""
    linestyle: str = "-"
    hatch: str = ""

    def fill(self, ax: "matplotlib.axes.Axes") -> dict[str, Any]:
        """Return the keyword arguments of a filled patch; hatches are in the colour of the ground."""
        if not self.hatch:
            return {"color": self.color}
        return {"facecolor": self.color, "edgecolor": ax.get_facecolor(), "hatch": self.hatch, "linewidth": 0}


def is_ordered(ds: xr.Dataset, groups: Groups) -> bool:
    """Say whether groups have an order, as those of numbers and steps have; whole numbers of runs only count them."""
    if groups.locate is not None:
        return True
    if groups.name is None or ds[groups.name].dtype.kind not in "iuf":
        return False
    return not is_category(ds, groups.name) or groups.labels.dtype.kind == "f"


def check_groups(ds: xr.Dataset, groups: Groups) -> None:
    """Raise ValueError when there are more groups than can be told apart."""
    if groups.size > MAX_KINDS and not is_ordered(ds, groups):
        some = [label.item() for label in groups.labels[:2]]
        raise ValueError(
            f"by={groups.name!r} has {groups.size} groups; at most {MAX_KINDS} are told apart in a plot. Choose some, "
            f"as in groups={some!r}, or join some: groups={{'some': {some!r}}}"
        )


def looks_of(ds: xr.Dataset, panels: Panels, groups: Groups) -> list[Look]:
    """Return a look for each group: colours along viridis where groups have an order, else of different hues."""
    ax = panels.axes[0]
    if groups.name == END_REASON and {*groups.labels.tolist()} <= {*END_COLORS, CUT}:
        return [look_of_end(ax, reason) for reason in groups.labels.tolist()]
    if is_ordered(ds, groups):
        import matplotlib

        places = np.linspace(*_viridis_ends(ax, of_lines=True), groups.size)
        return [Look(color) for color in matplotlib.colormaps["viridis"](places)]
    return looks_of_kinds(ax, groups.size)


def look_of_end(ax: "matplotlib.axes.Axes", reason: str) -> Look:
    """Return the look of an end reason, the same in every plot; cut episodes, which did not end, are grey."""
    return Look(neutral(ax), hatch="////") if reason == CUT else Look(cycle(ax)[END_COLORS[reason]])


def looks_of_kinds(ax: "matplotlib.axes.Axes", count: int) -> list[Look]:
    """Return a look for each of at most `MAX_KINDS` kinds without an order."""
    kinds = itertools.product(SHAPES, cycle(ax))
    return [Look(color, *shape) for shape, color in itertools.islice(kinds, count)]
