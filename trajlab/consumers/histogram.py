"""Counts of a field's values over all of training, on the device."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from trajlab.consumers.consumer import Batch, Consumer
from trajlab.consumers.on_device import Rows, StreamedField
from trajlab.consumers.results import attrs_of, inner_coords, made_by
from trajlab.edges import as_edges, bin_middles
from trajlab.errors import warn_user, whole_number
from trajlab.names import (
    BIN,
    BIN_LEFT,
    BIN_RIGHT,
    COUNT,
    LABEL,
    NUM_ABOVE_ATTR,
    NUM_BELOW_ATTR,
    NUM_NAN_ATTR,
    SHARE,
    VALUE,
)


class _Counts(NamedTuple):
    """What has been counted, on the device: in each place, and of what lies in none."""

    places: Any
    nan: Any
    below: Any
    above: Any


class StreamingHistogram(Consumer):
    """Count a field's values over all transitions of a recording, without keeping them.

    The counts stay on the device, as many numbers as there are bins, and `record` waits for nothing. They are those
    of `action_histogram` over the whole recording; with `max_episodes`, over all rows until it is full.

    Parameters
    ----------
    field : str
        The action, or any other field of bools, integers or real numbers; each of its components is counted by itself.
    bins : sequence of float, optional
        Edges of bins. A field of floats needs them; without, integers and bools are counted one by one.
    labels : sequence of str, optional
        Names of the values 0, 1, ...: the result then has all of them, seen or not.
    num_values : int
        Without `bins` and `labels`: the values 0 to ``num_values - 1`` are counted. Others count as outside.

    Raises
    ------
    ValueError, TypeError
        When an argument is none of those listed, or both `bins` and `labels` are given.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> histogram = tl.StreamingHistogram(labels=["left", "right"])
    >>> rec = tl.Recorder(retain=False, consumers=[histogram])
    >>> rec.record({"action": np.array([[1, 0], [1, 1]]), "done": np.zeros((2, 2), bool)})
    >>> histogram.result()["count"].values
    array([1, 3])
    """

    def __init__(
        self,
        field: str = "action",
        *,
        bins: Sequence[float] | np.ndarray | None = None,
        labels: Sequence[str] | None = None,
        num_values: int = 1024,
    ) -> None:
        self._field = StreamedField(field)
        self._edges = None if bins is None else _edges(bins)
        self._labels = None if labels is None else _as_labels(labels)
        num_values = whole_number("num_values", num_values)
        if bins is not None and labels is not None:
            raise ValueError("labels= names the values 0, 1, ..., and bins= are given; expected one of them")
        self._size = num_values if self._labels is None else len(self._labels)
        self._counts: _Counts | None = None

    def __repr__(self) -> str:
        """Return its name and field."""
        return f"StreamingHistogram({self._field.name!r})"

    def on_batch(self, batch: Batch) -> None:
        """Count a batch."""
        if self._field.first is None:
            self._field.start(batch)
            dtype = batch.fields[self._field.name].dtype
            if self._edges is None and jnp.issubdtype(dtype, jnp.floating):
                raise TypeError(
                    f"{self._field.name!r} has dtype {dtype}, whose values are counted in bins; "
                    "give their edges: bins=np.linspace(low, high, 51)"
                )
        function = _count_values(self._size) if self._edges is None else _count_bins(tuple(self._edges.tolist()))
        self._counts = self._field.update(function, self._counts, batch)

    def result(self) -> xr.Dataset:
        """Return what has been counted so far; waits for the device.

        Returns
        -------
        Dataset
            As `action_histogram` returns it: `count`, int64, and `share`, float64, over the field's own dims and
            `value` or `bin`.

        Raises
        ------
        ValueError
            When no batch has come.

        Warns
        -----
        UserWarning
            When values were NaN, or lay outside of those counted without bins: they stand in the attributes only.
        """
        name = self._field.name
        batch = self._field.met(self._counts)
        counts = _Counts(*map(np.asarray, self._counts or ()))
        nan, below, above = (int(values) for values in counts[1:])
        places = counts.places.reshape(*self._field.inner, -1)
        coords = self._bin_coords(batch) if self._edges is not None else self._value_coords(batch, places)
        if self._edges is None:
            places = places[..., coords[VALUE][1]]
            if below or above:
                warn_user(
                    f"StreamingHistogram: {below + above} values of {name!r} lie outside of 0 to {self._size - 1} and "
                    "are counted in the attributes only"
                )
        if nan:
            warn_user(f"StreamingHistogram: {nan} values of {name!r} are NaN and counted in attrs['num_nan'] only")
        dims = (*batch.dims[name], next(iter(coords)))
        with np.errstate(invalid="ignore"):
            share = places / places.sum(axis=-1, keepdims=True)
        variables = {
            COUNT: (dims, places, {"long_name": "transitions"}),
            SHARE: (dims, share, {"long_name": "share of transitions", "units": "1"}),
        }
        outside = {NUM_NAN_ATTR: nan, NUM_BELOW_ATTR: below, NUM_ABOVE_ATTR: above}
        return xr.Dataset(
            variables, {**inner_coords(batch, name), **coords}, made_by("StreamingHistogram", name) | outside
        )

    def _bin_coords(self, batch: Batch) -> dict[str, Any]:
        assert self._edges is not None
        attrs, edges = attrs_of(batch, self._field.name), self._edges
        return {
            BIN: (BIN, bin_middles(edges), attrs),
            BIN_LEFT: (BIN, edges[:-1], attrs),
            BIN_RIGHT: (BIN, edges[1:], attrs),
        }

    def _value_coords(self, batch: Batch, places: np.ndarray) -> dict[str, Any]:
        """Return all values that have a label, or those from the smallest to the largest seen."""
        values = np.arange(self._size)
        if self._labels is None:
            seen = np.flatnonzero(places.reshape(-1, self._size).any(axis=0))
            values = values[seen.min(initial=self._size) : seen.max(initial=-1) + 1]
        coords: dict[str, Any] = {VALUE: (VALUE, values, attrs_of(batch, self._field.name))}
        if self._labels is not None:
            coords[LABEL] = (VALUE, np.array(self._labels, str))
        return coords


def _edges(bins: Any) -> np.ndarray:
    """Return edges as float64; raise ValueError where they are none."""
    edges = as_edges(bins)
    if edges is None:
        raise ValueError(
            f"bins={bins!r}; expected at least two finite edges, ascending: a stream cannot know its range beforehand"
        )
    return edges


def _as_labels(labels: Any) -> list[str]:
    """Return the names of the values 0, 1, ...; raise TypeError where they are no list of texts."""
    if isinstance(labels, str | bytes) or not isinstance(labels, Sequence) or not labels:
        raise TypeError(f"labels={labels!r}; expected a list with the names of the values 0, 1, ...")
    return list(map(str, labels))


@functools.lru_cache(maxsize=64)
def _count_values(size: int) -> Callable[[Any, Rows], _Counts]:
    """Return the function that counts the values 0 to size - 1."""

    def count(counts: _Counts | None, rows: Rows) -> _Counts:
        is_unsigned = jnp.issubdtype(rows.values.dtype, jnp.unsignedinteger)
        values = rows.values.astype(jnp.uint64 if is_unsigned else jnp.int64)
        place = jnp.clip(values, 0, size - 1).astype(jnp.int32)
        return _added(counts, rows, place, values < 0, values > size - 1, None, size)

    return count


@functools.lru_cache(maxsize=64)
def _count_bins(edges: tuple[float, ...]) -> Callable[[Any, Rows], _Counts]:
    """Return the function that counts in bins; the last one holds its right edge, too."""

    def count(counts: _Counts | None, rows: Rows) -> _Counts:
        values, ends = rows.values.astype(jnp.float64), jnp.asarray(edges, jnp.float64)
        last = len(edges) - 2
        place = jnp.minimum(jnp.searchsorted(ends, values, side="right") - 1, last).astype(jnp.int32)
        return _added(counts, rows, place, values < ends[0], values > ends[-1], jnp.isnan(values), last + 1)

    return count


def _added(
    counts: _Counts | None, rows: Rows, place: jax.Array, below: jax.Array, above: jax.Array, nan: Any, size: int
) -> _Counts:
    """Return the counts with rows (M, component) added, each at its place."""
    components = rows.values.shape[1]
    if counts is None:
        none = jnp.zeros((), jnp.int64)
        counts = _Counts(jnp.zeros((components, size), jnp.int64), none, none, none)
    there = (rows.time >= 0)[:, None]
    nan = jnp.zeros_like(below) if nan is None else nan
    outside = below | above | nan | ~there
    index = jnp.where(outside, components * size, place + jnp.arange(components, dtype=jnp.int32)[None] * size)
    new = jnp.zeros(components * size + 1, jnp.int64).at[index].add(1)[:-1]
    nan, below, above = (jnp.sum(kind & there, dtype=jnp.int64) for kind in (nan, below, above))
    return _Counts(
        counts.places + new.reshape(components, size), counts.nan + nan, counts.below + below, counts.above + above
    )
