"""Kernels that write each sequence of n neighbouring rows as one whole number."""

import abc

import numpy as np

LIMIT = 2**62
"""Sequences are written as numbers below this."""


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
