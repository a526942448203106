"""Kernels for pairs of rows that are some steps apart: sums over all of those that lie in one episode."""

import dataclasses
from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

TILE = 2**13
"""Rows multiplied at once: they stay in the processor's cache, and OpenBLAS uses threads for more than 10,000 only."""
ROUNDING = 1e-10
"""A variance that is a smaller part of the mean square is not told from rounding."""
MAX_GAPS = 4
"""Gaps may take so many times the room of the rows between them."""


@dataclasses.dataclass(frozen=True, eq=False)
class Layout:
    """Where rows stand in an array in which `gap` empty places lie before and behind each episode.

    So no two rows at most `gap` places apart are of two episodes.

    Attributes
    ----------
    place : array (M,) of int
    starts, stops : array (episode,) of int
        First place of each episode and the one behind its last, in the order in which they stand.
    group : array (episode,) of int
        Group of each, ascending.
    gap : int
    """

    place: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    group: np.ndarray
    gap: int

    @classmethod
    def of(
        cls, counts: np.ndarray, most: int, group: np.ndarray | None = None, steps: np.ndarray | None = None
    ) -> "Layout":
        """Lay out episodes of `counts` rows, each at least one, those of one `group` (episode,) side by side.

        The gap is `most`, or less where no episode is so long. `steps` (M,) tells the step of each row where some
        are left out, whose places stay empty.
        """
        ends = np.cumsum(counts)
        begins = ends - counts
        lengths = counts if steps is None else steps[ends - 1] - steps[begins] + 1
        gap = min(most, int(lengths.max()) - 1)
        order = np.arange(len(counts)) if group is None else np.argsort(group, kind="stable")
        stops = np.cumsum(lengths[order] + gap)
        starts = stops - lengths[order]
        first = np.empty_like(starts)
        first[order] = starts
        place = np.arange(ends[-1]) if steps is None else steps.copy()
        place += np.repeat(first - (begins if steps is None else steps[begins]), counts)
        return cls(place, starts, stops, np.zeros(len(counts), np.intp) if group is None else group[order], gap)

    def put(self, values: np.ndarray) -> np.ndarray:
        """Return values (M,) at their places, as floats, and 0 at the empty ones."""
        out = np.zeros(int(self.stops[-1]) + self.gap)
        out[self.place] = values
        return out


def alike_in_length(lengths: np.ndarray, most: int) -> Iterator[np.ndarray]:
    """Yield which of some episodes (episode,) to lay out together, so that gaps up to `most` take little room.

    These are all of them, unless a long one would give each of many short ones a gap of its own length.

    >>> [chosen.tolist() for chosen in alike_in_length(np.array([100, 1, 1, 1, 1, 1]), 99)]
    [[False, True, True, True, True, True], [True, False, False, False, False, False]]
    """
    gap = min(most, int(lengths.max(initial=1)) - 1)
    if len(lengths) * gap <= MAX_GAPS * lengths.sum():
        yield np.ones(len(lengths), bool)
        return
    size = np.frexp(lengths)[1]
    for one in np.unique(size):
        yield size == one


class LagSums:
    """Sums over pairs of an earlier row and one `lag` steps later, for each group, lag and component.

    Attributes
    ----------
    n : array (group, lag) int64
        Number of pairs.
    undefined : array (group, lag, component) bool
        Whether a value of a pair was not finite.
    """

    def __init__(self, groups: int, components: int, most: int) -> None:
        """Start with no pairs, for lags from 0 to `most`."""
        self.n = np.zeros((groups, most + 1), np.int64)
        self.undefined = np.zeros((groups, most + 1, components), bool)
        self._sums = np.zeros((5, groups, most + 1, components))
        self._shift = np.zeros((groups, components))
        self._met = np.zeros(groups, bool)

    def add_episodes(self, rows: np.ndarray, layout: Layout, group: np.ndarray | None = None) -> None:
        """Take finite rows (M, component) of episodes that belong to one group each.

        `group` (M,) is that of each row, as `layout` has it for the episodes; below 0 they are left out.
        """
        lags = slice(layout.gap + 1)
        codes = np.unique(layout.group[layout.group >= 0]).tolist()
        for code in codes:
            self._meet(code, rows, group)
        for component in range(rows.shape[1]):
            shift = self._shift[0 if group is None else group, component]
            x = layout.put(rows[:, component] - shift)
            squares = x * x
            for code in codes:
                own = slice(*np.searchsorted(layout.group, [code, code + 1]))
                starts, stops = layout.starts[own], layout.stops[own]
                first, stop = int(starts[0]), int(stops[-1])
                products = lagged_products(x[first:stop], x[first : stop + layout.gap], layout.gap)
                self._sums[:4, code, lags, component] += sum_edges(x, squares, starts, stops, layout.gap)
                self._sums[4, code, lags, component] += products
        for code in codes:
            own = slice(*np.searchsorted(layout.group, [code, code + 1]))
            self.n[code, lags] += count_pairs(layout.stops[own] - layout.starts[own], layout.gap)

    def add_rows(
        self,
        rows: np.ndarray,
        layout: Layout,
        group: np.ndarray | None = None,
        present: np.ndarray | None = None,
    ) -> None:
        """Take any rows (M, component), each with a group (M,) of its own, of which some are not `present` (M,).

        The earlier row of a pair decides its group; below 0 it is in none.
        """
        lags = slice(layout.gap + 1)
        present = np.ones(len(rows), bool) if present is None else present
        group = np.where(present, 0 if group is None else group, -1)
        there, finite = layout.put(present), np.isfinite(rows)
        for code in np.unique(group[group >= 0]).tolist():
            self._meet(code, rows, group)
            first = layout.put(group == code)
            self.n[code, lags] += np.rint(lagged_products(first, there, layout.gap)).astype(np.int64)
            for component in range(rows.shape[1]):
                known = finite[:, component]
                x = layout.put(np.where(known & present, rows[:, component] - self._shift[code, component], 0.0))
                earlier = x * first
                pairs = ((earlier, there), (first, x), (earlier * x, there), (first, x * x), (earlier, x))
                self._sums[:, code, lags, component] += [lagged_products(a, b, layout.gap) for a, b in pairs]
                if not known.all():
                    bad = layout.put(~known & present)
                    found = lagged_products(bad * first, there, layout.gap) + lagged_products(first, bad, layout.gap)
                    self.undefined[code, lags, component] |= found > 0.5

    def _meet(self, code: int, rows: np.ndarray, group: np.ndarray | None) -> None:
        """Set what is subtracted from a group's values: the median of the first ones met.

        So nothing cancels where values are large and vary little, and values that do not vary at all become 0.
        """
        if self._met[code]:
            return
        own = rows if group is None else rows[group == code]
        self._shift[code] = [_median(column[np.isfinite(column)]) for column in own.T]
        self._met[code] = True

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


def _median(values: np.ndarray) -> float:
    """Return the median of finite values, 0 where there is none, or it is no float."""
    with np.errstate(over="ignore"):
        median = float(np.median(values)) if len(values) else 0.0
    return median if np.isfinite(median) else 0.0


def _varying(sums: np.ndarray, squares: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return `n` times the variance of values with these sums, NaN where they do not vary."""
    variance = squares - sums**2 / n
    return np.where(variance > ROUNDING * squares, variance, np.nan)


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
    is_long = stops - starts > most
    first, stop = starts[is_long], stops[is_long]
    out = np.zeros((4, most + 1))
    for row, far in enumerate((values, squares)):
        out[2 * row, 0] = sum_between(far, first, stop - most)
        out[2 * row + 1, 0] = sum_between(far, first + most, stop)
    if most:
        windows = sliding_window_view(values, most)
        for row, near in enumerate((windows[stops - most], windows[starts][:, ::-1])):
            out[row, 1:] = near.sum(axis=0)
            out[2 + row, 1:] = np.einsum("ij,ij->j", near, near)
    return np.cumsum(out, axis=1)[:, ::-1]


def sum_between(values: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> float:
    """Return the sum of values from each start up to its stop; none is empty, and none overlap.

    >>> sum_between(np.arange(6.0), np.array([0, 4]), np.array([2, 5]))
    5.0
    """
    if not len(starts):
        return 0.0
    edges = np.stack([starts, stops], axis=1).reshape(-1)
    edges = edges[:-1] if edges[-1] == len(values) else edges
    return float(np.add.reduceat(values, edges)[::2].sum())


def count_pairs(lengths: np.ndarray, most: int) -> np.ndarray:
    """Return how many pairs episodes have, for lags from 0 to `most`, (most + 1,).

    >>> count_pairs(np.array([3, 1]), 2)
    array([4, 2, 1])
    """
    longer = len(lengths) - np.searchsorted(np.sort(lengths), np.arange(most), side="right")
    return lengths.sum() - np.append(0, np.cumsum(longer))
