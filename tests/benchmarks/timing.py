"""Timing: contenders take turns, so that a busy machine slows all of them alike; medians and quartiles of ratios."""

import dataclasses
import gc
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

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


def seconds(function: Callable[[], Any]) -> float:
    """Return how long one call takes; a JAX result must be waited for inside `function`."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def interleaved(
    contenders: Mapping[str, Callable[[], float]], rounds: int, *, warmup: int = 1
) -> dict[str, np.ndarray]:
    """Return what each contender measures, (rounds,), one after the other in every round.

    Every second round runs in reverse order. `warmup` rounds come first and do not count.
    """
    found: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(warmup + rounds):
        gc.collect()
        for name in names if number % 2 else names[::-1]:
            measured = contenders[name]()
            if number >= warmup:
                found[name].append(measured)
    return {name: np.array(values) for name, values in found.items()}


def ratio(measured: Sequence[float] | np.ndarray, peer: Sequence[float] | np.ndarray) -> Spread:
    """Return the ratio of two contenders, round by round."""
    return Spread.of(np.asarray(measured, float) / np.asarray(peer, float))


def milliseconds(values: Sequence[float] | np.ndarray, digits: int = 1) -> str:
    """Return the median in milliseconds, as text."""
    return f"{Spread.of(values).median * 1e3:.{digits}f} ms"
