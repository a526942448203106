"""Kernel: episodes in one array, with room between them, so that no two rows some steps apart are of two of them."""

import dataclasses
import functools
from collections.abc import Iterator

import numpy as np

MAX_GAPS = 4
"""Gaps may take so many times the room of the rows between them."""


@dataclasses.dataclass(frozen=True, eq=False)
class Spacing:
    """Where episodes lie in an array in which `gap` places or more are empty before and behind each.

    Attributes
    ----------
    counts : array (episode,) of int
        Rows of each, at least one.
    order : array (episode,) of int or None
        The episodes as they lie behind each other; None where that is the order in which they were given.
    starts, stops : array (episode,) of int
        First place of each, and the one behind its last, as they lie.
    gap : int
    steps : array (M,) of int or None
        Step of each row where some are left out, whose places stay empty.
    """

    counts: np.ndarray
    order: np.ndarray | None
    starts: np.ndarray
    stops: np.ndarray
    gap: int
    steps: np.ndarray | None

    @classmethod
    def of(
        cls, counts: np.ndarray, gap: int, *, group: np.ndarray | None = None, steps: np.ndarray | None = None
    ) -> "Spacing":
        """Space episodes of `counts` rows, each at least one, those of one `group` (episode,) side by side.

        Between those of two groups lie two gaps.
        """
        lengths = counts
        if steps is not None:
            ends = np.cumsum(counts)
            lengths = steps[ends - 1] - steps[ends - counts] + 1
        if group is None:
            stops = np.cumsum(lengths + gap)
            return cls(counts, None, stops - lengths, stops, gap, steps)
        order = np.argsort(group, kind="stable")
        is_next = np.diff(group[order], prepend=group[order[0]]) != 0
        stops = np.cumsum(lengths[order] + np.where(is_next, 2 * gap, gap))
        return cls(counts, order, stops - lengths[order], stops, gap, steps)

    @property
    def size(self) -> int:
        """Number of places."""
        return int(self.stops[-1]) + self.gap

    @property
    def first(self) -> np.ndarray:
        """First place of each episode, (episode,), in the order in which they were given."""
        if self.order is None:
            return self.starts
        out = np.empty_like(self.starts)
        out[self.order] = self.starts
        return out

    @functools.cached_property
    def place(self) -> np.ndarray:
        """Place of each row, (M,), episode after episode in the order in which they were given."""
        begins = np.cumsum(self.counts) - self.counts
        if self.steps is None:
            return np.arange(int(self.counts.sum())) + np.repeat(self.first - begins, self.counts)
        return self.steps + np.repeat(self.first - self.steps[begins], self.counts)

    def put(self, values: np.ndarray) -> np.ndarray:
        """Return values (M,) at their places, as floats, and 0 at the empty ones."""
        out = np.zeros(self.size)
        out[self.place] = values
        return out


def alike_in_length(lengths: np.ndarray, most: int) -> Iterator[tuple[np.ndarray | None, int]]:
    """Yield which of some episodes (episode,) to space together, and the gap between them, so that gaps take little.

    These are all of them, None, unless a long one would give each of many short ones a gap of its own length. A gap is
    `most`, or less where no episode is so long.

    >>> [(chosen.tolist(), gap) for chosen, gap in alike_in_length(np.array([100, 1, 1, 1, 1, 1]), 99)]
    [([1, 2, 3, 4, 5], 0), ([0], 99)]
    """
    if not len(lengths):
        return
    gap = min(most, int(lengths.max()) - 1)
    if len(lengths) * gap <= MAX_GAPS * lengths.sum():
        yield None, gap
        return
    size = np.frexp(lengths)[1]
    for one in np.unique(size):
        chosen = np.flatnonzero(size == one)
        yield chosen, min(most, int(lengths[chosen].max()) - 1)
