"""Spark sessions that are used again, each for tables of its size.

What pays for many rows is most of the work for a few (`python -m benchmarks small`): Spark makes
Java of each plan and compiles it, once for each order of types; Delta marks rows of a file as
deleted in a file of its own, in as many queries again as it takes to write the file anew. (That
it looks for the files that it can pass over is no matter of choice: where it does not, it cannot
read a table with deleted rows so marked.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from resources.lake.spark import Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
