"""Kernels: on which side of its bounds each value is, and how far it is from another one."""

import numpy as np

from trajlab.analysis.kernels.counting import ValueCounter
from trajlab.analysis.kernels.masks import count_set, either
from trajlab.analysis.kernels.moments import sum_by_index


class SideCounter:
    """Counts of values at the low bound or below, between, and at the high bound or above.

    Attributes
    ----------
    num_nan : int
        Values that are NaN, and on no side.
    """

    def __init__(self, low: np.ndarray, high: np.ndarray, groups: int) -> None:
        """Start with nothing counted; `low` and `high` (component,) are apart."""
        self._low, self._high = low, high
        self._counter = ValueCounter(groups, len(low))
        self.num_nan = 0

    def add(self, values: np.ndarray, group: np.ndarray | None, missing: np.ndarray | None) -> None:
        """Count `values` (M, component) that are not `missing`; entries of `group` (M,) below 0 are left out."""
        side = np.ones(values.shape, np.uint8)
        side -= values <= self._low
        side += values >= self._high
        nan = find_nan(values)
        self.num_nan += count_set(nan, missing)
        self._counter.add(side, group, either(nan, missing))

    def result(self) -> np.ndarray:
        """Return the counts (group, component, side)."""
        return _spread(self._counter, 3)


class DifferenceCounter:
    """How many pairs of values differ by more than a tolerance, and the mean of their absolute difference.

    Attributes
    ----------
    num_nan : int
        Pairs whose difference is NaN.
    """

    def __init__(self, tolerance: np.ndarray, groups: int) -> None:
        """Start with nothing counted; `tolerance` (component,)."""
        self._tolerance = tolerance
        self._counter = ValueCounter(groups, len(tolerance))
        self._sums = np.zeros((groups, len(tolerance)))
        self.num_nan = 0

    def add(self, values: np.ndarray, others: np.ndarray, group: np.ndarray | None, missing: np.ndarray | None) -> None:
        """Take pairs of rows (M, component) that are not `missing`; entries of `group` (M,) below 0 are left out."""
        difference = _difference(values, others)
        nan = find_nan(difference)
        self.num_nan += count_set(nan, missing)
        tolerance = self._tolerance.astype(difference.dtype)
        self._counter.add(difference > tolerance, group, either(nan, missing))
        if missing is not None:
            difference[missing] = 0.0
        if group is None:
            with np.errstate(over="ignore"):
                self._sums[0] += difference.sum(axis=0, dtype=np.float64)
        else:
            kept = group >= 0
            index, rows = (group, difference) if kept.all() else (group[kept], difference[kept])
            self._sums += sum_by_index(index, rows.astype(np.float64), len(self._sums))

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the share that differs and the mean difference, (group, component); NaN where there is no pair.

        A difference that is NaN is of no share, and makes the mean NaN.
        """
        counts = _spread(self._counter, 2)
        total = counts.sum(axis=-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return counts[..., 1] / total, self._sums / total


def _difference(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return absolute differences, 0 where both are the same infinity.

    Of two dtypes of floats the coarser one counts: what was only rounded to it is no difference.
    """
    dtype = np.dtype(np.float64)
    if values.dtype.kind == others.dtype.kind == "f":
        dtype = min(values.dtype, others.dtype, key=lambda one: one.itemsize)
    with np.errstate(invalid="ignore", over="ignore"):
        values, others = values.astype(dtype, copy=False), others.astype(dtype, copy=False)
        difference = values - others
    np.abs(difference, out=difference)
    if find_nan(difference) is not None:
        difference[values == others] = 0.0
    return difference


def find_nan(values: np.ndarray) -> np.ndarray | None:
    """Return where values are NaN, None where none is."""
    if values.dtype.kind != "f":
        return None
    nan = np.isnan(values)
    return nan if nan.any() else None


def _spread(counter: ValueCounter, size: int) -> np.ndarray:
    """Return the counts of the values 0 to `size` - 1, (group, component, size), seen or not."""
    values, counts = counter.result()
    out = np.zeros((*counts.shape[:-1], size), np.int64)
    out[..., values.astype(np.intp)] = counts
    return out
