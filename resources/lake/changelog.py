"""Changelogs: append-only Delta tables whose files are the segments themselves.

delta-rs alone writes them, and only metadata: a commit takes milliseconds and moves no
data. delta-rs skips nothing by itself (a repeated or lower application transaction is
committed), so the recorded version is read first. Its commit is put if absent directly behind
the version that was read: whoever comes late finds that one taken, and reads again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from pipeline.errors import CommitConflict, ForeignCommit, LakeUnavailable, TableError
from pipeline.lake_commit import LogAbove, same_files, same_write
from pipeline.ports.changelog import Published, Restated, is_revised
from pipeline.ports.held import Held, unasked
from pipeline.retries import PUBLISH
from pipeline.segment import SegmentFile
from resources.lake.changelog_commits import (
    add_action,
    commit_files,
    commit_words,
    listed_files,
    now_ms,
    remove_action,
    revise_files,
)
from resources.lake.commits import ends_at, look, read_commit
from resources.lake.delta_log import newest_version, transactions
from resources.lake.paths import LakePath
from resources.lake.segment_checks import damaged_files, refuse_damaged
from resources.lake.storage import delta_table, first_line, lake_errors
from resources.lake.store_answers import TAKEN


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
        commit = commit_words(app_id, batch, user_metadata)
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
                committed = commit_files(path, table, schema, files, commit)
            if committed:
                return Published(_newest(path), skipped=False)
        raise _conflict(path, folder, table)

    def ends_at(self, folder: str, version: int) -> bool:
        return ends_at(self._lake / folder, version)

    def listed(self, folder: str) -> dict[str, int] | None:
        path = self._lake / folder
        with lake_errors(path):
            table = _opened(path)
            return None if table is None else listed_files(table)

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
        commit = commit_words(app_id, revision, words)
        for _ in PUBLISH.tries():
            with lake_errors(path):
                table = _opened(path)
                listed = {} if table is None else listed_files(table)
            if table is None:
                raise _no_table(path)
            if is_revised(listed, gone, files):
                return Published(table.version(), skipped=True)
            held()
            refuse_damaged(path, files)
            with lake_errors(path):
                committed = revise_files(path, table, schema, gone, files, commit)
            if committed:
                return Published(_newest(path), skipped=False)
        raise _conflict(path, folder, table)

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
        commit = commit_words(app_id, number, words)
        for _ in PUBLISH.tries():
            with lake_errors(path):
                table = _opened(path)
            if table is None:
                raise _no_table(path)
            held()
            try:
                table.restore(version, protocol_downgrade_allowed=True, commit_properties=commit)
            except CommitFailedError:
                continue
            except DeltaError as error:
                raise TableError(
                    f"{folder} cannot show version {version} again: {first_line(str(error))}",
                    hint="only Lockstep may write changelogs",
                ) from error
            return _newest(path)
        raise _conflict(path, folder, table)

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
            listed = listed_files(table)
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
        commit = commit_words(app_id, batch, words)
        with lake_errors(path):
            actions: list[AddAction | RemoveAction] = [add_action(path, file) for file in back]
            actions += [remove_action(name, size, now_ms()) for name, size in gone.items()]
            try:
                table.create_write_transaction(
                    actions, "append", table.schema(), commit_properties=commit
                )
            except CommitFailedError as error:
                raise _conflict(path, folder, table) from error
        return Restated(_newest(path), len(gone), len(back), tuple(sorted(lost)))


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


def _lists(table: DeltaTable, files: Sequence[SegmentFile]) -> bool:
    """Whether all of the files, and any, are in the table."""
    listed = listed_files(table)
    return bool(files) and all(file.path in listed for file in files)
