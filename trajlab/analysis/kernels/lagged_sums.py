"""Kernels for pairs of rows that are some steps apart: sums over all of those that lie in one episode."""

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from trajlab.analysis.kernels.spacing import Spacing

TILE = 2**13
"""Rows multiplied at once: they stay in the processor's cache, and OpenBLAS uses threads for more than 10,000 only."""
ROUNDING = 1e-10
"""A variance that is a smaller part of the mean square is not told from rounding."""


class PairSums(NamedTuple):
    """Number of pairs (lag,), and five sums over them (5, lag, component).

    These are the earlier values, the later ones, the squares of either, and the products.
    """

    n: np.ndarray
    sums: np.ndarray


class LagSums:
    """Sums over pairs of an earlier row and one `lag` steps later, for each group, lag and component.

    Attributes
    ----------
    most : int
        The longest lag.
    n : array (group, lag) int64
        Number of pairs.
    undefined : array (group, lag, component) bool
        Whether a value of a pair was not finite.
    shift : array (group, component) float64
        What is subtracted from values before they are summed.
    """

    def __init__(self, groups: int, components: int, most: int) -> None:
        """Start with no pairs, for lags from 0 to `most`."""
        self.most = most
        self.n = np.zeros((groups, most + 1), np.int64)
        self.undefined = np.zeros((groups, most + 1, components), bool)
        self._sums = np.zeros((5, groups, most + 1, components))
        self.shift = np.zeros((groups, components))
        self._met = np.zeros((groups, components), bool)

    def add(self, code: int, pairs: PairSums) -> None:
        """Add sums over pairs of one group."""
        lags = slice(len(pairs.n))
        self.n[code, lags] += pairs.n
        self._sums[:, code, lags] += pairs.sums

    @np.errstate(over="ignore", invalid="ignore")  # of products of values beyond 1e150: they leave a NaN
    def add_rows(
        self,
        rows: np.ndarray,
        spacing: Spacing,
        group: np.ndarray | None = None,
        present: np.ndarray | None = None,
    ) -> None:
        """Take any rows (M, component), each with a group (M,) of its own, of which some are not `present` (M,).

        The earlier row of a pair decides its group; below 0 it is in none.
        """
        lags = slice(spacing.gap + 1)
        present = np.ones(len(rows), bool) if present is None else present
        group = np.where(present, 0 if group is None else group, -1)
        there, finite = spacing.put(present), np.isfinite(rows)
        for code in np.unique(group[group >= 0]).tolist():
            if not self._met[code].all():
                self.meet(code, rows[group == code])
            first = spacing.put(group == code)
            self.n[code, lags] += np.rint(lagged_products(first, there, spacing.gap)).astype(np.int64)
            for component in range(rows.shape[1]):
                known = finite[:, component]
                x = spacing.put(np.where(known & present, rows[:, component] - self.shift[code, component], 0.0))
                earlier = x * first
                pairs = ((earlier, there), (first, x), (earlier * x, there), (first, x * x), (earlier, x))
                self._sums[:, code, lags, component] += [lagged_products(a, b, spacing.gap) for a, b in pairs]
                if not known.all():
                    bad = spacing.put(~known & present)
                    found = lagged_products(bad * first, there, spacing.gap) + lagged_products(first, bad, spacing.gap)
                    self.undefined[code, lags, component] |= found > 0.5

    def meet(self, code: int, rows: np.ndarray) -> np.ndarray:
        """Set what is subtracted from a group's values, if there are some, and return which of `rows` it is, or -1.

        It is the median of the first ones met, (M, component), for each component, so nothing cancels where values
        are large and vary little, and values that do not vary at all become 0.
        """
        places = np.array([_place_of_median(column) for column in rows.T], np.intp)
        new = (places >= 0) & ~self._met[code]
        self.shift[code, new] = rows[places[new], new.nonzero()[0]]
        self._met[code] |= new
        return places

    def overflown(self) -> np.ndarray:
        """Return where (group, lag, component) values are finite, and their sums, or the squares of these, are not."""
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self._sums[:2] ** 2
        return ~(np.isfinite(self._sums).all(axis=0) & np.isfinite(squares).all(axis=0)) & ~self.undefined

    def correlation(self) -> np.ndarray:
        """Return Pearson's correlation (group, lag, component) over the pairs; NaN where either side does not vary."""
        n = self.n[..., np.newaxis]
        earlier, later, earlier_squares, later_squares, products = self._sums
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            out = (products - earlier * later / n) / np.sqrt(_varying(earlier, earlier_squares, n))
            out /= np.sqrt(_varying(later, later_squares, n))
        out = np.clip(out, -1.0, 1.0)
        out[:, 0] = np.where(np.isnan(out[:, 0]), np.nan, 1.0)
        out[self.undefined] = np.nan
        return out


def _place_of_median(values: np.ndarray) -> int:
    """Return the place of the median of the finite values, of two the lower, or -1 where there is none."""
    finite = np.flatnonzero(np.isfinite(values))
    middle = (len(finite) - 1) // 2
    return int(finite[np.argpartition(values[finite], middle)[middle]]) if len(finite) else -1


def _varying(sums: np.ndarray, squares: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return `n` times the variance of values with these sums, NaN where they do not vary."""
    variance = squares - sums**2 / n
    return np.where(variance > ROUNDING * squares, variance, np.nan)


def sum_pairs(
    values: np.ndarray, shift: np.ndarray, starts: np.ndarray, stops: np.ndarray, gap: int
) -> PairSums | None:
    """Return sums over the pairs of some episodes at lags from 0 to `gap`; None where a value is not finite.

    Parameters
    ----------
    values : array (place, component)
        The `shift` in the first `gap` places, the last `gap`, and in as many or more between any two episodes.
    shift : array (component,) float64
        What is subtracted from values before they are summed.
    starts, stops : array (episode,) of int
        First place of each episode, and the one behind its last, ascending.
    gap : int
    """
    sums = np.empty((5, gap + 1, values.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):  # sums of what is beyond 1e150 need not be floats
        for component in range(values.shape[1]):
            x = values[:, component].astype(np.float64)
            x -= shift[component]
            if not np.isfinite(x.sum()):
                return None
            sums[:4, :, component] = sum_edges(x, x * x, starts, stops, gap)
            sums[4, :, component] = lagged_products(x[gap : len(x) - gap], x[gap:], gap)
    return PairSums(count_pairs(stops - starts, gap), sums)


def lagged_products(earlier: np.ndarray, later: np.ndarray, most: int) -> np.ndarray:
    """Return ``sum(earlier[i] * later[i + lag])`` for lags from 0 to `most`, (most + 1,).

    What `later` lacks behind its end is taken for 0.

    >>> lagged_products(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]), 2)
    array([14.,  8.,  3.])
    """
    out = np.zeros(most + 1)
    for start in range(0, len(earlier), TILE):
        first = earlier[start : start + TILE]
        second = later[start : start + len(first) + most]
        if lacking := len(first) + most - len(second):
            second = np.append(second, np.zeros(lacking))
        out += np.correlate(second, first, "valid")  # one product of vectors for each lag
    return out


def sum_edges(values: np.ndarray, squares: np.ndarray, starts: np.ndarray, stops: np.ndarray, most: int) -> np.ndarray:
    """Return sums over the earlier and the later values of all pairs, and over their squares, (4, most + 1).

    Episodes lie from `starts` to `stops`, with `most` zeros or more before and behind each. A value is the earlier one
    of a pair of lag `k` where `k` or more follow it in its episode, and the later one where as many precede it. So
    these are sums of what lies `most` or farther from an end, and of what lies nearer, added place by place: nothing
    is subtracted, and no sum suffers from the size of what it does not hold.

    >>> values = np.array([0.0, 1.0, 2.0, 4.0, 0.0])
    >>> sum_edges(values, values**2, np.array([1]), np.array([4]), 1)
    array([[ 7.,  3.],
           [ 7.,  6.],
           [21.,  5.],
           [21., 20.]])
    """
    out = np.zeros((4, most + 1))
    is_long = stops - starts > most
    for row, far in enumerate((values, squares)):
        out[2 * row : 2 * row + 2, 0] = sum_far(far, starts[is_long], stops[is_long], most)
    if most:
        windows = sliding_window_view(values, most)
        for row, near in enumerate((windows[stops - most], windows[starts][:, ::-1])):
            out[row, 1:] = near.sum(axis=0)
            out[2 + row, 1:] = np.einsum("ij,ij->j", near, near)
    return np.cumsum(out, axis=1)[:, ::-1]


def sum_far(values: np.ndarray, starts: np.ndarray, stops: np.ndarray, most: int) -> tuple[float, float]:
    """Return the sums of what lies `most` or farther before the end of each episode, and behind its start.

    Each is longer than `most`, and a place behind the last one is there, unless `most` is 0.

    >>> sum_far(np.array([0.0, 1.0, 2.0, 4.0, 0.0]), np.array([1]), np.array([4]), 1)
    (3.0, 6.0)
    """
    if not most or not len(starts):
        return (float(values.sum()),) * 2 if not most else (0.0, 0.0)
    behind, before = starts + most, stops - most
    is_wide = behind < before
    edges = np.stack([starts, np.minimum(behind, before), np.maximum(behind, before), stops], axis=1)
    first, middle, last, _ = np.add.reduceat(values, edges.reshape(-1)).reshape(-1, 4).T
    both = middle[is_wide].sum()
    return float(first.sum() + both), float(last.sum() + both)


def count_pairs(lengths: np.ndarray, most: int) -> np.ndarray:
    """Return how many pairs episodes have, for lags from 0 to `most`, (most + 1,).

    >>> count_pairs(np.array([3, 1]), 2)
    array([4, 2, 1])
    """
    longer = len(lengths) - np.searchsorted(np.sort(lengths), np.arange(most), side="right")
    return lengths.sum() - np.append(0, np.cumsum(longer))
