"""The trial of a Spark with a small table in the lake, of an object store with a small
object, and of a folder with a hard link.

A Spark server can have a Delta without our log store, or with an old version of it. The
trial reads the rows that Spark wrote, and then asks Spark for commits that are repeated
or were planned on another version. None of these commits may appear in the table's log.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from uuid import uuid4

import pyarrow as pa

from lockstep.pipeline.mirror.strategy import NO_FEW_ROWS
from lockstep.pipeline.ports.lease_check import no_check
from lockstep.pipeline.ports.mirror_writes import (
    Append,
    ColumnOrigin,
    FoldedChanges,
    Merge,
    MirrorTarget,
    MirrorWrite,
    StagedFiles,
)
from lockstep.pipeline.values.errors import ConfigurationError, LockstepError, TableError
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.resources.lake.delta.delta_log import newest_version
from lockstep.resources.lake.delta.pin import Head, head_of
from lockstep.resources.lake.mirror.mirror import SparkMirrors
from lockstep.resources.lake.mirror.writing import commit_write
from lockstep.resources.lake.spark.java_errors import spark_errors
from lockstep.resources.lake.spark.spark import (
    APP_ID_SETTING,
    TXN_VERSION_SETTING,
    Spark,
    session_settings,
)
from lockstep.resources.lake.store.paths import LakePath, ObjectPath
from lockstep.resources.lake.store.staging import Staging
from lockstep.resources.lake.store.storage import lake_errors, remove_folder, remove_table

_SCHEMA: Final = pa.schema([("id", pa.int64())])
_PAGE_HINT: Final = "see docs/deploy.md#where-spark-runs for what a server needs"


def require_correct_writes(spark: Spark, lake: LakePath, staging: Path) -> None:
    """Write, merge and read a table below the lake's folder, then delete it. Raise
    `ConfigurationError` if Spark writes other rows than it was given, or makes a commit
    that it must refuse; and any `LockstepError` of a session."""
    with lake_errors(lake):
        lake_existed = lake.is_dir()
    spark.session()
    trial_folder = lake / f"_lockstep-trial-{uuid4()}"
    trial_staging = Staging(staging)
    mirrors = SparkMirrors(trial_folder, staging=staging, spark=spark, few_limit=NO_FEW_ROWS)
    try:
        _require_rows(mirrors, trial_staging)
        _require_commits_once(spark, mirrors, trial_folder / "t", trial_staging)
    except TableError as error:
        raise ConfigurationError(
            f"{spark.display_name()} could not write a table: {error.reason}", hint=_PAGE_HINT
        ) from error
    finally:
        with suppress(LockstepError), lake_errors(lake):
            remove_table(trial_folder / "t", no_check)
            remove_folder(trial_folder)
            if not lake_existed and isinstance(lake, Path):
                lake.rmdir()
        trial_staging.end()


def _require_rows(mirrors: SparkMirrors, staging: Staging) -> None:
    """Raise `ConfigurationError` unless the table has exactly the rows that were
    written."""
    mirrors.write(_trial_write(staging, 1))
    mirrors.write(_trial_write(staging, 2))
    ids = [row for batch in mirrors.rows("t", ["id"], 1) for row in batch["id"].to_pylist()]
    if sorted(ids) != [1, 2]:
        raise ConfigurationError("Spark wrote other rows than it was given", hint=_PAGE_HINT)


def _require_commits_once(
    spark: Spark, mirrors: SparkMirrors, table: LakePath, staging: Staging
) -> None:
    """Raise `ConfigurationError` if Spark commits a recorded transaction again, or
    makes a commit that was planned on another version."""
    head = head_of(table)
    earlier_head, other_head = Head(head.version - 1, head.digest), Head(head.version, "0" * 64)
    for number, planned_head, misbehaviour in (
        (2, head, "makes the same commit twice"),
        (3, earlier_head, "commits at another version than it was told to"),
        (4, other_head, "commits after another commit than it was told to"),
    ):
        # `SparkMirrors.write` would see that there is nothing to do, and not ask Spark.
        write = _trial_write(staging, number)
        transaction = {
            APP_ID_SETTING: write.target.app_id,
            TXN_VERSION_SETTING: str(write.target.txn_version),
        }
        session = spark.session()
        with (
            suppress(LockstepError, TableError),
            spark_errors(table),
            session_settings(session, {**planned_head.pin_settings(), **transaction}),
        ):
            commit_write(session, write, table, staging, None, str)
        if newest_version(table) != head.version:
            raise ConfigurationError(
                f"Spark {misbehaviour}, so a late run could damage a mirror",
                hint=f"start it with Lockstep's log store, of this version; {_PAGE_HINT}",
            )
    # This proves that the refused commits did not fail for another reason.
    mirrors.write(_trial_write(staging, 5))


def _trial_write(staging: Staging, number: int) -> MirrorWrite:
    files = (staging.stage("trial", pa.table({"_change_type": ["insert"], "id": [number]})),)
    target = MirrorTarget("t", _SCHEMA, "lockstep-trial", number, "", LakePolicies())
    if number == 1:
        return Append(target, (StagedFiles(files, (ColumnOrigin("id", pa.int64()),)),))
    return Merge(target, ("id",), FoldedChanges(files))


def require_conditional_writes(lake: ObjectPath) -> None:
    """Write, read, list and delete an object below the lake's prefix. Raise
    `LakeUnavailable` if the store refuses one of these. Raise `ConfigurationError` if a
    second writer can overwrite the first, because two runs could then commit the same
    version of a table, or if the object is not listed."""
    path = lake / f"_lockstep-probe-{uuid4()}" / "commit"
    with lake_errors(lake):
        try:
            path.create_once(b"1")  # false also if the answer was lost and the client asked again
            second_created = path.create_once(b"2")
            content = path.read_bytes()
            listed_names = [file.name for file in path.parent.rglob()]
        finally:
            path.unlink()
    if second_created or content != b"1":
        raise ConfigurationError(
            f"{lake} lets a second writer overwrite the first.",
            hint="use a store with conditional writes (If-None-Match), as Amazon S3 has since 2024",
        )
    if listed_names != ["commit"]:
        raise ConfigurationError(
            f"{lake} does not list an object that was just written.",
            hint="use a store whose listings are consistent, as Amazon S3's are since 2020",
        )


def require_hard_links(folder: Path) -> None:
    """Make a file and a hard link to it in a folder, and delete them. Raise
    `LakeUnavailable` if the file system refuses the link: a commit is made by one."""
    with TemporaryDirectory(dir=folder) as trial_folder, lake_errors(folder):
        file = Path(trial_folder, "file")
        file.touch()
        Path(trial_folder, "link").hardlink_to(file)
