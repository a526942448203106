"""Moments of a field at each step of an episode over all of training, on the device."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import xarray as xr

from trajlab.consumers.consumer import Batch, Consumer
from trajlab.consumers.on_device import Rows, StreamedField
from trajlab.consumers.results import attrs_of, inner_coords, made_by
from trajlab.errors import warn_user, whole_number
from trajlab.names import MEAN, NUM_ABOVE_ATTR, STD, TIME, N


class _Sums(NamedTuple):
    """Counts (step,), and sums (step, component) of values less `shift` (component,) and of their squares.

    `is_shifted` (component,) says where a first finite value has come, and with it the shift.
    """

    n: Any
    shift: Any
    is_shifted: Any
    sums: Any
    squares: Any


class StreamingTrace(Consumer):
    """Take mean and deviation of a field at each step of an episode, over a recording whose rows need not be kept.

    The moments stay on the device, for `num_steps` steps, and `record` waits for nothing. They are those of
    `state_trace` over the whole recording, without quantiles; with `max_episodes`, over all rows until it is full.

    Parameters
    ----------
    field : str
        Of bools, integers or real numbers, with any dims of its own.
    num_steps : int
        Steps of an episode to tell apart; later ones are counted in the attributes only.

    Raises
    ------
    ValueError, TypeError
        When an argument is none of those listed.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> trace = tl.StreamingTrace("height")
    >>> rec = tl.Recorder(retain=False, consumers=[trace])
    >>> rec.record({"height": np.array([[1.0, 3.0], [5.0, 3.0]]), "done": np.array([[False, True], [True, True]])})
    >>> trace.result()["mean"].values, trace.result()["n"].values
    (array([2.33333333, 5.        ]), array([3, 1]))
    """

    def __init__(self, field: str, *, num_steps: int = 1000) -> None:
        self._field = StreamedField(field)
        self._num_steps = whole_number("num_steps", num_steps)
        self._sums: _Sums | None = None

    def __repr__(self) -> str:
        """Return its name and field."""
        return f"StreamingTrace({self._field.name!r})"

    def on_batch(self, batch: Batch) -> None:
        """Add a batch."""
        self._sums = self._field.update(_add(self._num_steps), self._sums, batch)

    def result(self) -> xr.Dataset:
        """Return the moments so far; waits for the device.

        Returns
        -------
        Dataset
            As `state_trace` returns it: `mean` and `std` (population), float64, over `time` and the field's own
            dims, and `n`, int64, the transitions at each step.

        Raises
        ------
        ValueError
            When no batch has come.

        Warns
        -----
        UserWarning
            When the field has NaN, or episodes had more steps than are told apart.
        """
        name = self._field.name
        batch = self._field.met(self._sums)
        n, shift, _, sums, squares = map(np.asarray, self._sums or ())
        above, n = int(n[-1]), n[:-1]
        longest = int(np.flatnonzero(n).max(initial=-1)) + 1
        n, sums, squares = n[:longest], sums[:longest], squares[:longest]
        with np.errstate(invalid="ignore"):
            offset = sums / n[:, None]
            mean, std = shift + offset, np.sqrt(np.maximum(squares / n[:, None] - offset**2, 0))
        if num_nan := int(np.isnan(mean).any(axis=1).sum()):
            warn_user(f"StreamingTrace: {name!r} has NaN, and so has its trace, at {num_nan} of {longest} steps")
        if above:
            warn_user(
                f"StreamingTrace: transitions after step {self._num_steps - 1} of their episodes, {above} in all, are "
                "in attrs['num_above'] only; give more steps: num_steps="
            )
        dims, shape = (TIME, *batch.dims[name]), (longest, *self._field.inner)
        attrs = attrs_of(batch, name)
        title = attrs.pop("long_name")
        return xr.Dataset(
            {
                MEAN: (dims, mean.reshape(shape), {"long_name": f"mean of {title}", **attrs}),
                STD: (dims, std.reshape(shape), {"long_name": f"standard deviation of {title}", **attrs}),
                N: (TIME, n, {"long_name": "episodes alive"}),
            },
            {TIME: (TIME, np.arange(longest), {"long_name": "time", "units": "steps"}), **inner_coords(batch, name)},
            made_by("StreamingTrace", name) | {NUM_ABOVE_ATTR: above},
        )


@functools.lru_cache(maxsize=64)
def _add(num_steps: int) -> Callable[[Any, Rows], _Sums]:
    """Return the function that adds rows to the sums of so many steps; what comes later goes to one more."""

    def add(sums: _Sums | None, rows: Rows) -> _Sums:
        values = rows.values.astype(jnp.float64)
        there = (rows.time >= 0)[:, None]
        if sums is None:
            none, zeros = jnp.zeros((num_steps + 1, values.shape[1])), jnp.zeros(values.shape[1])
            sums = _Sums(jnp.zeros(num_steps + 1, jnp.int64), zeros, zeros.astype(bool), none, none)
        # Values are taken from their first mean, so that the squares' difference keeps its digits. The first batches
        # may hold no transition, as one step does that shows a result; sums are 0, or not finite, until there is one.
        usable = there & jnp.isfinite(values)
        count = jnp.sum(usable, axis=0, dtype=jnp.float64)
        first = jnp.sum(jnp.where(usable, values, 0), axis=0) / jnp.maximum(count, 1)
        shift = jnp.where(sums.is_shifted, sums.shift, first)
        step = jnp.where(there[:, 0], jnp.minimum(rows.time, num_steps), num_steps + 1)  # out of range: dropped
        values = values - shift[None]
        return _Sums(
            sums.n.at[step].add(1, mode="drop"),
            shift,
            sums.is_shifted | (count > 0),
            sums.sums.at[step].add(values, mode="drop"),
            sums.squares.at[step].add(values**2, mode="drop"),
        )

    return add
