"""The state between two cells: on the device as cell by cell, and as the Segmenter reads it."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from trajlab.block.layout import DONE, GAP, NOT_RECORDED, RESET, TERMINATED
from trajlab.buffer.lead_in import lead_in
from trajlab.cell_states import STATES, advance, first_state, step
from trajlab.segment import Rules, Segmenter, without_first

BYTES = [
    0,
    0,
    0,
    DONE,
    TERMINATED,
    NOT_RECORDED,
    RESET,
    GAP,
    RESET | DONE,
    GAP | DONE,
    NOT_RECORDED | RESET,
    NOT_RECORDED | GAP,
]
KINDS = [
    Rules(autoreset, previous_row, drops, drops and not is_result, True, ("done",))
    for autoreset, previous_row, drops, is_result in itertools.product(
        ["same_step", "next_step"], [False, True], [False, True], [False, True]
    )
    if drops or not is_result
]
columns = st.lists(st.sampled_from([int(byte) for byte in BYTES]), min_size=1, max_size=12)


def walked(state, flags, rules):
    """Return the state behind some cells and how many of them begin an episode, cell by cell."""
    starts = 0
    for byte in flags:
        cell = step(state, int(byte), rules)
        state, starts = cell.after, starts + cell.is_first
    return state, starts


@examples(60)
@given(st.sampled_from(KINDS), st.data(), st.integers(1, 6), st.booleans())
def test_advance_goes_cell_by_cell(rules, data, length, is_plain):
    drawn = data.draw(st.lists(st.sampled_from([int(b) for b in BYTES]), min_size=3 * length, max_size=3 * length))
    flags = np.array(drawn, np.uint8).reshape(length, 3) & (DONE if is_plain else 255)
    met = [0, 1, 2] if is_plain else list(STATES)  # without a mark or a mask the others do not come up in plain rules
    state = np.array(data.draw(st.lists(st.sampled_from(met), min_size=3, max_size=3)), np.uint8)
    after, started = advance(jnp.asarray(state), jnp.asarray(flags), rules, is_plain=is_plain)
    want = [walked(int(state[i]), flags[:, i], rules) for i in range(3)]
    assert list(zip(after.tolist(), started.tolist(), strict=True)) == want


@examples(400)
@given(st.sampled_from(KINDS), columns, columns, st.booleans())
def test_rows_before_may_be_replaced_by_their_lead_in(rules, early, late, starts_fresh):
    rules = Rules(
        *[starts_fresh if name == "starts_fresh" else getattr(rules, name) for name in Rules.__dataclass_fields__]
    )
    state, started = walked(first_state(rules), early, rules)
    flags = np.array([*early, *late], np.uint8)[:, None]
    kept = flags[len(early) :].copy()
    whole, last = Segmenter(1, rules), Segmenter(1, rules)
    rows, marks = lead_in(np.array([state], np.uint8), rules)
    if not kept[0, 0] & (RESET | GAP):
        kept[0] |= marks
    last.feed(kept)
    whole.feed(np.concatenate([rows, kept]))
    got = without_first(
        whole.table()[0],
        np.count_nonzero((rows & NOT_RECORDED) == 0, axis=0),
        last.ranks(),
        drops_first=rules.drops_first,
        started=started,
    )
    real = Segmenter(1, rules)
    real.feed(flags)
    early_cells = np.array([np.count_nonzero((flags[: len(early)] & NOT_RECORDED) == 0)])
    table, ranks = real.table()[0], real.ranks()
    assert (table.start_row < len(early)).sum() == started
    want = []
    for i in range(len(table.length)):
        gone = early_cells[0] + (rules.drops_first and early_cells[0] > 0)
        lost = max(0, gone - table.start[i])
        if lost < table.length[i]:
            row = ranks.rows(np.array([0]), np.array([table.start[i] + lost]))[0] - len(early)
            want.append(
                (
                    row,
                    table.length[i] - lost,
                    table.reason[i],
                    bool(table.start_seen[i]) and not lost,
                    table.has_reset_row[i],
                    int(table.number[i]),
                )
            )
    have = list(zip(got.start_row, got.length, got.reason, got.start_seen, got.has_reset_row, got.number, strict=True))
    assert have == want


@pytest.mark.parametrize("rules", KINDS, ids=str)
def test_works_under_jit_and_vmap(rules):
    flags = jnp.asarray(np.array(BYTES, np.uint8).reshape(6, 2))
    state = jnp.zeros(2, jnp.uint8)
    plain = advance(state, flags, rules, is_plain=False)
    both = jax.jit(jax.vmap(lambda s, f: advance(s, f, rules, is_plain=False)))(state[None], flags[None])
    for a, b in zip(plain, both, strict=True):
        np.testing.assert_array_equal(a, b[0])
