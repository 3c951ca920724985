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
from time import time

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from pipeline.errors import CommitConflict, ForeignCommit, LakeUnavailable
from pipeline.lake_commit import Look, WriteKind, restamped, same_files, same_write
from pipeline.ports.changelog import Published, Restated
from pipeline.ports.held import Held, unasked
from pipeline.retries import PUBLISH
from pipeline.segment import SegmentFile
from resources.lake.columns import refuse_other_columns
from resources.lake.commits import ends_at, look, read_commit
from resources.lake.delta_log import newest_version, transactions
from resources.lake.paths import LakePath
from resources.lake.segment_checks import damaged_files, refuse_damaged
from resources.lake.storage import delta_options, delta_table, lake_errors

_CONFIGURATION: dict[str, str | None] = {
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 30 days",
}


_IN_STORES: dict[str, str | None] = {"delta.checkpointInterval": "10"}
"""Whoever opens a table asks a store for each commit since the last checkpoint; delta-rs makes one
after a hundred by default."""


class DeltaChangelog:
    """`pipeline.ports.Changelog` through delta-rs."""

    def __init__(self, lake: LakePath) -> None:
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
        commit = _properties(app_id, batch, user_metadata)
        for _ in PUBLISH.tries():
            with lake_errors(path):
                table = _opened(path)
                newest = None if table is None else table.transaction_version(app_id)
            if table is not None and newest is not None and newest >= batch:
                at = _published_before(path, table, app_id, batch, files, user_metadata)
                return Published(at, skipped=True)
            if table is not None and newest is None and _lists(table, files):
                # A table that begins anew has another application; its batches are there.
                return Published(table.version(), skipped=True)
            held()
            refuse_damaged(path, files)
            with lake_errors(path):
                committed = _commit(path, table, schema, files, commit)
            if committed:
                return Published(_newest(path), skipped=False)
        raise _conflict(folder)

    def ends_at(self, folder: str, version: int) -> bool:
        return ends_at(self._lake / folder, version)

    def listed(self, folder: str) -> dict[str, int] | None:
        path = self._lake / folder
        with lake_errors(path):
            table = _opened(path)
            return None if table is None else _listed(table)

    def look(self, folder: str, above: int) -> Look:
        return look(self._lake / folder, above)

    def revise(
        self,
        folder: str,
        *,
        app_id: str,
        revision: int,
        schema: pa.Schema,
        gone: Sequence[str],
        files: Sequence[SegmentFile],
        words: str,
        held: Held = unasked,
    ) -> Published:
        path = self._lake / folder
        commit = _properties(app_id, revision, words)
        for _ in PUBLISH.tries():
            with lake_errors(path):
                table = _opened(path)
                done = None if table is None else table.transaction_version(app_id)
            if table is None:
                raise _no_table(path)
            if done is not None and done >= revision:
                return Published(table.version(), skipped=True)
            held()
            refuse_damaged(path, files)
            with lake_errors(path):
                committed = _revised(path, table, schema, gone, files, commit)
            if committed:
                return Published(_newest(path), skipped=False)
        raise _conflict(folder)

    def restate(
        self,
        folder: str,
        *,
        app_id: str,
        batch: int,
        files: Sequence[SegmentFile],
        words: str,
        held: Held = unasked,
    ) -> Restated:
        path = self._lake / folder
        with lake_errors(path):
            table = _opened(path)
        if table is None:
            return Restated(None, lost=tuple(file.path for file in files))
        with lake_errors(path):
            listed = _listed(table)
        lacking = [file for file in files if file.path not in listed]
        lost = {file.path for file in lacking if damaged_files(path, [file])}
        back = [file for file in lacking if file.path not in lost]
        wanted = {file.path for file in files}
        gone = {name: size for name, size in listed.items() if name not in wanted}
        with lake_errors(path):
            told = table.transaction_version(app_id)
        if not back and not gone and told == batch:
            return Restated(table.version(), lost=tuple(sorted(lost)))
        held()
        commit = _properties(app_id, batch, words)
        with lake_errors(path):
            actions: list[AddAction | RemoveAction] = [_add(path, file) for file in back]
            actions += [_remove(name, size, _now()) for name, size in gone.items()]
            try:
                table.create_write_transaction(
                    actions, "append", table.schema(), commit_properties=commit
                )
            except CommitFailedError as error:
                raise _conflict(folder) from error
        return Restated(_newest(path), len(gone), len(back), tuple(sorted(lost)))


def _properties(app_id: str, batch: int, words: str) -> CommitProperties:
    return CommitProperties(
        app_transactions=[Transaction(app_id, batch)],
        custom_metadata={"userMetadata": words},
        max_commit_retries=0,
    )


def _conflict(folder: str) -> CommitConflict:
    return CommitConflict(
        f"Others kept committing to the changelog {folder}",
        hint="only Lockstep may write changelogs: stop the other writer, then run again",
    )


def _no_table(path: LakePath) -> LakeUnavailable:
    return LakeUnavailable(
        f"There is no changelog at {path}, and the ledger knows of one",
        hint="mount or restore the lake's folder, then repeat the command",
    )


def _now() -> int:
    return int(time() * 1000)


def _newest(path: LakePath) -> int:
    version = newest_version(path)
    assert version is not None, "there is a table"
    return version


def _opened(path: LakePath) -> DeltaTable | None:
    if newest_version(path) is None:
        return None
    try:
        return delta_table(path)
    except TableNotFoundError:
        return None


def _published_before(
    path: LakePath,
    table: DeltaTable,
    app_id: str,
    batch: int,
    files: Sequence[SegmentFile],
    user_metadata: str,
) -> int:
    """The version at which these files were published, or `ForeignCommit`: a number
    alone does not say that it is the same batch."""
    names = {file.path for file in files}
    for found in transactions(path, app_id):
        if found.txn_version > batch:
            continue
        commit = read_commit(path, found.delta_version)
        if found.txn_version < batch or commit is None:
            break
        listed = {file.path for file in commit.adds}
        if same_write(found.user_metadata, user_metadata) and same_files(
            found.user_metadata, listed, names
        ):
            return found.delta_version
        raise _another_batch(path, batch, found.delta_version)
    # Its commit file has been cleaned up: what the table lists must have all of it.
    if names <= {Path(uri).name for uri in table.file_uris()}:
        return table.version()
    raise _another_batch(path, batch, table.version())


def _another_batch(path: LakePath, batch: int, version: int) -> ForeignCommit:
    return ForeignCommit(
        f"version {version} of {path} has batch {batch}, or later ones, with other files than "
        "the ledger's: the ledger is behind its lake",
        hint="restore ledger and lake from the same moment; `lockstep adopt --reason …` goes on "
        "with this ledger; without `--reason` it only shows what it would do",
    )


def _listed(table: DeltaTable) -> dict[str, int]:
    """Path as the log has it → size."""
    found = pa.table(table.get_add_actions(flatten=True))
    if not found.num_rows:
        return {}
    return dict(zip(found["path"].to_pylist(), found["size_bytes"].to_pylist(), strict=True))


def _lists(table: DeltaTable, files: Sequence[SegmentFile]) -> bool:
    """Whether all of the files, and any, are in the table."""
    listed = _listed(table)
    return bool(files) and all(file.path in listed for file in files)


def _remove(path: str, size: int, moment: int) -> RemoveAction:
    return RemoveAction(path, True, moment, size, {})


def _commit(
    path: LakePath,
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
    except DeltaError:
        # Two creators at once: whoever comes second finds a table that was not there.
        if table is None and newest_version(path) is not None:
            return False
        raise
    return True


def _revised(
    path: LakePath,
    table: DeltaTable,
    schema: pa.Schema,
    gone: Sequence[str],
    files: Sequence[SegmentFile],
    commit: CommitProperties,
) -> bool:
    """False if another commit came first. What goes is in the snapshot at hand, and what comes
    is not: delta-rs checks neither."""
    moment = _now()
    try:
        _add_columns(table, schema, commit.custom_metadata or {})
        refuse_other_columns(table, schema, all_of_them=False)
        listed = _listed(table)
        names = {file.path for file in files}
        actions: list[AddAction | RemoveAction] = [
            _remove(name, listed[name], moment)
            for name in gone
            if name in listed and name not in names
        ]
        actions += [_add(path, file) for file in files if file.path not in listed]
        table.create_write_transaction(
            actions, "append", Schema.from_arrow(schema), commit_properties=commit
        )
    except CommitFailedError:
        return False
    return True


def _add_columns(table: DeltaTable, schema: pa.Schema, metadata: Mapping[str, str]) -> None:
    """A commit of its own, since delta-rs makes none of both: a run that ends between the
    two leaves columns that are NULL, and the next one finds them."""
    have = {field.name.lower() for field in table.schema().fields}
    lacking = [field for field in schema if field.name.lower() not in have]
    if lacking:
        said = metadata.get("userMetadata") or ""
        table.alter.add_columns(
            Schema.from_arrow(pa.schema(lacking)).fields,
            commit_properties=CommitProperties(
                custom_metadata={"userMetadata": restamped(said, WriteKind.ALTER)},
                max_commit_retries=0,
            ),
        )


def _add(path: LakePath, file: SegmentFile) -> AddAction:
    modified = int((path / file.path).stat().st_mtime * 1000)
    return AddAction(
        path=file.path,
        size=file.size,
        partition_values={},
        modification_time=modified,
        data_change=True,
        stats=json.dumps({"numRecords": file.images}),
    )
