"""Appending a chunk to a buffer: a pure function, to be used where JAX traces."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from trajlab.block.append import Chunk, device_rows, put_rows
from trajlab.block.layout import GAP, RESET, Layout
from trajlab.block.placement import automatic, shardings_of
from trajlab.buffer.carry import Buffer
from trajlab.capture.fit import Fit
from trajlab.capture.sources import find_sources, plain_mask
from trajlab.cell_states import advance


def append(
    buffer: Buffer, chunk: Any, *, mask: Any = None, iteration: Any = None, reset: Any = None, **extra: Any
) -> Buffer:
    """Return the buffer with one more chunk; pure, for use inside `jit`, `scan`, `vmap` and `shard_map`.

    In the carry of a scan the buffer is written in place. Called from Python, one chunk at a time, it would be
    copied each time: use a `Recorder`, or ``jax.jit(append, donate_argnums=0)``.

    Parameters
    ----------
    buffer : Buffer
    chunk : pytree of arrays (T, N, ...)
        Of the example's fields, shapes and dtypes.
    mask : bool array (T, N), optional
        False where a cell is no transition; the episode goes on across it.
    iteration : int scalar, optional
        Number of the update; by default one more than that of the chunk before, the first being 0. A jump by
        more than one, or back, is a gap.
    reset : bool scalar or array (N,), optional
        True where the environment was reset by hand before the chunk: its first row starts an episode.
    **extra : array or pytree of arrays (T, N, ...)
        As the example's.

    Returns
    -------
    Buffer

    Raises
    ------
    ValueError, KeyError, TypeError
        While JAX traces, where the chunk does not fit the example.
    """
    if not isinstance(buffer, Buffer):
        raise TypeError(f"append() got a {type(buffer).__name__}; expected a buffer that init_buffer() made")
    spec = buffer.spec
    plan = spec.plan.for_width(buffer.flags.shape[-1])
    sources = find_sources(chunk, extra, spec.convention, spec.fields)
    mask = plain_mask(mask, spec.convention, None)
    fit = Fit(plan)
    leaves = fit.leaves_of(sources)
    length, _ = fit.check(leaves, mask, is_step=False, part=None)
    if length != spec.chunk_rows:
        raise ValueError(
            f"the chunk has {length} rows, the example had {spec.chunk_rows}; a buffer takes chunks of one length. "
            "A Recorder takes any"
        )
    first = _iteration(buffer, iteration)
    jumps = None if iteration is None else _jumps(buffer, first)
    by_hand = None if reset is None else _by_hand(reset, plan.layout)
    write = automatic(functools.partial(_write, plan.layout), shardings_of(buffer))
    return write(buffer, leaves, mask, first, jumps, by_hand)


def _write(
    layout: Layout, buffer: Buffer, leaves: list[Any], mask: Any, first: jax.Array, jumps: Any, by_hand: Any
) -> Buffer:
    """Return the buffer with a checked chunk, whose first update is the iteration `first`."""
    spec = buffer.spec
    num_fields = len(layout.fields)
    marks = _marks(layout, jumps, by_hand)
    rows, flags = device_rows(
        Chunk(
            fields=tuple(leaves[:num_fields]),
            flags=tuple(leaves[num_fields:]),
            marks=marks,
            mask=mask,
            columns=None if layout.columns is None else np.array(layout.columns, np.int32),
        ),
        layout,
        is_step=False,
    )
    assert flags is not None
    number = buffer.rows // spec.chunk_rows
    place = number % spec.room if spec.keep == "last" else jnp.minimum(number, spec.chunks)
    row = place * spec.chunk_rows
    states, started = buffer.states, buffer.started
    if spec.keep == "last":
        now, then = number % (spec.chunks + 1), (number + 1) % (spec.chunks + 1)
        state, begun = advance(states[now], flags, spec.rules, is_plain=mask is None and marks is None)
        states = put_rows(states, state[None], then)
        started = put_rows(started, (started[now] + begun)[None], then)
    return Buffer(
        fields=tuple(put_rows(array, x, row) for array, x in zip(buffer.fields, rows, strict=True)),
        flags=put_rows(buffer.flags, flags, row),
        iterations=put_rows(buffer.iterations, first[None], place),
        states=states,
        started=started,
        rows=buffer.rows + spec.chunk_rows,
        iteration=first + (spec.updates - 1),
        spec=spec,
    )


def _iteration(buffer: Buffer, given: Any) -> jax.Array:
    """Return the iteration of a chunk's first update."""
    if given is None:
        return buffer.iteration + 1
    number = given if isinstance(given, jax.Array) else np.asarray(given)
    if number.shape != () or not jnp.issubdtype(number.dtype, jnp.integer):
        raise TypeError(f"iteration={given!r}; expected a whole number")
    if not isinstance(number, jax.core.Tracer) and not 0 <= int(number) < 2**31:
        raise ValueError(f"iteration={given!r}; expected a whole number from 0 to {2**31 - 1}")
    return jnp.asarray(number).astype(jnp.int32)


def _jumps(buffer: Buffer, first: jax.Array) -> jax.Array:
    """Say whether the iteration jumps before a chunk."""
    step = first - buffer.iteration
    return (buffer.rows > 0) & ((step < 0) | (step > 1))


def _by_hand(reset: Any, layout: Layout) -> jax.Array:
    """Return `reset` as an array, checked."""
    array = reset if isinstance(reset, jax.Array) else np.asarray(reset)
    if array.shape not in ((), (layout.num_envs,)) or array.dtype != np.bool_:
        raise ValueError(
            f"reset has shape {array.shape} and dtype {array.dtype}; expected a bool, or one for each of the "
            f"{layout.num_envs} environments"
        )
    return jnp.asarray(array)


def _marks(layout: Layout, jumps: jax.Array | None, by_hand: jax.Array | None) -> jax.Array | None:
    """Return the marks (width,) before a chunk: a reset by hand, else a gap where the iteration jumps."""
    marks = None if jumps is None else jnp.broadcast_to(jnp.where(jumps, GAP, np.uint8(0)), layout.width)
    if by_hand is None:
        return marks
    by_hand = jnp.broadcast_to(by_hand, layout.num_envs)
    if layout.columns is not None:
        by_hand = by_hand[np.array(layout.columns)]
    return jnp.where(by_hand, RESET, np.uint8(0) if marks is None else marks)
