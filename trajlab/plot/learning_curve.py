"""Learning curves."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.kernels.bootstrap import Statistic
from trajlab.analysis.learning_curve import Interval, grouped_curve, prepare_curve
from trajlab.dataset.fields import component_labels
from trajlab.errors import check_option
from trajlab.names import (
    ESTIMATE,
    LEFT_OUT,
    LEFT_OUT_ATTR,
    LOWER,
    RETURN,
    START_ITERATION,
    STATISTIC,
    UPPER,
    Incomplete,
    N,
)
from trajlab.plot import _figure, _labels, _legend, _style, _text
from trajlab.plot._curves import lone_places
from trajlab.plot._strip import split_strip
from trajlab.plot._training import Places, draw_bars

if TYPE_CHECKING:
    import matplotlib.axes

NAMES = {"mean": "mean", "median": "median", "iqm": "interquartile mean"}


def plot_learning_curve(
    ds: xr.Dataset,
    *,
    value: str = RETURN,
    by: str | None = START_ITERATION,
    groups: GroupsArgument = None,
    incomplete: Incomplete = "drop",
    cluster: str | None = None,
    confidence: float = 0.95,
    num_resamples: int = 1000,
    rng: np.random.Generator | int = 0,
    statistic: Statistic = "mean",
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw `learning_curve`: a statistic of the episodes' returns over training, and beneath it their number.

    The line goes through the middle of each group, the band is the bootstrap interval; groups that have no order are
    dots with an interval each. One panel per component.

    Parameters
    ----------
    ds, value, by, groups, incomplete, cluster, confidence, num_resamples, rng
        As in `learning_curve`.
    statistic : {"mean", "median", "iqm"}
        Which to draw. The mean, by default, is what the return is meant to be; the interquartile mean (``"iqm"``) is
        less moved by a few extraordinary episodes.
    ax : Axes or sequence of Axes, optional
        One per component, each of which gives a strip at its bottom to the number of episodes; without, a figure is
        made.
    **kwargs
        For the line: `Axes.plot`.

    Returns
    -------
    Axes or array of Axes
        An array, in the order of the components, where there is more than one. The strips are further Axes of the
        figure, labelled ``"n"``.

    Raises
    ------
    KeyError, TypeError
        As `learning_curve`.
    ValueError
        As `learning_curve`; when `statistic` is none, the value has more than 24 components, or `ax` does not hold as
        many Axes.
    """
    check_option("statistic", statistic, Statistic)
    interval = Interval(cluster, confidence, num_resamples, rng)
    ds, chosen, values = prepare_curve(ds, value, by, groups, incomplete, interval)
    titles = component_labels(values.to_dataset(), value) if values.ndim > 1 else [str(values.attrs["long_name"])]
    _figure.check_components(value, dict(zip(values.dims[1:], values.shape[1:], strict=True)), len(titles))
    result = grouped_curve(ds, values, chosen, incomplete, interval)
    panels = _figure.make_panels(len(titles), ax)
    strips = [split_strip(ax_) for ax_ in panels.axes]
    places = Places.of(ds, result, chosen, groups)
    lead = (chosen.size, len(titles))
    curves = {key: result[key].sel({STATISTIC: statistic}).values.reshape(lead) for key in (ESTIMATE, LOWER, UPPER)}
    counts = {key: result[key].values.reshape(chosen.size) for key in (N, LEFT_OUT)}
    handles: list[Any] = []
    for number, (ax_, strip) in enumerate(zip(panels.axes, strips, strict=True)):
        draw_bars(strip, places, counts[N], counts[LEFT_OUT])
        places.finish(strip, chosen)
        _labels.write_ylabel(panels, ax_, _text.with_units(titles[number], values.attrs.get("units")))
        if counts[N].any():
            handles = _draw(ax_, places, {key: curve[places.which, number] for key, curve in curves.items()}, kwargs)
        else:
            _labels.write_empty(ax_, "no complete episodes" if counts[LEFT_OUT].any() else "no episodes")
    _labels.write_title(panels, _title_lines(result, cluster, incomplete) + _legend.left_out(chosen))
    if handles:
        _legend.write_legend(panels, handles, [NAMES[statistic], f"{100 * confidence:g} % interval"][: len(handles)])
    return panels.result()


def _draw(
    ax: "matplotlib.axes.Axes", places: Places, curves: dict[str, np.ndarray], kwargs: dict[str, Any]
) -> list[Any]:
    """Draw estimate, lower and upper limit (place,) of one component; return the line, and what the limits are."""
    from matplotlib.lines import Line2D

    along = places.labels is None
    style: dict[str, Any] = {
        "color": _style.cycle(ax)[0],
        "linewidth": 1.8,
        "marker": "o",
        "markersize": 4,
        "zorder": 4,
    }
    if not along:
        style |= {"linestyle": "none", "markersize": 6}
    (line,) = ax.plot(places.middle, curves[ESTIMATE], **_style.merged(Line2D, style, kwargs))
    color = line.get_color()
    known = np.isfinite(curves[LOWER]) & np.isfinite(curves[UPPER])
    lone = lone_places(known) if along else known
    limits: list[Any] = []
    if (known & ~lone).any():
        band: dict[str, Any] = {"color": color, "alpha": 0.2, "linewidth": 0, "zorder": 2}
        limits.append(ax.fill_between(places.middle, curves[LOWER], curves[UPPER], **band))
    if lone.any():
        bars = [curves[key][lone] for key in (LOWER, UPPER)]
        limits.append(ax.vlines(places.middle[lone], *bars, color=color, alpha=0.5, linewidth=2.5, zorder=2))
    _labels.plain_numbers(ax.yaxis)
    return [line, *limits[:1]]


def _title_lines(result: xr.Dataset, cluster: str | None, incomplete: str) -> list[str]:
    """Return what is drawn of how many episodes, and what the interval and the strip are of."""
    lines = [f"{result[ESTIMATE].attrs['long_name']} of {_text.count_text(result.attrs)}"]
    if cluster is not None:
        lines.append(f"interval: resampling {cluster!r} as a whole")
    left_out = result.attrs[LEFT_OUT_ATTR]
    counted = "n: episodes" if incomplete == "keep" else "n: complete episodes"
    return [*lines, f"{counted}; fainter: {left_out:,} left out" if left_out else counted]
