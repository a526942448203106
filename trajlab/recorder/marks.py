"""Marks that wait for the next row: resets by hand and gaps."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from trajlab.block.layout import GAP, RESET
from trajlab.capture.envs import env_columns


class Mark(NamedTuple):
    """A reset by hand or a gap, of all environments (`envs` is None) or some."""

    bit: np.uint8
    envs: Any

    def of(self, num_envs: int | None) -> "Mark":
        """Return the mark with its environments as indices, or as they are in a copy where `num_envs` is not known.

        Raises
        ------
        ValueError, TypeError
            When the environments are out of range, repeated, or none of what `Recorder.mark_reset` takes.
        """
        if self.envs is None:
            return self
        if num_envs is not None:
            return self._replace(envs=env_columns(self.envs, num_envs, "envs"))
        return self if isinstance(self.envs, slice) else self._replace(envs=np.array(self.envs))

    def check(self, num_envs: int) -> None:
        """Raise what `of` raises, with the name of the call that gave the mark."""
        if self.envs is not None:
            call = "mark_reset(envs=)" if self.bit == RESET else "mark_gap(envs=)"
            env_columns(self.envs, num_envs, call)


def bits_of(marks: Sequence[Mark], num_envs: int, *, jumps: bool) -> np.ndarray | None:
    """Return the bits (num_envs,) uint8 that stand before the next row, None where there is nothing to mark.

    The last mark given for an environment holds; a jump of the iteration is a gap where none was given.
    """
    if not (marks or jumps):
        return None
    bits = np.zeros(num_envs, np.uint8)
    for mark in marks:
        where = slice(None) if mark.envs is None else env_columns(mark.envs, num_envs, "envs")
        bits[where] = mark.bit
    if jumps:
        bits[bits == 0] = GAP
    assert not (bits & ~(RESET | GAP)).any()
    return bits
