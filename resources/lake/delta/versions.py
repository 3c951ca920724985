"""One version of a Delta table, opened for reading, or the reason why it cannot be any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lockstep.pipeline.values.errors import ConfigurationError, LakeUnavailable, VersionGone
from lockstep.resources.lake.delta.delta_log import newest_version, read_commit
from lockstep.resources.lake.delta.scan import needs_spark, rows_at
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import delta_table, first_line, missing_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BY_AGE: Final = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
"""The setting by which Delta refuses a version for the age of its commit, even if that was the
newest one until now. It is switched off: here, the version's files are looked for."""

_HINT: Final = (
    "read as of a later place: `lockstep versions --list`; `keep` under [lake] in lockstep.toml "
    "says how long versions stay"
)


@dataclass(frozen=True, slots=True)
class MirrorVersion:
    """A version of the Delta table in a folder. `table_id` is that table's id, None if it was not
    recorded; `batch` is the last one that the version can show."""

    path: LakePath
    version: int
    table_id: str | None
    batch: int


def open_version(version: MirrorVersion) -> DeltaTable:
    """Open a version. `VersionGone` unless it is of that table, and complete."""
    path, number = version.path, version.version
    reason = lacking(path, number, table_id=version.table_id, batch=version.batch)
    if reason is not None:
        raise VersionGone(
            f"Version {number} of {path} cannot be read any more: {reason}",
            hint=f"{_earliest(version)}{_HINT}",
        )
    return delta_table(path, number)


def lacking(
    path: LakePath, version: int, *, table_id: str | None = None, batch: int | None = None
) -> str | None:
    """Return why a version of the table at a path cannot be read; None if it can. With `table_id`
    it must be of that table, with `batch` show no later batch."""
    try:
        table = delta_table(path, version)
        if table_id is not None and str(table.metadata().id) != table_id:
            return "another table was created in its folder since"
        if batch is not None and _shows(path, version) > batch:
            return "the lake was set back, and the version was written again"
        lost = missing_files(path, pa.table(table.get_add_actions()).column("path").to_pylist())
    except (DeltaError, OSError) as error:
        return first_line(str(error)) or "its log is gone"
    return f"{lost} of its files were deleted, as VACUUM does" if lost else None


def _shows(path: LakePath, version: int) -> int:
    """Return the last batch that a version's commit says it shows; 0 if its file is gone and only a
    checkpoint has the version."""
    commit = read_commit(path, version)
    said = None if commit is None else commit.said
    return 0 if said is None else max(said.get("batches", [0]))


def version_rows(version: MirrorVersion) -> pa.Table:
    """Return all rows of a version, in no particular order. `ConfigurationError` if only Spark can
    read them."""
    if needs_spark(version.path, open_version(version)):
        raise ConfigurationError(
            f"{version.path} has widened columns and rows marked as deleted: only Spark reads both",
            hint="use .spark(session)",
        )
    try:
        return rows_at(version.path, version.version)
    except LakeUnavailable:
        open_version(version)
        raise


def version_frame(session: SparkSession, version: MirrorVersion) -> DataFrame:
    """Return all rows of a version as a DataFrame of a session with Delta. The session's refusal of
    old commits is switched off, since Spark reads only when the DataFrame is used."""
    open_version(version)
    session.conf.set(BY_AGE, "false")
    return (
        session.read.format("delta").option("versionAsOf", version.version).load(str(version.path))
    )


def _earliest(version: MirrorVersion) -> str:
    """Return a clause that names the earliest later place as of which the mirror can be read; '' if
    there is none. VACUUM removes the oldest versions first, so a binary search finds it."""
    newest = newest_version(version.path)
    if newest is None or newest <= version.version or lacking(version.path, newest) is not None:
        return ""
    low, high = version.version + 1, newest
    while low < high:
        middle = (low + high) // 2
        if lacking(version.path, middle) is None:
            high = middle
        else:
            low = middle + 1
    commit = read_commit(version.path, high)
    place = None if commit is None or commit.said is None else commit.said.get("position")
    return "" if place is None else f"the earliest place that it can be read as of is {place}; "
