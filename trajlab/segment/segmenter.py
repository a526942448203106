"""Taking flags as they come, and making the table of episodes when asked."""

from typing import NamedTuple

import numpy as np

from trajlab.block.layout import MARKS, NOT_RECORDED
from trajlab.segment.cutting import Events, concatenated, cut, no_events
from trajlab.segment.ranks import RankMap, Span, masked_span, with_span
from trajlab.segment.table import Episodes, Rules


class _Fed(NamedTuple):
    """All that has been taken so far; replaced as a whole, so that an interrupted call leaves nothing half done."""

    rows: int
    counts: np.ndarray
    spans: tuple[Span, ...]
    events: tuple[Events, ...]
    num_ends: int


class Segmenter:
    """Takes the bytes of flags as they come, each once, and makes the table of episodes when asked."""

    def __init__(self, width: int, rules: Rules) -> None:
        """Start with no rows of `width` columns."""
        self.rules = rules
        self._fed = _Fed(0, np.zeros(width, np.int64), (), (), 0)

    def feed(self, flags: np.ndarray) -> None:
        """Take the flags (R, width) of the next rows."""
        if not len(flags):
            return
        rows, counts, spans, events, num_ends = self._fed
        columns, local = np.nonzero((flags & ~NOT_RECORDED).T)
        if (flags & NOT_RECORDED).any():
            span, before = masked_span(flags, rows, counts)
            ranks = before[local, columns]
        else:
            span = Span(rows, len(flags), counts)
            ranks = counts[columns] + local
        bits = flags[local, columns]
        masked = (bits & NOT_RECORDED) != 0
        bits = np.where(masked, bits & MARKS, bits)
        kept = bits != 0
        new = Events(*(values[kept] for values in (columns, ranks, local + rows, bits)))
        self._fed = _Fed(
            rows + len(flags),
            counts + span.counts(),
            with_span(spans, span),
            (*events, new),
            num_ends + len(new.rank),
        )

    @property
    def rows(self) -> int:
        """Number of rows so far."""
        return self._fed.rows

    @property
    def counts(self) -> np.ndarray:
        """Number of recorded cells in each column so far."""
        return self._fed.counts

    @property
    def num_ends(self) -> int:
        """Number of cells with an end flag or a mark so far; at most two episodes have ended at each."""
        return self._fed.num_ends

    def ranks(self) -> RankMap:
        """Return the map from ranks to rows, as of now."""
        return RankMap(self._fed.spans)

    def table(self) -> tuple[Episodes, int]:
        """Return the episodes of all rows so far, and how many cells had none before them to read from."""
        fed = self._fed
        events = concatenated(fed.events) if fed.events else no_events()
        self._fed = fed._replace(events=(events,))
        return cut(events, fed.counts, self.rules, self.ranks())
