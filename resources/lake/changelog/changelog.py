"""Changelogs: Delta tables with all changes of a table, whose files are the segments
(the Parquet files of row images) themselves.

A commit only adds names of existing files to the table's log, or removes some, by
delta-rs, so it takes milliseconds and moves no data. delta-rs does not refuse an
application transaction that was recorded before, so the recorded transaction is read
first. The commit is made directly after the version that was read; if another writer
commits first, everything is read again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import time

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from lockstep.pipeline.model.lake_commit import (
    LogSince,
    WriteKind,
    has_published,
    is_same_write,
    metadata_of_kind,
)
from lockstep.pipeline.ports.changelog import Published, Restatement, is_revised
from lockstep.pipeline.ports.lease_check import RequireHeld, no_check
from lockstep.pipeline.schema.types import comparable_name
from lockstep.pipeline.values.errors import (
    CommitConflict,
    ForeignCommit,
    LakeUnavailable,
    TableError,
)
from lockstep.pipeline.values.retries import PUBLISH
from lockstep.pipeline.values.segment import SegmentFile
from lockstep.resources.lake.changelog.segments import damage_sentences, refuse_damaged
from lockstep.resources.lake.delta.columns import refuse_other_columns
from lockstep.resources.lake.delta.delta_log import (
    LEDGER_BEHIND_HINT,
    commits_newest_first,
    is_newest_version,
    log_since,
    newest_version,
)
from lockstep.resources.lake.store.answers import CONFLICT_EXPLANATION
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import (
    delta_options,
    first_line,
    lake_errors,
    table_if_exists,
)


class DeltaChangelog:
    """`pipeline.ports.Changelog`, for the changelogs below the folder `lake`, through
    delta-rs."""

    def __init__(self, lake: LakePath) -> None:
        self._lake = lake

    def newest_batch(self, folder: str, app_id: str) -> int | None:
        path = self._lake / folder
        with lake_errors(path):
            table = table_if_exists(path)
            batch: int | None = None if table is None else table.transaction_version(app_id)
        return batch

    def publish(
        self,
        folder: str,
        *,
        app_id: str,
        batch: int,
        schema: pa.Schema,
        files: Sequence[SegmentFile],
        user_metadata: str,
        require_held: RequireHeld = no_check,
    ) -> Published:
        path = self._lake / folder
        commit_properties = _commit_properties(app_id, batch, user_metadata)
        for table in _table_at_each_try(path):
            with lake_errors(path):
                published_version = _published_version(
                    path, table, app_id, batch, files, user_metadata
                )
            if published_version is not None:
                return Published(published_version, was_skipped=True)
            require_held()
            refuse_damaged(path, files)
            with lake_errors(path):
                version = commit_files(path, table, schema, {}, files, commit_properties)
            if version is not None:
                return Published(version, was_skipped=False)
        raise _conflict_error(path, folder, table)

    def is_newest_version(self, folder: str, version: int) -> bool:
        return is_newest_version(self._lake / folder, version)

    def listed_files(self, folder: str) -> dict[str, int] | None:
        path = self._lake / folder
        with lake_errors(path):
            table = table_if_exists(path)
            return None if table is None else _listed_sizes(table)

    def log_since(self, folder: str, version: int) -> LogSince:
        return log_since(self._lake / folder, version)

    def revise(
        self,
        folder: str,
        *,
        app_id: str,
        revision: int,
        schema: pa.Schema,
        removed_paths: Sequence[str],
        files: Sequence[SegmentFile],
        user_metadata: str,
        require_held: RequireHeld = no_check,
    ) -> Published:
        path = self._lake / folder
        commit_properties = _commit_properties(app_id, revision, user_metadata)
        for table in _table_at_each_try(path):
            if table is None:
                raise _missing_table_error(path)
            with lake_errors(path):
                listed_sizes = _listed_sizes(table)
            if is_revised(listed_sizes, removed_paths, files):
                return Published(table.version(), was_skipped=True)
            require_held()
            refuse_damaged(path, files)
            new_paths = {file.path for file in files}
            removed_sizes = {
                path: listed_sizes[path]
                for path in removed_paths
                if path in listed_sizes and path not in new_paths
            }
            new_files = [file for file in files if file.path not in listed_sizes]
            with lake_errors(path):
                version = commit_files(
                    path, table, schema, removed_sizes, new_files, commit_properties
                )
            if version is not None:
                return Published(version, was_skipped=False)
        raise _conflict_error(path, folder, table)

    def restore(
        self,
        folder: str,
        version: int,
        *,
        app_id: str,
        txn_version: int,
        user_metadata: str,
        require_held: RequireHeld = no_check,
    ) -> int:
        path = self._lake / folder
        commit_properties = _commit_properties(app_id, txn_version, user_metadata)
        for table in _table_at_each_try(path):
            require_held()
            if table is None:
                raise _missing_table_error(path)
            with lake_errors(path):
                try:
                    table.restore(
                        version,
                        protocol_downgrade_allowed=True,
                        commit_properties=commit_properties,
                    )
                except CommitFailedError:
                    continue
                except DeltaError as error:
                    raise TableError(
                        f"{folder} cannot be set back to version {version}: "
                        f"{first_line(str(error))}",
                        hint="let only Lockstep write changelogs",
                    ) from error
            return table.version()
        raise _conflict_error(path, folder, table)

    def restate(
        self,
        folder: str,
        *,
        app_id: str,
        batch: int,
        files: Sequence[SegmentFile],
        user_metadata: str,
        require_held: RequireHeld = no_check,
    ) -> Restatement:
        path = self._lake / folder
        commit_properties = _commit_properties(app_id, batch, user_metadata)
        for table in _table_at_each_try(path):
            with lake_errors(path):
                listed_sizes = None if table is None else _listed_sizes(table)
                recorded_batch = None if table is None else table.transaction_version(app_id)
            change = Restatement.between(listed_sizes, files, partial(damage_sentences, path))
            if table is None or listed_sizes is None:
                return change
            if not change.added_files and not change.removed_paths and recorded_batch == batch:
                return replace(change, delta_version=table.version())
            require_held()
            removed_sizes = {path: listed_sizes[path] for path in change.removed_paths}
            with lake_errors(path):
                version = commit_files(
                    path, table, pa.schema([]), removed_sizes, change.added_files, commit_properties
                )
            if version is not None:
                return replace(change, delta_version=version)
        raise _conflict_error(path, folder, table)


def _table_at_each_try(path: LakePath) -> Iterator[DeltaTable | None]:
    """Yield the table, opened again at its newest version for each try of a commit;
    None if there is no table."""
    for _ in PUBLISH.tries():
        with lake_errors(path):
            table = table_if_exists(path)
        yield table


def _conflict_error(
    path: LakePath, folder: str, table: DeltaTable | None
) -> CommitConflict | LakeUnavailable:
    """Return the error for a commit that failed at every try: `CommitConflict` if
    another commit came after the version on which ours was planned, otherwise
    `LakeUnavailable`."""
    with lake_errors(path):
        newest = newest_version(path)
    if newest == (None if table is None else table.version()):
        state, cure = CONFLICT_EXPLANATION
        return LakeUnavailable(f"The lake's storage at {path} {state}", hint=cure)
    return CommitConflict(
        f"Another writer kept committing to the changelog {folder}",
        hint="stop the other writer, because only Lockstep may write changelogs; then run again",
    )


def _missing_table_error(path: LakePath) -> LakeUnavailable:
    return LakeUnavailable(
        f"The changelog at {path} is missing, although the ledger has recorded it",
        hint="mount or restore the lake's folder, then repeat the command",
    )


def _published_version(
    path: LakePath,
    table: DeltaTable | None,
    app_id: str,
    batch: int,
    files: Sequence[SegmentFile],
    user_metadata: str,
) -> int | None:
    """Return the version that published the batch with these files, or None if the
    batch is not published. Raise `ForeignCommit` if the changelog has the batch with other
    files."""
    if table is None:
        return None
    paths = {file.path for file in files}
    newest_batch = table.transaction_version(app_id)
    if newest_batch is None:
        # A table that was captured again has another application id, although the
        # changelog has its batches already.
        is_published = paths and paths <= _listed_sizes(table).keys()
        return table.version() if is_published else None
    if newest_batch < batch:
        return None
    for commit in commits_newest_first(path):
        recorded_batch = commit.transactions.get(app_id)
        if recorded_batch is None or recorded_batch > batch:
            continue
        if recorded_batch < batch:
            break
        added_paths = {file.path for file in commit.adds}
        if is_same_write(commit.user_metadata, user_metadata) and has_published(
            commit.user_metadata, added_paths, paths
        ):
            return commit.delta_version
        raise _other_files_error(path, batch, commit.delta_version)
    # The commit's file was cleaned up: the table must list all files of the batch.
    version: int = table.version()
    if paths <= _listed_sizes(table).keys():
        return version
    raise _other_files_error(path, batch, version)


def _other_files_error(path: LakePath, batch: int, version: int) -> ForeignCommit:
    return ForeignCommit(
        f"version {version} of {path} has batch {batch}, or later ones, with other files than "
        "the ledger's: the ledger is behind its lake",
        hint=LEDGER_BEHIND_HINT,
    )


_PROPERTIES: dict[str, str | None] = {
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 30 days",
}
_PROPERTIES_IN_STORES: dict[str, str | None] = {"delta.checkpointInterval": "10"}
"""Properties of changelogs in an object store, where opening a table takes a request
for each commit since the last checkpoint. By default, delta-rs makes a checkpoint every
hundred commits."""

_FIRST_COMMIT_REFUSED = "Invalid table version"
"""The message of delta-rs if the store refuses the first commit as one that exists
already, and then shows no commit."""


def _commit_properties(app_id: str, batch: int, user_metadata: str) -> CommitProperties:
    return CommitProperties(
        app_transactions=[Transaction(app_id, batch)],
        custom_metadata={"userMetadata": user_metadata},
        max_commit_retries=0,
    )


def _listed_sizes(table: DeltaTable) -> dict[str, int]:
    """Return the size in bytes of each of the table's files, by its path in the log."""
    files = pa.table(table.get_add_actions(flatten=True))
    return dict(zip(files["path"].to_pylist(), files["size_bytes"].to_pylist(), strict=True))


def commit_files(
    path: LakePath,
    table: DeltaTable | None,
    schema: pa.Schema,
    removed_sizes: Mapping[str, int],
    files: Sequence[SegmentFile],
    commit_properties: CommitProperties,
) -> int | None:
    """Add `files` and remove the files `removed_sizes` (path → size in bytes) in one
    commit. Create the table if it is missing; otherwise first add the columns of
    `schema` that it lacks.

    Return the version; None if another commit came first. delta-rs does not check that
    removed files are in the table and that added files are not, so the caller must.
    """
    add_actions = [_add_action(path, file) for file in files]
    try:
        if table is None:
            create_table_with_add_actions(
                str(path),
                Schema.from_arrow(schema),
                add_actions,
                mode="error",
                storage_options=delta_options(path),
                configuration=_PROPERTIES | (_PROPERTIES_IN_STORES if delta_options(path) else {}),
                commit_properties=commit_properties,
            )
            return 0
        _add_columns(table, schema, commit_properties.custom_metadata or {})
        refuse_other_columns(table, schema, refuse_missing=False)
        actions: list[AddAction | RemoveAction] = [*_remove_actions(removed_sizes), *add_actions]
        # The commit directly follows the version at which the table was opened, because
        # delta-rs makes no second try. The newest version may already be another
        # writer's.
        version = int(table.version()) + 1
        table.create_write_transaction(
            actions, "append", table.schema(), commit_properties=commit_properties
        )
    except CommitFailedError:
        return None
    except DeltaError as error:
        # Another process created the table first, or the store says so.
        if table is None and (
            newest_version(path) is not None or _FIRST_COMMIT_REFUSED in str(error)
        ):
            return None
        raise
    return version


def _add_columns(table: DeltaTable, schema: pa.Schema, metadata: Mapping[str, str]) -> None:
    """Add the columns that the table lacks in a separate commit, because delta-rs
    cannot add columns in a commit with files. If a run ends between the two commits,
    the next run finds the columns, which are NULL until then."""
    present_names = {comparable_name(field.name) for field in table.schema().fields}
    missing_fields = [field for field in schema if comparable_name(field.name) not in present_names]
    if missing_fields:
        user_metadata = metadata.get("userMetadata") or ""
        table.alter.add_columns(
            Schema.from_arrow(pa.schema(missing_fields)).fields,
            commit_properties=CommitProperties(
                custom_metadata={"userMetadata": metadata_of_kind(user_metadata, WriteKind.ALTER)},
                max_commit_retries=0,
            ),
        )


def _add_action(path: LakePath, file: SegmentFile) -> AddAction:
    stat = (path / file.path).stat()
    modified_ms = int(stat.st_mtime * 1000)
    return AddAction(
        path=file.path,
        size=stat.st_size,
        partition_values={},
        modification_time=modified_ms,
        data_change=True,
        # The rows of a file that no ledger recorded were never counted.
        stats=json.dumps({"numRecords": file.images} if file.sha256 else {}),
    )


def _remove_actions(sizes: Mapping[str, int]) -> list[RemoveAction]:
    now_ms = int(time() * 1000)
    return [
        RemoveAction(
            path, data_change=True, deletion_timestamp=now_ms, size=size, partition_values={}
        )
        for path, size in sizes.items()
    ]
