"""The open end of a log, where steps of some environments share rows: each goes to its environment's next free row."""

from typing import Any, NamedTuple, Self

import numpy as np

from trajlab.block.layout import NOT_RECORDED
from trajlab.block.read import to_host

MAX_ROWS = 32
"""Rows of a window whose flags are waited for: they arrive when it closes."""


class Window(NamedTuple):
    """Rows that are still being filled, each column from the first row on and without holes; replaced as a whole.

    Which cells are recorded stands here and not in the flags of the rows, so a call that was interrupted leaves
    nothing that is ever read.

    Attributes
    ----------
    start : int
        First row.
    next_row : array (width,) int64
        The row of each column's next cell.
    marks : array (width,) uint8
        The mark that stands before that cell; 0 for none.
    """

    start: int
    next_row: np.ndarray
    marks: np.ndarray

    @classmethod
    def at(cls, row: int, width: int, marks: np.ndarray | None) -> Self:
        """Return a window without cells; `marks` waited for the next row."""
        return cls(row, np.full(width, row), np.zeros(width, np.uint8) if marks is None else marks)

    def marked(self, marks: np.ndarray | None) -> Self:
        """Return the window with further marks (width,); the last one given for a column holds."""
        return self if marks is None else self._replace(marks=np.where(marks, marks, self.marks))

    def stepped(self, columns: np.ndarray) -> Self:
        """Return the window with one more cell in some columns."""
        next_row, marks = self.next_row.copy(), self.marks
        next_row[columns] += 1
        if marks[columns].any():
            marks = marks.copy()
            marks[columns] = 0
        return self._replace(next_row=next_row, marks=marks)

    def waiting(self, stop: int) -> np.ndarray | None:
        """Return the marks that found no free cell before row `stop`, None where there are none."""
        marks = np.where(self.next_row == stop, self.marks, np.uint8(0))
        return marks if marks.any() else None

    def complete(self, flags: np.ndarray, first: int) -> None:
        """Write into the flags (R, width) of the log's rows from `first` on what this window says of them."""
        low = max(self.start - first, 0)
        ours = flags[low : max(int(self.next_row.max()) - first, 0)]
        rows = first + low + np.arange(len(ours))
        ours[rows[:, None] >= self.next_row] = NOT_RECORDED
        marked = np.flatnonzero((self.marks != 0) & (self.next_row < first + low + len(ours)))
        marked = marked[self.next_row[marked] >= first + low]
        ours[self.next_row[marked] - first - low, marked] |= self.marks[marked]


class WindowFlags(NamedTuple):
    """The flags of a closed window, which come from the calls that filled it.

    Attributes
    ----------
    window : Window
    rows : int
        Number of rows.
    pieces : list of (array (k,), array (k,), array (1, width) uint8)
        Of each call: rows of its cells, counted from the window's first, their columns, and the bytes of flags.
    """

    window: Window
    rows: int
    pieces: list[tuple[np.ndarray, np.ndarray, Any]]

    def is_ready(self) -> bool:
        """Say whether all have arrived."""
        return all(not hasattr(flags, "is_ready") or flags.is_ready() for _, _, flags in self.pieces)

    def fetch(self) -> np.ndarray:
        """Return the bytes of flags (rows, width)."""
        out = np.full((self.rows, len(self.window.marks)), NOT_RECORDED)
        for rows, columns, flags in self.pieces:
            is_ours = rows < self.rows
            out[rows[is_ours], columns[is_ours]] = to_host(flags)[0, columns[is_ours]]
        self.window.complete(out, self.window.start)
        return out
