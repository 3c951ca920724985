"""A start in the background, waited for where it is needed first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, TypeVar

from pipeline.errors import LakeUnavailable, LockstepError

T = TypeVar("T")


class Starting(Generic[T]):
    """`launch` runs once, in a thread of its own that `begin` starts; `stop` ends what it started.
    After `end`, `begin` starts again."""

    def __init__(self, launch: Callable[[], T], stop: Callable[[T], None]) -> None:
        self._launch = launch
        self._stop = stop
        self._lock = threading.Lock()
        self._start: Future[T] | None = None
        self._wanted = False

    def begin(self) -> None:
        """Do nothing if a start has already begun."""
        with self._lock:
            self._wanted = True
            if self._start is None:
                self._start = Future()
                run = threading.Thread(
                    target=self._run, args=[self._start], name="lockstep-spark", daemon=True
                )
                run.start()

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

    def end(self) -> None:
        """Stop what was started. A start that is still going on is not waited for: its own thread
        stops what it started, unless it is wanted again by then, or the process ends first."""
        with self._lock:
            start, self._wanted = self._start, False
            if start is None or not start.done():
                return
            self._start = None
        with suppress(LockstepError):
            self._stop(start.result())

    def _run(self, start: Future[T]) -> None:
        try:
            started = self._launch()
        except BaseException as error:  # noqa: BLE001 - whoever waits raises it
            with self._lock:
                start.set_exception(error)
                if not self._wanted:
                    self._start = None
            return
        with self._lock:
            start.set_result(started)
            if self._wanted:
                return
            self._stop(started)
            self._start = None
