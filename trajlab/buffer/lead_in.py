"""How a ring's kept rows begin: what the rows before them, which are overwritten, had to say about it.

For each environment that is one of a few states between two cells. A cell's flags and mark lead from one state to
the next, as the Segmenter would read them (`trajlab.segment.cutting` finds the same without going cell by cell); the
state before each chunk is kept beside the ring.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from trajlab.block.layout import DONE, ENDS, GAP, MARKS, NOT_RECORDED, RESET
from trajlab.segment import Rules

OPEN, START, START_UNSEEN, RESET_ROW, DROP, DROP_UNSEEN, DROPPED, DROPPED_UNSEEN = range(8)
"""What the next recorded cell is: one more of the open episode, the first of one, a reset row, or one that is dropped
since nothing stands before it. Behind a dropped one an episode starts, unless a flag one cell late ended there."""
STATES = range(8)
_BITS = 3


def first_state(rules: Rules) -> int:
    """Return the state before a recording's first cell."""
    return _marked(rules, is_seen=rules.starts_fresh)


def _marked(rules: Rules, *, is_seen: bool) -> int:
    """Return the state behind a mark."""
    if rules.drops_first:
        return DROP if is_seen else DROP_UNSEEN
    return START if is_seen else START_UNSEEN


def step(state: int, flags: int, rules: Rules) -> tuple[int, bool]:
    """Return the state behind a cell with these flags, and whether the cell is an episode's first transition."""
    has_mark, has_end = bool(flags & MARKS), bool(flags & ENDS)
    if has_mark:
        state = _marked(rules, is_seen=bool(flags & RESET))
    if flags & NOT_RECORDED:
        return state, False
    after_end = RESET_ROW if rules.autoreset == "next_step" else START
    if rules.previous_row:
        if has_end and not has_mark and state in (OPEN, DROPPED, DROPPED_UNSEEN):
            state = after_end
        has_end = False
    if state == RESET_ROW:
        return START, False
    if state in (DROP, DROP_UNSEEN):
        if has_end:
            return after_end, False
        is_seen = state == DROP and not rules.first_is_transition
        if rules.previous_row:
            return (DROPPED if is_seen else DROPPED_UNSEEN), False
        return (START if is_seen else START_UNSEEN), False
    return (after_end if has_end else OPEN), state != OPEN


@functools.lru_cache(maxsize=64)
def _tables(rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each byte of flags, the step as a map of states, three bits each, and the states it begins one in."""
    maps, starts = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    for flags in range(64):
        for state in STATES:
            after, is_first = step(state, flags, rules)
            maps[flags] |= np.uint32(after << _BITS * state)
            starts[flags] |= np.uint32(is_first << state)
    return maps, starts


def advance(state: jax.Array, flags: jax.Array, rules: Rules, *, is_plain: bool) -> tuple[jax.Array, jax.Array]:
    """Return the state behind a chunk, and how many episodes began in it.

    Parameters
    ----------
    state : array (N,) uint8
        Before the chunk.
    flags : array (T, N) uint8
    rules : Rules
    is_plain : bool
        Whether no cell is masked or marked.

    Returns
    -------
    state : array (N,) uint8
    started : array (N,) int32
    """
    if is_plain and rules.autoreset == "same_step" and not (rules.previous_row or rules.drops_first):
        has_end = (flags & ENDS) != 0
        started = has_end[:-1].sum(axis=0, dtype=jnp.int32) + (state != OPEN).astype(jnp.int32)
        return jnp.where(has_end[-1], np.uint8(START), np.uint8(OPEN)), started
    # Maps of states are put one behind the other by twos, in log2(T) steps; cell by cell an accelerator would take T.
    maps, starts = (jnp.asarray(table)[flags.astype(jnp.int32)] for table in _tables(rules))
    upto = jax.lax.associative_scan(_after, maps, axis=0)
    behind = _apply(upto, state[None].astype(jnp.uint32))
    before = jnp.concatenate([state[None].astype(jnp.uint32), behind[:-1]])
    return behind[-1].astype(jnp.uint8), ((starts >> before) & np.uint32(1)).sum(axis=0, dtype=jnp.int32)


def _apply(maps: Any, states: Any) -> jax.Array:
    """Return the states that maps lead to from `states`."""
    return (maps >> (states * np.uint32(_BITS))) & np.uint32(7)


def _after(first: jax.Array, second: jax.Array) -> jax.Array:
    """Return the map that is `first` and then `second`."""
    out = jnp.zeros_like(first)
    for state in STATES:
        out |= _apply(second, _apply(first, np.uint32(state))) << np.uint32(_BITS * state)
    return out


def lead_in(states: np.ndarray, rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """Return rows that bring the Segmenter into these states.

    Parameters
    ----------
    states : array (width,) uint8
    rules : Rules

    Returns
    -------
    flags : array (2, width) uint8
        Of two rows to be read before the kept ones.
    marks : array (width,) uint8
        Marks that stand before the first kept row.
    """
    flags = np.full((2, len(states)), NOT_RECORDED)
    marks = np.zeros(len(states), np.uint8)
    for state in STATES:
        before, last, mark = _cells(state, rules)
        here = states == state
        flags[0, here], flags[1, here], marks[here] = before, last, mark
    return flags, marks


def _cells(state: int, rules: Rules) -> tuple[Any, Any, Any]:
    """Return the flags of two cells behind which a state stands, and a mark where only that leads to it."""
    none = np.uint8(0)
    if state == OPEN:
        return none, none, none
    if state == RESET_ROW:
        return NOT_RECORDED, DONE, none
    if state == START and rules.autoreset == "next_step":
        return (none, DONE, none) if rules.previous_row else (DONE, none, none)
    if state == START and not rules.previous_row:
        return NOT_RECORDED, DONE, none
    mark = RESET if state in (START, DROP, DROPPED) else GAP
    if state in (DROPPED, DROPPED_UNSEEN) or (state == START_UNSEEN and rules.drops_first):
        return NOT_RECORDED, mark, none
    return NOT_RECORDED, NOT_RECORDED, mark
