"""Kernels that write each sequence of n neighbouring rows as one whole number, and count these."""

import abc

import numpy as np

LIMIT = 2**62
"""Sequences are written as numbers below this."""
MAX_TABLE = 2**21
"""Numbers below this are counted in a table, others are sorted."""
TILE = 2**16
"""Numbers are counted, so many or more at once."""


class Coder(abc.ABC):
    """How sequences of `n` codes are written as one number each; their order is that of the sequences.

    Attributes
    ----------
    n : int
    size : int
        All numbers are below it.
    """

    n: int
    size: int

    @abc.abstractmethod
    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Return the numbers (M - n + 1, component) of all sequences of neighbouring rows of codes (M, component)."""

    @abc.abstractmethod
    def decode(self, numbers: np.ndarray) -> np.ndarray:
        """Return the codes (K, n) of numbers (K,)."""


class Digits(Coder):
    """Sequences as numbers with a digit for each code, which is below `width`."""

    def __init__(self, n: int, width: int) -> None:
        """Take sequences of `n` codes."""
        self.n, self.width = n, max(width, 1)
        self.size = self.width**n

    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Return the numbers of all sequences."""
        count = max(len(codes) - self.n + 1, 0)
        numbers = codes[:count].astype(np.int64)
        for place in range(1, self.n):
            numbers *= self.width
            numbers += codes[place : place + count]
        return numbers

    def decode(self, numbers: np.ndarray) -> np.ndarray:
        """Return the codes of numbers."""
        codes = np.empty((len(numbers), self.n), np.int64)
        for place in range(self.n - 1, -1, -1):
            numbers, codes[:, place] = np.divmod(numbers, self.width)
        return codes


class Halves(Coder):
    """Sequences as pairs of shorter ones, their first and their last codes, which may overlap.

    It takes those longer than digits would do for: of the shorter sequences only those that occur are numbered.
    """

    def __init__(self, n: int, half: Coder, occurring: np.ndarray) -> None:
        """Take sequences of `n` codes, at most twice those of `half`, and which of its numbers occur, ascending."""
        self.n, self.half, self.occurring = n, half, occurring
        self.size = max(len(occurring), 1) ** 2

    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Return the numbers of all sequences; those with a half that is not among the occurring ones have any."""
        count = max(len(codes) - self.n + 1, 0)
        places = np.searchsorted(self.occurring, self.half.encode(codes))
        return places[:count] * len(self.occurring) + places[self.n - self.half.n :][:count]

    def decode(self, numbers: np.ndarray) -> np.ndarray:
        """Return the codes of numbers."""
        first, last = (self.half.decode(self.occurring[places]) for places in np.divmod(numbers, len(self.occurring)))
        return np.concatenate([first, last[:, 2 * self.half.n - self.n :]], axis=1)


def whole_sequences(present: np.ndarray | None, follows: np.ndarray, n: int) -> np.ndarray:
    """Return which sequences of `n` neighbouring rows are whole, (M - n + 1, component), or (M - n + 1, 1).

    Parameters
    ----------
    present : array (M, component) of bool, optional
        What may be part of one; None for everything.
    follows : array (M,) of bool
        Whether the next row follows; the last row's does not matter.
    n : int

    Examples
    --------
    >>> whole_sequences(None, np.array([True, True, False, True, True]), 2)[:, 0]
    array([ True,  True, False,  True])
    """
    linked = all_of(follows[: len(follows) - 1, np.newaxis], n - 1) if n > 1 else np.ones((len(follows), 1), bool)
    return linked if present is None else linked & all_of(present, n)


def all_of(flags: np.ndarray, n: int) -> np.ndarray:
    """Return whether all of `n` neighbouring flags (M, ...) are set, (M - n + 1, ...), for each of these."""
    width = 1
    while width < n:
        step = min(width, n - width)
        flags = flags[: max(len(flags) - step, 0)] & flags[step:]
        width += step
    return flags


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
