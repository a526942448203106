"""The open end of a log, where steps of some environments share rows: each goes to its environment's next free row."""

from collections.abc import Sequence
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

    def complete(self, flags: np.ndarray) -> None:
        """Write into the flags (R, width) of this window's rows which cells are recorded, and the marks after them."""
        count = self.next_row - self.start
        flags[np.arange(len(flags))[:, None] >= count] = NOT_RECORDED
        marked = np.flatnonzero((self.marks != 0) & (count < len(flags)))
        flags[count[marked], marked] |= self.marks[marked]


class CellFlags(NamedTuple):
    """Where a call has put its cells, as rows (k,) of the window and columns (k,), and its flags (1, width)."""

    rows: np.ndarray
    columns: np.ndarray
    flags: Any


class WindowFlags:
    """The flags of a closed window, on their way from the device: they come from the calls that filled it."""

    def __init__(self, window: Window, stop: int, parts: Sequence[CellFlags]) -> None:
        """Wait for the flags of a window's rows up to row `stop` of the log."""
        self._window, self._rows, self._parts = window, stop - window.start, parts

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._rows

    def is_ready(self) -> bool:
        """Say whether all have arrived."""
        return all(not hasattr(flags, "is_ready") or flags.is_ready() for _, _, flags in self._parts)

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> np.ndarray:
        """Return the bytes of flags (rows, width)."""
        out = np.full((self._rows, len(self._window.marks)), NOT_RECORDED)
        for rows, columns, flags in self._parts:
            is_ours = rows < self._rows
            out[rows[is_ours], columns[is_ours]] = to_host(flags)[0, columns[is_ours]]
        self._window.complete(out)
        return out


class Sharing:
    """The windows that have closed, until their rows are segmented, and what the calls of the open one gave."""

    def __init__(self) -> None:
        """Start without any."""
        self._closed: list[Window] = []
        self._parts: tuple[int, list[CellFlags]] = (0, [])

    def add(self, window: Window, part: CellFlags) -> None:
        """Keep the flags of a call, until the window closes."""
        if self._parts[0] != window.start:
            self._parts = (window.start, [])
        if hasattr(part.flags, "copy_to_host_async"):
            part.flags.copy_to_host_async()
        self._parts[1].append(part)

    def close(self, window: Window, stop: int) -> WindowFlags:
        """Note that a window has closed before row `stop`; return its flags.

        A window that was closed by a call which was never committed is forgotten.
        """
        while self._closed and self._closed[-1].start >= window.start:
            self._closed.pop()
        self._closed.append(window)
        return WindowFlags(window, stop, self._parts[1] if self._parts[0] == window.start else [])

    def complete(self, flags: np.ndarray, first: int) -> np.ndarray:
        """Return the flags (R, width) of the log's rows from `first` on with what the windows among them say."""
        windows = [window for window in self._closed if first <= window.start < first + len(flags)]
        if windows:
            flags = flags.copy()
        for window in windows:
            window.complete(flags[window.start - first : int(window.next_row.max()) - first])
        return flags

    def forget(self, rows: int) -> None:
        """Forget the windows that begin before row `rows`: they are segmented."""
        self._closed = [window for window in self._closed if window.start >= rows]
