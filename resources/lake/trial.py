"""Whether a Spark, and an object store, keep what mirrors stand on, tried in the lake: with a small
table, and with two small objects.

A Spark elsewhere may have a Delta without our log store, or an old one. What it writes is read
here, and what it is asked to commit twice, or late, must not be in the table's log.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyarrow as pa

from pipeline.changes.strategy import NOTHING
from pipeline.errors import ConfigurationError, LockstepError, TableError
from pipeline.ports.held import unasked
from pipeline.ports.mirror_writes import (
    Append,
    FoldedChanges,
    Merge,
    MirrorTarget,
    MirrorWrite,
    PartColumn,
    StagedFiles,
)
from resources.lake.delta_log import newest_version
from resources.lake.java_errors import spark_errors
from resources.lake.mirror import SparkMirrors
from resources.lake.paths import LakePath, ObjectPath
from resources.lake.pin import Head, head_of
from resources.lake.spark import APP_ID, TXN_VERSION, Spark, stamped
from resources.lake.staging import Staging
from resources.lake.storage import lake_errors, remove_folder, remove_table
from resources.lake.writing import commit

_SCHEMA: Final = pa.schema([("id", pa.int64())])
_PAGE: Final = "docs/deploy.md#where-spark-runs says what a server needs"


def require_kept(spark: Spark, lake: LakePath, staging: Path) -> None:
    """Write, merge and read under the lake's folder; nothing stays. `ConfigurationError` for what
    it does not keep, and whatever a session ends in (`LockstepError`)."""
    there = lake.is_dir()
    spark.session()
    aside = lake / f"_lockstep-trial-{uuid4()}"
    staged = Staging(staging)
    mirrors = SparkMirrors(aside, staging=staging, spark=spark, few=NOTHING)
    try:
        _require_rows(mirrors, staged)
        _require_commits_once(spark, mirrors, aside / "t", staged)
    except TableError as error:
        raise ConfigurationError(
            f"{spark.named()} could not write a table: {error.reason}", hint=_PAGE
        ) from error
    finally:
        with suppress(LockstepError, OSError):
            remove_table(aside / "t", unasked)
            remove_folder(aside)
            if not there and isinstance(lake, Path):
                lake.rmdir()
        staged.end()


def _require_rows(mirrors: SparkMirrors, staged: Staging) -> None:
    """What was staged is in the table, and nothing else."""
    mirrors.write(_write(staged, 1))
    mirrors.write(_write(staged, 2))
    found = [row for batch in mirrors.rows("t", ["id"], 1) for row in batch["id"].to_pylist()]
    if sorted(found) != [1, 2]:
        raise ConfigurationError("Spark wrote other rows than it was given", hint=_PAGE)


def _require_commits_once(
    spark: Spark, mirrors: SparkMirrors, table: LakePath, staged: Staging
) -> None:
    """A transaction that is there is not made again; a plan of yesterday is refused."""
    head = head_of(table)
    earlier, other = Head(head.version - 1, head.digest), Head(head.version, "0" * 64)
    for number, planned_on, what in (
        (2, head, "makes the same commit twice"),
        (3, earlier, "commits at another version than it was told to"),
        (4, other, "commits after another commit than it was told to"),
    ):
        # Past everything that would notice here that there is nothing to do.
        write = _write(staged, number)
        recorded = {APP_ID: write.target.app_id, TXN_VERSION: str(write.target.txn_version)}
        session = spark.session()
        with (
            suppress(LockstepError, TableError),
            spark_errors(table),
            stamped(session, {**planned_on.pin(), **recorded}),
        ):
            commit(session, write, table, staged, None, str)
        if newest_version(table) != head.version:
            raise ConfigurationError(
                f"Spark {what}: a late run could do harm",
                hint=f"start it with Lockstep's log store, of this version; {_PAGE}",
            )
    # It could have, each time.
    mirrors.write(_write(staged, 5))


def _write(staged: Staging, number: int) -> MirrorWrite:
    files = (staged.stage("trial", pa.table({"_change_type": ["insert"], "id": [number]})),)
    target = MirrorTarget("t", _SCHEMA, "lockstep-trial", number, "")
    if number == 1:
        return Append(target, (StagedFiles(files, (PartColumn("id", pa.int64()),)),))
    return Merge(target, ("id",), FoldedChanges(files))


def require_conditional_writes(lake: ObjectPath) -> None:
    """Write, read, list and delete under the lake's prefix. `LakeUnavailable` where that is
    refused; `ConfigurationError` for a store that lets a second writer overwrite the first: two
    runs could commit the same version of a table."""
    path = lake / f"_lockstep-probe-{uuid4()}" / "commit"
    with lake_errors(lake):
        try:
            first, second = path.create_once(b"1"), path.create_once(b"2")
            found, listed = path.read_bytes(), [one.name for one in path.parent.rglob()]
        finally:
            path.unlink()
    if not first or second or found != b"1":
        raise ConfigurationError(
            f"{lake} lets a second writer overwrite the first.",
            hint="use a store with conditional writes (If-None-Match), as Amazon S3 has since 2024",
        )
    if listed != ["commit"]:
        raise ConfigurationError(
            f"{lake} does not list what was just written.",
            hint="use a store whose listings are consistent, as Amazon S3's are since 2020",
        )
