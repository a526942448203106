"""Kernels that count: how often each value, or each bin, occurs in arrays that come batch by batch."""

from collections.abc import Callable
from typing import Any

import numpy as np

MAX_DENSE = 2**16
"""A batch is counted value by value when its values span at most this much, and sorted otherwise."""
FEW = 1024
"""Values below this are counted from 0, which saves subtracting the smallest."""


class ValueCounter:
    """Counts of each distinct value, for each group and component.

    Attributes
    ----------
    values : array (value,)
        Values seen so far, ascending.
    counts : array (group, component, value) int64
    """

    def __init__(self, groups: int = 1, components: int = 1, check: Callable[[int], None] = lambda _: None) -> None:
        """Start with nothing counted; `check` is called with the number of values before room is made for them."""
        self._check = check
        self.values: np.ndarray = np.zeros(0, np.int64)
        self.counts = np.zeros((groups, components, 0), np.int64)

    def add(self, values: np.ndarray, group: np.ndarray | None = None, missing: np.ndarray | None = None) -> None:
        """Count values (M, component).

        Parameters
        ----------
        values : array (M, component)
            Bools, integers or text.
        group : array (M,) of int, optional
            Those below 0 are left out.
        missing : array (M, component) of bool, optional
            What is not to be counted.
        """
        if group is not None and group.min(initial=0) < 0:
            kept = group >= 0
            values, group = values[kept], group[kept]
            missing = None if missing is None else missing[kept]
        if not values.size:
            return
        seen, codes = coded(values)
        rows, components = self.counts.shape[:2]
        if len(seen) > FEW or rows * components * len(seen) > 4 * values.size + MAX_DENSE:
            seen, codes = only_occurring(seen, codes, missing)
            self._check(len(self._with(seen)))
        index = _table_index(codes, group, len(seen))
        size = rows * components * len(seen)
        if missing is not None:
            index = np.where(missing, np.intp(size), index)  # counted behind the others: faster than to leave them out
        counts = np.bincount(index.reshape(-1), minlength=size)[:size].reshape(rows, components, len(seen))
        occurs = counts.any(axis=(0, 1))
        self._merge(seen[occurs], counts if occurs.all() else counts[..., occurs])

    def _with(self, values: np.ndarray) -> np.ndarray:
        """Return the values seen so far, and others, ascending."""
        return np.union1d(self.values, values) if len(self.values) else values

    def _merge(self, values: np.ndarray, counts: np.ndarray) -> None:
        """Add counts (group, component, value) of distinct values, ascending."""
        union = values if np.array_equal(values, self.values) else self._with(values)
        if len(union) > len(self.values):
            self._check(len(union))
            wider = np.zeros((*self.counts.shape[:2], len(union)), np.int64)
            wider[..., np.searchsorted(union, self.values)] = self.counts
            self.values, self.counts = union, wider
        if len(values) == len(self.values):
            self.counts += counts
        else:
            self.counts[..., np.searchsorted(self.values, values)] += counts

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the values that occurred, ascending, and their counts (group, component, value)."""
        occurred = self.counts.any(axis=(0, 1))
        return self.values[occurred], self.counts[..., occurred]


def coded(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return candidate values, ascending, and the place of each element among them (same shape)."""
    if values.dtype.kind == "b":
        return np.array([False, True]), values.view(np.uint8)
    if values.dtype.kind not in "iu":
        return _sorted_codes(values)
    wide = np.uint64 if values.dtype == np.uint64 else np.int64
    smallest, largest = int(values.min()), int(values.max())
    if largest - smallest >= MAX_DENSE:
        seen, codes = _sorted_codes(values)
        return seen.astype(wide), codes
    if smallest >= 0 and largest < FEW:
        return np.arange(largest + 1, dtype=wide), values
    codes = (values.astype(wide) - wide(smallest)).astype(np.intp)
    return np.arange(largest - smallest + 1, dtype=wide) + wide(smallest), codes


def only_occurring(
    seen: np.ndarray, codes: np.ndarray, missing: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the candidates that occur, and the place of each element among them; any where it is `missing`."""
    counted = (codes if missing is None else codes[~missing]).reshape(-1)
    occurs = np.bincount(counted.astype(np.intp, copy=False), minlength=len(seen)) > 0
    return seen[occurs], np.maximum(np.cumsum(occurs) - 1, 0)[codes]


def _sorted_codes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    seen, codes = np.unique(values, return_inverse=True)
    return seen, codes.reshape(values.shape)


def _table_index(codes: np.ndarray, group: np.ndarray | None, width: int) -> np.ndarray:
    """Return the place of each code (M, component) in a flat table (group, component, width)."""
    components = codes.shape[1]
    if components == 1:
        codes = codes.astype(np.intp, copy=False) if codes.dtype.kind == "u" and codes.dtype.itemsize == 8 else codes
        return codes if group is None else (group * width + codes[:, 0])[:, None]
    index = codes.astype(np.intp)
    if components > 1:
        index += np.arange(components) * width
    if group is not None:
        index += (group * (components * width))[:, None]
    return index


class BinCounter:
    """Counts of values in bins, for each group and component, and of what lies in none.

    Attributes
    ----------
    counts : array (group, component, bin) int64
    nan, below, above : int
        Number of values that are NaN, below the first edge, above the last.
    """

    def __init__(self, edges: np.ndarray, groups: int = 1, components: int = 1) -> None:
        """Start with nothing counted; `edges` (bin + 1,) ascend."""
        self.edges = np.asarray(edges, np.float64)
        self.counts = np.zeros((groups, components, len(self.edges) - 1), np.int64)
        self.nan = self.below = self.above = 0

    def add(self, values: np.ndarray, group: np.ndarray | None = None, missing: np.ndarray | None = None) -> None:
        """Count `values` (M, component) that are not `missing`; entries of `group` (M,) below 0 are left out."""
        if group is not None and group.min(initial=0) < 0:
            kept = group >= 0
            values, group = values[kept], group[kept]
            missing = None if missing is None else missing[kept]
        values = values.astype(np.float64)
        inside = (values >= self.edges[0]) & (values <= self.edges[-1])
        counted = True if missing is None else ~missing
        inside &= counted
        whole = bool(inside.all())
        if not whole:
            self.nan += int((np.isnan(values) & counted).sum())
            self.below += int(((values < self.edges[0]) & counted).sum())
            self.above += int(((values > self.edges[-1]) & counted).sum())
            values = np.where(inside, values, self.edges[0])
        index = _table_index(bin_index(values, self.edges), group, self.counts.shape[-1])
        index = index.reshape(-1) if whole else index[inside]
        self.counts += np.bincount(index, minlength=self.counts.size).reshape(self.counts.shape)


def bin_index(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the bin of each value that lies within `edges`; as in NumPy, the last bin holds its right edge too.

    >>> bin_index(np.array([0.0, 0.9, 1.0, 2.0]), np.array([0.0, 1.0, 2.0]))
    array([0, 0, 1, 1])
    """
    last = len(edges) - 2
    with np.errstate(over="ignore"):
        width = (edges[-1] - edges[0]) / (last + 1)
        even = np.isfinite(width) and np.allclose(np.diff(edges), width, rtol=min(1e-6, 0.1 / (last + 1)), atol=0)
        if not even or not np.isfinite(1 / width):
            return np.minimum(np.searchsorted(edges, values, side="right") - 1, last)
    scaled = values - edges[0]
    scaled *= 1 / width
    index = scaled.astype(np.int32)  # processors turn floats to 64 bits one by one
    scaled -= index
    scaled -= 0.5
    np.abs(scaled, out=scaled)
    off = np.abs((edges - edges[0]) / width - np.arange(last + 2)).max() + 1e-15 * (last + 2)
    near = np.nonzero(scaled >= 0.5 - 2 * off)  # there rounding may have gone over an edge
    if near[0].size:
        index[near] = np.minimum(np.searchsorted(edges, values[near], side="right") - 1, last)
    return index.astype(np.intp)


class RangeFinder:
    """The smallest and largest finite value of arrays that come batch by batch, NaN where there is none."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self.smallest = self.largest = np.nan

    def add(self, values: np.ndarray) -> None:
        """Take further values, of any shape."""
        if not values.size:
            return
        ends = values.min(), values.max()
        if not np.isfinite(ends).all():
            values = values[np.isfinite(values)]
            if not values.size:
                return
            ends = values.min(), values.max()
        self.smallest = float(np.fmin(self.smallest, float(ends[0])))
        self.largest = float(np.fmax(self.largest, float(ends[1])))


def even_edges(smallest: float, largest: float, bins: int) -> np.ndarray:
    """Return `bins` + 1 evenly spaced edges over a range; as in NumPy one wide where it is a single value.

    A range with fewer than two floats per bin is widened to that, so that edges always ascend.

    >>> even_edges(2.0, 2.0, 2)
    array([1.5, 2. , 2.5])
    """
    if np.isnan(smallest):
        smallest, largest = 0.0, 1.0
    limit = float(np.finfo(np.float64).max)
    room = 4.0 * bins * float(np.spacing(min(max(abs(smallest), abs(largest)), limit / 2)))
    least = max(room, 1.0) if smallest == largest else room
    if largest / 2 - smallest / 2 < least / 2:
        smallest, largest = _widened(smallest, largest, least, limit)
    with np.errstate(over="ignore"):  # of the last edge before it is set, in NumPy 2.0
        if np.isfinite(largest - smallest):
            return np.linspace(smallest, largest, bins + 1)
        edges = np.linspace(smallest / 2, largest / 2, bins + 1) * 2
    edges[[0, -1]] = smallest, largest
    return edges


def _widened(smallest: float, largest: float, least: float, limit: float) -> tuple[float, float]:
    """Return a range `least` wide around another one, moved where it would go beyond the largest float."""
    lower, upper = largest / 2 + smallest / 2 - least / 2, largest / 2 + smallest / 2 + least / 2
    if upper > limit:
        lower, upper = limit - least, limit
    if lower < -limit:
        lower, upper = -limit, -limit + least
    return min(lower, smallest), max(upper, largest)


def as_edges(given: Any) -> np.ndarray | None:
    """Return edges (bin + 1,) as float64; None for what is not at least two finite numbers, ascending.

    >>> as_edges([0, 1]), as_edges([1, 0]), as_edges("ab")
    (array([0., 1.]), None, None)
    """
    try:
        edges = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        return None
    is_fit = edges.ndim == 1 and len(edges) > 1 and np.isfinite(edges).all() and (np.diff(edges) > 0).all()
    return edges if is_fit else None


def bin_middles(edges: np.ndarray) -> np.ndarray:
    """Return the middle of each bin; halved before they are added, since their sum may be too large."""
    with np.errstate(over="ignore"):
        middles = (edges[:-1] + edges[1:]) / 2
    return np.where(np.isfinite(middles), middles, edges[:-1] / 2 + edges[1:] / 2)
