"""Colours and forms of all plots: what tells groups apart on any ground. Nothing here sets a global option."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.grouping.groups import Groups, is_category
from trajlab.names import CUT, DONE, END_REASON, TERMINATED, TRUNCATED
from trajlab.plot._figure import Panels

if TYPE_CHECKING:
    import matplotlib.axes

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
