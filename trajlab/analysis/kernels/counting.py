"""Kernels that count: how often each value occurs in arrays that come batch by batch."""

from collections.abc import Callable

import numpy as np

MAX_PLACES = 2**26
"""More counts than this, in all groups and components together, are no table to look at."""
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
            self._check(len(union(self.values, seen)))
        size = rows * components * len(seen)
        if size > values.size:
            self._add_to_table(seen, codes, group, missing)
            return
        index = table_index(codes, group, len(seen))
        if missing is not None:
            index = np.where(missing, np.intp(size), index)  # counted behind the others: faster than to leave them out
        counts = np.bincount(index.reshape(-1), minlength=size)[:size].reshape(rows, components, len(seen))
        occurs = counts.any(axis=(0, 1))
        self._merge(seen[occurs], counts if occurs.all() else counts[..., occurs])

    def _add_to_table(
        self, seen: np.ndarray, codes: np.ndarray, group: np.ndarray | None, missing: np.ndarray | None
    ) -> None:
        """Count one by one, where there are more places than values: a table of the batch would cost more."""
        if not np.array_equal(seen, self.values):
            seen, codes = only_occurring(seen, codes, missing)
            self._meet(seen)
            codes = np.searchsorted(self.values, seen)[codes] if len(seen) else codes
        index = table_index(codes, group, len(self.values)).astype(np.intp, copy=False)
        np.add.at(self.counts.reshape(-1), index.reshape(-1) if missing is None else index[~missing], 1)

    def _merge(self, values: np.ndarray, counts: np.ndarray) -> None:
        """Add counts (group, component, value) of distinct values, ascending."""
        self._meet(values)
        if len(values) == len(self.values):
            self.counts += counts
        else:
            self.counts[..., np.searchsorted(self.values, values)] += counts

    def _meet(self, values: np.ndarray) -> None:
        """Make room for distinct values, ascending."""
        all_seen = values if np.array_equal(values, self.values) else union(self.values, values)
        if len(all_seen) > len(self.values):
            self._check(len(all_seen))
            wider = np.zeros((*self.counts.shape[:2], len(all_seen)), np.int64)
            wider[..., np.searchsorted(all_seen, self.values)] = self.counts
            self.values, self.counts = all_seen, wider

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the values that occurred, ascending, and their counts (group, component, value)."""
        occurred = self.counts.any(axis=(0, 1))
        return self.values[occurred], self.counts[..., occurred]


class PlaceCounter:
    """How often each place from 0 to `size` - 1 occurs; those below 0 are left out.

    >>> counter = PlaceCounter(3)
    >>> counter.add(np.array([2, -1, 2]))
    >>> counter.counts
    array([0, 0, 2])
    """

    def __init__(self, size: int) -> None:
        """Start with nothing counted."""
        self.counts = np.zeros(size, np.int64)

    def add(self, places: np.ndarray) -> None:
        """Count places (M,) of a batch."""
        kept = places if places.min(initial=0) >= 0 else places[places >= 0]
        if len(self.counts) > len(kept):
            np.add.at(self.counts, kept, 1)
        else:
            self.counts += np.bincount(kept, minlength=len(self.counts))


def union(seen: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the values seen so far, and others, ascending; where there are none so far, in the others' dtype."""
    return np.union1d(seen, values) if len(seen) else values


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


def places_dtype(size: int) -> type[np.signedinteger]:
    """Return the dtype of places below `size`: 32 bits where these do, for a cache holds more of them."""
    return np.int32 if size < 2**31 else np.int64


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


def table_index(codes: np.ndarray, group: np.ndarray | None, width: int) -> np.ndarray:
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
