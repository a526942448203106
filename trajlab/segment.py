"""Flags to a table of episodes: integers only, no fields.

Cells are counted in two ways. A *row* is a step of the recording. A *rank* counts, within one environment's
column, only the cells that were recorded (unmasked). Episodes are runs of consecutive ranks; without masks
rank and row are the same number.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from trajlab.block.layout import DONE, ENDS, MARKS, NOT_RECORDED, RESET, TERMINATED, TRUNCATED

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


class Span(NamedTuple):
    """The recorded cells of a range of rows.

    Attributes
    ----------
    start, rows : int
        First row and number of rows.
    base : array (width,) int64
        Rank of each column's first recorded cell in this span.
    offsets, cells : array (width + 1,) int64 and array (cells,) int32, or None
        Recorded rows, relative to `start`, column after column; None where all are recorded.
    """

    start: int
    rows: int
    base: np.ndarray
    offsets: np.ndarray | None = None
    cells: np.ndarray | None = None

    def counts(self) -> np.ndarray:
        """Return the recorded cells per column."""
        return np.full(len(self.base), self.rows) if self.offsets is None else np.diff(self.offsets)

    def listed(self) -> tuple[np.ndarray, np.ndarray]:
        """Return `offsets` and `cells`, made where they are implied."""
        if self.offsets is not None and self.cells is not None:
            return self.offsets, self.cells
        width = len(self.base)
        return np.arange(width + 1) * self.rows, np.tile(np.arange(self.rows, dtype=np.int32), width)


def _joined(a: Span, b: Span) -> Span:
    """Return two neighbouring spans as one."""
    if a.offsets is None and b.offsets is None:
        return Span(a.start, a.rows + b.rows, a.base)
    (offsets_a, cells_a), (offsets_b, cells_b) = a.listed(), b.listed()
    counts_a, counts_b = np.diff(offsets_a), np.diff(offsets_b)
    offsets = np.concatenate([[0], np.cumsum(counts_a + counts_b)])
    cells = np.empty(offsets[-1], np.int32)
    cells[np.arange(len(cells_a)) + np.repeat(offsets_b[:-1], counts_a)] = cells_a
    cells[np.arange(len(cells_b)) + np.repeat(offsets_a[1:], counts_b)] = cells_b + (b.start - a.start)
    return Span(a.start, a.rows + b.rows, a.base, offsets, cells)


@dataclasses.dataclass(frozen=True)
class RankMap:
    """Ranks to rows."""

    spans: tuple[Span, ...]

    @property
    def is_identity(self) -> bool:
        """True where every cell is recorded, so that a rank is a row."""
        return all(span.offsets is None for span in self.spans)

    def rows(self, columns: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        """Return the rows of recorded cells, given as columns and ranks, both (M,)."""
        if self.is_identity or not len(ranks):
            return ranks
        bases = np.stack([span.base for span in self.spans])
        low, high = np.zeros(len(ranks), np.intp), np.full(len(ranks), len(self.spans) - 1)
        for _ in range(len(self.spans).bit_length()):
            middle = (low + high + 1) // 2
            right = bases[middle, columns] <= ranks
            low, high = np.where(right, middle, low), np.where(right, high, middle - 1)
        out = np.empty(len(ranks), np.int64)
        for number, span in enumerate(self.spans):
            here = np.flatnonzero(low == number)
            local = ranks[here] - span.base[columns[here]]
            if span.offsets is not None and span.cells is not None:
                local = span.cells[span.offsets[columns[here]] + local]
            out[here] = span.start + local
        return out


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


class _Events(NamedTuple):
    """Cells with an end flag or a mark before them, in any order."""

    column: np.ndarray
    rank: np.ndarray
    row: np.ndarray
    bits: np.ndarray


class _Fed(NamedTuple):
    """All that has been taken so far; replaced as a whole, so that an interrupted call leaves nothing half done."""

    rows: int
    counts: np.ndarray
    spans: tuple[Span, ...]
    events: tuple[_Events, ...]
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
            span, before = _masked_span(flags, rows, counts)
            ranks = before[local, columns]
        else:
            span = Span(rows, len(flags), counts)
            ranks = counts[columns] + local
        bits = flags[local, columns]
        masked = (bits & NOT_RECORDED) != 0
        bits = np.where(masked, bits & MARKS, bits)
        kept = bits != 0
        new = _Events(*(values[kept] for values in (columns, ranks, local + rows, bits)))
        self._fed = _Fed(
            rows + len(flags),
            counts + span.counts(),
            _with_span(spans, span),
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
        events = _concatenated(fed.events) if fed.events else _no_events()
        self._fed = fed._replace(events=(events,))
        marks, ends = _merged(events, self.rules.previous_row)
        segments = _segments(marks, fed.counts, self.rules.starts_fresh)
        return _episodes(segments, ends, self.rules, self.ranks())


def without_first(table: Episodes, first: np.ndarray, ranks: RankMap, *, drops_first: bool, already: int) -> Episodes:
    """Return the table of a log whose first cells have been given up; what is left is counted from there.

    An episode that has lost its head is shorter and its start was not seen; one without a transition left is
    gone, and its number with it.

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
    already : int
        Number of episodes that had ended before the table began.
    """
    given_up = first[table.column]
    lost = np.maximum(given_up + (drops_first & (given_up > 0)) - table.start, 0)
    start = table.start + lost - given_up
    left = table._replace(start=start, length=table.length - lost, start_seen=table.start_seen & (lost == 0))
    left = left.take(left.length > 0)
    left = left._replace(start_row=ranks.rows(left.column, left.start))
    return left._replace(number=already + left.number).take(np.lexsort((left.column, left.start_row)))


def _with_span(spans: tuple[Span, ...], span: Span) -> tuple[Span, ...]:
    """Add a span; join it with earlier ones of no more rows, so that their number stays logarithmic."""
    while spans and (spans[-1].rows <= span.rows or (spans[-1].offsets is None and span.offsets is None)):
        spans, span = spans[:-1], _joined(spans[-1], span)
    return (*spans, span)


def _masked_span(flags: np.ndarray, start: int, base: np.ndarray) -> tuple[Span, np.ndarray]:
    """Return the span of masked rows, and the rank that each cell has or that the next recorded one will have."""
    recorded = (flags & NOT_RECORDED) == 0
    counts = recorded.sum(axis=0, dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    cells = np.nonzero(recorded.T)[1].astype(np.int32)
    before = base + np.cumsum(recorded, axis=0, dtype=np.int64) - recorded
    return Span(start, len(flags), base.copy(), offsets, cells), before


def _no_events() -> _Events:
    none = np.zeros(0, np.int64)
    return _Events(none, none, none, np.zeros(0, np.uint8))


def _concatenated(events: tuple[_Events, ...]) -> _Events:
    return _Events(*(np.concatenate(values) for values in zip(*events, strict=True)))


_SHIFT = np.int64(1) << 40
"""Column and rank in one sortable number: column * _SHIFT + rank."""


def _merged(events: _Events, previous_row: bool) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return marks and ends, each sorted by column and rank with one entry per place.

    Of several marks before one cell the last holds; a reset and a gap on one cell are a reset. With
    `previous_row` an end moves to the cell before, unless a mark or the recording's start stands between.
    """
    key = events.column * _SHIFT + events.rank
    order = np.lexsort((events.row, key))
    key, bits = key[order], events.bits[order]
    marked = (bits & MARKS) != 0
    mark_key, mark_bits = key[marked], bits[marked]
    last = np.append(mark_key[1:] != mark_key[:-1], True)[: len(mark_key)]
    marks = {"key": mark_key[last], "is_reset": (mark_bits[last] & RESET) != 0}
    ended = (bits & ENDS) != 0
    end_key, end_bits = key[ended], bits[ended] & ENDS
    if previous_row:
        kept = ((end_key % _SHIFT) > 0) & ~np.isin(end_key, marks["key"])
        end_key, end_bits = end_key[kept] - 1, end_bits[kept]
    return marks, {"key": end_key, "bits": end_bits}


def _segments(marks: dict[str, np.ndarray], counts: np.ndarray, starts_fresh: bool) -> dict[str, np.ndarray]:
    """Return the stretches of ranks that no mark parts: key of the first, key past the last, start seen, closed."""
    first = np.arange(len(counts)) * _SHIFT
    limit = first + counts
    inside = marks["key"] < limit[marks["key"] // _SHIFT] if len(marks["key"]) else np.zeros(0, bool)
    mark_key, seen = marks["key"][inside], marks["is_reset"][inside]
    plain = first[(counts > 0) & ~np.isin(first, mark_key)]
    key = np.concatenate([plain, mark_key])
    seen = np.concatenate([np.full(len(plain), starts_fresh), seen])
    order = np.argsort(key)
    key, seen = key[order], seen[order]
    column = key // _SHIFT
    followed = np.append(column[1:] == column[:-1], False)[: len(key)]
    stop = np.where(followed, np.append(key[1:], 0)[: len(key)], limit[column])
    return {"start": key, "stop": stop, "seen": seen, "closed": followed}


def _real_ends(ends: dict[str, np.ndarray], segment: np.ndarray, autoreset: str) -> np.ndarray:
    """Say which ends are ends of a transition, not flags on a reset row or on what follows the last end."""
    key = ends["key"]
    new_segment = np.append(True, segment[1:] != segment[:-1])[: len(key)]
    if autoreset == "disabled":
        return new_segment
    if autoreset == "same_step":
        return np.ones(len(key), bool)
    starts_run = new_segment | np.append(True, key[1:] != key[:-1] + 1)[: len(key)]
    position = np.arange(len(key)) - np.maximum.accumulate(np.where(starts_run, np.arange(len(key)), 0))
    return position % 2 == 0


def _episodes(
    segments: dict[str, np.ndarray], ends: dict[str, np.ndarray], rules: Rules, ranks: RankMap
) -> tuple[Episodes, int]:
    """Cut the segments at their ends."""
    drop = int(rules.drops_first)
    step = 2 if rules.autoreset == "next_step" else 1
    segment = np.searchsorted(segments["start"], ends["key"], side="right") - 1
    real = _real_ends(ends, segment, rules.autoreset)
    end_key, end_bits, segment = ends["key"][real], ends["bits"][real], segment[real]
    is_first = np.append(True, segment[1:] != segment[:-1])[: len(segment)]
    after_previous = np.append(0, end_key[:-1] + step)[: len(end_key)]
    ended_start = np.where(is_first, segments["start"][segment] + drop, after_previous)

    last_end = np.full(len(segments["start"]), -1)
    last_end[segment] = np.arange(len(segment))
    has_end = last_end >= 0
    tail_start = segments["start"] + drop
    tail_start[has_end] = end_key[last_end[has_end]] + step
    if rules.autoreset == "disabled":
        tail_start[has_end] = segments["stop"][has_end]

    start = np.concatenate([ended_start, tail_start])
    length = np.concatenate([end_key + 1, segments["stop"]]) - start
    of = np.concatenate([segment, np.arange(len(segments["start"]))])
    was_first = np.concatenate([is_first, ~has_end])
    seen = ~was_first | (segments["seen"][of] & (not rules.first_is_transition))
    tail = np.arange(len(start)) >= len(end_key)
    after = start + length
    has_room = after < segments["stop"][of]
    has_reset_row = ~tail & has_room if rules.autoreset == "next_step" else np.zeros(len(start), bool)
    waits = rules.autoreset == "next_step" and ~has_room
    settled = segments["closed"][of] | (~tail & ~np.asarray(waits))
    reason = np.concatenate([_reasons(end_bits, rules.flag_slots), np.full(len(tail_start), REASON_CUT, np.int8)])
    flag_known = ~tail | (not rules.previous_row)

    column, rank = start // _SHIFT, start % _SHIFT
    kept = length > 0
    columns = (column, rank, length, reason, seen, settled, flag_known, has_reset_row)
    column, rank, length, reason, seen, settled, flag_known, has_reset_row = (x[kept] for x in columns)
    start_row = ranks.rows(column, rank)
    order = np.lexsort((column, start_row))
    table = Episodes(
        np.arange(len(rank)), column, rank, length, start_row, reason, seen, settled, flag_known, has_reset_row
    ).take(order)
    return table._replace(number=np.arange(len(rank))), len(segments["start"]) * drop


def _reasons(bits: np.ndarray, slots: tuple[str, ...]) -> np.ndarray:
    """Return why each ended episode ended; with done and one other flag, the third follows."""
    terminated, truncated = (bits & TERMINATED) != 0, (bits & TRUNCATED) != 0
    done = (bits & DONE) != 0
    if "done" in slots and "truncated" not in slots and "terminated" in slots:
        truncated = done & ~terminated
    if "done" in slots and "terminated" not in slots and "truncated" in slots:
        terminated = done & ~truncated
    reason = np.full(len(bits), REASON_DONE, np.int8)
    reason[truncated] = REASON_TRUNCATED
    reason[terminated] = REASON_TERMINATED
    return reason
