"""A kernel that finds runs: neighbouring rows of the same code, as long as there are."""

from typing import NamedTuple

import numpy as np


class Runs(NamedTuple):
    """Runs, arrays (K,); what is none, or goes on, has the length 0 and is not open.

    Attributes
    ----------
    component, code : array of int
    group : array of int or None
        That of the first row.
    length : array of int
    is_open : array of bool
        Whether more rows may belong to it.
    """

    component: np.ndarray
    code: np.ndarray
    group: np.ndarray | None
    length: np.ndarray
    is_open: np.ndarray


class RunFinder:
    """Runs in rows that come batch by batch, in order; one that goes on in the next batch is found there."""

    def __init__(self, components: int) -> None:
        """Start with nothing found."""
        self._start = np.zeros(components, np.int64)
        self._group = np.zeros(components, np.int64)
        self._is_open = np.zeros(components, bool)

    def add(
        self,
        codes: np.ndarray,
        follows: np.ndarray,
        start: int,
        shared: int,
        *,
        present: np.ndarray | None = None,
        group: np.ndarray | None = None,
        opens: tuple[np.ndarray, np.ndarray],
    ) -> Runs:
        """Return the runs in a batch of rows (M, component), those that end there with their length.

        Parameters
        ----------
        codes : array (M, component) of int
        follows : array (M,) of bool
            Whether the next row follows.
        start : int
            Number of the first row, all counted through.
        shared : int
            1 where the first row is the last one of the batch before, else 0.
        present : array (M, component) of bool, optional
            What may be part of a run; None for everything.
        group : array (M,) of int, optional
            Group of each row.
        opens : two arrays (M, component) or (M, 1) of bool
            Whether more rows may belong to a run that begins in a row, or that ends there.
        """
        # All below lies component after component, so that a place tells of both.
        size = len(codes)
        codes = np.ascontiguousarray(codes.T)
        begins = np.ones(codes.shape, bool)
        np.logical_not((codes[:, 1:] == codes[:, :-1]) & follows[:-1], out=begins[:, 1:])
        if present is not None:
            present = np.ascontiguousarray(present.T)
            begins[:, 1:] |= present[:, 1:] != present[:, :-1]
        first = np.flatnonzero(begins)
        length = np.diff(first, append=codes.size)
        last = first + (length - 1)
        component = first // size if len(codes) > 1 else np.zeros(len(first), np.int64)
        of_first = None if group is None else group[first - component * size if len(codes) > 1 else first]
        is_open = np.zeros(len(first), bool)
        before, after = (np.flatnonzero(np.broadcast_to(one.T, codes.shape)) for one in opens)
        _set_at(is_open, first, before)
        none = np.zeros(0, np.intp) if present is None else np.flatnonzero(~present.reshape(-1)[first])
        if shared:
            at_first = np.flatnonzero(first == component * size)
            if follows[0]:  # they began in an earlier batch
                of = component[at_first]
                length[at_first] += start - self._start[of]
                is_open[at_first] = self._is_open[of]
                if of_first is not None:
                    of_first[at_first] = self._group[of]
            else:  # they ended in the batch before
                none = np.append(none, at_first)
        if follows[-1]:
            at_last = np.flatnonzero(last == component * size + size - 1)
            of = component[at_last]
            self._start[of] = start + size - length[at_last]
            self._is_open[of] = is_open[at_last]
            if of_first is not None:
                self._group[of] = of_first[at_last]
            none = np.append(none, at_last)
        _set_at(is_open, last, after)
        length[none], is_open[none] = 0, False
        return Runs(component, codes.reshape(-1)[first], of_first, length, is_open)


def _set_at(flags: np.ndarray, places: np.ndarray, wanted: np.ndarray) -> None:
    """Set the flags (K,) whose places (K,), ascending, are among those wanted, which are few."""
    at = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
    flags[at[places[at] == wanted]] = True
