"""`record_step()` against NumPy copies of the same arrays."""

import time
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import trajlab as tl

from .data import wait
from .table import Row
from .timing import Spread, interleaved

WIDTHS = {"joints": 37, "velocities": 37, "actions": 19, "obs": 72}
FLAGS = ("terminated", "truncated", "contact")
CALLS = 20
ROUNDS = 60
ALLOWED_MS = 0.08


def _step(rng: np.random.Generator, envs: int, make: Callable[[np.ndarray], Any]) -> dict[str, Any]:
    step = {name: make(rng.random((envs, width), np.float32)) for name, width in WIDTHS.items()}
    return step | {name: make(rng.random(envs) < 0.01) for name in FLAGS}


def _recorded(step: dict[str, Any], calls: int) -> Callable[[], float]:
    """Return what times some calls of a recorder whose memory has been touched, in ms per call."""
    recorder = tl.Recorder()

    def turn() -> float:
        recorder.reset()
        start = time.perf_counter()
        for _ in range(calls):
            recorder.record_step(step)
        wait(recorder)
        return (time.perf_counter() - start) / calls * 1e3

    return turn


def _grown(step: dict[str, Any], calls: int) -> float:
    """Return the time of the first calls of a new recorder, which has to make its blocks, in ms per call."""
    return _recorded(step, calls)()


def _copied(step: dict[str, Any], calls: int) -> Callable[[], float]:
    """Return what times as many NumPy copies of the arrays into memory already touched, in ms per step."""
    views = [np.asarray(x) for x in step.values()]
    room = [np.ones((calls, *x.shape), x.dtype) for x in views]

    def turn() -> float:
        start = time.perf_counter()
        for row in range(calls):
            for array, view in zip(room, views, strict=True):
                array[row] = view
        return (time.perf_counter() - start) / calls * 1e3

    return turn


def _rows(envs: int, quick: bool) -> list[Row]:
    rng = np.random.default_rng(envs)
    device, host = _step(rng, envs, jnp.asarray), _step(rng, envs, lambda x: x)
    contenders = {
        "JAX": _recorded(device, CALLS),
        "NumPy": _recorded(host, CALLS),
        "new": lambda: _grown(device, CALLS),
        "copy": _copied(device, CALLS),
    }
    times = interleaved(contenders, 3 if quick else ROUNDS, warmup=2)
    copy = Spread.of(times["copy"]).median
    limit = 1.5 * times["copy"] + ALLOWED_MS
    rows = []
    for name in ("JAX", "NumPy"):
        spread, share = Spread.of(times[name]), Spread.of(times[name] / limit)
        text = f"{share.median:.2f} of it ({spread.median:.3f} ms; a copy {copy:.3f} ms)"
        label = f"`record_step()`, {envs} envs, {name} arrays"
        rows.append(Row(label, f"≤ 1.5 copies + {ALLOWED_MS} ms", text, share.text(), share.median <= 1))
    spread = Spread.of(times["new"])
    rows.append(
        Row(
            f"... the first {CALLS} steps of a new recorder, JAX",
            "",
            f"{spread.median:.3f} ms each",
            spread.text(3, " ms"),
        )
    )
    return rows


def record_step(quick: bool) -> list[Row]:
    """Measure `record_step()` at two numbers of environments."""
    return [row for envs in (256, 4096) for row in _rows(envs, quick)]
