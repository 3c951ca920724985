"""The interface of a Spark, wherever it runs, its start in the background, and its sessions.

A Spark is a Java process of this machine (`session`) or a server reached by Spark Connect
(`remote`). The code that works in a session is the same for both.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar
from uuid import UUID

from lockstep.pipeline.values.errors import LakeUnavailable, LockstepError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


class Spark(Protocol):
    """A Spark that is started, or connected to, when it is first needed."""

    @property
    def java(self) -> bool:
        """True if its Java objects can be reached from here, for what PySpark cannot do: commits
        without a query (`direct`), and aborting uploads (`segments`)."""

    @property
    def client(self) -> UUID | None:
        """This process as a client of a server; None if Spark ends with the process."""

    def end_statements(self, client: UUID) -> None:
        """Make the server close another process' sessions, with their running statements.
        `LakeUnavailable` if it cannot be reached."""

    def named(self) -> str:
        """Return a name of this Spark for people; waits for the start."""

    def require_ready(self) -> None:
        """Raise `JavaMissing` or `SetupIncomplete` if a start would."""

    def prepare(self, log_bytes: int = 0) -> None:
        """Begin the start unless it has begun; `session` raises its errors. `log_bytes`: as in
        `Mirrors.prepare`."""

    def session(self, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
        """Return a new session, with configuration and views of its own; the user's settings
        override `settings`. Waits for the start; `LockstepError` if it fails."""

    def idle(self, *, few: bool) -> list[SparkSession]:
        """Return the list of unused sessions, for few rows or for any number (`one_session`); any
        thread can take one from it and put it back. Waits for the start, as `session` does."""

    def requests(self) -> int | None:
        """Return the requests of its client to the lake's object store since the start; None if
        they are unknown, since other machines make some too. Starts nothing and does not wait."""

    def stop(self) -> None:
        """End it, or its sessions; does nothing if it was never started."""


class Starting(Generic[T]):
    """A start by `launch`, which runs once, in a thread that `begin` starts; `stop` ends what was
    started. After `end`, `begin` starts again."""

    def __init__(self, launch: Callable[[], T], stop: Callable[[T], None]) -> None:
        self._launch = launch
        self._stop = stop
        self._lock = threading.Lock()
        self._start: Future[T] | None = None
        self._wanted = False

    def begin(self) -> None:
        """Begin the start unless it has begun already."""
        with self._lock:
            self._wanted = True
            if self._start is None:
                self._start = Future()
                run = threading.Thread(
                    target=self._run, args=[self._start], name="lockstep-spark", daemon=True
                )
                run.start()

    def wait(self) -> T:
        """Begin if need be, and return what was started; raise what `launch` raised."""
        self.begin()
        start = self._start
        if start is None:
            raise LakeUnavailable("Spark was stopped while it was needed", hint="run again")
        return start.result()

    def started(self) -> T | None:
        """Return what was started, None if it is not ready or failed; without waiting."""
        start = self._start
        return None if start is None or not start.done() or start.exception() else start.result()

    def end(self) -> None:
        """Stop what was started, without waiting for a start that is still going on: its own thread
        stops what it started, unless `begin` was called again by then, or the process ended."""
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


APP_ID: Final = "spark.databricks.delta.write.txnAppId"
TXN_VERSION: Final = "spark.databricks.delta.write.txnVersion"
USER_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"
"""Settings of what a commit of Spark records besides rows: a transaction, and words."""

FOR_FEW: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.merge.deletionVectors.persistent": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
"""Settings for few rows, which skip work that pays only for many (`python -m benchmarks small`):
Spark compiles each plan to Java, once for each order of types; Delta writes deletion vectors, which
takes twice the queries of rewriting the file. File skipping stays on: without it, Delta cannot read
a table with deletion vectors."""


@contextmanager
def stamped(session: SparkSession, stamps: Mapping[str, str]) -> Iterator[None]:
    """Set these settings, which the session's commits record or obey, inside the context; then set
    the former values again."""
    before = {key: session.conf.get(key, None) for key in stamps}
    try:
        for key, value in stamps.items():
            session.conf.set(key, value)
        yield
    finally:
        for key, earlier in before.items():
            if earlier is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, earlier)


@contextmanager
def one_session(spark: Spark, *, few: bool = False) -> Iterator[SparkSession]:
    """Give a session, for few rows or for any number, that no other thread uses inside the context.
    Sessions are kept for later, since each one builds a catalog and an optimizer of its own; one in
    which an error was raised is not."""
    idle = spark.idle(few=few)
    try:
        session = idle.pop()
    except IndexError:
        session = spark.session(FOR_FEW if few else {})
    yield session
    idle.append(session)
