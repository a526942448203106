"""Conditions on transitions: fields of bools, arrays of them, and functions that make one."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from trajlab.analysis.discrete import as_discrete, discrete_kind
from trajlab.analysis.events.first_hits import Hits, all_hits, first_hits
from trajlab.analysis.kernels.masks import count_set
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.fields import is_per_transition, resolve_field
from trajlab.dataset.flat import iter_flat
from trajlab.dataset.parts import iter_parts
from trajlab.dataset.successive import iter_successive
from trajlab.errors import warn_user
from trajlab.names import AGENT, ALIVE, EPISODE, LENGTH, TIME

Condition = str | xr.DataArray | Callable[[xr.Dataset], xr.DataArray]
Conditions = Condition | Mapping[str, Condition]

_HELD = "condition"
"""The only variable of the Datasets that arrays are read from."""


class ConditionBatch(NamedTuple):
    """Where a condition holds in some transitions.

    Attributes
    ----------
    hits : Hits
        Where it does; each episode's first time is among them.
    taking_part : tuple of array (M,) of int and array (M, agent) of bool, or None
        Position along `episode` of all transitions, and which agents take part; None where it is not about agents.
    """

    hits: Hits
    taking_part: tuple[np.ndarray, np.ndarray] | None


class ConditionReader:
    """A condition on the transitions of a Dataset.

    Attributes
    ----------
    dims : tuple of str
        Its own dims, behind `episode` and `time`.
    shape : tuple of int
    coords : dict
        Coordinates of its own dims.
    alive : AliveRows
    """

    def __init__(self, ds: xr.Dataset, condition: Any, what: str) -> None:
        """Take a condition; `what` names it in errors."""
        self._ds, self._condition, self._what = ds, condition, what
        self._num_nan = 0
        self._name = self._field_of(ds, condition) if isinstance(condition, str) else _HELD
        self._whole = self._evaluated(_unread(ds)) if callable(condition) else self._given(ds)
        variable = self._whole.variables[self._name]
        self.dims = tuple(map(str, variable.dims[2:]))
        self.shape = variable.shape[2:]
        own = {name: self._whole.variables[name] for name in self._whole.coords}
        self.coords = {name: coord for name, coord in own.items() if coord.dims and set(coord.dims) <= set(self.dims)}
        self.alive = AliveRows.of(self._whole, self._name)

    def __iter__(self) -> Iterator[ConditionBatch]:
        """Yield what tells the first time in each episode; the order is arbitrary."""
        if not callable(self._condition):
            yield from self._read(self._whole, None)
        else:
            for episodes, part in iter_parts(self._ds, few_fields=True):
                yield from self._read(self._evaluated(part), episodes)
        if self._num_nan:
            warn_user(f"{self._what}: {self._num_nan} values are NaN and taken for False")

    def _read(self, part: xr.Dataset, episodes: np.ndarray | None) -> Iterator[ConditionBatch]:
        """Yield the transitions of a part, those of its `episodes` in the whole."""
        kind = discrete_kind(part, self._name)
        if kind != "b" and part.sizes[EPISODE]:
            dtype = part.variables[self._name].dtype
            raise ValueError(
                f"{self._what} has dtype {dtype}; expected bools: say what is to hold, as in "
                "lambda ds: ds['reward'] > 0"
            )
        if part.variables[self._name].dtype == bool and not self.alive.needed:
            for one in iter_successive(part, [self._name]):
                yield from (ConditionBatch(hits.among(episodes), None) for hits in first_hits(one, self._name))
            return
        for batch in iter_flat(part, [self._name, *self.alive.needed]):
            rows, missing = as_discrete(batch.values[self._name], "b")
            dead = self.alive.missing(batch, batch.values[self._name].shape)
            self._num_nan += count_set(missing, dead)
            rows = rows if missing is None else rows & ~missing
            hits = all_hits(batch, rows if dead is None else rows & ~dead).among(episodes)
            alive = self.alive.mask(batch)
            episode = batch.episode if episodes is None else episodes[batch.episode]
            yield ConditionBatch(hits, None if alive is None else (episode, alive))

    @staticmethod
    def _field_of(ds: xr.Dataset, name: str) -> str:
        """Return the variable over transitions that is meant."""
        is_there = name in ds.variables and is_per_transition(ds.variables[name])
        return name if is_there else resolve_field(ds, name)

    def _given(self, ds: xr.Dataset) -> xr.Dataset:
        """Return the Dataset that has the variable that was named, or the array that was given alone."""
        if isinstance(self._condition, str):
            return ds
        if isinstance(self._condition, xr.DataArray):
            return _alone(ds, self._fitted(ds, self._condition))
        raise TypeError(
            f"{self._what} is of type {type(self._condition).__name__}; expected the name of a field of bools, a "
            "DataArray of bools over (episode, time), or a function that returns one for a Dataset; for several events "
            "a mapping from the name of each to its condition"
        )

    def _evaluated(self, part: xr.Dataset) -> xr.Dataset:
        """Return what a function makes of a part."""
        try:
            array = self._condition(part)
        except (IndexError, KeyError) as error:
            if isinstance(error, KeyError) and f"index '{EPISODE}'" not in str(error):
                raise  # it is not what xarray says of an episode that is in another part
            raise ValueError(
                f"{self._what} looks for an episode by its place or number ({error}), but is called with some of the "
                "episodes at a time; expected a function that gives a bool for each step of each, ('episode', 'time')"
            ) from error
        if not isinstance(array, xr.DataArray):
            raise TypeError(f"{self._what} returned {type(array).__name__}; expected a DataArray of bools")
        return _alone(part, self._fitted(part, array))

    def _fitted(self, ds: xr.Dataset, array: xr.DataArray) -> xr.DataArray:
        """Return an array for the episodes and steps of a Dataset, found by their labels."""
        for dim in (EPISODE, TIME):
            if dim not in array.dims:
                raise ValueError(f"{self._what} has dims {array.dims}; expected ('episode', 'time', ...)")
            if dim in array.indexes and not array.indexes[dim].is_unique:
                twice = array.indexes[dim][array.indexes[dim].duplicated()][0]
                raise ValueError(f"{self._what} has several values at {dim}={twice}; expected one")
            labels = ds[dim].values
            if dim not in array.indexes:
                if len(array[dim]) != len(labels):
                    raise ValueError(f"{self._what} has {len(array[dim])} along {dim!r}; expected {len(labels)}")
            elif not np.array_equal(array[dim].values, labels):
                places = array.indexes[dim].get_indexer(labels)
                if (places < 0).any():
                    raise ValueError(
                        f"{self._what} has no value at {dim}={labels[places < 0][0]}; expected one for each {dim}, as "
                        f"`.reindex({dim}=ds[{dim!r}], fill_value=False)` gives it"
                    )
                array = array.isel({dim: places})
        return array.transpose(EPISODE, TIME, ...)


def _alone(ds: xr.Dataset, array: xr.DataArray) -> xr.Dataset:
    """Return a Dataset of nothing but a condition and what its transitions are found by."""
    own = array.dims[2:]
    coords: dict[Any, Any] = {name: ds.variables[name] for name in (EPISODE, TIME, LENGTH)}
    coords |= {
        name: coord.variable for name, coord in array.coords.items() if coord.dims and set(coord.dims) <= set(own)
    }
    if ALIVE in ds.coords:
        coords[ALIVE] = ds.variables[ALIVE]
        coords |= {AGENT: ds.variables[AGENT]} if AGENT in ds.coords else {}
    return xr.Dataset({_HELD: array.variable}, coords)


def _unread(ds: xr.Dataset) -> xr.Dataset:
    """Return a Dataset of at most one episode, with ones in its fields: it has all dims, and nothing of it is read."""
    first = ds.isel({EPISODE: slice(0, 1)})
    fields = {name: v for name, v in first.variables.items() if is_per_transition(v)}
    return first.assign(
        {name: v.copy(data=np.broadcast_to(np.ones((), v.dtype), v.shape)) for name, v in fields.items()}
    )


def named_conditions(conditions: Any) -> tuple[dict[str, Any], bool]:
    """Return conditions by the name of their event, and whether they were named."""
    if not isinstance(conditions, Mapping):
        return {"": conditions}, False
    if not conditions:
        raise ValueError("no condition given; expected at least one, as in {'fell': 'terminated'}")
    return {str(name): condition for name, condition in conditions.items()}, True


def condition_text(condition: Any) -> str:
    """Return what a condition is called."""
    if isinstance(condition, str):
        return condition
    return str(condition.name) if isinstance(condition, xr.DataArray) and condition.name is not None else "condition"
