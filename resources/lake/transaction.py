"""A transaction of Delta's own, held by hand: in Java, without a query.

Belongs here: beginning one on a table's newest version, its actions, its commit. Protocol,
conflicts, moments, checksums and checkpoints are Delta's business here as in any statement, and so
is the pin of the session (`pin`). Does not: what is committed (`direct`, `restore`, `column_drop`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from resources.lake.java_classes import java_class, scala_object
from resources.lake.paths import LakePath
from resources.lake.sessions import stamped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DELTA: Final = "org.apache.spark.sql.delta"
UNLISTED: Final = {"spark.databricks.delta.allFilesInCrc.enabled": "false"}
"""A session's setting under which no commit lists the table's files in its checksum file."""


@dataclass(frozen=True, slots=True)
class DeltaTransaction:
    """`log`, `snapshot` and `begun` are Java's `DeltaLog`, `Snapshot` and
    `OptimisticTransaction`."""

    jvm: Any
    log: Any
    snapshot: Any
    begun: Any

    def action(self, told: Mapping[str, Any]) -> Any:
        """An action as the protocol spells it."""
        return scala_object(self.jvm, f"{_DELTA}.actions.Action").fromJson(json.dumps(told))

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The table's before the commit, as the protocol spells it (`metaData`)."""
        told: Mapping[str, Any] = json.loads(self.snapshot.metadata().json())["metaData"]
        return told

    def operation(self, name: str, *arguments: Any) -> Any:
        """What the table's history calls the commit."""
        return java_class(self.jvm, f"{_DELTA}.DeltaOperations${name}")(*arguments)

    @property
    def none(self) -> Any:
        """Scala's `None`."""
        return scala_object(self.jvm, "scala.None")

    def seq(self, values: Iterable[Any]) -> Any:
        """Scala's `Seq` of them."""
        listed = java_class(self.jvm, "java.util.ArrayList")()
        for value in values:
            listed.add(value)
        converters = java_class(self.jvm, "scala.jdk.javaapi.CollectionConverters")
        return converters.asScala(listed).toSeq()

    def commit(self, actions: Iterable[Any], operation: Any) -> None:
        """All of them, or none."""
        self.begun.commit(self.seq(actions), operation)


@contextmanager
def transaction(session: SparkSession, path: LakePath, *, told: bool) -> Iterator[DeltaTransaction]:
    """One on the newest version of the table there, or of one that is yet to be made. `told`: the
    table's files are in its log near by, so that Delta need not list them in the commit's checksum
    file, which takes a query where the file before has no such list."""
    with _active(session) as jvm, stamped(session, UNLISTED if told else {}):
        logs = scala_object(jvm, f"{_DELTA}.DeltaLog")
        pair = logs.forTableWithSnapshot(session._jsparkSession, str(path))
        log, snapshot = pair._1(), pair._2()
        none = scala_object(jvm, "scala.None")
        begun = log.startTransaction(none, java_class(jvm, "scala.Some")(snapshot))
        yield DeltaTransaction(jvm, log, snapshot, begun)


def now() -> int:
    """The moment as Delta writes it: milliseconds since 1970."""
    return int(time.time() * 1000)


@contextmanager
def _active(session: SparkSession) -> Iterator[Any]:
    """Java, in whose thread of ours this session's settings hold meanwhile: the pin among them."""
    jvm: Any = session._jvm
    sessions = java_class(jvm, "org.apache.spark.sql.classic.SparkSession")
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield jvm
    finally:
        sessions.clearActiveSession()
