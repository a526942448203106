"""A buffer in the carry of a scan against returning the stacked chunks: time, and memory as compiled."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import trajlab as tl

from .data import bytes_of
from .table import Row
from .timing import Taken, interleaved, milliseconds, ratio, taken

STEPS, ENVS = 128, 256
UPDATES, FEWER_UPDATES, KEPT = 200, 50, 20
"""Chunks produced, in the long and the short run, and how many of them a buffer keeps."""
ROUNDS = 11
LIMIT = 1.2

Chunk = dict[str, jax.Array]
Collect = Callable[[jax.Array, jax.Array], tuple[jax.Array, Chunk]]
"""From walkers' positions (N,) and the update's number to positions and a chunk (T, N, ...), 50 bytes a cell."""


def _fields(obs: jax.Array, after: jax.Array, action: jax.Array) -> Chunk:
    """Return eight fields of steps from positions before and after."""
    parts = jnp.arange(4, dtype=jnp.float32)
    ended = jnp.abs(after) >= 9
    return {
        "obs": obs[..., None] + parts,
        "next_obs": after[..., None] + parts,
        "action": action,
        "reward": after - obs,
        "terminated": ended,
        "truncated": ended & (action == 0),
        "value": obs * 0.5,
        "log_prob": after * 0.25,
    }


def _at_once(steps: int, position: jax.Array, number: jax.Array) -> tuple[jax.Array, Chunk]:
    """Make a whole chunk by arithmetic: nearly nothing beside writing it."""
    time = number * steps + jnp.arange(steps)[:, None] + jnp.arange(position.size)
    obs = (time % 19 - 9).astype(jnp.float32)
    return position + 1, _fields(obs, obs + 1, time % 2)


def _step_by_step(steps: int, position: jax.Array, number: jax.Array) -> tuple[jax.Array, Chunk]:
    """Make a chunk by a scan over its steps, as an environment does: random walks between -9 and 9."""

    def step(position: jax.Array, time: jax.Array) -> tuple[jax.Array, Chunk]:
        action = (time * 7919 + jnp.arange(position.size) * 104729) // 32 % 2
        after = position + 2 * action - 1
        return jnp.where(jnp.abs(after) >= 9, 0, after), _fields(position, after, action)

    return jax.lax.scan(step, position, number * steps + jnp.arange(steps))


def _runs(collect: Collect, envs: int) -> dict[str, Callable[[int], Any]]:
    """Return functions of the number of updates, which is static: what a user would put under `jit`."""
    start = (jnp.zeros(envs, jnp.float32), jnp.asarray(0))
    example = jax.eval_shape(collect, *start)[1]

    def advance(state: Any) -> tuple[Any, Chunk]:
        position, chunk = collect(*state)
        return (position, state[1] + 1), chunk

    def buffered(updates: int, keep: str, kept: int | None) -> Any:
        def update(carry: Any, _: None) -> tuple[Any, None]:
            state, chunk = advance(carry[0])
            return (state, tl.append(carry[1], chunk)), None

        rows = (kept or updates) * example["obs"].shape[0]
        buffer = tl.init_buffer(example, rows, keep=keep)
        return jax.lax.scan(update, (start, buffer), length=updates)[0]

    def stacked(updates: int) -> Any:
        return jax.lax.scan(lambda state, _: advance(state), start, length=updates)

    def nothing(updates: int) -> Any:
        def update(carry: Any, _: None) -> tuple[Any, None]:
            state, chunk = advance(carry[0])
            return (state, carry[1] + sum(x.sum(dtype=jnp.float32) for x in chunk.values())), None

        return jax.lax.scan(update, (start, jnp.zeros(())), length=updates)[0]

    return {
        "last": functools.partial(buffered, keep="last", kept=KEPT),
        "first": functools.partial(buffered, keep="first", kept=KEPT),
        "all": functools.partial(buffered, keep="last", kept=None),
        "stacked": stacked,
        "nothing": nothing,
    }


def _compiled_bytes(run: Callable[[int], Any], updates: int) -> int:
    """Return the bytes of temporary and output memory that the compiled run takes."""
    memory = jax.jit(functools.partial(run, updates)).lower().compile().memory_analysis()
    assert memory is not None
    return memory.temp_size_in_bytes + memory.output_size_in_bytes


def _check(ring: Any, stack: Chunk) -> None:
    """Raise where the ring's rows are not the last ones of the stack, or its Dataset has not each of their cells."""
    ds = tl.to_dataset(ring)
    kept = np.asarray(stack["reward"][-KEPT:])
    assert int(ds["mask"].sum()) == kept.size
    flat = tl.transitions(ds)["reward"].values
    np.testing.assert_array_equal(np.sort(flat), np.sort(kept.ravel()))


def _rows(label: str, collect: Collect, envs: int, quick: bool, must: bool) -> list[Row]:
    updates, fewer = (24, 21) if quick else (UPDATES, FEWER_UPDATES)
    runs = _runs(collect, envs)
    jitted = {name: jax.jit(functools.partial(run, updates)) for name, run in runs.items()}
    stack = jitted["stacked"]()[1]
    _check(jitted["last"]()[1], stack)
    size, chunk = bytes_of(stack) / 1e6, bytes_of(stack) / updates / 1e6
    del stack

    def measured(name: str) -> Callable[[], Taken]:
        return lambda: taken(lambda: jax.block_until_ready(jitted[name]()))

    times = interleaved({name: measured(name) for name in runs}, 2 if quick else ROUNDS)
    share = ratio(times["last"].wall, times["stacked"].wall)
    raw = {name: milliseconds(taken.wall) for name, taken in times.items()}
    what = (
        f"{updates} updates in a scan, chunks of {chunk:.1f} MB (N={envs}, 8 fields) {label}: a ring of {KEPT} of them"
    )
    what += f" in the carry, against all {size:.0f} MB stacked"
    text = f"{share.median:.2f} ({raw['last']} to {raw['stacked']}); neither: {raw['nothing']}"
    rows = [
        Row(what, f"≤ {LIMIT:g} times" if must else "", text, share.text(), share.median <= LIMIT if must else None)
    ]
    for name, what in (
        ("first", f'... a buffer with `keep="first"` of {KEPT} chunks'),
        ("all", "... a buffer that keeps all of them, as the stack does"),
    ):
        other = ratio(times[name].wall, times["stacked"].wall)
        rows.append(Row(what, "", f"{other.median:.2f} ({raw[name]})", other.text()))
    return [*rows, _memory_row(runs, fewer, updates)] if must else rows


def _memory_row(runs: dict[str, Callable[[int], Any]], fewer: int, updates: int) -> Row:
    sizes = {name: [_compiled_bytes(runs[name], n) for n in (fewer, updates)] for name in ("last", "first", "stacked")}
    raw = "; ".join(f"{name} {' and '.join(f'{x / 1e6:.1f}' for x in found)} MB" for name, found in sizes.items())
    constant = all(sizes[name][0] == sizes[name][1] for name in ("last", "first"))
    what = f"... temporary and output memory as compiled, for {fewer} and {updates} updates"
    return Row(what, "the same for a buffer", raw, "(1)", constant and sizes["stacked"][0] < sizes["stacked"][1])


def ring(quick: bool) -> list[Row]:
    """Measure runs compiled as a whole whose chunks cost next to nothing, and some that step an environment."""
    steps, envs = (16, 8) if quick else (STEPS, ENVS)
    at_once, step_by_step = (functools.partial(make, steps) for make in (_at_once, _step_by_step))
    return [
        *_rows("made at once", at_once, envs, quick, must=True),
        *_rows("made at once", at_once, envs // 4, quick, must=True),
        *_rows("made step by step", step_by_step, envs, quick, must=False),
    ]
