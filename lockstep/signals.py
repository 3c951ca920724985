"""SIGINT and SIGTERM: both end a command in the same way, and which it was is told.

Belongs here: hearing them. Does not: what is said about it (`cli`), what is left behind, which
the next run repairs.

Others put handlers of their own in the place of ours while they work (Dagster around a run and
each step of it, one that may drop a signal between two steps), so what came is read from the
descriptor that the interpreter itself writes each signal's number to (`signal.set_wakeup_fd`).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM)


class Heard:
    """The signals that came since."""

    def __init__(self, descriptor: int | None = None, deaf: Collection[int] = ()) -> None:
        self._descriptor = descriptor
        self._deaf = deaf
        self._last: signal.Signals | None = None

    def last(self) -> signal.Signals | None:
        """The last one that asks the process to end."""
        if self._descriptor is not None:
            try:
                numbers = os.read(self._descriptor, 4096)
            except BlockingIOError:
                numbers = b""
            for number in numbers:
                if number in _ENDING and number not in self._deaf:
                    self._last = signal.Signals(number)
        return self._last

    def leave_if_asked(self) -> None:
        """For the moments in which nobody else looked."""
        if self.last() is not None:
            raise KeyboardInterrupt


@contextmanager
def hearing() -> Iterator[Heard]:
    """KeyboardInterrupt in the main thread at either signal, until the end."""
    if threading.current_thread() is not threading.main_thread():
        yield Heard()
        return
    reading, writing = os.pipe()
    for descriptor in (reading, writing):
        os.set_blocking(descriptor, False)
    wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    # A shell has jobs that it starts with `&` ignore SIGINT. Dagster gives both signals one
    # handler, SIGINT's, so that must be one that hears SIGTERM.
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    deaf = frozenset({signal.SIGINT} if ignored else ())

    def interrupt(number: int, _: FrameType | None) -> None:
        if number not in deaf:
            raise KeyboardInterrupt

    handlers = {number: signal.signal(number, interrupt) for number in _ENDING}
    try:
        yield Heard(reading, deaf)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        os.close(reading)
        os.close(writing)
