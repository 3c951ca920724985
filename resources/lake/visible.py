"""Whether a Spark whose tasks run elsewhere sees the same disks as this process.

One task of each is tried: all machines of a cluster are taken to be alike. Without it, tasks that
have another disk below the lake's path would write rows there, and the commit would name files that
nobody finds.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import ConfigurationError
from resources.lake.paths import LakePath
from resources.lake.staging import Staging
from resources.lake.storage import lake_errors, parquet_content, remove_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MARK = [20]


def require_visible(session: SparkSession, lake: LakePath, staging: Path, named: str) -> None:
    """`ConfigurationError` unless Spark, `named` so, reads what is staged and writes where the lake
    is, in one statement. Leaves nothing behind."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    probe = lake / f"_lockstep-probe-{uuid4()}"
    staged = Staging(staging)
    try:
        file = staged.stage("probe", pa.table({"n": _MARK}))
        rows = session.read.schema("n bigint").parquet(file)
        cause: Exception | None = None
        try:
            rows.write.parquet(str(probe))
        except (PySparkException, Py4JJavaError) as error:
            cause = error
        if cause is not None or _found(probe) != _MARK:
            try:
                seen = [row[0] for row in rows.collect()]
            except (PySparkException, Py4JJavaError) as error:
                seen, cause = [], error
            raise _other(named, lake if seen == _MARK else staging) from cause
    finally:
        staged.end()
        with suppress(OSError):
            remove_folder(probe)


def _found(probe: LakePath) -> list[int]:
    with lake_errors(probe):
        files = [*probe.iterdir()] if probe.is_dir() else []
        tables = [
            pq.read_table(parquet_content(file)) for file in files if file.name.endswith(".parquet")
        ]
        return [one for table in tables for one in table["n"].to_pylist()]


def _other(named: str, place: LakePath) -> ConfigurationError:
    return ConfigurationError(
        f"{named} does not see {place} as this machine does",
        hint="put it on a disk that both have under this path, with the rights of this account: "
        "docs/deploy.md#where-spark-runs",
    )
