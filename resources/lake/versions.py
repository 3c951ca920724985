"""One version of a Delta table, opened to be read, or why it cannot be any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from pipeline.errors import ConfigurationError, LakeUnavailable, VersionGone
from resources.lake.delta_log import newest_version, read_commit
from resources.lake.paths import LakePath
from resources.lake.scan import needs_spark, rows_at
from resources.lake.storage import delta_table, first_line, missing_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BY_AGE: Final = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
"""Delta refuses a version by the age of its commit, also one that was the newest until now; here
its files are looked for."""

_HINT: Final = (
    "read as of a later place: `lockstep versions --list`; `keep` under [lake] in lockstep.toml "
    "says how long versions stay"
)


@dataclass(frozen=True, slots=True)
class MirrorVersion:
    """A version of the Delta table in a folder. `table_id`: of that table, None where nobody
    kept it; `batch`: the last one that the version may show."""

    path: LakePath
    version: int
    table_id: str | None
    batch: int


def opened(version: MirrorVersion) -> DeltaTable:
    """`VersionGone` unless it is that version of that table, and all of it is there."""
    path, number = version.path, version.version
    why = lacking(path, number, table_id=version.table_id, batch=version.batch)
    if why is not None:
        raise VersionGone(
            f"Version {number} of {path} cannot be read any more: {why}",
            hint=f"{_earliest(version)}{_HINT}",
        )
    return delta_table(path, number)


def lacking(
    path: LakePath, version: int, *, table_id: str | None = None, batch: int | None = None
) -> str | None:
    """Why a version of the table there cannot be read; None where all of it is there, and it is
    of that table and shows nothing behind that batch, if so asked."""
    try:
        table = delta_table(path, version)
        if table_id is not None and str(table.metadata().id) != table_id:
            return "another table was made in its folder since"
        if batch is not None and _shows(path, version) > batch:
            return "the lake was set back, and the version was made a second time"
        lost = missing_files(path, pa.table(table.get_add_actions()).column("path").to_pylist())
    except (DeltaError, OSError) as error:
        return first_line(str(error)) or "its log is gone"
    return f"{lost} of its files were deleted, as VACUUM does" if lost else None


def _shows(path: LakePath, version: int) -> int:
    """The last batch that the commit says it shows; 0 where it is gone: the version is that of a
    checkpoint."""
    commit = read_commit(path, version)
    said = None if commit is None else commit.said
    return 0 if said is None else max(said.get("batches", [0]))


def version_rows(version: MirrorVersion) -> pa.Table:
    """All its rows, in no particular order. `ConfigurationError` where only Spark can read
    them."""
    if needs_spark(version.path, opened(version)):
        raise ConfigurationError(
            f"{version.path} has widened columns and rows marked as deleted: only Spark reads both",
            hint="use .spark(session)",
        )
    try:
        return rows_at(version.path, version.version)
    except LakeUnavailable:
        opened(version)
        raise


def version_frame(session: SparkSession, version: MirrorVersion) -> DataFrame:
    """The same as a DataFrame of a session that knows Delta, whose refusal of old commits is
    switched off: Spark reads when the DataFrame is used."""
    opened(version)
    session.conf.set(BY_AGE, "false")
    return (
        session.read.format("delta").option("versionAsOf", version.version).load(str(version.path))
    )


def _earliest(version: MirrorVersion) -> str:
    """The earliest later place that the mirror can be read as of, in words; nothing where there is
    none. Versions go oldest first, so it is halved."""
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
