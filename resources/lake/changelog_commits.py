"""One commit of a changelog, by delta-rs: the files it adds and takes away, and what it says.

Belongs here: Delta's actions, and columns that come. Does not: whether a commit is to be made, and
what was committed before (`changelog`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from time import time

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from pipeline.lake_commit import WriteKind, restamped
from pipeline.schema.column_names import folded
from pipeline.segment import SegmentFile
from resources.lake.columns import refuse_other_columns
from resources.lake.delta_log import newest_version
from resources.lake.paths import LakePath
from resources.lake.storage import delta_options

_CONFIGURATION: dict[str, str | None] = {
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 30 days",
}
_REFUSED = "Invalid table version"
"""delta-rs where the first commit was refused as one that is there, and none is."""

_IN_STORES: dict[str, str | None] = {"delta.checkpointInterval": "10"}
"""Whoever opens a table asks a store for each commit since the last checkpoint; delta-rs makes one
after a hundred by default."""


def commit_words(app_id: str, batch: int, words: str) -> CommitProperties:
    return CommitProperties(
        app_transactions=[Transaction(app_id, batch)],
        custom_metadata={"userMetadata": words},
        max_commit_retries=0,
    )


def now_ms() -> int:
    return int(time() * 1000)


def listed_files(table: DeltaTable) -> dict[str, int]:
    """Path as the log has it → size."""
    found = pa.table(table.get_add_actions(flatten=True))
    if not found.num_rows:
        return {}
    return dict(zip(found["path"].to_pylist(), found["size_bytes"].to_pylist(), strict=True))


def remove_action(path: str, size: int, moment: int) -> RemoveAction:
    return RemoveAction(path, True, moment, size, {})


def commit_files(
    path: LakePath,
    table: DeltaTable | None,
    schema: pa.Schema,
    files: Sequence[SegmentFile],
    commit: CommitProperties,
) -> bool:
    """False if another commit came first."""
    adds = [add_action(path, file) for file in files]
    try:
        if table is None:
            create_table_with_add_actions(
                str(path),
                Schema.from_arrow(schema),
                adds,
                mode="error",
                storage_options=delta_options(path),
                configuration=_CONFIGURATION | (_IN_STORES if delta_options(path) else {}),
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
    except DeltaError as error:
        # Two creators at once: whoever comes second finds a table that was not there.
        if table is None and (newest_version(path) is not None or _REFUSED in str(error)):
            return False
        raise
    return True


def revise_files(
    path: LakePath,
    table: DeltaTable,
    schema: pa.Schema,
    gone: Sequence[str],
    files: Sequence[SegmentFile],
    commit: CommitProperties,
) -> bool:
    """False if another commit came first. What goes is in the snapshot at hand, and what comes
    is not: delta-rs checks neither."""
    moment = now_ms()
    try:
        _add_columns(table, schema, commit.custom_metadata or {})
        refuse_other_columns(table, schema, all_of_them=False)
        listed = listed_files(table)
        names = {file.path for file in files}
        actions: list[AddAction | RemoveAction] = [
            remove_action(name, listed[name], moment)
            for name in gone
            if name in listed and name not in names
        ]
        actions += [add_action(path, file) for file in files if file.path not in listed]
        table.create_write_transaction(
            actions, "append", Schema.from_arrow(schema), commit_properties=commit
        )
    except CommitFailedError:
        return False
    return True


def _add_columns(table: DeltaTable, schema: pa.Schema, metadata: Mapping[str, str]) -> None:
    """A commit of its own, since delta-rs makes none of both: a run that ends between the
    two leaves columns that are NULL, and the next one finds them."""
    have = {folded(field.name) for field in table.schema().fields}
    lacking = [field for field in schema if folded(field.name) not in have]
    if lacking:
        said = metadata.get("userMetadata") or ""
        table.alter.add_columns(
            Schema.from_arrow(pa.schema(lacking)).fields,
            commit_properties=CommitProperties(
                custom_metadata={"userMetadata": restamped(said, WriteKind.ALTER)},
                max_commit_retries=0,
            ),
        )


def add_action(path: LakePath, file: SegmentFile) -> AddAction:
    modified = int((path / file.path).stat().st_mtime * 1000)
    return AddAction(
        path=file.path,
        size=file.size,
        partition_values={},
        modification_time=modified,
        data_change=True,
        # Of a file that no ledger knows nobody counted the rows.
        stats=json.dumps({"numRecords": file.images} if file.sha256 else {}),
    )
