"""Episodes as they finish: what a Recorder hands to its consumers, whether it keeps the rows or not."""

from collections import deque
from typing import Any

import numpy as np

from trajlab.block.read import to_host
from trajlab.segment import Rules, Settled, Settling


class Arrivals:
    """Flags on their way from the device, in the order of their rows."""

    def __init__(self) -> None:
        """Wait for nothing."""
        self._waiting: deque[tuple[int, Any]] = deque()

    def add(self, row: int, flags: Any) -> None:
        """Wait for the flags (R, width) of the rows from `row` on; what came for these before was never committed."""
        while self._waiting and self._waiting[-1][0] >= row:
            self._waiting.pop()
        if hasattr(flags, "copy_to_host_async"):
            flags.copy_to_host_async()
        self._waiting.append((row, flags))

    def take(self, start: int, stop: int, *, wait: bool = False) -> np.ndarray | None:
        """Return the flags of the rows from `start` on, which lie before `stop`; None where none have arrived.

        With `wait` those under way are waited for. Flags of other rows are forgotten.
        """
        while self._waiting:
            row, flags = self._waiting[0]
            if row != start or row + len(flags) > stop:
                self._waiting.popleft()
            elif wait or not hasattr(flags, "is_ready") or flags.is_ready():
                arrived = to_host(flags)
                self._waiting.popleft()
                return arrived
            else:
                return None
        return None


class Stream:
    """Cuts rows into episodes as their flags arrive, and gives out each episode once.

    Attributes
    ----------
    is_full : bool
        Whether as many of the first episodes to start have been given out as are wanted.
    """

    def __init__(self, width: int, rules: Rules, wanted: int | None) -> None:
        """Start with no rows; `wanted` episodes are given out, all where it is None."""
        self.arrivals = Arrivals()
        self._settling = Settling(width, rules)
        self._wanted, self._given = wanted, 0
        self.is_full = False

    @property
    def needed_row(self) -> int:
        """The first row that is still needed."""
        return self._settling.needed_row

    def take(self, rows: int, *, is_last: bool = False) -> Settled | None:
        """Return the episodes that have finished among the first `rows` rows; None where there are none.

        With `is_last` all flags are waited for, and episodes under way are given out, too.
        """
        is_news = is_last
        while (flags := self.arrivals.take(self._settling.rows, rows, wait=is_last)) is not None:
            self._settling.feed(flags)
            is_news = True
        if not is_news or self.is_full:
            return None
        settled = self._settling.take(also_open=is_last)
        episodes = settled.episodes
        if self._wanted is not None:
            episodes = episodes.take(episodes.number < self._wanted)
            self._given += len(episodes.number)
            self.is_full = self._given == self._wanted
        return settled._replace(episodes=episodes) if len(episodes.number) else None
