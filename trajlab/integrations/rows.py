"""Rows that wait: steps gathered in memory of a fixed size until a Recorder takes them as one chunk."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from trajlab.capture.convention import Convention
from trajlab.integrations.columns import Column
from trajlab.integrations.paths import Path, nested
from trajlab.recorder.attached import Rows, RowSource


class WaitingRows(RowSource):
    """Rows of some environments that wait for a Recorder.

    A subclass writes into the columns at `num_waiting`, and then calls `commit`. A row is a step, or holds only what
    environments showed after a reset; what waits without a step is not worth recording yet.

    Until the first episode has ended, as many rows wait as there is memory for, since some values come only at an
    end, and the first rows that are taken fix the fields. From then on `chunk` rows do.

    Attributes
    ----------
    num_envs : int
    iteration : int
        The iteration of rows that wait.
    is_recording : bool
        False once the recording has ended.
    is_fixed : bool
        Whether rows have been taken, so that there can be no further column.
    """

    def __init__(
        self, chunk: int, capacity: int, num_envs: int, convention: Convention, attrs: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Begin without a column and without a row.

        `chunk` rows wait once an episode has ended, and at most `capacity`, for which there is memory.
        """
        self._chunk, self._capacity, self.num_envs = chunk, capacity, num_envs
        self.convention, self.attrs = convention, attrs
        self.iteration, self.num_waiting = 0, 0
        self.is_recording, self.is_fixed = True, False
        self._columns: dict[Path, Column] = {}
        self._limit, self._has_step = capacity, False
        self._cells, self._is_masked = np.ones((capacity, num_envs), bool), False
        self._marks = np.zeros(num_envs, np.uint8)

    @property
    def is_full(self) -> bool:
        """Whether the rows that wait should be taken before there is another."""
        return self.num_waiting >= self._limit

    def add(self, path: Path, cell: tuple[int, ...], dtype: np.dtype, *, is_single: bool = False) -> Column:
        """Return a new column; in the rows that wait already its value is missing."""
        assert not self.is_fixed
        column = self._columns[path] = Column(path, cell, dtype, (self._capacity, self.num_envs), is_single=is_single)
        return column

    def mark(self, bit: np.uint8, where: np.ndarray) -> None:
        """Put a mark before the first of the rows that wait, for the environments `where` (N,) bool."""
        assert not self._has_step
        self._marks[where] = bit

    def commit(self, *, is_step: bool, has_end: bool = False, cells: np.ndarray | None = None) -> None:
        """Count the row that was written; only the `cells` (N,) bool of it, where given."""
        if cells is not None:
            self._cells[self.num_waiting] = cells
            self._is_masked = True
        elif self._is_masked:
            self._cells[self.num_waiting] = True  # a reset row that this one replaces may have had fewer
        if has_end:
            self._limit = self._chunk
        self._has_step |= is_step
        self.num_waiting += 1

    def waiting(self) -> Rows | None:
        """Return the rows that wait, None where there is no step among them."""
        if not (self._has_step and self.is_recording):
            return None
        self.is_fixed = True
        count = self.num_waiting
        chunk = nested((path, column.rows[:count]) for path, column in self._columns.items())
        return Rows(chunk, self._cells[:count] if self._is_masked else None, self._marks, self.iteration)

    def taken(self) -> None:
        """Forget the rows that wait; what the last of them holds stays where it is until the next is written."""
        self.num_waiting, self._has_step = 0, False
        self._marks[:] = 0
        if self._is_masked:
            self._cells[:], self._is_masked = True, False

    def restart(self) -> None:
        """Forget the rows that wait: the recording starts over."""
        self.taken()

    def stop(self) -> None:
        """Gather no more rows: the recording has ended."""
        self.taken()
        self.is_recording = False
