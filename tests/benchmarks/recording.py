"""`record()`: what writing a chunk costs against a NumPy copy of the same bytes, and that it never waits."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import trajlab as tl

from .data import bytes_of, wait
from .table import Row
from .timing import Spread, Taken, fastest, interleaved, milliseconds, ratio, taken

ROUNDS, TURNS = 16, 3
CHUNKS_PER_BLOCK = 4


def _chunk(rng: np.random.Generator, steps: int, envs: int) -> dict[str, jax.Array]:
    shape = (steps, envs)
    return {
        "obs": jnp.asarray(rng.random((*shape, 96), np.float32)),
        "memory": jnp.asarray(rng.random((*shape, 32), np.float32)),
        "action": jnp.asarray(rng.random((*shape, 8), np.float32)),
        "value": jnp.asarray(rng.random(shape, np.float32)),
        "log_prob": jnp.asarray(rng.random(shape, np.float32)),
        "reward": jnp.asarray(rng.random(shape, np.float32)),
        "done": jnp.asarray(rng.random(shape) < 0.01),
    }


def _one_field(rng: np.random.Generator, steps: int, envs: int, shape: tuple[int, ...], dtype: Any) -> dict[str, Any]:
    values = rng.integers(0, 99, (steps, envs, *shape), dtype)
    return {"field": jnp.asarray(values), "done": jnp.asarray(rng.random((steps, envs)) < 0.01)}


class _Copies:
    """The peer: the same arrays copied into memory of the same size, chunk behind chunk."""

    def __init__(self, chunk: dict[str, jax.Array], chunks: int) -> None:
        self.views = [np.asarray(x) for x in chunk.values()]
        self.length = len(self.views[0])
        self.chunks, self.next = chunks, 0
        self.room = self.fresh_room(chunks)
        for array in self.room:
            array.fill(1)

    def fresh_room(self, chunks: int) -> list[np.ndarray]:
        return [np.empty((chunks * len(x), *x.shape[1:]), x.dtype) for x in self.views]

    def copy(self) -> None:
        """Copy into memory already touched."""
        start = self.next * self.length
        for array, view in zip(self.room, self.views, strict=True):
            array[start : start + self.length] = view
        self.next = (self.next + 1) % self.chunks

    def copy_fresh(self) -> None:
        """Copy into memory never touched."""
        for array, view in zip(self.fresh_room(1), self.views, strict=True):
            array[:] = view


class _Touched:
    """A recorder whose blocks have been written before: it is reset when they are full."""

    def __init__(self, chunk: Any, chunks: int) -> None:
        self.recorder, self.chunk, self.chunks, self.count = tl.Recorder(), chunk, chunks, 0
        for _ in range(chunks):
            self.recorder.record(chunk)
        wait(self.recorder)

    def record(self) -> Taken:
        if self.count % self.chunks == 0:
            self.recorder.reset()
        self.count += 1
        return taken(lambda: _record_and_wait(self.recorder, self.chunk))


def _record_and_wait(recorder: tl.Recorder, chunk: Any, times: int = 1) -> None:
    for _ in range(times):
        recorder.record(chunk)
    wait(recorder)


def record(quick: bool) -> list[Row]:
    """Measure `record()` into touched memory, and the cost of a fresh block."""
    rng = np.random.default_rng(0)
    scale = 16 if quick else 1
    chunk = _chunk(rng, 128, 1024 // scale)
    label = f"`record()`, {len(chunk)} fields, {bytes_of(chunk) / 1e6:.0f} MB, touched memory"
    rows = [_touched_row(label, "≤ 1.25 NumPy copies", chunk, 3 if quick else ROUNDS), *_fresh_rows(chunk, quick)]
    for label, envs, shape, dtype in (
        ("... one field of images, uint8 (84, 84)", 64, (84, 84), np.uint8),
        ("... one field of int16 (1, 34), which XLA copies slowly", 1024, (1, 34), np.int16),
    ):
        rows.append(_touched_row(label, "", _one_field(rng, 128, envs // scale, shape, dtype), 3 if quick else ROUNDS))
    return rows


def _touched_row(label: str, must: str, chunk: Any, rounds: int) -> Row:
    jax.block_until_ready(chunk)
    copies, touched = _Copies(chunk, 2 * CHUNKS_PER_BLOCK), _Touched(chunk, 2 * CHUNKS_PER_BLOCK)
    contenders = {
        "record": lambda: fastest(touched.record, TURNS),
        "copy": lambda: fastest(lambda: taken(copies.copy), TURNS),
    }
    times = interleaved(contenders, rounds, warmup=2)
    against, busy = _shares(times["record"], times["copy"])
    raw = f"{milliseconds(times['record'].wall)} to {milliseconds(times['copy'].wall)}"
    text = f"{against.median:.2f} ({raw}); {busy.median:.2f} in processor time"
    return Row(label, must, text, against.text(), against.median <= 1.25 if must else None)


def _fresh_rows(chunk: Any, quick: bool) -> list[Row]:
    copies = _Copies(chunk, 2 * CHUNKS_PER_BLOCK)
    contenders = {
        "copy": lambda: taken(copies.copy),
        "copy_fresh": lambda: taken(copies.copy_fresh),
        "block": lambda: taken(lambda: _record_and_wait(tl.Recorder(), chunk)),
        "four": lambda: taken(lambda: _record_and_wait(tl.Recorder(), chunk, CHUNKS_PER_BLOCK)),
    }
    times = interleaved(contenders, 2 if quick else 7)
    rows = []
    for name, what in (
        ("block", "... the call that makes a block of four chunks"),
        ("four", "... four chunks into a fresh block"),
        ("copy_fresh", "... a NumPy copy into fresh memory"),
    ):
        against, busy = _shares(times[name], times["copy"])
        text = f"{against.median:.1f} copies ({milliseconds(times[name].wall)}); {busy.median:.1f} in processor time"
        rows.append(Row(what, "", text, against.text(1)))
    return rows


def _shares(measured: Taken, peer: Taken) -> tuple[Spread, Spread]:
    return ratio(measured.wall, peer.wall), ratio(measured.processor, peer.processor)


PENDING_CALLS = 10
LONG_RUN = 64
"""After so many chunks of four in a block, new blocks are bigger."""


def _slow_collect(size: int) -> Any:
    """Return a jitted collection call that computes for a while, and its arguments."""

    @jax.jit
    def collect(matrix: jax.Array, turns: jax.Array) -> dict[str, jax.Array]:
        last = jax.lax.fori_loop(0, turns, lambda _, m: jnp.tanh(m @ m), matrix)
        obs = jnp.broadcast_to(last.ravel()[:8], (128, 512, 8))
        return {"obs": obs, "action": obs[..., 0], "reward": obs[..., 1], "done": obs[..., 2] > 0.5}

    return collect, jnp.eye(size)


def _turns(collect: Any, matrix: jax.Array, wanted: float) -> jax.Array:
    """Return how many turns of the loop take `wanted` seconds."""
    jax.block_until_ready(collect(matrix, jnp.asarray(1)))
    probe = jnp.asarray(20)
    took = min(taken(lambda: jax.block_until_ready(collect(matrix, probe))).wall for _ in range(3))
    return jnp.asarray(max(1, round(20 * wanted / took)))


class _Calls(NamedTuple):
    """What was measured of some calls: seconds, whether the chunk was still computing, rows of a block made."""

    took: list[float]
    computing: list[float]
    was_pending: list[bool]
    made: list[int]


def _pending_calls(recorder: tl.Recorder, collect: Callable[[], Any], count: int) -> _Calls:
    calls = _Calls([], [], [], [])
    for _ in range(count):
        before = _blocks(recorder)
        start = time.perf_counter()
        chunk = collect()
        called = time.perf_counter()
        recorder.record(chunk)
        calls.took.append(time.perf_counter() - called)
        calls.was_pending.append(not chunk["done"].is_ready())
        made = _blocks(recorder)
        calls.made.append(made[-1] if len(made) > len(before) else 0)
        wait(recorder)
        calls.computing.append(time.perf_counter() - start)
    return calls


def _blocks(recorder: tl.Recorder) -> list[int]:
    """Return the rows of each block."""
    session = recorder._session
    return [] if session is None else [block.capacity for block in session.log.blocks]


def pending(quick: bool) -> list[Row]:
    """Measure how long `record()` takes to return while its chunk is still being computed."""
    collect, matrix = _slow_collect(512)
    turns = _turns(collect, matrix, 0.05 if quick else 0.5)
    ready = collect(matrix, jnp.asarray(1))
    recorder = tl.Recorder()
    first = _pending_calls(recorder, lambda: collect(matrix, turns), 1)
    count = 6 if quick else PENDING_CALLS
    plain = _pending_calls(recorder, lambda: collect(matrix, turns), count)
    for _ in range(LONG_RUN - count - 1 - 2):
        recorder.record(ready)
    wait(recorder)
    late = _pending_calls(recorder, lambda: collect(matrix, turns), count)
    return [
        _pending_row(f"`record()` of a chunk that computes for {np.median(plain.computing):.2f} s", plain),
        _pending_row(f"... after {LONG_RUN - 2} chunks, where blocks grow", late),
        Row("... the first call of all, which compiles", "", f"{first.took[0] * 1e3:.0f} ms", "(1)"),
    ]


def _pending_row(what: str, calls: _Calls) -> Row:
    took = [t * 1e3 for t in calls.took]
    spread = Spread.of(took)
    made = [f"{t:.2f} ms making a block of {rows} rows" for t, rows in zip(took, calls.made, strict=True) if rows]
    text = f"{spread.median:.2f} ms, longest {max(took):.2f}; {', '.join(made) or 'no block made'}"
    return Row(what, "< 5 ms", text, spread.text(2, " ms"), max(took) < 5 and all(calls.was_pending))
