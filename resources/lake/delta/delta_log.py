"""A Delta table's log, read without Java: the only module that parses commit files.

Format: Delta protocol, sections "Delta Log Entries", "Actions", "Transaction
Identifiers" and "Commit Provenance Information". `pipeline.model.foreign_commits`
judges what commits mean. delta-rs gives the contents of a snapshot: schema, properties,
files and protocol.

Two functions of delta-rs are avoided. `history` numbers commits by counting down, so
all commits before one without a commitInfo, or before a missing file, get a wrong
version. No table is opened for its `version` alone, because that lists all files, which
takes 0.6 ms for a log of one commit and 6 to 16 ms for a thousand. File names give the
version in 0.1 ms, or in two requests to a store, and a run needs the version several
times for each table that it writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lockstep.pipeline.model.lake_commit import (
    STATISTICS_OPERATION,
    FileAction,
    LakeCommit,
    LogSince,
    MetadataChange,
)
from lockstep.pipeline.values.errors import ForeignCommit
from lockstep.resources.lake.delta.columns import schema_of
from lockstep.resources.lake.store.paths import LakePath, ObjectPath
from lockstep.resources.lake.store.storage import delta_table, lake_errors, raise_storage_failure

LEDGER_BEHIND_HINT = (
    "restore ledger and lake from the same moment; `lockstep recover` goes on with this ledger; "
    "without `--yes` it only shows what it would do"
)
"""The hint if the lake has commits that the ledger does not know."""

_COMMIT_NAME = re.compile(r"(\d{20})\.json")
_ACTION_KIND = re.compile(r'\s*\{\s*"(\w+)"')
_MOST_PROBES = 200
"""Most file names that are tried before the folder is listed."""


def newest_version(path: LakePath) -> int | None:
    """Return the newest Delta version in a table's folder; None if there is no table.
    In a file system, commit files are looked up by name, beginning with the version of
    the newest checkpoint. A store lists the names after that version in one request.
    The whole folder is listed only if this finds no commit."""
    with lake_errors(path):
        version = _checkpoint_version(path) or 0
        if isinstance(path, ObjectPath):
            listing = (path / "_delta_log").rglob(after=f"{version:020d}")
            newest = max(_commit_versions(entry.name for entry in listing), default=None)
            if newest is not None or not version:
                return newest
        elif commit_file(path, version).is_file():
            for _ in range(_MOST_PROBES):
                if not commit_file(path, version + 1).is_file():
                    return version
                version += 1
        try:
            names = [entry.name for entry in (path / "_delta_log").iterdir()]
        except FileNotFoundError:
            return None
    return max(_commit_versions(names), default=None)


def is_newest_version(path: LakePath, version: int) -> bool:
    """Return whether a version is the table's newest one: its commit file exists, and
    that of the next version does not."""
    with lake_errors(path):
        exists = commit_file(path, version).is_file()
        return exists and not commit_file(path, version + 1).is_file()


def commit_file(path: LakePath, version: int) -> LakePath:
    return path / "_delta_log" / f"{version:020d}.json"


def commit_content(path: LakePath, version: int) -> bytes | None:
    """Return the content of a commit file; None if it is missing."""
    try:
        return commit_file(path, version).read_bytes()
    except FileNotFoundError:
        return None


def actions(commit_text: str, *kinds: str) -> Iterator[tuple[str, Any]]:
    """Yield the kind and the content of each action in a commit file, in order; with
    `kinds`, only actions of these kinds."""
    # `splitlines` would also split inside a text with U+2028 or U+0085, which JSON does
    # not escape.
    for line in filter(str.strip, commit_text.split("\n")):
        kind = _ACTION_KIND.match(line) if kinds else None
        if kind is None or kind[1] in kinds:
            yield from json.loads(line).items()


def read_commit(path: LakePath, version: int, *kinds: str) -> LakeCommit | None:
    """Return a commit; None if its file is missing. With `kinds`, only actions of these
    kinds are read, and fields that come from other actions are empty."""
    with lake_errors(commit_file(path, version)):
        content = commit_content(path, version)
        return None if content is None else _parse_commit(version, content.decode(), kinds)


def log_since(path: LakePath, version: int) -> LogSince:
    """Return the commits after a version (-1: all commits), and the commit of that
    version."""
    base = read_commit(path, version) if version >= 0 else None
    commits: list[LakeCommit] = []
    while (commit := read_commit(path, version + 1 + len(commits))) is not None:
        commits.append(_with_facts_to_judge(path, commit))
    last_version = version + len(commits)
    if not commits and base is None:
        # The log ends before this version, its files were cleaned up, or there is no log.
        newest = newest_version(path)
        missing_version = version + 1 if newest is not None and newest > version else None
        return LogSince(newest, None, (), missing_version)
    with lake_errors(path):
        checkpoint_version = _checkpoint_version(path)
    missing_version = (
        last_version + 1
        if checkpoint_version is not None and checkpoint_version > last_version
        else None
    )
    newest = last_version if missing_version is None else newest_version(path)
    return LogSince(newest, base, tuple(commits), missing_version)


def commits_newest_first(path: LakePath) -> Iterator[LakeCommit]:
    """Yield the log's commits, newest first, as far back as its files go."""
    return (
        _with_facts_to_judge(path, commit)
        for commit in _read_newest_first(path, newest_version(path))
    )


def metadata_since(path: LakePath, version: int) -> Iterator[tuple[int, str]]:
    """Yield the Delta version and the userMetadata of each commit after a version,
    oldest first. Commits without userMetadata, or whose file is missing, are left
    out."""
    newest = newest_version(path)
    for log_version in range(version + 1, 0 if newest is None else newest + 1):
        commit = read_commit(path, log_version, "commitInfo")
        if commit is not None and commit.user_metadata is not None:
            yield log_version, commit.user_metadata


def find_commit(
    path: LakePath, snapshot: DeltaTable, app_id: str, txn_version: int
) -> LakeCommit | None:
    """Return the commit that recorded the application transaction (app_id,
    txn_version), without its files; None if there is none. `snapshot`: the table's
    newest version.

    Raise `ForeignCommit` if the table recorded a higher transaction of this
    application, but not this one: Delta would silently skip a write with it.
    """
    newest_txn_version = snapshot.transaction_version(app_id)
    if newest_txn_version is None or newest_txn_version < txn_version:
        return None
    for commit in _read_newest_first(path, snapshot.version(), "txn", "commitInfo"):
        recorded_version = commit.transactions.get(app_id)
        if recorded_version == txn_version:
            return commit
        if recorded_version is not None and recorded_version < txn_version:
            break  # an application's transactions ascend: an older commit has a lower one
    raise ForeignCommit(
        f"{path} recorded transaction {newest_txn_version} of {app_id}, and its log does not show "
        f"transaction {txn_version}",
        hint=LEDGER_BEHIND_HINT,
    )


def _checkpoint_version(path: LakePath) -> int | None:
    """Return the version of the newest checkpoint (protocol, "Last Checkpoint File")."""
    try:
        text = (path / "_delta_log" / "_last_checkpoint").read_text(encoding="utf-8")
        return int(json.loads(text)["version"])
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None


def _commit_versions(names: Iterable[str]) -> list[int]:
    return [int(match[1]) for name in names if (match := _COMMIT_NAME.fullmatch(name))]


def _read_newest_first(path: LakePath, newest: int | None, *kinds: str) -> Iterator[LakeCommit]:
    """Yield commits from the version `newest` down to the first one whose file is
    missing."""
    version = -1 if newest is None else newest
    while version >= 0 and (commit := read_commit(path, version, *kinds)) is not None:
        yield commit
        version -= 1


def _parse_commit(version: int, text: str, kinds: Iterable[str]) -> LakeCommit:
    info: Mapping[str, Any] = {}
    transactions: dict[str, int] = {}
    adds, removes = [], []
    metadata_change = None
    for kind, action in actions(text, *kinds):
        match kind:
            case "commitInfo":
                info = action
            case "txn":
                transactions[action["appId"]] = int(action["version"])
            case "add":
                adds.append(_file_action(action))
            case "remove":
                removes.append(_file_action(action))
            case "metaData" | "protocol" | "domainMetadata":
                metadata_change = MetadataChange(None)
    milliseconds = info.get("inCommitTimestamp", info.get("timestamp"))
    committed_at = (
        None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
    )
    return LakeCommit(
        version,
        operation=str(info.get("operation", "")),
        committed_at=committed_at,
        user_metadata=info.get("userMetadata"),
        transactions=transactions,
        adds=tuple(adds),
        removes=tuple(removes),
        metadata_change=metadata_change,
    )


def _file_action(action: Mapping[str, Any]) -> FileAction:
    deleted_rows = int((action.get("deletionVector") or {}).get("cardinality", 0))
    try:
        total = json.loads(action.get("stats") or "{}").get("numRecords")
    except ValueError:
        total = None
    row_count = None if total is None else int(total) - deleted_rows
    is_data_change = bool(action.get("dataChange", True))
    return FileAction(action["path"], row_count, is_data_change, deleted_rows, action.get("size"))


def _with_facts_to_judge(path: LakePath, commit: LakeCommit) -> LakeCommit:
    """Return a commit with the facts by which `pipeline.model.foreign_commits` judges
    whether it changed rows: the changes of columns and properties, and the rows of
    removed files. Of Lockstep's own commits, only those of upkeep are judged."""
    if commit.is_ours and commit.copied_version is None:
        return commit
    if commit.metadata_change is not None:
        commit = replace(commit, metadata_change=_metadata_change(path, commit.delta_version))
    if (
        any(remove.row_count is None for remove in commit.removes)
        or commit.operation == STATISTICS_OPERATION
    ):
        rows_before = _rows_before(path, commit.delta_version)
        removes = [_with_row_count(remove, rows_before) for remove in commit.removes]
        if commit.operation == STATISTICS_OPERATION:
            # It adds present files again, with other statistics.
            removes += [
                _with_row_count(add, rows_before) for add in commit.adds if add.path in rows_before
            ]
        commit = replace(commit, removes=tuple(removes))
    return commit


def _with_row_count(file: FileAction, rows_before: Mapping[str, int]) -> FileAction:
    """Return a file with the number of its rows. A `remove` that delta-rs writes has no
    such number."""
    if file.row_count is not None or file.path not in rows_before:
        return file
    return replace(file, row_count=rows_before[file.path] - file.deleted_rows)


def _rows_before(path: LakePath, version: int) -> Mapping[str, int]:
    """Return the number of rows of each file that the table had before a version,
    deleted rows included; no files if that is unknown."""
    if version == 0:
        return {}
    try:
        files = delta_table(path, version - 1).get_add_actions(flatten=True)
        counts = pa.table(files).select(["path", "num_records"]).to_pylist()
    except (DeltaError, OSError, pa.ArrowException, KeyError) as error:
        raise_storage_failure(path, error)
        return {}
    return {row["path"]: row["num_records"] for row in counts if row["num_records"] is not None}


def _metadata_change(path: LakePath, version: int) -> MetadataChange:
    """Return whether a version changed the table's columns, and which properties it
    changed; `MetadataChange(None)` if that is unknown."""
    if version == 0:
        return MetadataChange(None)
    try:
        earlier, later = delta_table(path, version - 1), delta_table(path, version)
        has_changed_columns = schema_of(earlier) != schema_of(later)
    except (DeltaError, OSError) as error:
        raise_storage_failure(path, error)
        return MetadataChange(None)
    before, after = earlier.metadata().configuration, later.metadata().configuration
    changed_names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    return MetadataChange(has_changed_columns, tuple(sorted(changed_names)))
