"""Many short chunks against few long ones with the same rows: what a call of `record()` costs beside its data."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import trajlab as tl

from .bare import Bare
from .data import wait
from .table import Row
from .timing import Spread, Taken, interleaved, ratio, taken

SHORT, LONG = 8, 160
ROWS = 16_000
ROUNDS = 9
LIMIT = 2.0


def _chunk(rng: np.random.Generator, envs: int, count: int) -> dict[str, jax.Array]:
    """Return three or eight fields (LONG, envs, ...): 9 or 50 bytes a cell."""
    shape = (LONG, envs)

    def floats(*inner: int) -> jax.Array:
        return jnp.asarray(rng.random((*shape, *inner), np.float32))

    def flags() -> jax.Array:
        return jnp.asarray(rng.random(shape) < 0.01)

    chunk = {"action": jnp.asarray(rng.integers(0, 4, shape, np.int32)), "reward": floats(), "terminated": flags()}
    if count == 8:
        chunk |= {
            "obs": floats(4),
            "next_obs": floats(4),
            "truncated": flags(),
            "value": floats(),
            "log_prob": floats(),
        }
    assert len(chunk) == count
    return chunk


class _Ours:
    """A recorder whose memory has been touched."""

    def __init__(self, chunks: Sequence[Any], calls: int) -> None:
        self.chunks, self.calls, self.recorder = chunks, calls, tl.Recorder()

    def again(self) -> Taken:
        """Measure all calls after a reset."""
        self.recorder.reset()
        return taken(lambda: self._calls(self.recorder))

    def anew(self) -> Taken:
        """Measure all calls of a new recorder."""
        return taken(lambda: self._calls(tl.Recorder()))

    def _calls(self, recorder: tl.Recorder) -> None:
        for number in range(self.calls):
            recorder.record(self.chunks[number % len(self.chunks)])
        wait(recorder)


def _bare(chunks: Sequence[Any], calls: int) -> Callable[[], Taken]:
    """Return what measures as many bare appends."""
    bare = Bare(chunks[0], calls * len(chunks[0]["reward"]))

    def all_calls() -> None:
        for number in range(calls):
            bare.append(chunks[number % len(chunks)])
        bare.wait()

    return lambda: taken(all_calls)


def _rows(envs: int, count: int, quick: bool) -> list[Row]:
    long = _chunk(np.random.default_rng(envs), envs, count)
    short = [{name: x[i : i + SHORT] for name, x in long.items()} for i in range(0, LONG, SHORT)]
    jax.block_until_ready((long, short))
    rows = LONG * 2 if quick else ROWS
    calls = {"short": (short, rows // SHORT), "long": ([long], rows // LONG)}
    contenders: dict[str, Callable[[], Taken]] = {}
    for name, given in calls.items():
        ours = _Ours(*given)
        contenders |= {name: ours.again, f"{name} anew": ours.anew, f"{name} bare": _bare(*given)}
    times = interleaved(contenders, 2 if quick else ROUNDS)
    share, anew, bare = (
        ratio(times[f"short{which}"].wall, times[f"long{which}"].wall) for which in ("", " anew", " bare")
    )
    each = {name: Spread.of(times[name].wall / calls[name.split()[0]][1]).median * 1e6 for name in contenders}
    numbers = {name: f"{number} of T={len(chunks[0]['reward'])}" for name, (chunks, number) in calls.items()}
    what = f"`record()`, {numbers['short']} against {numbers['long']}, N={envs}, {count} fields"
    text = f"{share.median:.1f} ({each['short']:.0f} to {each['long']:.0f} us a call)"
    text += f"; new recorders {anew.median:.1f}"
    text += f"; bare jitted appends {bare.median:.1f} ({each['short bare']:.0f} to {each['long bare']:.0f} us)"
    return [Row(what, f"≤ {LIMIT:g} times per row", text, share.text(1), share.median <= LIMIT)]


def small_chunks(quick: bool) -> list[Row]:
    """Measure short chunks against long ones, at two widths and two numbers of fields, into touched memory."""
    return [row for envs in (32, 1024) for count in (3, 8) for row in _rows(envs, count, quick)]
