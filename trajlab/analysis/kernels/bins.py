"""Kernels for bins: which of them a value is in, and how many values are in each."""

import numpy as np

from trajlab.analysis.kernels.counting import table_index


class BinFinder:
    """Finds the bin of each value within `edges` (bin + 1,), which ascend; the last bin holds its right edge too.

    >>> BinFinder(np.array([0.0, 1.0, 2.0])).find(np.array([0.0, 0.9, 1.0, 2.0]))
    array([0, 0, 1, 1], dtype=int32)
    """

    def __init__(self, edges: np.ndarray) -> None:
        """Look whether the bins are of one width: then the bin of a value follows from it."""
        self.edges, self._last = edges, len(edges) - 2
        count = len(edges) - 1
        with np.errstate(over="ignore"):
            width = (edges[-1] - edges[0]) / count
            is_even = np.isfinite(width) and np.allclose(np.diff(edges), width, rtol=min(1e-6, 0.1 / count), atol=0)
            self._scale = 1 / width if is_even and np.isfinite(1 / width) else None
        if self._scale is not None:
            off = np.abs((edges - edges[0]) / width - np.arange(count + 1)).max()
            self._near = 2 * (off + 1e-15 * (count + 1))

    def holds(self, values: np.ndarray) -> bool:
        """Say whether all values lie within the edges, and none is NaN."""
        return not values.size or bool(values.min() >= self.edges[0] and values.max() <= self.edges[-1])

    def find(self, values: np.ndarray) -> np.ndarray:
        """Return the bin of values that lie within the edges, of the same shape, int32 or intp."""
        if self._scale is None:
            return self._searched(values)
        scaled = values - self.edges[0]
        scaled *= self._scale
        index = scaled.astype(np.int32)
        scaled -= np.rint(scaled)
        near = np.abs(scaled, out=scaled) <= self._near  # there rounding may have gone over an edge
        if near.any():
            index[near] = self._searched(values[near])
        return index

    def _searched(self, values: np.ndarray) -> np.ndarray:
        return np.minimum(np.searchsorted(self.edges, values, side="right") - 1, self._last)


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
        self._finder = BinFinder(self.edges)
        self.counts = np.zeros((groups, components, len(self.edges) - 1), np.int64)
        self.nan = self.below = self.above = 0

    def add(self, values: np.ndarray, group: np.ndarray | None = None, missing: np.ndarray | None = None) -> None:
        """Count `values` (M, component) that are not `missing`; entries of `group` (M,) below 0 are left out."""
        if group is not None and group.min(initial=0) < 0:
            kept = group >= 0
            values, group = values[kept], group[kept]
            missing = None if missing is None else missing[kept]
        is_inside = missing is None and self._finder.holds(values)
        values, inside = values.astype(np.float64), None
        if not is_inside:
            inside = self._inside(values, True if missing is None else ~missing)
            values = np.where(inside, values, self.edges[0])
        index = table_index(self._finder.find(values), group, self.counts.shape[-1])
        index = index.reshape(-1) if inside is None else index[inside]
        self.counts += np.bincount(index, minlength=self.counts.size).reshape(self.counts.shape)

    def _inside(self, values: np.ndarray, counted: np.ndarray | bool) -> np.ndarray:
        """Return which of the values counted are in a bin, and count the others of them."""
        self.nan += int((np.isnan(values) & counted).sum())
        self.below += int(((values < self.edges[0]) & counted).sum())
        self.above += int(((values > self.edges[-1]) & counted).sum())
        return (values >= self.edges[0]) & (values <= self.edges[-1]) & counted


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
