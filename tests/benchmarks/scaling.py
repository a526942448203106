"""How the cost of recording and looking at it grows with T, N, fields, chunks and the length of episodes.

The work is a new recorder, all its chunks, `to_dataset`, one `action_histogram` and one `state_trace`. One size at a
time runs over a factor of 64, the others stay. Compiled once before: a new T or N compiles anew, which is not counted.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import trajlab as tl

from .data import wait
from .table import Row
from .timing import interleaved, taken

ROUNDS = 7
LIMIT = 1.1
"""The largest exponent: no faster than linear, and a little for noise."""


class Size(NamedTuple):
    """What one run works on; `fields` counts those of 4 components beside action, reward and done."""

    steps: int = 128
    envs: int = 128
    fields: int = 2
    length: int = 128
    chunks: int = 16

    @property
    def cells(self) -> int:
        """Steps of all environments."""
        return self.steps * self.envs * self.chunks


VARIED = {
    "steps": ("T", (16, 32, 64, 128, 256, 512, 1024)),
    "envs": ("N", (16, 32, 64, 128, 256, 512, 1024)),
    "fields": ("number of fields", (1, 2, 4, 8, 16, 32, 64)),
    "length": ("mean length of episodes", (16, 32, 64, 128, 256, 512, 1024)),
    "chunks": ("number of chunks", (2, 4, 8, 16, 32, 64, 128)),
}
"""Which size is varied, its name on an axis, and its values."""

FLAT = ("length",)
"""What the cost should not grow with at all, since the number of steps stays."""


class Growth(NamedTuple):
    """What was measured along one size: cells, seconds (values, rounds), and the exponents of log-log fits."""

    values: list[int]
    cells: list[int]
    seconds: list[list[float]]
    exponent: float
    upper: float

    @property
    def medians(self) -> np.ndarray:
        """Median seconds at each value."""
        return np.median(self.seconds, axis=1)


def _chunk(rng: np.random.Generator, size: Size) -> dict[str, jax.Array]:
    shape = (size.steps, size.envs)
    fields = {f"obs_{i}": jnp.asarray(rng.random((*shape, 4), np.float32)) for i in range(size.fields)}
    return fields | {
        "action": jnp.asarray(rng.integers(0, 18, shape, np.int32)),
        "reward": jnp.asarray(rng.random(shape, np.float32)),
        "done": jnp.asarray(rng.random(shape, np.float32) < 1 / size.length),
    }


def _work(size: Size, chunks: list[dict[str, jax.Array]]) -> None:
    recorder = tl.Recorder()
    for number in range(size.chunks):
        recorder.record(chunks[number % len(chunks)])
    wait(recorder)
    ds = recorder.to_dataset()
    tl.action_histogram(ds)
    tl.state_trace(ds, "obs_0")


def measure(name: str, quick: bool) -> Growth:
    """Vary one size; the runs at all its values take turns."""
    rng = np.random.default_rng(0)
    values = list(VARIED[name][1])
    if quick:
        values = values[:2]
    sizes = [(Size(8, 4, 1, 8, 2) if quick else Size())._replace(**{name: value}) for value in values]
    contenders: dict[str, Any] = {}
    for value, size in zip(values, sizes, strict=True):
        chunks = [_chunk(rng, size) for _ in range(min(size.chunks, 4))]
        jax.block_until_ready(chunks)
        contenders[str(value)] = lambda size=size, chunks=chunks: taken(lambda: _work(size, chunks))
    times = interleaved(contenders, 2 if quick else ROUNDS)
    seconds = [times[str(value)].wall.tolist() for value in values]
    medians = np.median(seconds, axis=1)
    exponents = _exponent(values, medians), _exponent(values[-3:], medians[-3:])
    return Growth(values, [size.cells for size in sizes], seconds, *exponents)


def _exponent(values: list[int], medians: np.ndarray) -> float:
    """Return the slope of a straight line through the logarithms of both."""
    return float(np.polyfit(np.log(values), np.log(medians), 1)[0])


def _row(name: str, growth: Growth) -> Row:
    low, high = growth.values[0], growth.values[-1]
    first, last = growth.medians[0], growth.medians[-1]
    limit = 0.1 if name in FLAT else LIMIT
    text = f"exponent {growth.exponent:.2f}, over the upper three values {growth.upper:.2f}"
    text += f" ({first * 1e3:.1f} ms to {last * 1e3:.1f} ms"
    if growth.cells[0] != growth.cells[-1]:
        text += f"; {first / growth.cells[0] * 1e9:.0f} to {last / growth.cells[-1] * 1e9:.0f} ns a cell"
    what = f"record, `to_dataset`, a histogram and a trace, {VARIED[name][0]} from {low} to {high}"
    passed = max(growth.exponent, growth.upper) <= limit
    return Row(what, f"exponent ≤ {limit:g}", f"{text})", f"({len(growth.seconds[0])})", passed)


def scaling(quick: bool) -> list[Row]:
    """Measure the growth along each size; the rest stay at those of `Size()`."""
    return [_row(name, measure(name, quick)) for name in VARIED]
