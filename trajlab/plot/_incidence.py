"""Shares of episodes that reached something by each step: a line for each event, and how many are at risk beneath."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.names import NUM_EPISODES_ATTR, TIME
from trajlab.plot import _figure, _labels, _legend, _style, _text
from trajlab.plot._curves import mark_lone_steps
from trajlab.plot._strip import draw_alive, split_strip

if TYPE_CHECKING:
    import matplotlib.axes


@dataclasses.dataclass(frozen=True, eq=False)
class Curves:
    """What is drawn.

    Attributes
    ----------
    share : array (panel, line, time) float64
    at_risk : array (panel, line, time) int64
    median : array (panel, line) float64

    No panel at all where there is no group.
    """

    share: np.ndarray
    at_risk: np.ndarray
    median: np.ndarray

    def final_text(self, panel: int, line: int) -> str:
        """Return the last share that is known: ``"62 %"``, not to be broken."""
        known = self.share[panel, line][~np.isnan(self.share[panel, line])]
        return f"{known[-1]:.0%}".replace("%", "\u00a0%") if len(known) else "–"


def draw_curves(
    panels: _figure.Panels, result: xr.Dataset, curves: Curves, looks: Sequence[_style.Look], kwargs: dict[str, Any]
) -> list[Any]:
    """Draw and label each panel; return one artist per line."""
    lines: list[Any] = []
    for number, ax in enumerate(panels.axes):
        strip = split_strip(ax)
        if result.attrs[NUM_EPISODES_ATTR] and len(looks):
            lines = _draw(ax, result[TIME].values, curves, number, looks, kwargs)
        else:
            _labels.write_empty(ax)
        at_risk = curves.at_risk[number] if len(curves.at_risk) else np.zeros((0, 0), np.int64)
        draw_alive(strip, result[TIME].values, at_risk, len(looks) <= 1, looks)
        _label(panels, ax, strip, panels.is_left(number))
        if panels.is_bottom(number):
            _labels.write_xlabel(strip, _text.time_label(result[TIME]))
    return lines


def _draw(
    ax: "matplotlib.axes.Axes",
    time: np.ndarray,
    curves: Curves,
    panel: int,
    looks: Sequence[_style.Look],
    kwargs: dict[str, Any],
) -> list[Any]:
    """Draw the lines of one panel, and a dot at each median; return the lines."""
    from matplotlib.lines import Line2D

    lines = []
    for line, look in enumerate(looks):
        share, median = curves.share[panel, line], curves.median[panel, line]
        style = _style.merged(Line2D, {"color": look.color, "linewidth": 1.8, "linestyle": look.linestyle}, kwargs)
        lines += ax.step(time, share, where="post", zorder=4, **style)
        color = lines[-1].get_color()
        mark_lone_steps(ax, time, share, color)
        if np.isfinite(median):
            there = share[np.searchsorted(time, median)]
            ax.plot(median, there, color=color, linestyle="none", marker="o", markersize=5, zorder=5)
    return lines


def _label(panels: _figure.Panels, ax: "matplotlib.axes.Axes", strip: "matplotlib.axes.Axes", is_first: bool) -> None:
    ax.set_ylim(-0.02, 1.02)
    ax.set_yticks(
        [0.5, 1] if panels.figure is None else [0, 0.5, 1] if len(panels.axes) > 1 else [0, 0.25, 0.5, 0.75, 1]
    )
    _labels.plain_shares(ax.yaxis)
    if is_first:
        _labels.write_ylabel(panels, ax, "share of episodes")
        strip.set_ylabel("n")


def entries(
    panels: _figure.Panels, lines: Sequence[Any], names: list[str], curves: Curves, title: str | None
) -> _legend.Entries:
    """Return what the legend says: each line, with its final share where there is a single panel, and the dots."""
    handles, labels = list(lines), names
    if len(curves.share) == 1:
        labels = [f"{name}: {curves.final_text(0, line)}" for line, name in enumerate(names)]
    if np.isfinite(curves.median).any():
        handles, labels = [*handles, _legend.dot(_style.neutral(panels.axes[0]))], [*labels, "median of those"]
    return _legend.Entries(handles, labels, title)


def panel_notes(names: list[str], curves: Curves) -> list[str]:
    """Return the final shares to write above each panel, where they are few."""
    if not 0 < len(names) <= 4:
        return ["" for _ in curves.share]
    finals = [[curves.final_text(panel, line) for line in range(len(names))] for panel in range(len(curves.share))]
    return [", ".join(f"{name}:\u00a0{final}" for name, final in zip(names, of, strict=True)) for of in finals]
