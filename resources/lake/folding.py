"""Folding changes in Spark: for more of them than a process should hold in memory.

The same rule as `pipeline.changes.latest`, on disk: the last image per key, in the order of
`_sequence`, is all that a MERGE sees. The answer is written to a staging folder first,
because Delta reads a MERGE's source twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipeline.changes.layout import changelog_names
from pipeline.ports import MirrorWrite
from resources.lake.statement import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 32
"""Pieces that the changes are folded in, so that a piece fits into the heap."""

_SHUFFLES = "spark.sql.shuffle.partitions"
_PRESENT = ("insert", "update_postimage")


def fold(session: SparkSession, changes: DataFrame, write: MirrorWrite, folder: str) -> None:
    """Write the last image per key of `changes` to `folder`, `_change_type` "delete" where
    the row is gone after it, without `_sequence`."""
    from pyspark.sql import functions as f

    spelled = dict(zip(write.schema.names, changelog_names(write.schema.names), strict=True))
    key = [f.col(quoted(spelled[name])) for name in write.key]
    newest = changes.groupBy(*key).agg(f.max("_sequence").alias("_newest"))
    kept = changes.join(newest, changes["_sequence"] == newest["_newest"], "left_semi")
    kind = f.when(f.col("_change_type").isin(*_PRESENT), f.col("_change_type"))
    folded = kept.withColumn("_change_type", kind.otherwise("delete")).drop("_sequence")
    with _shuffled(session):
        folded.write.mode("overwrite").option("compression", "snappy").parquet(folder)


@contextmanager
def _shuffled(session: SparkSession) -> Iterator[None]:
    before = session.conf.get(_SHUFFLES)
    session.conf.set(_SHUFFLES, str(PARTITIONS))
    try:
        yield
    finally:
        session.conf.set(_SHUFFLES, str(before))
