"""The table of episodes, and what the flags that it is made from mean."""

import dataclasses
from typing import NamedTuple

import numpy as np

from trajlab.segment.ranks import RankMap

REASON_CUT, REASON_DONE, REASON_TRUNCATED, REASON_TERMINATED = range(4)


@dataclasses.dataclass(frozen=True)
class Rules:
    """What the flags of a log mean.

    Attributes
    ----------
    autoreset : {"same_step", "next_step", "disabled"}
    previous_row : bool
        Flags stand one cell after the one they belong to.
    drops_first : bool
        Some field is read one cell earlier, so a cell with none before it is no transition.
    first_is_transition : bool
        The cell so dropped was a transition (its observation stands on its own row), so the episode's start
        was not seen.
    starts_fresh : bool
        Recording begins with an episode's first step.
    flag_slots : tuple of str
        Which flags are recorded.
    """

    autoreset: str
    previous_row: bool
    drops_first: bool
    first_is_transition: bool
    starts_fresh: bool
    flag_slots: tuple[str, ...]


class Episodes(NamedTuple):
    """A table of episodes, one entry each, ordered by `start_row` and then `column`.

    Attributes
    ----------
    number : int64
        The episode's number, never reused.
    column, start, length : int64
        Column of the log, rank of the first transition, number of transitions.
    start_row : int64
        Row of the first transition.
    reason : int8
        One of the `REASON_` numbers.
    start_seen, settled : bool
        Whether the start was seen; whether nothing recorded later can change this entry.
    last_flag_known : bool
        Whether the flags of the last transition have been seen.
    has_reset_row : bool
        Whether the cell after the last transition is a reset row of this episode.
    """

    number: np.ndarray
    column: np.ndarray
    start: np.ndarray
    length: np.ndarray
    start_row: np.ndarray
    reason: np.ndarray
    start_seen: np.ndarray
    settled: np.ndarray
    last_flag_known: np.ndarray
    has_reset_row: np.ndarray

    def take(self, which: np.ndarray | slice) -> "Episodes":
        """Return some of the episodes."""
        return Episodes(*(values[which] for values in self))

    @property
    def ended(self) -> np.ndarray:
        """Whether the environment ended the episode."""
        return self.reason != REASON_CUT


def without_first(table: Episodes, first: np.ndarray, ranks: RankMap, *, drops_first: bool, started: int) -> Episodes:
    """Return the table of a log whose first cells have been given up; what is left is counted from there.

    An episode that has lost its head is shorter and its start was not seen; one without a transition left is
    gone. Those that begin with the cells that are left keep the numbers they have in the whole recording.

    Parameters
    ----------
    table : Episodes
        Of the log with these cells.
    first : array (width,) int64
        Number of recorded cells given up in each column.
    ranks : RankMap
        Of the log without them.
    drops_first : bool
        As in `Rules`: a cell is no transition where the one before it is gone.
    started : int
        Number of episodes that had begun before.
    """
    given_up = first[table.column]
    lost = np.maximum(given_up + (drops_first & (given_up > 0)) - table.start, 0)
    is_new = table.start >= given_up
    is_head = ~is_new & (lost < table.length)
    number = started + np.cumsum(is_new) - 1
    number[is_head] = started - np.arange(np.count_nonzero(is_head), 0, -1)
    start = table.start + lost - given_up
    left = table._replace(
        number=number, start=start, length=table.length - lost, start_seen=table.start_seen & (lost == 0)
    )
    left = left.take(left.length > 0)
    left = left._replace(start_row=ranks.rows(left.column, left.start))
    return left.take(np.lexsort((left.column, left.start_row)))
