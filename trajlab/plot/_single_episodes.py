"""Single episodes, drawn faintly behind what was made of all of them."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.alignment.alignments import Alignment
from trajlab.analysis.common import as_rows
from trajlab.dataset.alive_rows import AliveRows
from trajlab.names import EPISODE
from trajlab.plot import _figure, _style


def single_lines(
    ds: xr.Dataset,
    name: str,
    which: np.ndarray,
    alignment: Alignment,
    group: np.ndarray | None,
    panels: _figure.Panels,
    looks: Sequence[_style.Look],
) -> list[Any]:
    """Return for each component a collection of single episodes, each in the colour of its group."""
    from matplotlib.collections import LineCollection

    part, alignment = ds.isel({EPISODE: which}), alignment.take(which)
    alive = AliveRows.of(part, name)
    found = []
    for batch in alignment.transitions(part, [name, *alive.needed]):
        rows, dead = as_rows(batch.values[name]).astype(np.float64), alive.missing(batch, batch.values[name].shape)
        found.append((batch.episode, alignment.at(batch), rows if dead is None else np.where(dead, np.nan, rows)))
    grey = _style.neutral(panels.axes[0])
    shade: list[Any] = [grey] * len(which)
    if group is not None:
        shade = [looks[code].color if code >= 0 else grey for code in group[which]]
    lines: list[list[np.ndarray]] = [[] for _ in panels.axes]
    if found:
        episode, place, rows = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        ends = alignment.labels[[0, -1]] + np.array([-0.5, 0.5]) * alignment.width
        inside = (place >= ends[0]) & (place <= ends[1])
        episode, place, rows = episode[inside], place[inside], rows[inside]
        order = np.lexsort((place, episode))
        episode, place, rows = episode[order], place[order], rows[order]
        edges = np.searchsorted(episode, np.arange(len(which) + 1))
        for component, segments in enumerate(lines):
            points = np.column_stack([place, rows[:, component]])
            segments += [points[a:b] for a, b in itertools.pairwise(edges)]
    style: dict[str, Any] = {"linewidths": 0.6, "alpha": 0.35, "zorder": 1}
    return [LineCollection(segments, colors=shade or grey, **style) for segments in lines]
