"""How episodes end, over training."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.outcomes import grouped_outcomes, make_outcome_groups
from trajlab.names import COUNT, END_REASON, SHARE, START_ITERATION
from trajlab.plot import _figure, _labels, _legend, _style, _text
from trajlab.plot._areas import scale_shares
from trajlab.plot._strip import split_strip
from trajlab.plot._training import Places, draw_bars

if TYPE_CHECKING:
    import matplotlib.axes


def plot_outcomes(
    ds: xr.Dataset,
    *,
    by: str | None = START_ITERATION,
    groups: GroupsArgument = None,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes":
    """Draw `outcomes`: the share of each end reason over training, stacked, and how many episodes these are of.

    Bars of numbers stand where the numbers do and reach to halfway between groups. Episodes that were cut are hatched,
    at the top.

    Parameters
    ----------
    ds, by, groups
        As in `outcomes`. The legend gives the number of episodes of each end reason that occurs.
    ax : Axes, optional
        It gives a strip at its bottom to the number of episodes; without, a figure is made.
    **kwargs
        For the bars: `Axes.bar`.

    Returns
    -------
    Axes
        The strip is a further Axes of the figure, labelled ``"n"``.

    Raises
    ------
    KeyError, ValueError
        As `outcomes`.
    """
    chosen = make_outcome_groups(ds, by, groups)
    result = grouped_outcomes(ds, chosen)
    panels = _figure.make_panels(1, ax)
    (ax_,) = panels.axes
    strip = split_strip(ax_)
    places = Places.of(ds, result, chosen, groups)
    count = result[COUNT].values.reshape(chosen.size, result.sizes[END_REASON])
    share = result[SHARE].values.reshape(count.shape)
    reasons = [str(reason) for reason in result[END_REASON].values]
    draw_bars(strip, places, count.sum(axis=1))
    places.finish(strip, chosen)
    total = count.sum(axis=0)
    ax_.set_ylim(0, 1)
    handles: list[Any] = []
    if count.any():
        bars = _draw(ax_, places, reasons, share, kwargs)
        handles = [bar for bar, number in zip(bars, total, strict=True) if number]
        _label(panels, result)
    else:
        _labels.write_empty(ax_)
    _labels.write_title(panels, [f"how {_text.count_text(result.attrs)} ended", *_legend.left_out(chosen)])
    if handles:
        texts = [f"{reason} ({number:,})" for reason, number in zip(reasons, total, strict=True) if number]
        _legend.write_legend(panels, handles, texts)
    return ax_


def _draw(
    ax: "matplotlib.axes.Axes", places: Places, reasons: list[str], share: np.ndarray, kwargs: dict[str, Any]
) -> list[Any]:
    """Draw shares (group, end reason) on top of each other; return the bars of each end reason."""
    from matplotlib.patches import Rectangle

    heights = np.nan_to_num(share[places.which])
    middle, width = (places.left + places.right) / 2, places.right - places.left
    bars, below = [], np.zeros(len(middle))
    for number, reason in enumerate(reasons):
        look = _style.look_of_end(ax, reason).fill(ax)
        style = _style.merged(Rectangle, {"width": width, **look, "linewidth": 0}, kwargs)
        bars.append(ax.bar(middle, heights[:, number], bottom=below, **style))
        below = below + heights[:, number]
    return bars


def _label(panels: _figure.Panels, result: xr.Dataset) -> None:
    (ax,) = panels.axes
    scale_shares(panels, ax)
    _labels.write_ylabel(panels, ax, result[SHARE].attrs["long_name"])
