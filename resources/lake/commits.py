"""A Delta commit file as a value, and a table's log above a version.

Format: Delta protocol, sections "Actions" and "Commit Provenance Information". Files are asked
for by name, so that what a look costs are the commits since then, however long the log is.
Belongs here: reading. Does not: what the commits mean (`pipeline.foreign_commits`), which one
recorded a transaction (`delta_log`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from deltalake.exceptions import DeltaError

from pipeline.errors import LakeUnavailable
from pipeline.lake_commit import STATISTICS, FileAction, LakeCommit, LogAbove, MetadataChange
from resources.lake.delta_log import actions, checkpointed, commit_file, newest_version
from resources.lake.paths import LakePath
from resources.lake.scan import mirror_schema
from resources.lake.storage import delta_table, lake_errors


def ends_at(table: LakePath, version: int) -> bool:
    """Whether that is the table's newest version, as far as two file names tell."""
    with lake_errors(table):
        there = commit_file(table, version).is_file()
        return there and not commit_file(table, version + 1).is_file()


def look(table: LakePath, above: int) -> LogAbove:
    """The log above a version (-1: from the beginning), and the commit of that version."""
    base = read_commit(table, above) if above >= 0 else None
    commits = list(_commits(table, above + 1))
    last = commits[-1].delta_version if commits else above
    found = [_judgeable(table, commit) for commit in commits]
    if not commits and base is None:
        # Nothing under these names: the log ends before, was cleaned up, or there is none.
        newest = newest_version(table)
        missing = above + 1 if newest is not None and newest > above else None
        return LogAbove(newest, None, (), missing)
    behind = checkpointed(table)
    missing = last + 1 if behind is not None and behind > last else None
    newest = last if missing is None else newest_version(table)
    return LogAbove(newest, base, tuple(found), missing)


def commits_back(table: LakePath) -> Iterator[LakeCommit]:
    """The log's commits, newest first, as far back as its files go."""
    version = newest_version(table)
    while version is not None and version >= 0:
        commit = read_commit(table, version)
        if commit is None:
            return
        yield _judgeable(table, commit)
        version -= 1


def read_commit(table: LakePath, version: int) -> LakeCommit | None:
    """A commit; None where the log has no file of it."""
    file = commit_file(table, version)
    with lake_errors(file):
        try:
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
    return _parsed(version, text)


def _commits(table: LakePath, first: int) -> Iterator[LakeCommit]:
    version = first
    while (commit := read_commit(table, version)) is not None:
        yield commit
        version += 1


def _parsed(version: int, text: str) -> LakeCommit:
    info: Mapping[str, Any] = {}
    transactions: dict[str, int] = {}
    adds, removes = [], []
    altered = None
    for kind, found in actions(text):
        match kind:
            case "commitInfo":
                info = found
            case "txn":
                transactions[found["appId"]] = int(found["version"])
            case "add":
                adds.append(_file(found))
            case "remove":
                removes.append(_file(found))
            case "metaData" | "protocol" | "domainMetadata":
                altered = MetadataChange(None)
    moment = info.get("inCommitTimestamp", info.get("timestamp"))
    return LakeCommit(
        version,
        operation=str(info.get("operation", "")),
        committed_at=None if moment is None else datetime.fromtimestamp(moment / 1000, UTC),
        user_metadata=info.get("userMetadata"),
        transactions=transactions,
        adds=tuple(adds),
        removes=tuple(removes),
        altered=altered,
    )


def _file(action: Mapping[str, Any]) -> FileAction:
    deleted = int((action.get("deletionVector") or {}).get("cardinality", 0))
    try:
        total = json.loads(action.get("stats") or "{}").get("numRecords")
    except ValueError:
        total = None
    rows = None if total is None else int(total) - deleted
    changes = bool(action.get("dataChange", True))
    return FileAction(action["path"], rows, changes, deleted, action.get("size"))


def _judgeable(table: LakePath, commit: LakeCommit) -> LakeCommit:
    """What tells whether the table is as it was, where that matters."""
    if commit.ours and commit.repeats is None:
        return commit
    return _looked_into(table, commit)


def _looked_into(table: LakePath, commit: LakeCommit) -> LakeCommit:
    """With what is known of the table before and after somebody else's commit."""
    if commit.altered is not None:
        commit = replace(commit, altered=_altered(table, commit.delta_version))
    if any(remove.rows is None for remove in commit.removes) or commit.operation == STATISTICS:
        before = _rows_before(table, commit.delta_version)
        removes = [_counted(remove, before) for remove in commit.removes]
        if commit.operation == STATISTICS:
            # It adds files that are there once more, with other statistics.
            removes += [_counted(add, before) for add in commit.adds if add.path in before]
        commit = replace(commit, removes=tuple(removes))
    return commit


def _counted(file: FileAction, before: Mapping[str, int]) -> FileAction:
    """With its rows, where the table listed it; delta-rs does not repeat them in a removal."""
    if file.rows is not None or file.path not in before:
        return file
    return replace(file, rows=before[file.path] - file.deleted)


def _rows_before(table: LakePath, version: int) -> Mapping[str, int]:
    """Rows of each file that the table listed before a version, deleted ones among them."""
    if version == 0:
        return {}
    try:
        with lake_errors(table):
            found = delta_table(table, version - 1).get_add_actions(flatten=True)
        rows = pa.table(found).select(["path", "num_records"]).to_pylist()
    except (DeltaError, LakeUnavailable, OSError, pa.ArrowException, KeyError):
        return {}
    return {row["path"]: row["num_records"] for row in rows if row["num_records"] is not None}


def _altered(table: LakePath, version: int) -> MetadataChange:
    if version == 0:
        return MetadataChange(None)
    try:
        with lake_errors(table):
            before = delta_table(table, version - 1).metadata().configuration
            after = delta_table(table, version).metadata().configuration
        names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        columns = mirror_schema(table, version - 1) != mirror_schema(table, version)
    except (DeltaError, LakeUnavailable, OSError):
        return MetadataChange(None)
    return MetadataChange(columns, tuple(sorted(names)))
