"""Changelogs: append-only Delta tables whose files are the segments themselves.

delta-rs alone writes them, and only metadata: a commit takes milliseconds and moves no
data. delta-rs skips nothing by itself (a repeated or lower application transaction is
committed), so the recorded version is read first. Its commit is put if absent directly behind
the version that was read: whoever comes late finds that one taken, and reads again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from pipeline.errors import CommitConflict
from pipeline.ports.changelog import Published
from pipeline.ports.held import Held, unasked
from pipeline.segment import SegmentFile
from resources.lake.columns import refuse_other_columns
from resources.lake.delta_log import newest_version, transactions
from resources.lake.segments import refuse_damaged
from resources.lake.storage import lake_errors

ATTEMPTS = 5
"""Tries against concurrent commits before the conflict is reported."""

_CONFIGURATION: dict[str, str | None] = {
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 30 days",
}


class DeltaChangelog:
    """`pipeline.ports.Changelog` through delta-rs."""

    def __init__(self, lake: Path) -> None:
        self._lake = lake

    def recorded(self, folder: str, app_id: str) -> int | None:
        path = self._lake / folder
        with lake_errors(path):
            table = _opened(path)
            newest: int | None = None if table is None else table.transaction_version(app_id)
        return newest

    def publish(
        self,
        folder: str,
        *,
        app_id: str,
        batch: int,
        schema: pa.Schema,
        files: Sequence[SegmentFile],
        user_metadata: str,
        held: Held = unasked,
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
                newest = None if table is None else table.transaction_version(app_id)
            if newest is not None and newest >= batch:
                return Published(_published_at(path, app_id, batch), skipped=True)
            held()
            refuse_damaged(path, files)
            with lake_errors(path):
                committed = _commit(path, table, schema, files, commit)
            if committed:
                return Published(_published_at(path, app_id, batch), skipped=False)
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


def _published_at(path: Path, app_id: str, batch: int) -> int:
    """The version at which a batch was published; the newest one where an older batch's
    commit file has been cleaned up."""
    for found in transactions(path, app_id):
        if found.txn_version == batch:
            return found.delta_version
    newest = newest_version(path)
    assert newest is not None
    return newest


def _commit(
    path: Path,
    table: DeltaTable | None,
    schema: pa.Schema,
    files: Sequence[SegmentFile],
    commit: CommitProperties,
) -> bool:
    """False if another commit came first."""
    adds = [_add(path, file) for file in files]
    try:
        if table is None:
            create_table_with_add_actions(
                str(path),
                Schema.from_arrow(schema),
                adds,
                mode="error",
                configuration=_CONFIGURATION,
                commit_properties=commit,
            )
        else:
            _add_columns(table, schema, commit.custom_metadata or {})
            refuse_other_columns(table, schema, all_of_them=False)
            actions: list[AddAction | RemoveAction] = [*adds]
            table.create_write_transaction(
                actions, "append", Schema.from_arrow(schema), commit_properties=commit
            )
    except CommitFailedError:
        return False
    except DeltaError:
        # Two creators at once: whoever comes second finds a table that was not there.
        if table is None and newest_version(path) is not None:
            return False
        raise
    return True


def _add_columns(table: DeltaTable, schema: pa.Schema, metadata: Mapping[str, str]) -> None:
    """A commit of its own, since delta-rs makes none of both: a run that ends between the
    two leaves columns that are NULL, and the next one finds them."""
    have = {field.name.lower() for field in table.schema().fields}
    lacking = [field for field in schema if field.name.lower() not in have]
    if lacking:
        table.alter.add_columns(
            Schema.from_arrow(pa.schema(lacking)).fields,
            commit_properties=CommitProperties(
                custom_metadata=dict(metadata), max_commit_retries=0
            ),
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
