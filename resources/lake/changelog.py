"""Changelogs: append-only Delta tables whose files are the segments themselves.

delta-rs alone writes them, and only metadata: a commit takes milliseconds and moves no
data. delta-rs skips nothing by itself (a repeated or lower application transaction is
committed), so the recorded version is read first. Its commit is put if absent directly behind
the version that was read: whoever comes late finds that one taken, and reads again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from time import time

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from pipeline.errors import CommitConflict, ForeignCommit, LakeUnavailable, TableError
from pipeline.lake_commit import LogAbove, WriteKind, restamped, same_files, same_write
from pipeline.ports.changelog import Published, Restated, is_revised
from pipeline.ports.held import Held, unasked
from pipeline.retries import PUBLISH
from pipeline.schema.column_names import folded
from pipeline.segment import SegmentFile
from resources.lake.columns import refuse_other_columns
from resources.lake.delta_log import commits_back, ends_at, look, newest_version
from resources.lake.paths import LakePath
from resources.lake.segments import damaged_files, refuse_damaged
from resources.lake.storage import delta_options, first_line, lake_errors, opened_table
from resources.lake.store_answers import TAKEN


class DeltaChangelog:
    """`pipeline.ports.Changelog` through delta-rs."""

    def __init__(self, lake: LakePath) -> None:
        self._lake = lake

    def recorded(self, folder: str, app_id: str) -> int | None:
        path = self._lake / folder
        with lake_errors(path):
            table = opened_table(path)
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

        def published(table: DeltaTable | None) -> int | None:
            if table is None:
                return None
            newest = table.transaction_version(app_id)
            if newest is None:
                # A table that begins anew has another application; its batches are there.
                listed = _listed_files(table)
                there = files and all(file.path in listed for file in files)
                return table.version() if there else None
            if newest < batch:
                return None
            return _published_before(path, table, app_id, batch, files, user_metadata)

        commit = _commit_words(app_id, batch, user_metadata)

        def made(table: DeltaTable | None) -> int | None:
            refuse_damaged(path, files)
            with lake_errors(path):
                return commit_files(path, table, schema, {}, files, commit)

        return self._published(folder, published, made, held)

    def _published(
        self,
        folder: str,
        before: Callable[[DeltaTable | None], int | None],
        made: Callable[[DeltaTable | None], int | None],
        held: Held,
    ) -> Published:
        """Make a commit once, behind the newest one. Both give its version: `before` that of an
        earlier try, None where there was none, `made` None where another commit came first."""
        path = self._lake / folder
        for _ in PUBLISH.tries():
            with lake_errors(path):
                table = opened_table(path)
                earlier = before(table)
            if earlier is not None:
                return Published(earlier, skipped=True)
            held()
            version = made(table)
            if version is not None:
                return Published(version, skipped=False)
        raise _conflict(path, folder, table)

    def ends_at(self, folder: str, version: int) -> bool:
        return ends_at(self._lake / folder, version)

    def listed(self, folder: str) -> dict[str, int] | None:
        path = self._lake / folder
        with lake_errors(path):
            table = opened_table(path)
            return None if table is None else _listed_files(table)

    def look(self, folder: str, above: int) -> LogAbove:
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
        commit = _commit_words(app_id, revision, words)

        def revised(table: DeltaTable | None) -> int | None:
            if table is None:
                raise _no_table(path)
            return table.version() if is_revised(_listed_files(table), gone, files) else None

        def made(table: DeltaTable | None) -> int | None:
            refuse_damaged(path, files)
            names = {file.path for file in files}
            with lake_errors(path):
                listed = {} if table is None else _listed_files(table)
                going = [name for name in gone if name in listed and name not in names]
                removed = {name: listed[name] for name in going}
                added = [file for file in files if file.path not in listed]
                return commit_files(path, table, schema, removed, added, commit)

        return self._published(folder, revised, made, held)

    def restore(
        self,
        folder: str,
        version: int,
        *,
        app_id: str,
        number: int,
        words: str,
        held: Held = unasked,
    ) -> int:
        path = self._lake / folder
        commit = _commit_words(app_id, number, words)

        def made(table: DeltaTable | None) -> int | None:
            if table is None:
                raise _no_table(path)
            try:
                table.restore(version, protocol_downgrade_allowed=True, commit_properties=commit)
            except CommitFailedError:
                return None
            except DeltaError as error:
                raise TableError(
                    f"{folder} cannot show version {version} again: {first_line(str(error))}",
                    hint="only Lockstep may write changelogs",
                ) from error
            return table.version()

        return self._published(folder, lambda _: None, made, held).delta_version

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
            table = opened_table(path)
        if table is None:
            return Restated(None, lost=tuple(file.path for file in files))
        with lake_errors(path):
            listed = _listed_files(table)
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
        commit = _commit_words(app_id, batch, words)
        with lake_errors(path):
            actions: list[AddAction | RemoveAction] = [_add_action(path, file) for file in back]
            actions += _remove_actions(gone)
            try:
                made = _commit(table, table.schema(), actions, commit)
            except CommitFailedError as error:
                raise _conflict(path, folder, table) from error
        return Restated(made, len(gone), len(back), tuple(sorted(lost)))


def _conflict(
    path: LakePath, folder: str, table: DeltaTable | None
) -> CommitConflict | LakeUnavailable:
    """Another's commit is there to be seen, above the one that ours was planned on; where there is
    none, it is the storage that refuses."""
    with lake_errors(path):
        newest = newest_version(path)
    if newest == (None if table is None else table.version()):
        state, cure = TAKEN
        return LakeUnavailable(f"The lake's storage at {path} {state}", hint=cure)
    return CommitConflict(
        f"Others kept committing to the changelog {folder}",
        hint="only Lockstep may write changelogs: stop the other writer, then run again",
    )


def _no_table(path: LakePath) -> LakeUnavailable:
    return LakeUnavailable(
        f"There is no changelog at {path}, and the ledger knows of one",
        hint="mount or restore the lake's folder, then repeat the command",
    )


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
    for commit in commits_back(path):
        number = commit.transactions.get(app_id)
        if number is None or number > batch:
            continue
        if number < batch:
            break
        listed = {file.path for file in commit.adds}
        if same_write(commit.user_metadata, user_metadata) and same_files(
            commit.user_metadata, listed, names
        ):
            return commit.delta_version
        raise _another_batch(path, batch, commit.delta_version)
    # Its commit file has been cleaned up: what the table lists must have all of it.
    version: int = table.version()
    if names <= _listed_files(table).keys():
        return version
    raise _another_batch(path, batch, version)


def _another_batch(path: LakePath, batch: int, version: int) -> ForeignCommit:
    return ForeignCommit(
        f"version {version} of {path} has batch {batch}, or later ones, with other files than "
        "the ledger's: the ledger is behind its lake",
        hint="restore ledger and lake from the same moment; `lockstep recover` goes on "
        "with this ledger; without `--yes` it only shows what it would do",
    )


_CONFIGURATION: dict[str, str | None] = {
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 30 days",
}
_REFUSED = "Invalid table version"
"""delta-rs where the first commit was refused as one that is there, and none is."""

_IN_STORES: dict[str, str | None] = {"delta.checkpointInterval": "10"}
"""Whoever opens a table asks a store for each commit since the last checkpoint; delta-rs makes one
after a hundred by default."""


def _commit_words(app_id: str, batch: int, words: str) -> CommitProperties:
    return CommitProperties(
        app_transactions=[Transaction(app_id, batch)],
        custom_metadata={"userMetadata": words},
        max_commit_retries=0,
    )


def _listed_files(table: DeltaTable) -> dict[str, int]:
    """Path as the log has it → size."""
    found = pa.table(table.get_add_actions(flatten=True))
    if not found.num_rows:
        return {}
    return dict(zip(found["path"].to_pylist(), found["size_bytes"].to_pylist(), strict=True))


def commit_files(
    path: LakePath,
    table: DeltaTable | None,
    schema: pa.Schema,
    removed: Mapping[str, int],
    files: Sequence[SegmentFile],
    commit: CommitProperties,
) -> int | None:
    """Add `files` and take off those that are `removed`, with their sizes, in one commit, in a new
    table where there is none; the table gets the columns of `schema` that it lacks. Return its
    version, None if another commit came first. What goes is in the snapshot at hand, and what comes
    is not: delta-rs checks neither."""
    adds = [_add_action(path, file) for file in files]
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
            return 0
        _add_columns(table, schema, commit.custom_metadata or {})
        refuse_other_columns(table, schema, all_of_them=False)
        actions: list[AddAction | RemoveAction] = [*_remove_actions(removed), *adds]
        return _commit(table, Schema.from_arrow(schema), actions, commit)
    except CommitFailedError:
        return None
    except DeltaError as error:
        # Two creators at once: whoever comes second finds a table that was not there.
        if table is None and (newest_version(path) is not None or _REFUSED in str(error)):
            return None
        raise


def _commit(
    table: DeltaTable,
    schema: Schema,
    actions: list[AddAction | RemoveAction],
    commit: CommitProperties,
) -> int:
    """Make a commit and return its version: without a second try it is the next one or none. The
    newest version may be another's by now."""
    planned_on: int = table.version()
    table.create_write_transaction(actions, "append", schema, commit_properties=commit)
    return planned_on + 1


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


def _add_action(path: LakePath, file: SegmentFile) -> AddAction:
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


def _remove_actions(sizes: Mapping[str, int]) -> list[RemoveAction]:
    moment = int(time() * 1000)
    return [RemoveAction(path, True, moment, size, {}) for path, size in sizes.items()]
