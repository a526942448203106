"""The same chunks recorded by trajlab, by other recorders and by hand, in turns, against a copy of their bytes.

The rows say where they do not do the same work. Fresh memory is as in a long run: nothing that a contender has recorded
is freed, so that `malloc` cannot give it again. The contenders that take single steps are in `step_rivals`.
"""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import trajlab as tl

from . import step_rivals
from .data import bytes_of, states, transitions, wait
from .table import Row
from .timing import Taken, interleaved, milliseconds, ratio, taken

CHUNKS, STEPS, ENVS = 4, 128, 512
ROUNDS = 9

Chunk = Mapping[str, jax.Array]


def _floats(rng: np.random.Generator, steps: int, envs: int) -> Chunk:
    """Return a chunk of an agent with continuous actions: 161 bytes a cell, nearly all float32."""
    fields = {name: jnp.asarray(rng.random((steps, envs, width), np.float32)) for name, width in _WIDTHS.items()}
    flat = {name: jnp.asarray(rng.random((steps, envs), np.float32)) for name in ("reward", "value")}
    return fields | flat | {"done": jnp.asarray(rng.random((steps, envs)) < 0.01)}


_WIDTHS = {"obs": 30, "action": 8}


def _integers(rng: np.random.Generator, steps: int, envs: int) -> Chunk:
    """Return a chunk with environment states of int16 and uint8, some in shapes that XLA copies slowly."""
    return transitions(rng, steps, envs)._asdict() | states(rng, steps, envs)._asdict()


def _trajlab(chunks: Sequence[Chunk], alive: list[Any]) -> tuple[Callable[[], Taken], Callable[[], Taken]]:
    """Return what measures a recorder in memory already touched, and a new one, which joins what is `alive`."""
    kept = tl.Recorder()

    def go(recorder: tl.Recorder) -> tl.Recorder:
        for chunk in chunks:
            recorder.record(chunk)
        wait(recorder)
        return recorder

    def again() -> Taken:
        kept.reset()
        return taken(lambda: go(kept))

    return again, lambda: taken(lambda: alive.append(go(tl.Recorder())))


def _flashbax(chunks: Sequence[Chunk], alive: list[Any]) -> tuple[Callable[[], Taken], Callable[[], Taken]]:
    """Return what measures a trajectory buffer in memory already touched, and a new one, which joins what is `alive`.

    It takes batch-first data (N, T, ...), so its chunks are laid out that way before.
    """
    import flashbax

    own = jax.tree.map(lambda x: jnp.asarray(np.asarray(x).swapaxes(0, 1).copy()), list(chunks))
    envs, steps = own[0]["reward"].shape
    buffer = flashbax.make_trajectory_buffer(
        add_batch_size=envs,
        sample_batch_size=1,
        sample_sequence_length=1,
        period=1,
        min_length_time_axis=1,
        max_length_time_axis=steps * len(own),
    )
    init, add = jax.jit(buffer.init), jax.jit(buffer.add, donate_argnums=0)
    step = jax.tree.map(lambda x: x[0, 0], own[0])
    kept = [init(step)]

    def go(state: Any) -> Any:
        for chunk in own:
            state = add(state, chunk)
        return jax.block_until_ready(state)

    def again() -> Taken:
        return taken(lambda: kept.append(go(kept.pop())))

    return again, lambda: taken(lambda: alive.append(go(init(step))))


def _factoriax(chunks: Sequence[Chunk]) -> Callable[[], Taken]:
    from factoriax.analysis.recorder import RolloutRecorder

    named = [SimpleNamespace(**chunk) for chunk in chunks]
    others = [name for name in chunks[0] if name not in ("action", "reward", "done")]

    def go() -> None:
        recorder = RolloutRecorder(record_states=True, state_fields=others)
        for chunk in named:
            recorder.record(chunk, chunk)

    return lambda: taken(go)


def _by_hand(chunks: Sequence[Chunk], alive: list[Any]) -> Callable[[], Taken]:
    def go() -> None:
        for chunk in chunks:
            alive.append({name: np.array(x) for name, x in chunk.items()})

    return lambda: taken(go)


def _memcpy(chunks: Sequence[Chunk]) -> Callable[[], Taken]:
    """Return what measures NumPy copies of the same arrays, chunk behind chunk, into memory already touched."""
    views = [[np.asarray(x) for x in chunk.values()] for chunk in chunks]
    room = [np.ones((len(chunks), *x.shape), x.dtype) for x in views[0]]

    def go() -> None:
        for number, chunk in enumerate(views):
            for array, view in zip(room, chunk, strict=True):
                array[number] = view

    return lambda: taken(go)


TEXTS = {
    "trajlab": "trajlab `record`, touched memory",
    "flashbax": "flashbax `add`, jitted and donated, touched memory; chunks laid out batch-first for it before",
    "trajlab new": "trajlab, a new recorder, fresh memory",
    "flashbax new": "flashbax, a new buffer, fresh memory",
    "by hand": "by hand, `np.array` of each field into a list, fresh memory",
    "factoriax": "factoriax `record`; on the CPU it stores views, copies nothing and keeps the chunks alive",
}
"""What each contender does, in the order of the rows."""


def _chunk_rows(label: str, chunks: Sequence[Chunk], alive: list[Any], rounds: int) -> list[Row]:
    jax.block_until_ready(list(chunks))
    contenders: dict[str, Callable[[], Taken]] = {"memcpy": _memcpy(chunks)}
    contenders["trajlab"], contenders["trajlab new"] = _trajlab(chunks, alive)
    contenders["flashbax"], contenders["flashbax new"] = _flashbax(chunks, alive)
    contenders |= {"by hand": _by_hand(chunks, alive), "factoriax": _factoriax(chunks)}
    times = interleaved(contenders, rounds)
    steps, envs = chunks[0]["reward"].shape
    size = f"{len(chunks)} chunks (T={steps}, N={envs}), {bytes_of(list(chunks)) / 1e6:.0f} MB, {label}: "
    rows = []
    for number, (name, text) in enumerate(TEXTS.items()):
        share, busy = (ratio(x, y) for x, y in zip(times[name], times["memcpy"], strict=True))
        measured = (
            f"{milliseconds(times[name].wall, 2)}, {share.median:.2f} memcpy ({busy.median:.2f} in processor time)"
        )
        if not name.startswith("trajlab"):
            ours = "trajlab new" if name in ("flashbax new", "by hand") else "trajlab"
            measured += f"; {ratio(times[name].wall, times[ours].wall).median:.2f} of {ours}"
        rows.append(Row(f"{'... ' if number else size}{text}", "", measured, share.text()))
    return [*rows, Row("... memcpy, touched memory: the limit", "", milliseconds(times["memcpy"].wall, 2), "")]


def rivals(quick: bool) -> list[Row]:
    """Measure recorders of chunks on two kinds of data, and then those that take single steps."""
    rng = np.random.default_rng(0)
    count, envs, rounds = (2, 16, 2) if quick else (CHUNKS, ENVS, ROUNDS)
    rows: list[Row] = []
    alive: list[Any] = []
    for label, make in (("float32", _floats), ("int16 and uint8 states", _integers)):
        rows += _chunk_rows(label, [make(rng, STEPS, envs) for _ in range(count)], alive, rounds)
    return [*rows, *step_rivals.rows(quick)]
