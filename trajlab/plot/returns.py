"""Returns and lengths of episodes over training."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import field_of
from trajlab.analysis.returns import check_discount, returns, running_median
from trajlab.dataset.fields import component_units
from trajlab.errors import unknown_name
from trajlab.names import COMPLETE, EPISODE, LENGTH, START_ITERATION
from trajlab.plot import _style, _text

if TYPE_CHECKING:
    import matplotlib.axes

MANY = 5000
"""More points than this are drawn as an image, so that a file of the figure stays small."""


def plot_returns(
    ds: xr.Dataset,
    *,
    reward: str = "reward",
    discount: float | int = 1.0,
    x: str | None = None,
    ax: Any = None,
    **kwargs: Any,
) -> np.ndarray:
    """Draw the return and the length of each episode over training.

    Complete episodes are dots. Those that are not (cut, or their start was not seen) are open triangles:
    their length, and with rewards that are never negative their return, is a lower bound. The line is the
    median of complete episodes that started one after the other.

    Parameters
    ----------
    ds, reward, discount
        As in `returns`. A reward with components gets a panel for each.
    x : str, optional
        Coordinate over `episode` to draw against: `start_iteration` by default, or `episode` where that is
        the same for all.
    ax : sequence of Axes, optional
        One for each return and one for the length; without, a figure is made.
    **kwargs
        For the dots: `Axes.scatter`.

    Returns
    -------
    array of Axes
        The returns, and the length last.

    Raises
    ------
    KeyError
        When there is no such field or coordinate.
    TypeError
        When the field does not hold numbers.
    ValueError
        As `returns`; when the reward has more than 24 components, or `ax` does not hold as
        many Axes as there are panels.
    """
    check_discount(discount)
    ds, _ = field_of(ds, reward, along=x)
    result = returns(ds, reward=reward, discount=discount)
    name = str(result.attrs["field"])
    columns = result.values.reshape(result.shape[0], int(np.prod(result.shape[1:], dtype=np.int64)))
    titles = [_title(name, component) for component in _text.component_titles(ds, name)]
    _style.check_panels(ds, name, len(titles))
    along = _along(result, x)
    count = len(titles) + 1
    size = _style.SINGLE[0], 1.3 + 1.9 * count
    mend = ", the last of them for the length" + _style.select_mend(ds, name)
    panels = _style.make_panels(count, ax, columns=1, size=size, mend=mend)
    is_text = along.dtype.kind in "UOT"
    places = np.array([_text.safe(str(value)) for value in along.values], str) if is_text else along.values
    handles: dict[str, Any] = {}
    for number, ax_ in enumerate(panels.axes):
        values = columns[:, number] if number < len(titles) else result[LENGTH].values
        handles = _draw(ax_, places, values, result[COMPLETE].values, kwargs)
    _label(ds, name, panels, result, along, titles, discount)
    if handles:
        _text.write_legend(panels, list(handles.values()), list(handles))
    return np.asarray(panels.result())


def _title(name: str, component: str) -> str:
    """Return ``"return"``, ``"return[0]"`` or ``"return: speed"`` for a component of the reward called `name`."""
    return f"return{component[len(name) :]}" if component.startswith(name) else f"return: {component}"


def _along(result: xr.DataArray, x: str | None) -> xr.DataArray:
    """Return the coordinate that is drawn along x."""
    if x is None:
        starts = result[START_ITERATION]
        return starts if len(np.unique(starts.values)) > 1 else result[EPISODE]
    if x not in result.coords or result[x].dims != (EPISODE,):
        known = [str(n) for n, c in result.coords.items() if c.dims == (EPISODE,)]
        raise unknown_name("coordinate over episode for x=", x, known)
    return result[x]


def _draw(
    ax: "matplotlib.axes.Axes", along: np.ndarray, values: np.ndarray, complete: np.ndarray, kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Draw one value per episode; return an artist for each entry of the legend."""
    if not len(values):
        _text.write_empty(ax)
        return {}
    colors = _style.cycle(ax)
    size = float(np.clip(20_000 / len(values), 4, 20))
    style: dict[str, Any] = {"s": size, "rasterized": len(values) > MANY}
    handles = {}
    if complete.any():
        opacity = float(np.clip(1000 / len(values), 0.2, 0.8))
        own = {"color": colors[0], "alpha": opacity, "linewidth": 0, **style}
        own, shown = _dot_style(own, kwargs, complete)
        ax.scatter(along[complete], values[complete], **own)
        handles[f"complete ({complete.sum():,})"] = _text.dot(shown)
    if not complete.all():
        rest = ~complete
        own = {"marker": "^", "facecolors": "none", "edgecolors": colors[5], "linewidths": 0.9}
        ax.scatter(along[rest], values[rest], **{**own, **style, "s": size + 10, "zorder": 3})
        handles[f"not complete ({rest.sum():,})"] = _text.dot(colors[5], "^", filled=False)
    places, medians, each = running_median(along[complete], values[complete])
    if len(places):
        (line,) = ax.plot(places, medians, color=colors[1], linewidth=2.0, zorder=4)
        handles[f"median of every {each:,} complete"] = line
    return handles


def _dot_style(defaults: dict[str, Any], kwargs: dict[str, Any], complete: np.ndarray) -> tuple[dict[str, Any], Any]:
    """Return what `scatter` is called with, and the colour that stands for the dots in a legend."""
    from matplotlib.collections import PathCollection
    from matplotlib.colors import is_color_like

    own = _style.merged(PathCollection, defaults, kwargs)
    if "c" in own and "color" not in kwargs:
        own.pop("color", None)
    if "c" in own and not is_color_like(own["c"]) and np.shape(own["c"])[:1] == complete.shape:
        own["c"] = np.asarray(own["c"])[complete]  # a colour or number for each episode
    found = (own.get(key) for key in ("color", "c", "facecolor"))
    return own, next((color for color in found if is_color_like(color)), defaults["color"])


def _label(
    ds: xr.Dataset,
    name: str,
    panels: _style.Panels,
    result: xr.DataArray,
    along: xr.DataArray,
    titles: list[str],
    discount: float | int,
) -> None:
    units = [*component_units(ds, name), result[LENGTH].attrs.get("units", "steps")]
    labels = [*titles, result[LENGTH].attrs.get("long_name", "episode length")]
    place = _text.label_of(along)
    for number, ax in enumerate(panels.axes):
        _text.write_ylabel(panels, ax, _text.with_units(labels[number], units[number]), share=0.9)
        _text.plain_numbers(ax.yaxis)
        if along.dtype.kind in "iu":
            _text.plain_numbers(ax.xaxis, whole=True)
        if panels.figure is not None and number < len(panels.axes) - 1:
            ax.sharex(panels.axes[-1])
            ax.tick_params(labelbottom=False)
        else:
            ax.set_xlabel(_text.safe(place))
    text = f"return and length of {_text.count_text(result.attrs)}"
    discounted = f"discount {discount:g}" if discount != 1 else ""
    _text.write_title(panels, [text, discounted] if discounted else [text])
