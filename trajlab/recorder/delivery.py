"""Handing rows and episodes to the consumers: in order, each once, outside of the Recorder's lock."""

import atexit
import functools
import threading
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from trajlab.consumers.consumer import Consumer, wants
from trajlab.errors import shown, warn_user

_OPEN: weakref.WeakKeyDictionary[Any, "Delivery"] = weakref.WeakKeyDictionary()
"""Recorders with consumers, while they are there, and what hands out to these."""


def close_at_exit(recorder: Any, delivery: "Delivery") -> None:
    """Close a recorder when Python exits, if it is still there; its consumers are no other's until it is closed."""
    _register()
    _OPEN[recorder] = delivery


@functools.cache
def _register() -> None:
    """Have recorders closed when Python exits: once, and not before there is one, since importing registers nothing."""
    atexit.register(_close_all)


def _close_all() -> None:
    for recorder in list(_OPEN):
        try:
            recorder.close()
        except Exception:  # the others are still to be closed
            traceback.print_exc()


class _Item:
    """One thing to be handed out, and to whom it has not been."""

    def __init__(self, method: str, value: Any, consumers: Sequence[Consumer]) -> None:
        self.method, self.value, self.left = method, value, deque(consumers)


class Delivery:
    """The consumers of a recorder, and what waits for them.

    Items are added under the Recorder's lock, which fixes their order, and handed out outside of it. An exception of
    a consumer ends its part only; an interrupt is passed on, and what it has kept back is handed out by the next call.
    """

    def __init__(self, consumers: Any) -> None:
        """Take the consumers; raise TypeError where one is none."""
        if isinstance(consumers, (str, Consumer)) or not isinstance(consumers, Sequence):
            raise TypeError(f"consumers={consumers!r}; expected a list of consumers")
        for consumer in consumers:
            if not isinstance(consumer, Consumer):
                raise TypeError(
                    f"consumers= holds {consumer!r}; expected instances of classes derived from trajlab.Consumer"
                )
            if not (wants(consumer, "on_batch") or wants(consumer, "on_episodes")):
                raise TypeError(
                    f"consumers= holds a {type(consumer).__name__}, which would get nothing; expected a class that "
                    "defines on_batch, on_episodes or both"
                )
        if len({id(consumer) for consumer in consumers}) < len(consumers):
            raise ValueError("consumers= holds the same consumer twice; expected each once")
        for consumer in consumers:
            if any(other.has(consumer) for other in list(_OPEN.values())):
                raise ValueError(
                    f"consumers= holds {shown(consumer)}, which another Recorder still fills: it would take the rows "
                    "of both for those of one. Make a new one for each, or close() the other Recorder first"
                )
        self._consumers = list(consumers)
        self._items: deque[_Item] = deque()
        self._reports: deque[str] = deque()
        self._lock = threading.RLock()
        self._is_busy = self._is_closing = False

    @property
    def has_consumers(self) -> bool:
        """Whether some consumer is still at work."""
        return bool(self._consumers)

    def has(self, consumer: Consumer) -> bool:
        """Say whether a consumer is one of those still at work."""
        return any(one is consumer for one in self._consumers)

    def wants(self, method: str) -> bool:
        """Say whether some consumer still at work defines a method."""
        return any(wants(consumer, method) for consumer in self._consumers)

    def add(self, method: str, value: Any) -> None:
        """Let a value wait for the consumers that define a method."""
        self._items.append(_Item(method, value, [one for one in self._consumers if wants(one, method)]))

    def hand_out(self, *, wait: bool = True) -> None:
        """Call the consumers with all that waits; a call from within a consumer leaves that to the one outside.

        Where another thread is at it, the call waits for it, or with ``wait=False`` leaves the rest to it.
        """
        if not self._items or not self._lock.acquire(blocking=wait):
            return
        try:
            if self._is_busy:
                return
            self._is_busy = True
            try:
                while self._items:
                    item = self._items[0]
                    while item.left:
                        consumer = item.left.popleft()
                        if self.has(consumer):
                            self._call(consumer, functools.partial(getattr(consumer, item.method), item.value))
                    self._items.popleft()
            finally:
                self._is_busy = False
            if self._is_closing:
                self.close()
            self._report()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close each consumer, once, behind all that waits; from within a consumer, when the call outside is done."""
        self.hand_out()
        with self._lock:
            self._is_closing = self._is_busy
            if self._is_busy:
                return
            while self._consumers:
                self._close(self._consumers.pop(0))
            self._report()

    def _report(self) -> None:
        """Warn of what has failed, each once; where a warning is an error, the next call tells the rest."""
        while self._reports:
            warn_user(self._reports.popleft())

    def _call(self, consumer: Consumer, call: Callable[[], None]) -> None:
        """Call a consumer; one that raises is closed and called no more."""
        try:
            call()
            return
        except Exception:
            self._note_failure(consumer, "failed; it gets no more, the recording goes on")
        self._consumers = [one for one in self._consumers if one is not consumer]
        self._close(consumer)

    def _close(self, consumer: Consumer) -> None:
        try:
            consumer.close()
        except Exception:
            self._note_failure(consumer, "failed when it was closed")

    def _note_failure(self, consumer: Consumer, what: str) -> None:
        """Note the report of the exception that is being handled."""
        self._reports.append(f"the consumer {shown(consumer)} {what}\n{traceback.format_exc()}")
