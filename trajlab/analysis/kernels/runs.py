"""Kernels that find runs, neighbouring rows of the same code, as long as there are, and count them."""

import math
from typing import NamedTuple

import numpy as np

from trajlab.analysis.kernels.numbers import NumberCounter


class Runs(NamedTuple):
    """Runs, arrays (K,); what is none, or goes on, has the length 0.

    Attributes
    ----------
    column : array of int or None
        None where it was not asked for.
    code : array of int
    group : array of int or None
        That of the first row.
    length : array of int
    opened : array of int
        Which of them more rows may belong to.
    """

    column: np.ndarray | None
    code: np.ndarray
    group: np.ndarray | None
    length: np.ndarray
    opened: np.ndarray


_NONE = np.zeros(0, np.int64)
NO_RUNS = Runs(None, _NONE, None, _NONE, _NONE)


class RunFinder:
    """Runs in columns of rows that come batch by batch, each beginning with the last row of the one before.

    The last run of each column is kept until the next batch tells how long it is, or `finish` is called.
    """

    def __init__(self, *, with_column: bool) -> None:
        """Start with nothing found."""
        self._with_column = with_column
        self._kept: Runs | None = None

    def add(
        self,
        codes: np.ndarray,
        ends: np.ndarray,
        opens: tuple[np.ndarray, np.ndarray],
        *,
        present: np.ndarray | None = None,
        group: np.ndarray | None = None,
    ) -> Runs:
        """Return the runs that are known to have ended.

        Parameters
        ----------
        codes : array (column, row) of int
        ends : array of int
            Cells, counted column after column, that are not followed by the next row.
        opens : two arrays of int
            Cells where more rows may belong to a run that begins there, and to one that ends there.
        present : array (column, row) of bool, optional
            What may be part of a run; None for everything.
        group : array (column, row) of int, optional
        """
        columns, size = codes.shape
        if not columns:
            return NO_RUNS
        begins = np.ones(codes.shape, bool)
        np.not_equal(codes[:, 1:], codes[:, :-1], out=begins[:, 1:])
        begins.reshape(-1)[ends[ends < codes.size - 1] + 1] = True
        if present is not None:
            begins[:, 1:] |= present[:, 1:] != present[:, :-1]
        first = np.flatnonzero(begins)
        length = np.empty_like(first)
        np.subtract(first[1:], first[:-1], out=length[:-1])
        length[-1] = codes.size - first[-1]
        of_first = None if group is None else group.reshape(-1)[first]
        is_open = np.zeros(len(first), bool)
        for cells in opens:
            is_open[np.searchsorted(first, cells, side="right") - 1] = True
        at_first = np.searchsorted(first, np.arange(columns) * size)
        if self._kept is not None:
            length[at_first] += self._kept.length - 1
            is_open[at_first[self._kept.opened]] = True
            if of_first is not None:
                of_first[at_first] = self._kept.group
        code = codes.reshape(-1).take(first)
        if present is not None:
            is_none = ~present.reshape(-1)[first]
            length[is_none], is_open[is_none] = 0, False
        at_last = np.append(at_first[1:], len(first)) - 1
        column = np.arange(columns)
        group_last = None if of_first is None else of_first[at_last]
        self._kept = Runs(column, code[at_last], group_last, length[at_last], np.flatnonzero(is_open[at_last]))
        length[at_last], is_open[at_last] = 0, False
        return Runs(first // size if self._with_column else None, code, of_first, length, np.flatnonzero(is_open))

    def finish(self) -> Runs:
        """Return the last run of each column, and start again."""
        kept, self._kept = self._kept, None
        return NO_RUNS if kept is None else kept


class RunCounter:
    """Counts of runs by group, component, value and length."""

    def __init__(self, shape: tuple[int, int, int], longest: int) -> None:
        """Start with nothing counted; `shape` is (group, component, value)."""
        self._shape, self._width = shape, longest + 1
        self._counter = NumberCounter(math.prod(shape) * self._width)
        self._num_open = np.zeros(math.prod(shape), np.int64)

    def add(self, found: Runs) -> None:
        """Count runs; those of length 0 are none."""
        _, components, values = self._shape
        place = found.code.astype(np.int64)
        if found.column is not None:
            place += found.column % components * values
        if found.group is not None:
            place += found.group * (components * values)
        opened = place[found.opened]
        self._num_open += np.bincount(opened[opened >= 0], minlength=len(self._num_open))
        place *= self._width
        place += found.length
        self._counter.add(place, None if found.group is None else found.group >= 0)

    def result(self, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return lengths of runs, counts (group, component, value, length), and those open (…, value).

        The lengths are all from 1 to the longest, or where that is more than `most` those that occurred.
        """
        numbers, counts = self._counter.result()
        place, length = np.divmod(numbers, self._width)
        place, length, counts = (array[length > 0] for array in (place, length, counts))
        longest = int(length.max(initial=0))
        lengths = np.arange(1, longest + 1) if longest <= most else np.unique(length)
        table = np.zeros((len(self._num_open), len(lengths)), np.int64)
        table[place, np.searchsorted(lengths, length)] = counts
        return lengths, table.reshape(*self._shape, len(lengths)), self._num_open.reshape(self._shape)
