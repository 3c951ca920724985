"""Changelogs: append-only Delta tables whose files are the segments themselves.

delta-rs alone writes them, and only metadata: a commit takes milliseconds and moves no
data. delta-rs skips nothing by itself (a repeated or lower application transaction is
committed), so the recorded version is read first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from pipeline.batch import SegmentFile
from pipeline.errors import CommitConflict, TableError
from pipeline.ports import Published
from resources.lake.delta_log import newest_version, transactions
from resources.lake.segments import refuse_damaged
from resources.lake.storage import lake_errors

ATTEMPTS = 5
"""Tries against concurrent commits before the conflict is reported."""

_CONFIGURATION: dict[str, str | None] = {
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 30 days",
}


class LakeChangelog:
    """`pipeline.ports.Changelog` through delta-rs."""

    def __init__(self, lake: Path) -> None:
        self._lake = lake

    def publish(
        self,
        folder: str,
        *,
        app_id: str,
        batch: int,
        schema: pa.Schema,
        files: Sequence[SegmentFile],
        user_metadata: str,
    ) -> Published:
        path = self._lake / folder
        commit = CommitProperties(
            app_transactions=[Transaction(app_id, batch)],
            custom_metadata={"userMetadata": user_metadata},
            max_commit_retries=0,
        )
        for _ in range(ATTEMPTS):
            with lake_errors(path):
                table = _opened(path)
            if table is not None:
                done = _recorded(path, table, app_id, batch)
                if done is not None:
                    return Published(done, skipped=True)
            refuse_damaged(path, files)
            with lake_errors(path):
                version = _commit(path, table, Schema.from_arrow(schema), files, commit)
            if version is not None:
                return Published(version, skipped=False)
        raise CommitConflict(
            f"Others kept committing to the changelog {folder}",
            hint="only Lockstep may write changelogs: stop the other writer, then run again",
        )


def _opened(path: Path) -> DeltaTable | None:
    if newest_version(path) is None:
        return None
    try:
        return DeltaTable(path)
    except TableNotFoundError:
        return None


def _recorded(path: Path, table: DeltaTable, app_id: str, batch: int) -> int | None:
    """The version at which the batch was published, if it was."""
    with lake_errors(path):
        newest = table.transaction_version(app_id)
    if newest is None or newest < batch:
        return None
    for found in transactions(path, app_id):
        if found.txn_version == batch:
            return found.delta_version
    return int(table.version())


def _commit(
    path: Path,
    table: DeltaTable | None,
    schema: Schema,
    files: Sequence[SegmentFile],
    commit: CommitProperties,
) -> int | None:
    """The new version; None if another commit came first."""
    adds = [_add(path, file) for file in files]
    try:
        if table is None:
            create_table_with_add_actions(
                str(path),
                schema,
                adds,
                mode="error",
                configuration=_CONFIGURATION,
                commit_properties=commit,
            )
            return 0
        _refuse_other_columns(table.schema(), schema)
        actions: list[AddAction | RemoveAction] = [*adds]
        table.create_write_transaction(actions, "append", schema, commit_properties=commit)
        return int(table.version())
    except CommitFailedError:
        return None
    except DeltaError:
        # Two creators at once: whoever comes second finds a table that was not there.
        if table is None and newest_version(path) is not None:
            return None
        raise


def _refuse_other_columns(have: Schema, given: Schema) -> None:
    known = {field.name: field.type for field in have.fields}
    for field in given.fields:
        if known.get(field.name) != field.type:
            raise TableError(
                f"column {field.name!r} is not in the changelog, or has another type there",
                hint="the table's structure changed: give the table a new generation",
            )


def _add(path: Path, file: SegmentFile) -> AddAction:
    modified = int((path / file.path).stat().st_mtime * 1000)
    return AddAction(
        path=file.path,
        size=file.size,
        partition_values={},
        modification_time=modified,
        data_change=True,
        stats=json.dumps({"numRecords": file.images}),
    )
