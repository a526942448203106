"""What streaming statistics share: one field of each batch, as rows of transitions, still on the device."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from trajlab.consumers.consumer import Batch
from trajlab.errors import require_text, unknown_name


class Rows(NamedTuple):
    """One field of a batch.

    Attributes
    ----------
    values : array (M, component)
    time : array (M,) int32
        -1 where a cell is no transition.
    """

    values: jax.Array
    time: jax.Array


class StreamedField:
    """Picks one field out of batches, and brings one that stands a row late to the row it belongs to.

    Attributes
    ----------
    name : str
    first : Batch or None
        The first batch, which says what all have in common.
    inner : tuple of int
        The shape of a cell, known from the first batch on.
    """

    def __init__(self, field: Any) -> None:
        """Pick the field of this name."""
        require_text("field", field, "a field")
        self.name = field
        self.first: Batch | None = None
        self.inner: tuple[int, ...] = ()
        self._last: Any = None

    def start(self, batch: Batch) -> None:
        """Check the first batch; raise KeyError or ValueError where the field is not there or has several agents."""
        if self.name not in batch.fields:
            raise unknown_name("field", self.name, batch.fields)
        if self.name in batch.agents:
            raise ValueError(
                f"{self.name!r} has several agents, of which a stream cannot tell who takes part; keep the rows and "
                "use the analysis of the same name"
            )
        array = batch.fields[self.name]
        if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key) or np.dtype(array.dtype).kind not in "biufV":
            raise TypeError(f"{self.name!r} has dtype {array.dtype}; expected bools, integers or real numbers")
        self.inner = tuple(array.shape[2:])
        # Without its arrays, which would keep the first chunk for as long as this lives.
        self.first = dataclasses.replace(batch, fields={}, mask=None)

    def met(self, state: Any) -> Batch:
        """Return the first batch; raise ValueError where nothing has come of it yet."""
        if self.first is None or state is None:
            raise ValueError(
                f"nothing of {self.name!r} has come: give this to a Recorder, consumers=[...], and see whether it "
                "warned of a failure"
            )
        return self.first

    def update(self, function: Callable[..., Any], state: Any, batch: Batch) -> Any:
        """Return ``function(state, rows)``, jitted in 64 bits; nothing is waited for.

        `function` must be a module's own, or a partial of one with hashable arguments: it is compiled once.
        """
        if self.first is None:
            self.start(batch)
        values = batch.fields[self.name]
        # JAX may alias a NumPy array, which its owner may write again.
        values = np.array(values) if isinstance(values, np.ndarray) else values
        with jax.enable_x64(True):
            if self.name not in batch.moved:
                return _jitted(function, False)(state, values, batch.time, None, None, None)[0]
            if self._last is None:
                self._last = jnp.zeros((batch.num_envs, *self.inner), values.dtype)
            state, self._last = _jitted(function, True)(
                state, values, batch.time, self._last, batch.mask, batch.columns
            )
        return state


@functools.lru_cache(maxsize=256)
def _jitted(function: Callable[..., Any], is_moved: bool) -> Callable[..., Any]:
    """Return the jitted step: the new state, and the last recorded value (width, ...) of each environment."""

    def step(state: Any, values: Any, time: Any, last: Any, mask: Any, columns: Any) -> tuple[Any, Any]:
        if is_moved:
            values, last = _one_earlier(values, last, mask, columns)
        rows = Rows(values.reshape(time.size, math.prod(values.shape[2:])), time.reshape(-1))
        return function(state, rows), last

    return jax.jit(step)


def _one_earlier(values: jax.Array, last: jax.Array, mask: Any, columns: Any) -> tuple[jax.Array, jax.Array]:
    """Return for each cell the value of the environment's recorded cell before, and the last values anew."""
    own = last if columns is None else last[columns]
    behind = jnp.concatenate([own[None], values])  # (T + 1, N, ...): place t holds the row before row t
    rows = jnp.arange(len(behind))[:, None]
    recorded = jnp.ones(behind.shape[:2], bool)
    if mask is not None:
        recorded = recorded.at[1:].set(mask)
    newest = jax.lax.cummax(jnp.where(recorded, rows, 0), axis=0)
    filled = jnp.take_along_axis(behind, newest.reshape(*newest.shape, *(1,) * (values.ndim - 2)), axis=0)
    after = filled[-1] if columns is None else last.at[columns].set(filled[-1])
    return filled[:-1], after
