"""All components of all fields as one array."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab import names
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.fields import (
    choose_fields,
    component_count,
    component_labels,
    component_units,
    field_names,
    is_numeric,
)
from trajlab.dataset.joined import read_block, read_points
from trajlab.dataset.lazy import (
    READ_CELLS,
    Inner,
    LazyArray,
    as_slice,
    count_cells,
    drop_scalars,
    lazy_variable,
    vector,
)
from trajlab.dataset.schema import validate


def stack_fields(ds: xr.Dataset, fields: str | Sequence[str] | None = None) -> xr.DataArray:
    """Return the fields as one array, indexed by episode, time and component.

    Parameters
    ----------
    ds : Dataset
        Dims ``episode`` and ``time``.
    fields : str or sequence of str, optional
        Names, globs and exclusions (``"-info.*"``); by default all. A field of more than 64 components, such
        as an image, is taken only where it is named exactly; strings, times and complex numbers cannot be.

    Returns
    -------
    DataArray
        Dims ``(episode, time, field)``, lazy: what is read is what is asked for. Labels of `field` are
        ``reward``, ``obs[x]`` where the field's own dim has labels, else ``obs[0]``, and ``img[0,1]`` for more
        dims. float32 where it holds every value of every field exactly (bool, integers of up to 16 bits,
        floats of up to 32), else float64; NaN where no transition is, and where an agent is done. Units, where any
        are known, are the coordinate ``field_units`` (field).

    Raises
    ------
    KeyError
        When an entry of `fields` matches none.
    TypeError
        When a field is named that does not hold real numbers.
    ValueError
        When `ds` is not valid, no field is left, or components of two fields have the same label. A Dataset of
        no episode and no field gives an empty array.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"obs": np.array([[0.0, 1.0], [2.0, 3.0]]), "reward": np.array([1.0, 0.0])}])
    >>> stacked = tl.stack_fields(ds)
    >>> stacked["field"].values.tolist()
    ['obs[0]', 'obs[1]', 'reward']
    >>> stacked.sel(episode=0, time=1, field="obs[1]").item()
    3.0
    """
    validate(ds)
    chosen = _numeric(ds, fields)
    variables = [ds.variables[name] for name in chosen]
    alive = [AliveRows.of(ds, name) for name in chosen]
    dtype = np.float32 if all(_fits_float32(variable) for variable in variables) else np.float64
    takes_part = ds.variables[names.ALIVE] if any(rows.needed for rows in alive) else None
    array = StackedArray(variables, ds[names.LENGTH].values, ds[names.TIME].values, dtype, alive, takes_part)
    labels = [label for name in chosen for label in component_labels(ds, name)]
    coords: dict[Any, Any] = {
        name: coord for name, coord in ds.coords.items() if set(coord.dims) <= {names.EPISODE, names.TIME}
    }
    coords[names.FIELD] = (names.FIELD, np.array(labels, np.str_), {"long_name": "field"})
    units = [unit for name in chosen for unit in component_units(ds, name)]
    if any(units):
        coords[names.units_name(names.FIELD)] = (names.FIELD, np.array(units))
    dims = (names.EPISODE, names.TIME, names.FIELD)
    return xr.DataArray(lazy_variable(dims, array, {"long_name": "value"}), coords, name="value")


def _numeric(ds: xr.Dataset, fields: str | Sequence[str] | None) -> list[str]:
    """Return the chosen fields that hold real numbers; raise TypeError where one was named that does not."""
    chosen, exact = choose_fields(ds, fields)
    for name in exact:
        if not is_numeric(ds.variables[name]):
            raise TypeError(
                f"field {name!r} has dtype {ds.variables[name].dtype}; a stacked array holds bools, integers and "
                f"floats. tl.to_dataframe(ds) takes fields of any dtype"
            )
    numeric = [name for name in chosen if is_numeric(ds.variables[name])]
    is_empty = fields is None and not ds.sizes[names.EPISODE] and not field_names(ds)
    if not numeric and not is_empty:
        raise ValueError(
            f"no field to stack with fields={fields!r}: strings are left out, and fields of more than 64 components "
            "unless named exactly"
        )
    return numeric


def _fits_float32(variable: xr.Variable) -> bool:
    dtype = variable.dtype
    return dtype.kind in "bO" or dtype.itemsize <= (4 if dtype.kind == "f" else 2)


@dataclasses.dataclass(frozen=True, eq=False)
class _Source:
    """A field's variable, the first of its components in the stack, and which of them count."""

    variable: xr.Variable
    first: int
    shape: tuple[int, ...]
    alive: AliveRows


class StackedArray(LazyArray):
    """Components of several variables over (episode, time, ...) behind one another, as floats, NaN as padding."""

    def __init__(
        self,
        variables: Sequence[xr.Variable],
        length: np.ndarray,
        time: np.ndarray,
        dtype: Any,
        alive: Sequence[AliveRows],
        takes_part: xr.Variable | None,
    ) -> None:
        """Stack variables; a cell is a transition where the label of `time` is below the episode's `length`.

        `alive` says of each variable which of its components count; `takes_part` is what it reads.
        """
        counts = [component_count(variable) for variable in variables]
        super().__init__((len(length), len(time), sum(counts)), dtype)
        self.length, self.time = length, time
        firsts = np.cumsum([0, *counts])
        self.sources = [
            _Source(variable.copy(deep=False), int(first), variable.shape[2:], rows)
            for variable, first, rows in zip(variables, firsts, alive, strict=False)
        ]
        self.takes_part = takes_part
        self.owner = np.repeat(np.arange(len(variables)), np.array(counts, np.intp))

    def read(self, cells: tuple[np.ndarray, ...], inner: Inner) -> np.ndarray:
        """Return cells, point by point from each variable."""
        episode, time = cells
        picks = vector(inner[0], self.shape[2])
        out = self._filled((len(episode),), picks, functools.partial(_read_points, cells))
        out[self.time[time] >= self.length[episode]] = np.nan
        return drop_last(out, inner[0])

    def outer(self, keys: tuple[Any, ...]) -> np.ndarray:
        """Return a block, read from the variables in slabs of episodes."""
        episode, time, picks = (vector(key, size) for key, size in zip(keys, self.shape, strict=True))
        self._warn_if_padded([episode, time], keys[2:])
        out = np.empty((len(episode), len(time), len(picks)), self.dtype)
        step = max(1, READ_CELLS // max(len(time), 1))
        steps = as_slice(time)
        for start in range(0, len(episode), step):
            here = episode[start : start + step]
            lead = (as_slice(here), steps)
            slab = self._filled((len(here), len(time)), picks, functools.partial(_read_block, lead))
            slab[self.time[time] >= self.length[here, np.newaxis]] = np.nan
            out[start : start + step] = slab
        return drop_last(drop_scalars(out, keys[:2]), keys[2])

    def cells_of(self, vectors: list[np.ndarray]) -> int:
        """Return how many cells of a block are transitions."""
        return count_cells(self.length[vectors[0]], self.time[vectors[1]])

    def _filled(
        self, lead: tuple[int, ...], picks: np.ndarray, read: Callable[[xr.Variable, Inner], np.ndarray]
    ) -> np.ndarray:
        """Return the picked components (*lead, len(picks)), each variable read once and no more than needed."""
        out = np.empty((*lead, len(picks)), self.dtype)
        owner = self.owner[picks]
        for number in np.unique(owner):
            source, here = self.sources[number], np.flatnonzero(owner == number)
            keys, places = _inner_keys(source.shape, picks[here] - source.first)
            values = read(source.variable, keys)
            out[..., as_slice(here)] = values[(..., *places)] if places else values[..., np.newaxis]
            if source.alive.needed and self.takes_part is not None:
                out[..., here] = np.where(self._takes_part(source, keys, places, read), out[..., here], np.nan)
        return out

    def _takes_part(
        self,
        source: _Source,
        keys: Inner,
        places: tuple[Any, ...],
        read: Callable[[xr.Variable, Inner], np.ndarray],
    ) -> np.ndarray:
        """Return whether the agent takes part whose component each picked one of a variable is."""
        assert self.takes_part is not None
        axis, agent = source.alive.axis, source.alive.agent
        if axis is not None:
            alive = np.asarray(read(self.takes_part, (keys[axis],))[..., places[axis]] == 1)
            return alive if agent is None else alive & (vector(keys[axis], source.shape[axis])[places[axis]] == agent)
        key = () if agent is None else (slice(agent, agent + 1),)
        alive = read(self.takes_part, key) == 1
        return alive if key else alive[..., np.newaxis]


def _read_points(cells: tuple[np.ndarray, ...], variable: xr.Variable, keys: Inner) -> np.ndarray:
    return read_points(variable, cells, keys)


def _read_block(lead: tuple[Any, ...], variable: xr.Variable, keys: Inner) -> np.ndarray:
    return read_block(variable, (*lead, *keys))


def drop_last(values: np.ndarray, key: Any) -> np.ndarray:
    """Drop the last axis where its key is an int."""
    return values if isinstance(key, slice | np.ndarray) else values[..., 0]


def _inner_keys(shape: tuple[int, ...], components: np.ndarray) -> tuple[Inner, tuple[Any, ...]]:
    """Return what to read along each inner axis for some components, and where each then stands in what was read."""
    if not shape:
        return (), ()
    keys: list[Any] = []
    places = []
    for axis in np.unravel_index(components, shape):
        needed, place = np.unique(axis, return_inverse=True)
        keys.append(as_slice(needed))
        places.append(place)
    if len(places) == 1 and np.array_equal(places[0], np.arange(len(places[0]))):
        return tuple(keys), (slice(None),)
    return tuple(keys), tuple(places)
