"""Interrupts held back, where they would lose what is being written."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back KeyboardInterrupt until the end of the block.

    When a jitted function meets a new signature, JAX runs Python code after the donated call, at which an
    interrupt would lose the donated arrays; later calls with the same signature stay in C++.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[Any] = []
    try:
        signal.signal(signal.SIGINT, lambda *args: held.append(args))
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            signal.raise_signal(signal.SIGINT)
