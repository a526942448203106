"""What each cell is, found on the device as the rows come, without a look back.

Between two cells an environment is in one of a few states. A cell's flags and mark lead from one state to the next, as
the Segmenter would read them (`trajlab.segment.cutting` finds the same without going cell by cell).
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from trajlab.block.layout import ENDS, MARKS, NOT_RECORDED, RESET
from trajlab.segment import Rules

OPEN, START, START_UNSEEN, RESET_ROW, DROP, DROP_UNSEEN, DROPPED, DROPPED_UNSEEN = range(8)
"""What the next recorded cell is: one more of the open episode, the first of one, a reset row, or one that is dropped
since nothing stands before it. Behind a dropped one an episode starts, unless a flag one cell late ended there. Where
environments do not reset themselves, a "reset row" is all that comes until the next mark."""
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


class Cell(NamedTuple):
    """What a cell is, and the state behind it."""

    after: int
    is_transition: bool = False
    is_first: bool = False


def step(state: int, flags: int, rules: Rules) -> Cell:
    """Return what a cell with these flags is."""
    has_mark, has_end = bool(flags & MARKS), bool(flags & ENDS)
    if has_mark:
        state = _marked(rules, is_seen=bool(flags & RESET))
    if flags & NOT_RECORDED:
        return Cell(state)
    after_end = START if rules.autoreset == "same_step" else RESET_ROW
    if rules.previous_row:
        if has_end and not has_mark and state in (OPEN, DROPPED, DROPPED_UNSEEN):
            state = after_end
        has_end = False
    if state == RESET_ROW:
        return Cell(RESET_ROW if rules.autoreset == "disabled" else START)
    if state in (DROP, DROP_UNSEEN):
        if has_end:
            return Cell(after_end)
        is_seen = state == DROP and not rules.first_is_transition
        if rules.previous_row:
            return Cell(DROPPED if is_seen else DROPPED_UNSEEN)
        return Cell(START if is_seen else START_UNSEEN)
    return Cell(after_end if has_end else OPEN, is_transition=True, is_first=state != OPEN)


class _Tables(NamedTuple):
    """For each byte of flags: the step as a map of states, three bits each, and in which states a cell is what."""

    maps: np.ndarray
    transitions: np.ndarray
    firsts: np.ndarray


@functools.lru_cache(maxsize=64)
def _tables(rules: Rules) -> _Tables:
    tables = _Tables(*np.zeros((3, 64), np.uint32))
    for flags in range(64):
        for state in STATES:
            cell = step(state, flags, rules)
            tables.maps[flags] |= np.uint32(cell.after << _BITS * state)
            tables.transitions[flags] |= np.uint32(cell.is_transition << state)
            tables.firsts[flags] |= np.uint32(cell.is_first << state)
    return tables


class Cells(NamedTuple):
    """What the cells of a chunk are.

    Attributes
    ----------
    after : array (N,) uint8
        The state behind the chunk.
    is_transition, is_first : array (T, N) bool
        Whether each is a transition, and whether an episode's first.
    """

    after: jax.Array
    is_transition: jax.Array
    is_first: jax.Array


def walk(state: jax.Array, flags: jax.Array, rules: Rules, *, is_plain: bool) -> Cells:
    """Return what the cells of a chunk are; with `is_plain` none of them is masked or marked.

    Parameters
    ----------
    state : array (N,) uint8
        Before the chunk.
    flags : array (T, N) uint8
    rules : Rules
    is_plain : bool
    """
    if is_plain and rules.autoreset == "same_step" and not (rules.previous_row or rules.drops_first):
        has_end = (flags & ENDS) != 0
        is_first = jnp.concatenate([state[None] != OPEN, has_end[:-1]])
        after = jnp.where(has_end[-1], np.uint8(START), np.uint8(OPEN))
        return Cells(after, jnp.ones_like(has_end), is_first)
    # Maps of states are put one behind the other by twos, in log2(T) steps; cell by cell an accelerator would take T.
    maps, transitions, firsts = (jnp.asarray(table)[flags.astype(jnp.int32)] for table in _tables(rules))
    upto = jax.lax.associative_scan(_after, maps, axis=0)
    behind = _apply(upto, state[None].astype(jnp.uint32))
    before = jnp.concatenate([state[None].astype(jnp.uint32), behind[:-1]])
    is_transition, is_first = (((bits >> before) & np.uint32(1)) != 0 for bits in (transitions, firsts))
    return Cells(behind[-1].astype(jnp.uint8), is_transition, is_first)


def advance(state: jax.Array, flags: jax.Array, rules: Rules, *, is_plain: bool) -> tuple[jax.Array, jax.Array]:
    """Return the state behind a chunk, as `walk` does, and how many episodes began in it, int32 (N,)."""
    cells = walk(state, flags, rules, is_plain=is_plain)
    return cells.after, cells.is_first.sum(axis=0, dtype=jnp.int32)


def times(cells: Cells, length: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the step within its episode of each cell, and the length of the episodes under way behind them.

    Parameters
    ----------
    cells : Cells
    length : array (N,) int32
        Transitions so far of the episodes under way before the chunk.

    Returns
    -------
    times : array (T, N) int32
        -1 where a cell is no transition.
    length : array (N,) int32
    """
    before = jnp.cumsum(cells.is_transition, axis=0, dtype=jnp.int32) - cells.is_transition.astype(jnp.int32)
    begun = jax.lax.cummax(jnp.where(cells.is_first, before, -length[None]), axis=0)
    time = before - begun
    after = time[-1] + cells.is_transition[-1].astype(jnp.int32)
    return jnp.where(cells.is_transition, time, np.int32(-1)), after


def _apply(maps: Any, states: Any) -> jax.Array:
    """Return the states that maps lead to from `states`."""
    return (maps >> (states * np.uint32(_BITS))) & np.uint32(7)


def _after(first: jax.Array, second: jax.Array) -> jax.Array:
    """Return the map that is `first` and then `second`."""
    out = jnp.zeros_like(first)
    for state in STATES:
        out |= _apply(second, _apply(first, np.uint32(state))) << np.uint32(_BITS * state)
    return out
