"""A value made for each cell of a log from one of its fields, and read from there as fast as that."""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab import names
from trajlab.dataset.cell_episodes import CellEpisodes
from trajlab.dataset.cells import Cells
from trajlab.dataset.flat import log_tiles
from trajlab.dataset.lazy import lazy_variable
from trajlab.dataset.padding_attrs import about_padding
from trajlab.dataset.source import MadeArray, Source


@dataclasses.dataclass(frozen=True, eq=False)
class MadeRows:
    """Values of all cells of a log, to be changed in place; 0 where none of the episodes is.

    Attributes
    ----------
    source : Source
    chosen : array (episode,) of int
        Which of its episodes the Dataset has.
    values : array (rows, width, ...)
    """

    source: Source
    chosen: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, ds: xr.Dataset, name: str, dtype: Any, wide: int) -> "MadeRows | None":
        """Return a copy of a field in another dtype, or None.

        It is None where the field is not a log's and shown whole, or has fewer than `wide` numbers in a row.
        """
        found = log_tiles(ds, [name], Cells.of(ds))
        if found is None:
            return None
        source, chosen, tiles = found
        view, inner = source.view, ds.variables[name].shape[2:]
        if view.layout.width * math.prod(inner) < wide:
            return None
        values = np.zeros((view.rows, view.layout.width, *inner), dtype)
        for tile in tiles:
            rows = values[tile.start : tile.stop].reshape(-1, *inner)
            rows[...] = tile.values[name]
            rows[tile.absent] = 0
        return cls(source, chosen, values)

    @functools.cached_property
    def episodes(self) -> CellEpisodes:
        """Which of the Dataset's episodes each cell belongs to."""
        return CellEpisodes.of(self.source.episodes.take(self.chosen), self.values.shape[1])

    def variable(self, dims: Sequence[str], attrs: dict[str, Any]) -> xr.Variable:
        """Return the values as a lazy variable of the Dataset, over episode, time and `dims`."""
        array = MadeArray(self.source, self.values)
        whole = lazy_variable((names.EPISODE, names.TIME, *dims), array, about_padding(array.dtype) | attrs)
        is_all = np.array_equal(self.chosen, np.arange(array.shape[0]))
        return whole if is_all else whole.isel({names.EPISODE: self.chosen})
