"""One version of a Delta table, opened to be read, or why it cannot be any more.

Belongs here: that the table is the one that was written, and that its log and files are still
there. Does not: which version shows what (`pipeline.runs.inspecting.version_sets`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from pipeline.errors import ConfigurationError, LakeUnavailable, VersionGone
from resources.lake.scan import mirror_schema, needs_spark, scanned
from resources.lake.storage import first_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BY_AGE: Final = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
"""Delta refuses a version by the age of its commit, also one that was the newest until now; here
its files are looked for."""

_HINT: Final = (
    "read as of a later place: `lockstep versions --list`; `keep` under [lake] in lockstep.toml "
    "says how long versions stay"
)


def opened(path: Path, version: int, table_id: str | None) -> DeltaTable:
    """`VersionGone` unless it is that version of that table (None: of any), and all there."""
    try:
        table = DeltaTable(path, version=version)
        found = str(table.metadata().id)
    except (DeltaError, OSError) as error:
        raise _gone(path, version, first_line(str(error)) or "its log is gone") from error
    if table_id is not None and found != table_id:
        raise _gone(path, version, "another table was made in its folder since")
    files = pa.table(table.get_add_actions()).column("path").to_pylist()
    lost = [file for file in files if not (path / file).is_file()]
    if lost:
        raise _gone(path, version, f"{len(lost)} of its files were deleted, as VACUUM does")
    return table


def version_rows(path: Path, version: int, table_id: str | None) -> pa.Table:
    """All its rows, in no particular order. `ConfigurationError` where only Spark can read
    them."""
    table = opened(path, version, table_id)
    if needs_spark(table):
        raise ConfigurationError(
            f"{path} has columns that were widened, which only Spark reads",
            hint="use .spark(session)",
        )
    schema = mirror_schema(path, version)
    try:
        return pa.Table.from_batches(scanned(path, schema.names, version), schema)
    except LakeUnavailable:
        opened(path, version, table_id)
        raise


def version_frame(
    session: SparkSession, path: Path, version: int, table_id: str | None
) -> DataFrame:
    """The same as a DataFrame of a session that knows Delta, whose refusal of old commits is
    switched off: Spark reads when the DataFrame is used."""
    opened(path, version, table_id)
    session.conf.set(BY_AGE, "false")
    return session.read.format("delta").option("versionAsOf", version).load(str(path))


def _gone(path: Path, version: int, why: str) -> VersionGone:
    return VersionGone(f"Version {version} of {path} cannot be read any more: {why}", hint=_HINT)
