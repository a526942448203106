"""What makes one page of the panels that several plots drew."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import made_by
from trajlab.analysis.grouping.groups import Groups
from trajlab.names import NUM_COMPLETE_ATTR, NUM_TRANSITIONS_ATTR
from trajlab.plot import _figure, _labels, _legend, _style, _text

if TYPE_CHECKING:
    import matplotlib.axes

LEGEND_POINTS = 7
"""Size of letters in a legend above a panel."""
LETTERS = 16
"""Longer names beside a panel are broken."""
MAX_NAMES = 4
"""So many of the fields that are not shown are named."""


def finish_panel(ax: "matplotlib.axes.Axes", title: str, limits: tuple[float, float] | None, kept: str | None) -> None:
    """Say above a panel what it shows and what it does not, and leave what all panels share to the page.

    The y axis ends at `limits`, or else around what is drawn. Of a legend those entries stay that begin with `kept`.
    """
    said = " ".join(" ".join(ax.get_title(loc=place) for place in ("center", "right")).split())
    _, found, note = said.partition("not shown: ")
    ax.set_title("", loc="right")
    _labels.write_panel_title(ax, [title, *([found + note.split(" in no group")[0]] if found else [])])
    if ax.yaxis_inverted():  # names of bars that lie on their side, which would take room from all panels above
        names = [" ".join(text.get_text().split("\n")) for text in ax.get_yticklabels()]
        ax.set_yticks(ax.get_yticks(), _labels.broken_rows(ax, names, LETTERS))
    legend = ax.get_legend()
    if legend is None:
        return
    if limits is None:
        ax.autoscale(axis="y")  # which had made room for the legend
    else:
        ax.set_ylim(limits)
    legend.remove()
    entries = {text.get_text(): own for text, own in zip(legend.get_texts(), legend.legend_handles, strict=True)}
    entries = {text: own for text, own in entries.items() if kept is not None and text.startswith(kept)}
    if entries:
        _write_legend(ax, [*entries.values()], [*entries])


def _write_legend(ax: "matplotlib.axes.Axes", handles: list[Any], texts: list[str]) -> None:
    """Write a legend above the panel, below its title."""
    points, room = LEGEND_POINTS, _labels.size_of(ax)[0]
    if _row_width(texts) * points > room:
        texts = [text.split(" (")[0] for text in texts]  # without counts
    columns = len(texts) if _row_width(texts) * points <= room else -(-len(texts) // 2)
    _legend.write_above(ax, handles, texts, columns, points)


def _row_width(texts: Sequence[str]) -> float:
    """Return about how wide the entries of a legend are side by side, as a multiple of the size of their letters."""
    return sum(0.55 * len(text) + 3.2 for text in texts)


def write_frame(
    ds: xr.Dataset, panels: _figure.Panels, chosen: Groups, is_grouped: bool, hidden: Sequence[str]
) -> None:
    """Write what the page is of, what its lines and colours are, and which fields there was no room for."""
    attrs = made_by(ds, "plot_overview", "")
    complete, transitions = attrs[NUM_COMPLETE_ATTR], attrs[NUM_TRANSITIONS_ATTR]
    lines = [f"{_text.count_text(attrs)}, {complete:,} complete; {transitions:,} transitions"]
    if transitions:
        single = "" if is_grouped else "; thin lines: single episodes"
        lines.append(f"bands: 95 % intervals, of states 10–90 % of the episodes{single}; n: episodes")
    if hidden:
        more = f" and {len(hidden) - MAX_NAMES} more" if len(hidden) > MAX_NAMES else ""
        lines.append(f"not shown: {', '.join(hidden[:MAX_NAMES])}{more}")
    if is_grouped:
        handles = [_legend.line(look.color) for look in _style.looks_of(ds, panels, chosen)]
        counts, what = _legend.member_counts(chosen, np.zeros(0))
        _legend.write_legend(panels, handles, _legend.group_labels(chosen, counts), _legend.groups_title(chosen, what))
    _labels.write_title(panels, lines + _legend.left_out(chosen))
