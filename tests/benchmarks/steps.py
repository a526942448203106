"""`record_step()` against NumPy copies of the same arrays, and `add()` of each field against it."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import trajlab as tl

from .data import wait
from .table import Row
from .timing import Spread, Taken, fastest, interleaved, milliseconds, ratio, taken

WIDTHS = {"joints": 37, "velocities": 37, "actions": 19, "obs": 72}
FLAGS = ("terminated", "truncated", "contact")
CALLS, TURNS = 20, 5
ROUNDS = 40
ALLOWED = 0.08e-3
"""Seconds beside the copies."""
MOST = 1.05
"""What seven adds may take, in calls of `record_step()`; of JAX arrays."""


def make_step(rng: np.random.Generator, envs: int, make: Callable[[np.ndarray], Any]) -> dict[str, Any]:
    step = {name: make(rng.random((envs, width), np.float32)) for name, width in WIDTHS.items()}
    return step | {name: make(rng.random(envs) < 0.01) for name in FLAGS}


def _recorded(step: dict[str, Any]) -> Callable[[], Taken]:
    """Return what times the calls of a recorder whose memory has been touched, per call."""
    recorder = tl.Recorder()

    def turn() -> Taken:
        recorder.reset()
        return taken(lambda: _record_and_wait(recorder, step))

    return lambda: _per_call(turn)


def _record_and_wait(recorder: tl.Recorder, step: dict[str, Any]) -> None:
    for _ in range(CALLS):
        recorder.record_step(step)
    wait(recorder)


def _copied(step: dict[str, Any]) -> Callable[[], Taken]:
    """Return what times as many NumPy copies of the arrays into memory already touched, per step."""
    views = [np.asarray(x) for x in step.values()]
    room = [np.ones((CALLS, *x.shape), x.dtype) for x in views]

    def copy() -> None:
        for row in range(CALLS):
            for array, view in zip(room, views, strict=True):
                array[row] = view

    return lambda: _per_call(lambda: taken(copy))


def _per_call(turn: Callable[[], Taken], turns: int = TURNS) -> Taken:
    """Return what one call takes in the fastest of some turns."""
    return Taken(*(seconds / CALLS for seconds in fastest(turn, turns)))


def _rows(envs: int, quick: bool) -> list[Row]:
    rng = np.random.default_rng(envs)
    device, host = make_step(rng, envs, jnp.asarray), make_step(rng, envs, lambda x: x)
    contenders = {
        "JAX": _recorded(device),
        "NumPy": _recorded(host),
        "new": lambda: _per_call(lambda: taken(lambda: _record_and_wait(tl.Recorder(), device)), 1),
        "copy": _copied(device),
    }
    times = interleaved(contenders, 3 if quick else ROUNDS, warmup=2)
    copy = times["copy"]
    limit, busy_limit = 1.5 * copy.wall + ALLOWED, 1.5 * copy.processor + ALLOWED
    rows = []
    for name in ("JAX", "NumPy"):
        share, busy = ratio(times[name].wall, limit), ratio(times[name].processor, busy_limit)
        raw = f"{milliseconds(times[name].wall, 3)}; a copy {milliseconds(copy.wall, 3)}"
        text = f"{share.median:.2f} of it ({raw}); {busy.median:.2f} in processor time"
        label = f"`record_step()`, {envs} envs, {name} arrays"
        must = f"≤ 1.5 copies + {ALLOWED * 1e3:g} ms"
        rows.append(Row(label, must, text, share.text(), share.median <= 1))
    spread = Spread.of(times["new"].wall * 1e3)
    what = f"... the first {CALLS} steps of a new recorder, JAX"
    rows.append(Row(what, "", f"{spread.median:.3f} ms each", spread.text(3, " ms")))
    return rows


def _add(recorder: tl.Recorder, step: dict[str, Any]) -> None:
    for name, value in step.items():
        recorder.add(name, value)


def _gathered(step: dict[str, Any], record: Callable[[tl.Recorder, dict[str, Any]], None]) -> Callable[[], Taken]:
    """Return what times a way to record steps, per step, behind the first ones of a recording."""
    recorder = tl.Recorder()

    def record_all(count: int) -> None:
        for _ in range(count):
            record(recorder, step)
        wait(recorder)

    def turn() -> Taken:
        recorder.reset()
        record_all(3)
        return taken(lambda: record_all(CALLS))

    return lambda: _per_call(turn)


def add(quick: bool) -> list[Row]:
    """Measure `add()` of each field of a step against one `record_step()`, all environments at a time."""
    rows = []
    for envs in (256, 4096):
        rng = np.random.default_rng(envs)
        for home, make in (("JAX", jnp.asarray), ("NumPy", lambda x: x)):
            step = make_step(rng, envs, make)
            contenders = {"add": _gathered(step, _add), "step": _gathered(step, tl.Recorder.record_step)}
            times = interleaved(contenders, 3 if quick else ROUNDS, warmup=2)
            share = ratio(times["add"].wall, times["step"].wall)
            busy = ratio(times["add"].processor, times["step"].processor)
            raw = f"{milliseconds(times['add'].wall, 3)} to {milliseconds(times['step'].wall, 3)}"
            what = f"`add()` of {len(step)} fields, {envs} envs, {home} arrays"
            must, reached = (
                (f"≤ {MOST} `record_step()`", max(share.median, busy.median) <= MOST) if home == "JAX" else ("", None)
            )
            text = f"{share.median:.2f} of it ({raw}); {busy.median:.2f} in processor time"
            rows.append(Row(what, must, text, share.text(), reached))
    return rows


def record_step(quick: bool) -> list[Row]:
    """Measure `record_step()` at two numbers of environments."""
    return [row for envs in (256, 4096) for row in _rows(envs, quick)]
