"""How a ring's kept rows begin: what the rows before them, which are overwritten, had to say about it.

The state of each environment before each chunk is kept beside the ring (see `trajlab.cell_states`).
"""

from typing import Any

import numpy as np

from trajlab.block.layout import DONE, GAP, NOT_RECORDED, RESET
from trajlab.cell_states import (
    DROP,
    DROPPED,
    DROPPED_UNSEEN,
    OPEN,
    RESET_ROW,
    START,
    START_UNSEEN,
    STATES,
)
from trajlab.segment import Rules


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
