"""Random recordings in chunks of one length, as a buffer takes them, and playing them into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from reference import Call, Mark, Record
from strategies import MarkAt, Piece, Stream, bits, make_calls, make_mark, streams

import trajlab as tl


@st.composite
def even_streams(draw: st.DrawFn) -> tuple[Stream, list[Piece]]:
    """Draw a recording and how it is cut: all chunks alike, marks only between them, and only resets."""
    stream = draw(streams(wide=False))
    updates = draw(st.integers(1, 2)) if "U" in stream.axes else 1
    length = draw(st.integers(1, 3)) * updates
    count = draw(st.integers(1, 8))
    need = count * length
    pick = np.arange(need) % stream.num_rows
    steps = draw(st.lists(st.sampled_from([0, 1, 1, 1, 1, 2, -1]), min_size=count, max_size=count))
    if not stream.options["convention"].get("axes", "TN") or not stream.is_explicit:
        steps = [1] * count
    first = [0]
    for step in steps[1:]:
        first.append(max(0, first[-1] + updates - 1 + step))
    iterations = np.concatenate([i + np.repeat(np.arange(updates), length // updates) for i in first])
    marks = [
        MarkAt(row, "reset", draw(bits(stream.num_envs)))
        for row in range(0, need, length)
        if draw(st.integers(0, 3)) == 0
    ]
    stream = replace(
        stream,
        chunk={name: _longer(array, pick, need) for name, array in stream.chunk.items()},
        extra={name: _longer(array, pick, need) for name, array in stream.extra.items()},
        mask=stream.mask[pick],
        iterations=iterations,
        marks=marks,
        options={name: value for name, value in stream.options.items() if name != "max_episodes"},
    )
    edges = range(0, need + 1, length)
    pieces = [Piece(a, b, updates, how="chunk", envs_as="mask", gives_iteration=True) for a, b in pairwise(edges)]
    return stream, pieces


def _longer(array: np.ndarray, pick: np.ndarray, need: int) -> np.ndarray:
    """Return so many rows, which are told from each other where the dtype has room."""
    turn = np.arange(need) // len(array)
    if array.dtype.kind == "b":
        return array[pick]
    return (
        array[pick]
        + (turn * (array.max() + 1 if array.size else 0)).astype(array.dtype).reshape(-1, *[1] * (array.ndim - 1))
    ).astype(array.dtype)


def as_jax(tree: Any) -> Any:
    return jax.tree.map(jnp.asarray, tree)


def buffer_of(call: Record, options: Mapping[str, Any], **more: Any) -> tl.Buffer:
    """Return an empty buffer for chunks like that of a call."""
    convention = tl.Convention(**options["convention"])
    kept = {name: value for name, value in options.items() if name in ("envs", "starts_fresh")}
    return tl.init_buffer(as_jax(call.chunk), convention=convention, **kept, **more, **as_jax(call.extra))


def arguments(calls: Sequence[Call], num_envs: int) -> list[tuple[Any, Any, Any, Any, Any]]:
    """Return chunk, mask, iteration, reset and extra of every append."""
    out, reset = [], np.zeros(num_envs, bool)
    for call in calls:
        if isinstance(call, Mark):
            reset |= True if call.envs is None else call.envs
            continue
        assert isinstance(call, Record)
        out.append((as_jax(call.chunk), call.mask, call.iteration, reset, as_jax(call.extra)))
        reset = np.zeros(num_envs, bool)
    return out


def play_into(buffer: tl.Buffer, calls: Sequence[Call], num_envs: int) -> tl.Buffer:
    """Append all chunks one after the other, from Python."""

    def add(buffer: tl.Buffer, chunk: Any, mask: Any, iteration: Any, reset: Any, extra: Any) -> tl.Buffer:
        return tl.append(buffer, chunk, mask=mask, iteration=iteration, reset=reset, **extra)

    for chunk, mask, iteration, reset, extra in arguments(calls, num_envs):
        buffer = add(buffer, chunk, mask, iteration, reset, extra)
    return buffer


__all__ = ["arguments", "buffer_of", "even_streams", "make_calls", "make_mark", "play_into"]
