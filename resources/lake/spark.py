"""What the lake asks of a Spark, wherever it runs.

It is a Java process of this machine (`session`) or a server that is reached by Spark Connect
(`remote`). What is done in a session is the same code for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol
from uuid import UUID

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Spark(Protocol):
    """A Spark that is started, or connected to, by the first who needs it."""

    @property
    def java(self) -> bool:
        """Whether its Java can be spoken to from here: what PySpark has no words for is left out
        elsewhere (commits without a query, `direct`; uploads that nobody finished, `segments`)."""

    @property
    def client(self) -> UUID | None:
        """Who asks a server, in all sessions of this process; None where Spark ends with it."""

    def end_statements(self, client: UUID) -> None:
        """The server forgets the sessions of another process, with what it does for them.
        `LakeUnavailable` where it cannot be told."""

    def named(self) -> str:
        """Which one it is, for people. Waits for the start."""

    def require_ready(self) -> None:
        """`JavaMissing` or `SetupIncomplete` where a start would end in one."""

    def prepare(self, log_bytes: int = 0) -> None:
        """Begin to start, unless begun. Whatever goes wrong is told by `session`. `log_bytes`: as
        `Mirrors.prepare` has it."""

    def session(self, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
        """A new session, with configuration and views of its own. `settings` hold where the user
        gave no other. Waits for the start; `LockstepError` where there is none."""

    def idle(self, *, few: bool) -> list[SparkSession]:
        """Sessions that nobody uses, for few rows or for any number (`one_session`); any thread
        takes from the list and puts back. Waits for the start, as `session` does."""

    def requests(self) -> int | None:
        """What its client asked of the lake's object store since it started; None where that
        cannot be told: other machines ask, too. Starts nothing, and waits for nothing."""

    def stop(self) -> None:
        """Let go of it; nothing if never started."""


APP_ID: Final = "spark.databricks.delta.write.txnAppId"
TXN_VERSION: Final = "spark.databricks.delta.write.txnVersion"
USER_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"
"""What a commit of Spark's records besides rows: an application's transaction, and words."""

FOR_FEW: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.merge.deletionVectors.persistent": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
"""What pays for many rows is most of the work for a few (`python -m benchmarks small`): Spark makes
Java of each plan and compiles it, once for each order of types; Delta marks rows of a file as
deleted in a file of its own, in as many queries again as it takes to write the file anew. (That it
looks for the files that it can pass over is no matter of choice: where it does not, it cannot read
a table with deleted rows so marked.)"""


@contextmanager
def stamped(session: SparkSession, stamps: Mapping[str, str]) -> Iterator[None]:
    """The session's commits carry these until the end; then what was set before is set again."""
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
    """A session that no other thread uses meanwhile, for few rows or for any number. Sessions are
    kept for later, since each pays once for its own catalog and optimizer; one that saw an error
    is not."""
    idle = spark.idle(few=few)
    try:
        session = idle.pop()
    except IndexError:
        session = spark.session(FOR_FEW if few else {})
    yield session
    idle.append(session)
