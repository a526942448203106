"""Whether flags that have arrived can have ended the wanted episodes, so that the table is worth making again."""

from typing import NamedTuple

import numpy as np

from trajlab.block.layout import NOT_RECORDED
from trajlab.segment import Episodes


class Watch(NamedTuple):
    """When the table of episodes is worth another look: only then can the wanted ones all have ended.

    Attributes
    ----------
    ends : int
        While fewer episodes have started than are wanted: twice the number of ends and marks to wait for.
    columns : array (width,) bool or None
        Once they have: the columns in which one is not settled.
    any_cell : bool
        Whether one of these has ended and waits for its reset row, which needs no flag.
    """

    ends: int
    columns: np.ndarray | None
    any_cell: bool = False

    @classmethod
    def of(cls, table: Episodes, wanted: int, num_ends: int, width: int) -> "Watch":
        """Return what to wait for, given the wanted episodes that have started; two may end at one cell."""
        if len(table.length) < wanted:
            return cls(2 * num_ends + wanted - len(table.length), None)
        columns = np.zeros(width, bool)
        columns[table.column[~table.settled]] = True
        return cls(0, columns, bool((table.ended & ~table.settled).any()))

    def concerns(self, flags: np.ndarray, num_ends: int) -> bool:
        """Say whether the flags (R, width) of further rows, with which there are `num_ends`, can have settled all."""
        if self.columns is None:
            return 2 * num_ends >= self.ends
        return self.any_cell or bool((flags[:, self.columns] & ~NOT_RECORDED).any())
