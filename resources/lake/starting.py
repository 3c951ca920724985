"""A start in the background, waited for where it is needed first.

Belongs here: that there is one, and who waits. Does not: what starts (`session`, `remote`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Generic, TypeVar

from pipeline.errors import LakeUnavailable, LockstepError

T = TypeVar("T")


class Starting(Generic[T]):
    """`launch` runs once, in a thread of its own, from `begin` on; after `end`, once more."""

    def __init__(self, launch: Callable[[], T]) -> None:
        self._launch = launch
        self._lock = threading.Lock()
        self._start: Future[T] | None = None

    def begin(self) -> None:
        """Nothing if begun."""
        with self._lock:
            if self._start is not None:
                return
            starter = ThreadPoolExecutor(1, thread_name_prefix="lockstep-spark")
            self._start = starter.submit(self._launch)
            starter.shutdown(wait=False)

    def wait(self) -> T:
        """What was started, begun here if need be; raises what `launch` raised."""
        self.begin()
        start = self._start
        if start is None:
            raise LakeUnavailable("Spark was stopped while it was needed", hint="run again")
        return start.result()

    def started(self) -> T | None:
        """What was started, if that went well; nobody waits."""
        start = self._start
        return None if start is None or not start.done() or start.exception() else start.result()

    def end(self, stop: Callable[[T], None], give_up: Callable[[], None] = lambda: None) -> None:
        """`stop` what was started, if anything was; `give_up` makes a start that is going on end
        in an error soon."""
        with self._lock:
            start, self._start = self._start, None
        if start is None:
            return
        if not start.done():
            give_up()
        with suppress(LockstepError):
            stop(start.result())
