"""Which iteration each row of a recording belongs to."""

import bisect

import numpy as np


class Iterations:
    """The iterations of a recording's rows, one entry for each row at which another one begins."""

    def __init__(self) -> None:
        """Start with no row."""
        self._begins: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._begins)

    def note(self, row: int, length: int, iteration: int, updates: int) -> None:
        """Say that `length` rows from `row` on are of so many updates, of which the first is `iteration`."""
        self.cut(row)
        for update in range(updates):
            if not self._begins or self._begins[-1][1] != iteration + update:
                self._begins.append((row + update * (length // updates), iteration + update))

    def cut(self, row: int) -> None:
        """Forget what was noted from `row` on, of rows that were never committed."""
        while self._begins and self._begins[-1][0] >= row:
            self._begins.pop()

    def forget(self, row: int) -> None:
        """Forget the rows before `row`."""
        del self._begins[: self._place(row)]

    def since(self, row: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return the row from which each iteration holds, and its number, of those that hold from `row` on."""
        pairs = np.array(self._begins[self._place(row) :], np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def _place(self, row: int) -> int:
        """Return which entry holds at `row`."""
        return max(bisect.bisect_right(self._begins, row, key=lambda pair: pair[0]) - 1, 0)
