"""Flags to episodes: the same however they come, and ranks that lead back to rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import bits, examples

import trajlab.segment.segmenter
from trajlab.block.layout import DONE, GAP, NOT_RECORDED, RESET, TERMINATED, TRUNCATED
from trajlab.segment import Episodes, RankMap, Rules, Segmenter, Span

REASONS = "cut done truncated terminated".split()
BITS = {".": 0, "T": TERMINATED, "U": TRUNCATED, "D": DONE, "x": NOT_RECORDED, "r": RESET, "g": GAP}


def rules(**changed):
    plain = dict(
        autoreset="same_step",
        previous_row=False,
        drops_first=False,
        first_is_transition=False,
        starts_fresh=True,
        flag_slots=("terminated", "truncated", "done"),
    )
    return Rules(**(plain | changed))


def column(text):
    """Return one environment's flags: cells apart by blanks, each a dot or letters of BITS."""
    return np.array([sum(int(BITS[letter]) for letter in cell) for cell in text.split()], np.uint8)[:, None]


def episodes(text, **changed):
    """Return (start row, length, end reason, start seen) of the episodes in one environment."""
    segmenter = Segmenter(1, rules(**changed))
    segmenter.feed(column(text))
    table, _ = segmenter.table()
    rows = zip(table.start_row.tolist(), table.length.tolist(), table.reason, table.start_seen.tolist(), strict=True)
    return [(row, length, REASONS[reason], seen) for row, length, reason, seen in rows]


# By hand -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "changed", "want"),
    [
        (". . T . .", {}, [(0, 3, "terminated", True), (3, 2, "cut", True)]),
        (". U D TU", {}, [(0, 2, "truncated", True), (2, 1, "done", True), (3, 1, "terminated", True)]),
        ("T T T", {}, [(0, 1, "terminated", True), (1, 1, "terminated", True), (2, 1, "terminated", True)]),
        (". . .", {"starts_fresh": False}, [(0, 3, "cut", False)]),
        (". T . .", {"starts_fresh": False}, [(0, 2, "terminated", False), (2, 2, "cut", True)]),
        # Two flags imply the third.
        (". D TD", {"flag_slots": ("terminated", "done")}, [(0, 2, "truncated", True), (2, 1, "terminated", True)]),
        (". D UD", {"flag_slots": ("truncated", "done")}, [(0, 2, "terminated", True), (2, 1, "truncated", True)]),
        # The cell after an end is a reset row, whatever its flags.
        (". T . . T T .", {"autoreset": "next_step"}, [(0, 2, "terminated", True), (3, 2, "terminated", True), (6, 1, "cut", True)]),
        ("T T T", {"autoreset": "next_step"}, [(0, 1, "terminated", True), (2, 1, "terminated", True)]),
        # Nothing, until a mark.
        (". T . T .", {"autoreset": "disabled"}, [(0, 2, "terminated", True)]),
        (". T . r .", {"autoreset": "disabled"}, [(0, 2, "terminated", True), (3, 2, "cut", True)]),
        (". T . g T", {"autoreset": "disabled"}, [(0, 2, "terminated", True), (3, 2, "terminated", False)]),
        # Marks cut; a reset was seen, a gap was not.
        (". . r . g .", {}, [(0, 2, "cut", True), (2, 2, "cut", True), (4, 2, "cut", False)]),
        ("g . T rT", {}, [(0, 3, "terminated", False), (3, 1, "terminated", True)]),
        (". T r .", {}, [(0, 2, "terminated", True), (2, 2, "cut", True)]),
        # A mark on a masked cell holds for the next recorded one; the last one counts.
        (". . xg x . T", {}, [(0, 2, "cut", True), (4, 2, "terminated", False)]),
        (". xg xr . T", {}, [(0, 1, "cut", True), (3, 2, "terminated", True)]),
        # Episodes go on across masked cells, whose flags mean nothing.
        (". x xT . T .", {}, [(0, 4 - 1, "terminated", True), (5, 1, "cut", True)]),
        ("x x", {}, []),
        # Flags of the row before.
        (". . T . T", {"previous_row": True}, [(0, 2, "terminated", True), (2, 2, "terminated", True), (4, 1, "cut", True)]),
        ("T . .", {"previous_row": True}, [(0, 3, "cut", True)]),
        (". . rT .", {"previous_row": True}, [(0, 2, "cut", True), (2, 2, "cut", True)]),
        (". x xT T .", {"previous_row": True}, [(0, 1, "terminated", True), (3, 2, "cut", True)]),
        # A field is read one row earlier, so the first cell of a stretch is none.
        (". . T . T", {"drops_first": True}, [(1, 2, "terminated", True), (3, 2, "terminated", True)]),
        (". . g . . .", {"drops_first": True}, [(1, 1, "cut", True), (3, 3, "cut", False)]),
        (". T . T", {"drops_first": True, "first_is_transition": True}, [(1, 1, "terminated", False), (2, 2, "terminated", True)]),
    ],
)  # fmt: skip
def test_one_environment(text, changed, want):
    assert episodes(text, **changed) == want


def test_environments_are_ordered_by_row_and_then_column():
    segmenter = Segmenter(3, rules())
    segmenter.feed(np.concatenate([column(". T . . ."), column(". . . T ."), column(". T . . .")], axis=1))
    table, _ = segmenter.table()
    assert list(zip(table.start_row.tolist(), table.column.tolist(), strict=True)) == [
        (0, 0),
        (0, 1),
        (0, 2),
        (2, 0),
        (2, 2),
        (4, 1),
    ]
    assert table.number.tolist() == list(range(6))


@pytest.mark.parametrize(
    ("text", "changed", "want"),
    [
        (". T . .", {}, [True, False]),
        (". T", {"autoreset": "next_step"}, [False]),  # whether a reset row follows is not known yet
        (". T .", {"autoreset": "next_step"}, [True]),
        (". T r", {"autoreset": "next_step"}, [True, False]),
        (". . g .", {}, [True, False]),
        (". .", {"previous_row": True}, [False]),
        (". T", {"previous_row": True}, [True, False]),
    ],
)
def test_what_nothing_later_can_change_is_settled(text, changed, want):
    segmenter = Segmenter(1, rules(**changed))
    segmenter.feed(column(text))
    assert segmenter.table()[0].settled.tolist() == want


# However they come -------------------------------------------------------------------------------------------


@st.composite
def recordings(draw):
    """Draw flags (row, env), and where they are cut."""
    rows, width = draw(st.integers(1, 24)), draw(st.integers(1, 4))
    flags = np.zeros((rows, width), np.uint8)
    for bit in (TERMINATED, TRUNCATED, RESET, GAP):
        flags |= np.where(draw(bits(rows, width)) & draw(bits(rows, width)), bit, np.uint8(0))
    if draw(st.booleans()):
        flags |= np.where(draw(bits(rows, width)), NOT_RECORDED, np.uint8(0))
    cuts = sorted(draw(st.sets(st.integers(0, rows), max_size=6)))
    return flags, [0, *cuts, rows]


choices = st.fixed_dictionaries({
    "autoreset": st.sampled_from(["same_step", "next_step", "disabled"]),
    "previous_row": st.booleans(),
    "drops_first": st.booleans(),
    "starts_fresh": st.booleans(),
})  # fmt: skip


@examples(150)
@given(recordings(), choices, st.sets(st.integers(0, 7)))
def test_cut_elsewhere(recording, changed, looked_at):
    flags, cuts = recording
    whole, parts = (Segmenter(flags.shape[1], rules(**changed)) for _ in range(2))
    whole.feed(flags)
    for number, (start, stop) in enumerate(zip(cuts, cuts[1:], strict=False)):
        parts.feed(flags[start:stop])
        if number in looked_at:
            parts.table()
    assert (parts.rows, parts.num_ends) == (whole.rows, whole.num_ends)
    (want, dropped), (got, also_dropped) = whole.table(), parts.table()
    assert dropped == also_dropped
    for name in Episodes._fields:
        np.testing.assert_array_equal(getattr(got, name), getattr(want, name), err_msg=name)


@examples(100)
@given(recordings(), choices)
def test_no_more_than_two_episodes_end_at_an_end(recording, changed):
    flags, _ = recording
    segmenter = Segmenter(flags.shape[1], rules(**changed))
    segmenter.feed(flags)
    assert segmenter.table()[0].settled.sum() <= 2 * segmenter.num_ends


@examples(100)
@given(recordings())
def test_ranks_lead_back_to_rows(recording):
    flags, cuts = recording
    segmenter = Segmenter(flags.shape[1], rules())
    for start, stop in zip(cuts, cuts[1:], strict=False):
        segmenter.feed(flags[start:stop])
    column, rank, row = [], [], []
    for number in range(flags.shape[1]):
        recorded = np.flatnonzero((flags[:, number] & NOT_RECORDED) == 0)
        column += [number] * len(recorded)
        rank += range(len(recorded))
        row += recorded.tolist()
    order = np.random.default_rng(0).permutation(len(row))
    ranks = segmenter.ranks()
    got = ranks.rows(np.array(column, np.int64)[order], np.array(rank, np.int64)[order])
    np.testing.assert_array_equal(got, np.array(row, np.int64)[order])
    assert ranks.is_identity == (not (flags & NOT_RECORDED).any())


def test_spans_by_hand():
    spans = (
        Span(0, 3, np.array([0, 0])),
        Span(3, 2, np.array([3, 3]), np.array([0, 1, 3]), np.array([1, 0, 1], np.int32)),
        Span(5, 4, np.array([4, 5])),
    )
    ranks = RankMap(spans)
    assert not ranks.is_identity
    assert ranks.rows(np.array([0] * 5), np.array([0, 2, 3, 4, 7])).tolist() == [0, 2, 4, 5, 8]
    assert ranks.rows(np.array([1] * 5), np.array([8, 5, 4, 3, 2])).tolist() == [8, 5, 4, 3, 2]
    assert ranks.rows(np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []


@pytest.mark.parametrize("masked", [0.0, 0.5, 0.01])
def test_spans_stay_few(masked):
    rng = np.random.default_rng(0)
    segmenter = Segmenter(2, rules())
    for _ in range(500):
        flags = np.where(rng.random((rng.integers(1, 4), 2)) < masked, NOT_RECORDED, np.uint8(0))
        segmenter.feed(flags)
    spans = segmenter.ranks().spans
    assert len(spans) <= (1 if masked == 0 else 2 * int(np.log2(segmenter.rows)))
    assert [span.start for span in spans] == np.cumsum([0, *(span.rows for span in spans)])[:-1].tolist()
    assert spans[0].start == 0


def test_many_rows_in_short_chunks_are_told_apart_from_episodes_of_the_map_made_before():
    segmenter = Segmenter(1, rules())
    segmenter.feed(column(". x ."))
    before = segmenter.ranks()
    segmenter.feed(column("x . ."))
    assert before.rows(np.zeros(2, int), np.array([0, 1])).tolist() == [0, 2]
    assert segmenter.ranks().rows(np.zeros(4, int), np.arange(4)).tolist() == [0, 2, 4, 5]


# An interrupt ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["with_span", "masked_span", "concatenated"])
def test_an_interrupted_call_changes_nothing(monkeypatch, function):
    flags = column(". T x . g . T . .")
    clean, segmenter = Segmenter(1, rules()), Segmenter(1, rules())
    for each in (clean, segmenter):
        each.feed(flags)
        each.table()

    def interrupt(*args):
        raise KeyboardInterrupt("now")

    with monkeypatch.context() as patch:
        patch.setattr(trajlab.segment.segmenter, function, interrupt)
        with pytest.raises(KeyboardInterrupt, match="now"):  # noqa: PT012
            segmenter.feed(flags)
            segmenter.table()
    if segmenter.rows == len(flags):
        segmenter.feed(flags)
    clean.feed(flags)
    for got, want in zip(segmenter.table()[0], clean.table()[0], strict=True):
        np.testing.assert_array_equal(got, want)
