"""How many requests went to an object store: by the lake's own client, and by Spark's.

Belongs here: the count of the first, and where that of the second is read. Does not: what a call
comes to (`paths`), what is made of the figures (`pipeline.runs`).

delta-rs, the third client, tells nobody how often it asks. Each of the three names itself to the
store (`AGENT`, `DELTA_AGENT`, Hadoop's own), so the store's log of accesses can tell them apart.
What a client asks a second time, because the store was busy or did not answer, Spark's counts
and ours does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pipeline.batch import Requests
from resources.lake.java_classes import hadoop_path, java_class, java_of
from resources.lake.paths import LakePath, ObjectPath

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from resources.lake.spark import Spark

_COUNTER: Final = "store_io_request"
"""What S3A calls a request to the store, repeated ones included."""


def requests_since_now(lake: LakePath, spark: Spark) -> Callable[[], Requests | None]:
    """Asked later, what has been asked of the lake's store by this process from now on; None for a
    lake in a folder."""
    if not isinstance(lake, ObjectPath):
        return lambda: None
    count, own, java = lake.bucket.count, lake.bucket.count.made, spark.requests()

    def asked() -> Requests:
        now = spark.requests()
        told = None if now is None or java is None else max(now - java, 0)
        return Requests(count.made - own, told)

    return asked


def requests_of_java(session: SparkSession, lake: ObjectPath) -> int | None:
    """By the Java of this machine, since it started; None where its client does not count, or it
    is gone: what needs it finds that out."""
    from py4j.protocol import Py4JError

    try:
        _, client = hadoop_path(session, f"{lake}/")
        statistics = java_class(
            java_of(session), "org.apache.hadoop.fs.statistics.IOStatisticsSupport"
        )
        told = statistics.retrieveIOStatistics(client)
        counted = None if told is None else told.counters().get(_COUNTER)
    except (Py4JError, OSError):
        return None
    return None if counted is None else int(counted)
