"""Cutting columns into episodes: from marks and ends to the table."""

from typing import NamedTuple

import numpy as np

from trajlab.block.layout import DONE, ENDS, MARKS, RESET, TERMINATED, TRUNCATED
from trajlab.segment.ranks import RankMap
from trajlab.segment.table import REASON_CUT, REASON_DONE, REASON_TERMINATED, REASON_TRUNCATED, Episodes, Rules


class Events(NamedTuple):
    """Cells with an end flag or a mark before them, in any order."""

    column: np.ndarray
    rank: np.ndarray
    row: np.ndarray
    bits: np.ndarray


class Heads(NamedTuple):
    """Where each column begins, of which what came before has been dealt with.

    Attributes
    ----------
    rank : array (width,) int64
        The first cell that counts.
    seen : array (width,) bool
        Whether an episode that begins there has been seen to.
    drop : array (width,) int64
        1 where that cell is no transition, since nothing stands before it, else 0.
    is_dead : array (width,) bool
        Where no episode begins before the next mark.
    """

    rank: np.ndarray
    seen: np.ndarray
    drop: np.ndarray
    is_dead: np.ndarray

    @classmethod
    def first(cls, width: int, rules: Rules) -> "Heads":
        """Return the beginning of a recording."""
        none = np.zeros(width, np.int64)
        is_seen = rules.starts_fresh and not rules.first_is_transition
        return cls(none, np.full(width, is_seen), none + rules.drops_first, np.zeros(width, bool))


def no_events() -> Events:
    """Return no cells."""
    none = np.zeros(0, np.int64)
    return Events(none, none, none, np.zeros(0, np.uint8))


def concatenated(events: tuple[Events, ...]) -> Events:
    """Return the cells of several ranges of rows as one."""
    return Events(*(np.concatenate(values) for values in zip(*events, strict=True)))


def cut(
    events: Events, counts: np.ndarray, rules: Rules, ranks: RankMap, heads: Heads | None = None
) -> tuple[Episodes, int]:
    """Return the episodes of columns with so many recorded cells, and how many cells had none before them.

    They begin with `heads`, by default with the recording.
    """
    marks, ends = _merged(events, rules.previous_row)
    segments = _segments(marks, counts, rules, heads or Heads.first(len(counts), rules))
    return _episodes(segments, ends, rules, ranks)


_SHIFT = np.int64(1) << 40
"""Column and rank in one sortable number: column * _SHIFT + rank."""


def _merged(events: Events, previous_row: bool) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
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


def _segments(marks: dict[str, np.ndarray], counts: np.ndarray, rules: Rules, heads: Heads) -> dict[str, np.ndarray]:
    """Return the stretches of ranks that no mark parts.

    Each with the key of its first cell and of that past its last one, whether its start was seen, how many of its
    cells are dropped, and whether a mark closes it.
    """
    column_key = np.arange(len(counts)) * _SHIFT
    first, limit = column_key + heads.rank, column_key + counts
    inside = marks["key"] < limit[marks["key"] // _SHIFT] if len(marks["key"]) else np.zeros(0, bool)
    mark_key, is_reset = marks["key"][inside], marks["is_reset"][inside]
    plain = np.flatnonzero((first < limit) & ~heads.is_dead & ~np.isin(first, mark_key))
    key = np.concatenate([first[plain], mark_key])
    order = np.argsort(key)
    seen = np.concatenate([heads.seen[plain], is_reset & (not rules.first_is_transition)])[order]
    drop = np.concatenate([heads.drop[plain], np.full(len(mark_key), int(rules.drops_first))])[order]
    key = key[order]
    column = key // _SHIFT
    followed = np.append(column[1:] == column[:-1], False)[: len(key)]
    stop = np.where(followed, np.append(key[1:], 0)[: len(key)], limit[column])
    return {"start": key, "stop": stop, "seen": seen, "drop": drop, "closed": followed}


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


def _within(ends: dict[str, np.ndarray], starts: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the ends that lie in a segment, and which one; before a column's first there may be some in no one."""
    segment = np.searchsorted(starts, ends["key"], side="right") - 1
    inside = segment >= 0
    inside[inside] = starts[segment[inside]] // _SHIFT == ends["key"][inside] // _SHIFT
    return {name: values[inside] for name, values in ends.items()}, segment[inside]


def _episodes(
    segments: dict[str, np.ndarray], ends: dict[str, np.ndarray], rules: Rules, ranks: RankMap
) -> tuple[Episodes, int]:
    """Cut the segments at their ends."""
    drop = segments["drop"]
    step = 2 if rules.autoreset == "next_step" else 1
    ends, segment = _within(ends, segments["start"])
    real = _real_ends(ends, segment, rules.autoreset)
    end_key, end_bits, segment = ends["key"][real], ends["bits"][real], segment[real]
    is_first = np.append(True, segment[1:] != segment[:-1])[: len(segment)]
    after_previous = np.append(0, end_key[:-1] + step)[: len(end_key)]
    ended_start = np.where(is_first, segments["start"][segment] + drop[segment], after_previous)

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
    seen = ~was_first | segments["seen"][of]
    tail = np.arange(len(start)) >= len(end_key)
    after = start + length
    has_room = after < segments["stop"][of]
    has_reset_row = ~tail & has_room if rules.autoreset == "next_step" else np.zeros(len(start), bool)
    waits = rules.autoreset == "next_step" and ~has_room
    settled = segments["closed"][of] | (~tail & ~np.asarray(waits))
    reason = np.concatenate([_reasons(end_bits, rules.flag_slots), np.full(len(tail_start), REASON_CUT, np.int8)])
    flag_known = ~tail | (not rules.previous_row)

    unknown = np.zeros(len(start), np.int64)
    table = Episodes(
        number=unknown,
        column=start // _SHIFT,
        start=start % _SHIFT,
        length=length,
        start_row=unknown,
        reason=reason,
        start_seen=seen,
        settled=settled,
        last_flag_known=flag_known,
        has_reset_row=has_reset_row,
    ).take(length > 0)
    table = table._replace(start_row=ranks.rows(table.column, table.start))
    table = table.take(np.lexsort((table.column, table.start_row)))
    return table._replace(number=np.arange(len(table.length))), int(drop.sum())


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
