"""Upkeep of mirrors (the Delta tables with the current rows of source tables):
OPTIMIZE, REORG and VACUUM by Spark, and deletion of old checkpoints.

`pipeline.upkeep` decides when each is done, and which checkpoints are deleted.

Delta in Java makes the commits, because delta-rs' OPTIMIZE refuses tables with deletion
vectors. Like all commits, they are bound to the version on which they were planned
(`pin`), so a concurrent writer of the mirror wins. delta-rs lists the files that VACUUM
would delete, but its own VACUUM is not used, because it also deletes files of deletion
vectors that are in use.
"""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import unquote

from deltalake import DeltaTable

from lockstep.pipeline.upkeep.decide import (
    Checkpoint,
    FileTotal,
    MirrorFiles,
    StepKind,
    UpkeepStep,
    checkpoints_to_delete,
)
from lockstep.pipeline.values.errors import CommitConflict
from lockstep.pipeline.values.retention import Retention
from lockstep.resources.lake.delta.delta_log import newest_version
from lockstep.resources.lake.delta.pin import head_of, pinned_errors
from lockstep.resources.lake.delta.statement import quoted
from lockstep.resources.lake.delta.versions import count_deleted_rows, row_count_and_sizes
from lockstep.resources.lake.spark.java_errors import spark_errors
from lockstep.resources.lake.spark.spark import (
    USER_METADATA_SETTING,
    Spark,
    exclusive_session,
    session_settings,
)
from lockstep.resources.lake.store.paths import LakePath, ObjectPath
from lockstep.resources.lake.store.storage import (
    delta_table,
    files_below,
    lake_errors,
    mirror_errors,
)

_SETTING_PREFIX: Final = "spark.databricks.delta"
_HOUR: Final = timedelta(hours=1)
_FEW_FILES: Final = 10_000
"""Largest number of files for which VACUUM is faster with Spark's settings for few rows
(`FEW_ROWS_SETTINGS`)."""
_FEW_BYTES: Final = 64 << 20
"""Largest size of files for which OPTIMIZE and REORG are faster with these settings."""
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")
_RETENTION_TOO_SHORT: Final = (
    "its properties keep replaced files or the log for a shorter time than `keep` under [lake], so "
    "it is unknown which files are needed: `lockstep check` says how to set them"
)


class SparkUpkeep:
    """`pipeline.ports.MirrorUpkeep` by Spark. `keep`: how long each version of a mirror
    stays readable."""

    def __init__(self, lake: LakePath, *, spark: Spark, keep: timedelta) -> None:
        self.keep = keep
        self._lake = lake
        self._spark = spark

    def files(self, mirror: str) -> MirrorFiles:
        path = self._lake / mirror
        with mirror_errors(self._lake, path):
            table = delta_table(path)
            row_count, sizes = row_count_and_sizes(table)
            deleted_rows = count_deleted_rows(path, table, row_count)
            retention = Retention.of(table.metadata().configuration)
            is_kept = retention is not None and retention.covers(self.keep)
            deletable = _deletable_files(path, table, self.keep) if is_kept else FileTotal()
            free_bytes = None if isinstance(path, ObjectPath) else shutil.disk_usage(path).free
        return MirrorFiles(
            tuple(sizes),
            row_count,
            deleted_rows,
            unneeded=deletable,
            reason_unknown=None if is_kept else _RETENTION_TOO_SHORT,
            free_bytes=free_bytes,
        )

    def carry_out(
        self, mirror: str, step: UpkeepStep, user_metadata: str, after_version: int
    ) -> int | None:
        path = self._lake / mirror
        head = head_of(path)
        if head.version != after_version:
            raise CommitConflict(
                f"Another writer committed to {mirror} before its upkeep did",
                hint="wait for the next upkeep, which tries again",
            )
        settings = {**head.pin_settings(), USER_METADATA_SETTING: user_metadata}
        if step.kind is not StepKind.COMPACT:
            statement = f"REORG TABLE delta.{quoted(str(path))} APPLY (PURGE)"
        else:
            statement = f"OPTIMIZE delta.{quoted(str(path))}"
            settings |= {
                f"{_SETTING_PREFIX}.optimize.minFileSize": str(step.target_bytes // 2),
                f"{_SETTING_PREFIX}.optimize.maxFileSize": str(step.target_bytes),
                f"{_SETTING_PREFIX}.optimize.maxDeletedRowsRatio": str(step.deleted_share),
            }
        with (
            exclusive_session(self._spark, few_rows=step.total.bytes <= _FEW_BYTES) as session,
            mirror_errors(self._lake, path),
            pinned_errors(path, head),
            session_settings(session, settings),
        ):
            session.sql(statement).collect()
        # The commit was bound to `after_version`, so it can only be the next version.
        has_committed = newest_version(path) != after_version
        return after_version + 1 if has_committed else None

    def thin_log(self, folder: str, now: datetime, *, delete: bool) -> FileTotal:
        """Delete the checkpoints that `checkpoints_to_delete` names, if `delete` is
        true; return their number and bytes. Only checkpoints of one file are considered
        (Delta protocol, "Checkpoints"). delta-rs' `cleanup_metadata` is not used,
        because it deletes no checkpoint before the log's retention time has passed."""
        log = self._lake / folder / "_delta_log"
        with lake_errors(log.parent):
            checkpoints = [
                Checkpoint(
                    int(match[1]), datetime.fromtimestamp(facts.st_mtime, UTC), facts.st_size
                )
                for file, facts in files_below(log).items()
                if (match := _CHECKPOINT.fullmatch(file)) is not None
            ]
            replaced = checkpoints_to_delete(checkpoints, now)
            if delete:
                for checkpoint in replaced:
                    name = f"{checkpoint.version:020d}.checkpoint.parquet"
                    (log / name).unlink(missing_ok=True)
                    (log / f".{name}.crc").unlink(missing_ok=True)
        return FileTotal.of([checkpoint.size for checkpoint in replaced])

    def vacuum(self, mirror: str) -> FileTotal:
        path = self._lake / mirror
        with lake_errors(path):
            files_before = files_below(path)
        hours = f"{self.keep / _HOUR:.6f}"
        settings = {
            # Delta's check guards against a mistyped time; this time is computed.
            f"{_SETTING_PREFIX}.retentionDurationCheck.enabled": "false",
            f"{_SETTING_PREFIX}.vacuum.logging.enabled": "false",
        }
        with (
            exclusive_session(self._spark, few_rows=len(files_before) <= _FEW_FILES) as session,
            mirror_errors(self._lake, path),
            spark_errors(path),
            session_settings(session, settings),
        ):
            session.sql(f"VACUUM delta.{quoted(str(path))} RETAIN {hours} HOURS").collect()
        with lake_errors(path):
            files_after = files_below(path)
        return FileTotal.of(
            [facts.st_size for name, facts in files_before.items() if name not in files_after]
        )


def _deletable_files(path: LakePath, table: DeltaTable, keep: timedelta) -> FileTotal:
    """Return the number and bytes of data files that VACUUM would delete: files that
    were replaced at least `keep` ago, rounded up to hours, and files of that age that
    were never committed."""
    hours = -(-keep // _HOUR)
    names = table.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True)
    files = files_below(path)
    deletable = {unquote(name) for name in names if name.endswith(".parquet")} & files.keys()
    return FileTotal.of([files[name].st_size for name in deletable])
