"""A check, at each start of a Spark on other machines, that its tasks see the same
disks as this process.

Otherwise tasks would write rows to another disk under the lake's path, and the commit
would name files that do not exist here. One task that reads and one that writes are
tried; all machines of a cluster are assumed to be alike.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.pipeline.values.errors import ConfigurationError, LakeUnavailable
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.staging import Staging
from lockstep.resources.lake.store.storage import lake_errors, parquet_content, remove_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_PROBE_VALUES = [20]
"""The values that the task must read and write."""


def require_visible(session: SparkSession, lake: LakePath, staging: Path, spark_name: str) -> None:
    """Make Spark read a staged file and write its rows to the lake's folder, then
    delete both. Raise `ConfigurationError` if Spark does not see one of the two
    folders. `spark_name`: Spark's name in the message."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    probe = lake / f"_lockstep-probe-{uuid4()}"
    probe_staging = Staging(staging)
    try:
        file = probe_staging.stage("probe", pa.table({"n": _PROBE_VALUES}))
        rows = session.read.schema("n bigint").parquet(file)
        cause: Exception | None = None
        try:
            rows.write.parquet(str(probe))
            if _values_in(probe) == _PROBE_VALUES:
                return
        except (PySparkException, Py4JJavaError) as error:
            cause = error
        folder = lake if _can_read(rows) else staging
        raise ConfigurationError(
            f"{spark_name} does not see {folder} as this machine does",
            hint="put it on a disk that both have mounted at this path, accessible to this "
            "account: see docs/deploy.md#where-spark-runs",
        ) from cause
    finally:
        probe_staging.end()
        with suppress(LakeUnavailable), lake_errors(probe):
            remove_folder(probe)


def _values_in(probe: LakePath) -> list[int]:
    with lake_errors(probe):
        files = [*probe.iterdir()] if probe.is_dir() else []
        tables = [
            pq.read_table(parquet_content(file)) for file in files if file.name.endswith(".parquet")
        ]
        return [value for table in tables for value in table["n"].to_pylist()]


def _can_read(rows: DataFrame) -> bool:
    """Return whether a task reads the staged values."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return [row[0] for row in rows.collect()] == _PROBE_VALUES
    except (PySparkException, Py4JJavaError):
        return False
