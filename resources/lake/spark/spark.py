"""The interface to Spark wherever it runs, its start in the background, and its
sessions.

A Spark is a Java process of this machine (`session`) or a server reached by Spark
Connect (`remote`). The code that works in a session is the same for both.
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
    def can_call_java(self) -> bool:
        """True if this process can call Spark's Java objects, for what PySpark cannot
        do: commits without a query (`mirror.direct`), and aborting uploads
        (`changelog.segments`)."""

    @property
    def client_id(self) -> UUID | None:
        """The id of this process at a Spark server; None if Spark is a part of this
        process."""

    def end_statements(self, client_id: UUID) -> None:
        """Make the server close the sessions of the process with the id `client_id` and
        end their statements. Raise `LakeUnavailable` if the server cannot be
        reached."""

    def display_name(self) -> str:
        """Wait for the start and return a name of this Spark for messages."""

    def require_ready(self) -> None:
        """Raise `JavaMissing` or `SetupIncomplete` if a start would raise it, but start
        nothing."""

    def prepare(self, log_bytes: int = 0) -> None:
        """Begin the start in the background unless it has begun; `session` raises the
        start's errors. `log_bytes`: how many bytes of the binlog will be written, as
        far as that is known; if they are many, Java compiles more thoroughly."""

    def session(self, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
        """Wait for the start and return a new session, with its own configuration and
        views. The user's settings override `settings`. Raise `LockstepError` if the
        start fails."""

    def idle_sessions(self, *, few_rows: bool) -> list[SparkSession]:
        """Wait for the start and return the list of unused sessions: those that have
        the settings for few rows, or with `few_rows` false the others. Any thread can
        take a session from the list and put it back (`exclusive_session`)."""

    def request_count(self) -> int | None:
        """Return the number of requests that Spark has sent to the lake's object store
        since its start; None if it is unknown, because other machines send some, too.
        This neither starts Spark nor waits for it."""

    def stop(self) -> None:
        """End Spark, or this process's sessions at a server. This has no effect if
        Spark was never started."""


class BackgroundStart(Generic[T]):
    """A start in the background: `begin` calls `launch` in a new thread, once, and
    `end` calls `stop` with what `launch` returned. After `end`, `begin` starts
    again."""

    def __init__(self, launch: Callable[[], T], stop: Callable[[T], None]) -> None:
        self._launch = launch
        self._stop = stop
        self._lock = threading.Lock()
        self._start: Future[T] | None = None
        self._is_wanted = False

    def begin(self) -> None:
        """Begin the start unless it has begun already."""
        with self._lock:
            self._is_wanted = True
            if self._start is None:
                self._start = Future()
                thread = threading.Thread(
                    target=self._run, args=[self._start], name="lockstep-spark", daemon=True
                )
                thread.start()

    def wait(self) -> T:
        """Begin the start unless it has begun, wait for it, and return what `launch`
        returned or raise what it raised."""
        self.begin()
        start = self._start
        if start is None:
            raise LakeUnavailable("Spark was stopped while it was needed", hint="run again")
        return start.result()

    def result_if_started(self) -> T | None:
        """Return what `launch` returned, without waiting; None if it has not returned
        yet, or has failed."""
        start = self._start
        if start is None or not start.done() or start.exception():
            return None
        return start.result()

    def end(self) -> None:
        """Stop what was started. This does not wait for a start that is still going on:
        the start's own thread then stops what it started, unless `begin` was called
        again or the process has ended by then."""
        with self._lock:
            self._is_wanted = False
            start = self._start
            if start is None or not start.done():
                return
            self._start = None
        with suppress(LockstepError):
            self._stop(start.result())

    def _run(self, start: Future[T]) -> None:
        try:
            result = self._launch()
        except BaseException as error:  # noqa: BLE001 - `wait` raises it
            with self._lock:
                start.set_exception(error)
                if not self._is_wanted:
                    self._start = None
            return
        with self._lock:
            start.set_result(result)
            if self._is_wanted:
                return
            self._stop(result)
            self._start = None


APP_ID_SETTING: Final = "spark.databricks.delta.write.txnAppId"
TXN_VERSION_SETTING: Final = "spark.databricks.delta.write.txnVersion"
USER_METADATA_SETTING: Final = "spark.databricks.delta.commitInfo.userMetadata"
"""Session settings whose values Delta records with each commit: the id of an
application, the version of its transaction, and a text."""

FEW_ROWS_SETTINGS: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.merge.deletionVectors.persistent": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
"""Settings of a session for few rows, which switch off work that pays only for many
rows (see `python -m benchmarks small`). Without them Spark would compile each plan to
Java, again for each list of column types, and Delta would write deletion vectors, which
takes twice as many queries as rewriting the file. File skipping stays on: without it,
Delta cannot read a table with deletion vectors."""


@contextmanager
def session_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set session settings inside the context; Delta's commits obey them, or record
    their values. Restore the former values at its end."""
    former_values = {key: session.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            session.conf.set(key, value)
        yield
    finally:
        for key, former_value in former_values.items():
            if former_value is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, former_value)


@contextmanager
def exclusive_session(spark: Spark, *, few_rows: bool = False) -> Iterator[SparkSession]:
    """Yield a session that no other thread uses inside the context; with `few_rows`, it
    has the settings for few rows. Sessions are used again, because each new one builds
    its own catalog and optimizer. A session in which an error was raised is not used
    again."""
    idle_sessions = spark.idle_sessions(few_rows=few_rows)
    try:
        session = idle_sessions.pop()
    except IndexError:
        session = spark.session(FEW_ROWS_SETTINGS if few_rows else {})
    yield session
    idle_sessions.append(session)
