"""Joined fields taken apart again: what each part of `concat` gives, to be read in its own way."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from trajlab.dataset.joined import Frame, JoinedArray
from trajlab.dataset.lazy import as_slice, lazy_base, vector


@dataclasses.dataclass(frozen=True, eq=False)
class Piece:
    """What one part gives to some variables.

    Attributes
    ----------
    variables : mapping of str to Variable
        The part's own variables, narrowed to what is selected of the whole.
    episodes, times : array of int
        Where their episodes and steps stand in the selection.
    """

    variables: Mapping[str, xr.Variable]
    episodes: np.ndarray
    times: np.ndarray


def pieces_of(variables: Mapping[str, xr.Variable]) -> Iterator[Piece] | None:
    """Return the pieces of which variables over (episode, time, ...) are joined, or None where they are not.

    They must be joined alike and selected alike. Read piece by piece they cost what each part costs by
    itself; a part in a file or a log does not like to be read by the cell.
    """
    bases = {name: base for name, variable in variables.items() if (base := lazy_base(variable)) is not None}
    joined = {name: (array, key) for name, (array, key) in bases.items() if isinstance(array, JoinedArray)}
    if not joined or len(joined) < len(variables):
        return None
    frame = next(array.frame for array, _ in joined.values())
    leads = [[vector(k, n) for k, n in zip(key[:2], array.shape, strict=False)] for array, key in joined.values()]
    episode, time = leads[0]
    for (array, _), lead in zip(joined.values(), leads, strict=True):
        if array.lead != 2 or array.frame is not frame or not all(map(np.array_equal, lead, leads[0])):
            return None
    return _pieces(joined, frame, episode, time)


def _pieces(
    joined: Mapping[str, tuple[JoinedArray, tuple[Any, ...]]], frame: Frame, episode: np.ndarray, time: np.ndarray
) -> Iterator[Piece]:
    for number, here, first in frame.holding(episode):
        there, second = frame.within(number, time)
        variables = {
            name: part[(as_slice(first), as_slice(second), *key[2:])]
            for name, (array, key) in joined.items()
            if (part := array.parts[number]) is not None
        }
        yield Piece(variables, here, np.arange(len(time)) if isinstance(there, slice) else there)
