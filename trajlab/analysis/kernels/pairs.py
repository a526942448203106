"""Kernels that count pairs: how often one value followed another in rows that stand in order."""

from collections.abc import Callable

import numpy as np

from trajlab.analysis.kernels.counting import coded, only_occurring, places_dtype, union

FEW_VALUES = 64
"""So many candidate values have a table of pairs at once; where there are more, those that occur are sought first."""
TILE = 2**17
"""Pairs counted at once, so that index arrays stay in the processor's cache."""


class PairCounter:
    """Counts of pairs of neighbours, for each group and component.

    Attributes
    ----------
    values : array (value,)
        Values that occurred, ascending, also those in no pair.
    counts : array (group, component, value, value) int64
        How often the second value followed the first.
    """

    def __init__(self, groups: int = 1, components: int = 1, check: Callable[[int], None] = lambda _: None) -> None:
        """Start with nothing counted; `check` is called with the number of values before room is made for them."""
        self._check = check
        self.values: np.ndarray = np.zeros(0, np.int64)
        self.counts = np.zeros((groups, components, 0, 0), np.int64)

    def add(
        self,
        values: np.ndarray,
        last: np.ndarray,
        group: np.ndarray | None = None,
        missing: np.ndarray | None = None,
        ahead: int = 1,
    ) -> None:
        """Count pairs of rows (M, component) that follow each other.

        Parameters
        ----------
        values : array (M, component)
            Bools, integers or text.
        last : array (K,) of int
            Places of rows that the row `ahead` places later does not follow, each once. Those of the last `ahead` rows
            need not be there.
        group : array (M,) of int, optional
            Group of the first of a pair; pairs with one below 0 are left out.
        missing : array (M, component) of bool, optional
            What is in no pair.
        ahead : int
            How many places later the row stands that follows one.
        """
        if not values.size:
            return
        seen, codes = coded(values)
        if len(seen) > FEW_VALUES:
            seen, codes = only_occurring(seen, codes, missing)
            self._check(len(union(self.values, seen)))
        if missing is not None:
            codes = np.where(missing, np.intp(len(seen)), codes)
        groups = self.counts.shape[0]
        if group is not None and group.min() < 0:
            group = np.where(group < 0, groups, group)
        counts, occurs = _count(codes, last, group, len(seen) + (missing is not None), groups, ahead)
        occurs = occurs[: len(seen)]
        kept = np.flatnonzero(occurs)
        self._merge(seen[occurs], counts[:, :, kept[:, None], kept])

    def _merge(self, values: np.ndarray, counts: np.ndarray) -> None:
        """Add counts (group, component, value, value) of distinct values, ascending."""
        all_seen = union(self.values, values)
        if len(all_seen) > len(self.values):
            self._check(len(all_seen))
            wider = np.zeros((*self.counts.shape[:2], len(all_seen), len(all_seen)), np.int64)
            own = np.searchsorted(all_seen, self.values)
            wider[:, :, own[:, None], own] = self.counts
            self.values, self.counts = all_seen, wider
        place = np.searchsorted(self.values, values)
        self.counts[:, :, place[:, None], place] += counts


def _count(
    codes: np.ndarray, last: np.ndarray, group: np.ndarray | None, width: int, groups: int, ahead: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return counts (group, component, width, width) of pairs of codes (M, component), and which codes occur (width,).

    All neighbours are counted, and then those that do not follow each other are taken away: they are few.
    """
    rows, components = codes.shape
    shape = (groups + 1, components, width, width)  # the last group is that of none
    size = int(np.prod(shape))
    dtype = places_dtype(size)

    def counted(first: np.ndarray | slice, second: np.ndarray | slice) -> np.ndarray:
        index = codes[first].astype(dtype)
        index *= width
        index += codes[second].astype(dtype, copy=False)
        if components > 1:
            index += np.arange(components, dtype=dtype) * width**2
        if group is not None:
            index += (group[first].astype(dtype, copy=False) * (components * width**2))[:, None]
        return np.bincount(index.reshape(-1), minlength=size)

    counts = np.zeros(size, np.int64)
    step = max(TILE, size) // components + 1
    for start in range(0, rows - ahead, step):
        stop = min(start + step, rows - ahead)
        counts += counted(slice(start, stop), slice(start + ahead, stop + ahead))
    occurs: np.ndarray = np.any(counts.reshape(shape)[:groups], axis=(0, 1, 3))
    latest = codes[-ahead:] if group is None else codes[-ahead:][group[-ahead:] < groups]
    occurs[latest.reshape(-1)] = True
    last = last[last < rows - ahead]
    counts -= counted(last, last + ahead)
    found = counts.reshape(shape)[:groups]
    occurs |= np.any(found, axis=(0, 1, 2))  # the second one of a pair may itself be in no group
    return found, occurs
