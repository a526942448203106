"""Handing out episodes as they settle, each once, and forgetting them."""

from typing import NamedTuple

import numpy as np

from trajlab.block.layout import MARKS
from trajlab.segment.cutting import Events, Heads, concatenated, cut, no_events
from trajlab.segment.ranks import RankMap
from trajlab.segment.segmenter import Segmenter
from trajlab.segment.table import Episodes, Rules


class Settled(NamedTuple):
    """Episodes that nothing recorded later can change, with what reads them.

    Attributes
    ----------
    episodes : Episodes
        With the numbers that they have in the whole recording.
    ranks : RankMap
        As of now; earlier cells than those of `episodes` may be gone from it.
    """

    episodes: Episodes
    ranks: RankMap


class Settling(Segmenter):
    """A Segmenter that hands out each episode once and keeps no more than those under way need.

    Attributes
    ----------
    needed_row : int
        The first row that an episode under way, or one to come, may read, as of the last `take`.
    """

    def __init__(self, width: int, rules: Rules) -> None:
        """Start with no rows of `width` columns."""
        super().__init__(width, rules)
        self._heads = Heads.first(width, rules)
        self._open = np.full(width, -1)  # the number of the episode under way that begins at the head
        self._num_started = self.needed_row = 0

    def take(self, *, also_open: bool = False) -> Settled:
        """Return the episodes that have settled since the last call; with `also_open` those under way, too, as cut."""
        fed, heads = self._fed, self._heads
        events = concatenated(fed.events) if fed.events else no_events()
        ranks = self.ranks()
        table, _ = cut(events, fed.counts, self.rules, ranks, heads)
        is_known = (table.start == heads.rank[table.column]) & (self._open[table.column] >= 0)
        number = np.where(is_known, self._open[table.column], self._num_started + np.cumsum(~is_known) - 1)
        table = table._replace(number=number)
        self._num_started += int(np.count_nonzero(~is_known))
        taken = np.ones(len(number), bool) if also_open else table.settled
        settled = table.take(taken)
        self._move_heads(settled, table.take(~taken))
        self._pass_dead(events, fed.counts)
        self.needed_row = self._first_needed()
        kept = self._kept(events)
        spans = tuple(span for span in fed.spans if span.start + span.rows > self.needed_row)
        self._fed = fed._replace(events=(kept,), spans=spans)
        order = np.argsort(settled.number)
        return Settled(settled.take(order), ranks)

    def _move_heads(self, settled: Episodes, left: Episodes) -> None:
        """Begin each column behind its last settled episode, or with the one under way."""
        rank, seen, drop, is_dead = (values.copy() for values in self._heads)
        after = np.full(len(rank), -1)
        np.maximum.at(after, settled.column, settled.start + settled.length + settled.has_reset_row)
        moved = after >= 0
        rank[moved], seen[moved], drop[moved] = after[moved], True, 0
        if self.rules.autoreset == "disabled":
            last = after[settled.column] == settled.start + settled.length
            is_dead[moved] = False
            is_dead[settled.column[last & settled.ended]] = True
        rank[left.column], seen[left.column], drop[left.column] = left.start, left.start_seen, 0
        is_dead[left.column] = False
        self._open = np.full(len(rank), -1)
        self._open[left.column] = left.number
        self._heads = Heads(rank, seen, drop, is_dead)

    def _pass_dead(self, events: Events, counts: np.ndarray) -> None:
        """Begin columns in which no episode begins at their last mark, or behind all cells so far."""
        heads = self._heads
        marked = ((events.bits & MARKS) != 0) & heads.is_dead[events.column]
        marked &= events.rank >= heads.rank[events.column]
        heads.rank[heads.is_dead] = counts[heads.is_dead]
        last = np.full(len(counts), -1)
        np.maximum.at(last, events.column[marked], events.rank[marked])
        heads.rank[last >= 0] = last[last >= 0]
        heads.drop[last >= 0] = self.rules.drops_first
        heads.is_dead[last >= 0] = False

    def _kept(self, events: Events) -> Events:
        """Return the cells that say something about what comes from the heads on."""
        head = self._heads.rank[events.column]
        is_kept = events.rank >= head
        # A mark on the first cell of an episode under way is what made it begin there.
        done = (events.rank == head) & (self._open[events.column] >= 0)
        bits = np.where(done, events.bits & ~MARKS, events.bits)
        is_kept &= bits != 0
        return Events(events.column[is_kept], events.rank[is_kept], events.row[is_kept], bits[is_kept])

    def _first_needed(self) -> int:
        """Return the first row that an episode under way, or one to come, may read."""
        fed, heads = self._fed, self._heads
        rank = heads.rank - (int(self.rules.drops_first) - heads.drop)
        there = np.flatnonzero((rank < fed.counts) & ~heads.is_dead)
        return int(self.ranks().rows(there, rank[there]).min(initial=fed.rows))
