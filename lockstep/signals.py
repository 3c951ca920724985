"""SIGINT and SIGTERM: both end a command in the same way, and which it was is told.

Belongs here: hearing them. Does not: what is said about it (`cli`), what is left behind, which
the next run repairs.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM)


class Heard:
    """The last signal that asked the process to end, if one did."""

    def __init__(self) -> None:
        self.last: signal.Signals | None = None

    def leave_if_asked(self) -> None:
        """For who catches KeyboardInterrupt on its way, as a callback of a library may."""
        if self.last is not None:
            raise KeyboardInterrupt


@contextmanager
def hearing() -> Iterator[Heard]:
    """KeyboardInterrupt in the main thread at either signal, until the end."""
    heard = Heard()
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return

    def interrupt(number: int, _: FrameType | None) -> None:
        heard.last = signal.Signals(number)
        raise KeyboardInterrupt

    # A shell has jobs that it starts with `&` ignore SIGINT.
    wanted = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    handlers = {number: signal.signal(number, interrupt) for number in wanted}
    try:
        yield heard
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
