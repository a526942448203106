"""A kernel that counts whole numbers below a large size, which come batch by batch."""

import numpy as np

MAX_TABLE = 2**21
"""Numbers below this are counted in a table, others are sorted."""
TILE = 2**16
"""Numbers are counted, so many or more at once."""


class NumberCounter:
    """Counts of each whole number from 0 to `size` - 1, where these come batch by batch.

    Numbers are held until they are as many as a pass over what was counted before costs.
    """

    def __init__(self, size: int, room: int = 0) -> None:
        """Start with nothing counted; a table may have `room` for so many numbers, where these are more than usual."""
        self._size = size
        self._in_table = size <= max(MAX_TABLE, room)
        self._numbers: np.ndarray = np.zeros(0, np.int64)
        self._counts = np.zeros(size if self._in_table else 0, np.int64)
        self._held: list[np.ndarray] = []
        self._num_held = 0

    def add(self, numbers: np.ndarray, counted: np.ndarray | None = None) -> None:
        """Count numbers, of any shape and overwritten: all, or those `counted`, a mask that fits their shape."""
        if counted is None:
            numbers = numbers.reshape(-1)
        elif self._in_table and self._size <= TILE:
            np.copyto(numbers, self._size, where=~counted)
            numbers = numbers.reshape(-1)
        else:
            numbers = numbers[np.broadcast_to(counted, numbers.shape)]
        if self._in_table and self._size > TILE:
            numbers = self._count_near(numbers)
        self._held.append(numbers)
        self._num_held += len(numbers)
        if self._num_held >= max(len(self._counts), TILE):
            self._count()

    def _count_near(self, numbers: np.ndarray) -> np.ndarray:
        """Count numbers that lie so close below the largest that a pass over all between costs little; return others.

        Numbers of episodes that follow each other are nearly all among these.
        """
        if not len(numbers):
            return numbers
        last = int(numbers.max())
        first = max(int(numbers.min()), last - 2 * len(numbers))
        far = numbers[numbers < first]
        numbers -= first - 1
        if len(far):
            np.maximum(numbers, 0, out=numbers)
        self._counts[first : last + 1] += np.bincount(numbers)[1:]
        return far

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers that occurred, ascending, and how often."""
        self._count()
        if not self._in_table:
            return self._numbers, self._counts
        numbers = np.flatnonzero(self._counts)
        return numbers, self._counts[numbers]

    def _count(self) -> None:
        """Count what is held, and forget it."""
        if not self._held:
            return
        numbers = self._held[0] if len(self._held) == 1 else np.concatenate(self._held)
        self._held, self._num_held = [], 0
        if self._in_table:
            self._counts += np.bincount(numbers, minlength=self._size + 1)[: self._size]
            return
        seen, counts = np.unique(numbers, return_counts=True)
        if len(self._numbers):
            seen, counts = _merged(np.concatenate([self._numbers, seen]), np.concatenate([self._counts, counts]))
        self._numbers, self._counts = seen, counts


def _merged(numbers: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct numbers, ascending, and the sum of the counts of each."""
    order = np.argsort(numbers, kind="stable")  # linear, since they are two ascending parts
    numbers = numbers[order]
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    return numbers[first], np.add.reduceat(counts[order], first)
