"""Fields as images: only as many episodes and steps as there are pixels, and what their colours stand for."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr

from trajlab.analysis.common import as_rows, require_numeric
from trajlab.analysis.discrete import as_discrete, discrete_kind
from trajlab.analysis.kernels.masks import count_set, either
from trajlab.analysis.labels import list_values
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.cells import Cells
from trajlab.dataset.flat import batch_of
from trajlab.dataset.flat_whole import read_flat
from trajlab.names import EPISODE, TIME
from trajlab.plot import _labels

if TYPE_CHECKING:
    import matplotlib.axes

MAX_NAMED = 24
"""So many values have a name each at most; numbers are drawn as continuous ones where they are more."""


class Thin(NamedTuple):
    """Episodes and steps that have a pixel each: every `rows`-th episode, and every `steps`-th step."""

    ds: xr.Dataset
    rows: int
    steps: int

    def rows_text(self, what: str) -> str:
        """Return ``"every 10th of 5,000 episodes"``."""
        return f"every {ordinal(self.rows)} of {what}" if self.rows > 1 else what


def ordinal(number: int) -> str:
    """Return ``"2nd"``, ``"10th"``."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def thinned(ds: xr.Dataset, name: str, order: np.ndarray, ax: "matplotlib.axes.Axes") -> Thin:
    """Return the episodes at some positions, in this order, and their steps, no more than Axes have pixels."""
    root: Any = ax.get_figure(root=True)
    width, height = (int(points / 72 * root.dpi) for points in _labels.size_of(ax))
    cells = Cells.of(ds)
    longest = int(cells.counts[order].max(initial=0))
    rows, steps = max(-(-len(order) // height), 1), max(-(-longest // width), 1)
    part = ds[[name, *AliveRows.of(ds, name).needed]]
    return Thin(part.isel({EPISODE: order[::rows], TIME: cells.positions(np.arange(0, longest, steps))}), rows, steps)


class Pixels(NamedTuple):
    """An image, and what it shows.

    Attributes
    ----------
    image : array (episode, time, component) float64
        Places among `texts`, or numbers; NaN where there is nothing to show.
    texts : list of str or None
        What the values are called where these are counted one by one.
    num_nan : int
    """

    image: np.ndarray
    texts: list[str] | None
    num_nan: int


def read_pixels(part: xr.Dataset, name: str, labels: dict[Any, str] | None) -> Pixels:
    """Read a field, all of it."""
    kind, alive, cells = discrete_kind(part, name), AliveRows.of(part, name), Cells.of(part)
    if kind is None:
        require_numeric(part[name].variable, name, "plot_action_raster")
    span = cells.span(0, len(cells))
    batch = batch_of(read_flat(part, [name, *alive.needed]), span)
    if kind is None:
        rows = as_rows(batch.values[name]).astype(np.float64)
        nan: np.ndarray | None = np.isnan(rows)
    else:
        rows, nan = as_discrete(batch.values[name], kind)
    dead = alive.missing(batch, batch.values[name].shape)
    left_out = either(nan, dead)
    shown = np.ones(rows.shape, bool) if left_out is None else ~left_out
    texts = None
    if kind is not None:
        rows, texts = _coded(rows, shown, labels, part[name])
    elif labels is not None:
        raise ValueError(f"labels= names actions 0, 1, ...; {name!r} is continuous, expected a field of integers")
    image = np.full((part.sizes[EPISODE], part.sizes[TIME], rows.shape[1]), np.nan)
    image[span.episode, span.step] = np.where(shown, rows, np.nan)
    return Pixels(image, texts, count_set(nan, dead))


def _coded(
    rows: np.ndarray, shown: np.ndarray, labels: dict[Any, str] | None, field: xr.DataArray
) -> tuple[np.ndarray, list[str] | None]:
    """Return the place of each value among those listed, and what these are called; numbers as they are if too many."""
    if rows.dtype.kind in "iu":
        rows = rows.astype(np.uint64 if rows.dtype == np.uint64 else np.int64)
    seen, counts = np.unique(rows[shown], return_counts=True)
    listed, _ = list_values(seen, counts, labels, field.attrs, str(field.name))
    if labels is None and listed.dtype.kind in "iu" and len(listed) > MAX_NAMED:
        return rows.astype(np.float64), None
    codes = np.searchsorted(listed, rows.astype(listed.dtype))
    return codes, [str(value) if labels is None else labels[value] for value in listed.tolist()]
