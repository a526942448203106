"""Timing: contenders take turns, so that a busy machine slows all of them alike; medians and quartiles of ratios.

Processor time is measured beside: on a busy machine a thread waits for its turn, and what changes threads waits most.
"""

import dataclasses
import gc
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np


@dataclasses.dataclass(frozen=True)
class Spread:
    """Median and quartiles of some measurements."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Summarise measurements."""
        low, median, high = np.percentile(np.asarray(values, float), [25, 50, 75])
        return cls(float(median), float(low), float(high), len(values))

    def text(self, digits: int = 2, unit: str = "") -> str:
        """Return the quartiles and the number of measurements."""
        return f"{self.low:.{digits}f} to {self.high:.{digits}f}{unit} ({self.count})"


class Taken(NamedTuple):
    """Seconds that passed, and seconds of processor time in all threads: one measurement, or an array of them."""

    wall: Any
    processor: Any


def taken(function: Callable[[], Any]) -> Taken:
    """Return what one call takes; a JAX result must be waited for inside `function`."""
    wall, processor = time.perf_counter(), time.process_time()
    function()
    return Taken(time.perf_counter() - wall, time.process_time() - processor)


def fastest(contender: Callable[[], Taken], turns: int) -> Taken:
    """Return the least of some measurements: what short work takes while nothing else is given the processor."""
    return min(contender() for _ in range(turns))


def interleaved(contenders: Mapping[str, Callable[[], Taken]], rounds: int, *, warmup: int = 1) -> dict[str, Taken]:
    """Return what each contender measures, arrays (rounds,), one after the other in every round.

    Every second round runs in reverse order. `warmup` rounds come first and do not count.
    """
    found: dict[str, list[Taken]] = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(warmup + rounds):
        gc.collect()
        for name in names if number % 2 else names[::-1]:
            measured = contenders[name]()
            if number >= warmup:
                found[name].append(measured)
    return {name: Taken(*np.array(values).T) for name, values in found.items()}


def ratio(measured: Sequence[float] | np.ndarray, peer: Sequence[float] | np.ndarray) -> Spread:
    """Return the ratio of two contenders, round by round."""
    return Spread.of(np.asarray(measured, float) / np.asarray(peer, float))


def milliseconds(values: Sequence[float] | np.ndarray, digits: int = 1) -> str:
    """Return the median in milliseconds, as text."""
    return f"{Spread.of(values).median * 1e3:.{digits}f} ms"
