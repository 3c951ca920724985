"""A Delta table's log, read without Java: the only module that reads the actions of
commit files.

Format: Delta protocol, sections "Delta Log Entries", "Actions", "Transaction
Identifiers", "Commit Provenance Information" and "Version Checksum File".
`pipeline.model.foreign_commits` judges what commits mean. delta-rs gives the contents
of a snapshot: schema, properties, files and protocol.

Two functions of delta-rs are not used. `history` numbers commits by counting down, so
all commits before one without a commitInfo, or before a missing file, get a wrong
version. `version` opens the table and lists all files, which takes 0.6 ms for a log of
one commit and 6 to 16 ms for a thousand. File names tell the version in 0.1 ms, or in
two requests to a store, and a run needs the version several times for each table that
it writes.

A checksum file beside a commit repeats the files and properties that the table has
after the commit. Spark writes checksum files and trusts them instead of reading the
log. In a log that was cut or restored by hand, a checksum file can belong to a commit
that is gone, so each is compared with its commit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lockstep.pipeline.model.lake_commit import (
    STATISTICS_OPERATION,
    FileAction,
    LakeCommit,
    LogAbove,
    MetadataChange,
)
from lockstep.pipeline.values.errors import ForeignCommit, LakeUnavailable
from lockstep.resources.lake.delta.columns import mirror_schema
from lockstep.resources.lake.store.paths import LakePath, ObjectPath
from lockstep.resources.lake.store.storage import delta_table, lake_errors

_COMMIT = re.compile(r"(\d{20})\.json")
_STEPS = 200
"""Most file names that are tried before the folder is listed."""


def newest_version(table: LakePath) -> int | None:
    """Return the newest Delta version in a table's folder; None if there is no table.
    In a file system, commit files are looked up by name, beginning with the version of
    the newest checkpoint. A store lists the names after that version in one request.
    The whole folder is listed only if this finds no commit."""
    with lake_errors(table):
        version = _checkpointed(table) or 0
        if isinstance(table, ObjectPath):
            since = (table / "_delta_log").from_name(f"{version:020d}")
            newest = max(_numbered(path.name for path in since), default=None)
            if newest is not None or not version:
                return newest
        elif commit_file(table, version).is_file():
            for _ in range(_STEPS):
                if not commit_file(table, version + 1).is_file():
                    return version
                version += 1
        try:
            names = [entry.name for entry in (table / "_delta_log").iterdir()]
        except FileNotFoundError:
            return None
    return max(_numbered(names), default=None)


def ends_at(table: LakePath, version: int) -> bool:
    """Return whether a version is the table's newest one: its commit file exists, and
    that of the next version does not."""
    with lake_errors(table):
        exists = commit_file(table, version).is_file()
        return exists and not commit_file(table, version + 1).is_file()


def commit_file(table: LakePath, version: int) -> LakePath:
    return table / "_delta_log" / f"{version:020d}.json"


def actions(commit: str, *kinds: str) -> Iterator[tuple[str, Any]]:
    """Yield the kind and the content of each action in a commit file, in order; with
    `kinds`, only actions of these kinds."""
    begins = tuple(f'{{"{kind}"' for kind in kinds)
    for line in commit.splitlines():
        if line and (not kinds or line.startswith(begins)):
            yield from json.loads(line).items()


def read_commit(table: LakePath, version: int, *kinds: str) -> LakeCommit | None:
    """Return a commit; None if its file is missing. With `kinds`, only actions of these
    kinds are read, and fields that come from other actions are empty."""
    with lake_errors(commit_file(table, version)):
        commit = _commit(table, version)
    return None if commit is None else _parsed(version, commit.decode(), kinds)


def look(table: LakePath, above: int) -> LogAbove:
    """Return the commits after a version (-1: all commits), and the commit of that
    version."""
    base = read_commit(table, above) if above >= 0 else None
    commits: list[LakeCommit] = []
    while (commit := read_commit(table, above + 1 + len(commits))) is not None:
        commits.append(_judgeable(table, commit))
    last = above + len(commits)
    if not commits and base is None:
        # No such files: the log ends earlier, was cleaned up, or there is none.
        newest = newest_version(table)
        missing = above + 1 if newest is not None and newest > above else None
        return LogAbove(newest, None, (), missing)
    checkpoint = _checkpointed(table)
    missing = last + 1 if checkpoint is not None and checkpoint > last else None
    newest = last if missing is None else newest_version(table)
    return LogAbove(newest, base, tuple(commits), missing)


def commits_back(table: LakePath) -> Iterator[LakeCommit]:
    """Yield the log's commits, newest first, as far back as its files go."""
    return (_judgeable(table, commit) for commit in _back(table, newest_version(table)))


def metadata_since(table: LakePath, version: int) -> Iterator[tuple[int, str]]:
    """Yield the Delta version and the userMetadata of each commit after a version,
    oldest first. Commits without userMetadata, or whose file is missing, are left
    out."""
    newest = newest_version(table)
    for number in range(version + 1, 0 if newest is None else newest + 1):
        commit = read_commit(table, number, "commitInfo")
        if commit is not None and commit.user_metadata is not None:
            yield number, commit.user_metadata


def recorded(
    table: LakePath, snapshot: DeltaTable, app_id: str, txn_version: int
) -> LakeCommit | None:
    """Return the commit that recorded the application transaction (app_id,
    txn_version), without its files; None if there is none. `snapshot`: the table's
    newest version.

    Raise `ForeignCommit` if the table recorded a higher transaction of this
    application, but not this one: Delta would silently skip a write with it.
    """
    latest = snapshot.transaction_version(app_id)
    if latest is None or latest < txn_version:
        return None
    for commit in _back(table, snapshot.version(), "txn", "commitInfo"):
        number = commit.transactions.get(app_id)
        if number == txn_version:
            return commit
        if number is not None and number < txn_version:
            break  # an application's transactions ascend: an older commit has a lower one
    raise ForeignCommit(
        f"{table} recorded transaction {latest} of {app_id}, and its log does not show "
        f"transaction {txn_version}",
        hint="restore ledger and lake from the same moment; `lockstep recover` goes "
        "on with this ledger; without `--yes` it only shows what it would do",
    )


def _checkpointed(table: LakePath) -> int | None:
    """Return the version of the newest checkpoint (protocol, "Last Checkpoint File")."""
    try:
        text = (table / "_delta_log" / "_last_checkpoint").read_text(encoding="utf-8")
        return int(json.loads(text)["version"])
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None


def _numbered(names: Iterable[str]) -> list[int]:
    return [int(match[1]) for name in names if (match := _COMMIT.fullmatch(name))]


def _back(table: LakePath, newest: int | None, *kinds: str) -> Iterator[LakeCommit]:
    """Yield commits from the version `newest` down to the first one whose file is
    missing."""
    version = -1 if newest is None else newest
    while version >= 0 and (commit := read_commit(table, version, *kinds)) is not None:
        yield commit
        version -= 1


def _parsed(version: int, text: str, kinds: Iterable[str]) -> LakeCommit:
    info: Mapping[str, Any] = {}
    transactions: dict[str, int] = {}
    adds, removes = [], []
    altered = None
    for kind, action in actions(text, *kinds):
        match kind:
            case "commitInfo":
                info = action
            case "txn":
                transactions[action["appId"]] = int(action["version"])
            case "add":
                adds.append(_file(action))
            case "remove":
                removes.append(_file(action))
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
        metadata_change=altered,
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
    """Return a commit with the facts by which `pipeline.model.foreign_commits` judges
    whether it changed rows: the changes of columns and properties, and the rows of
    removed files. Only commits of other writers and of upkeep are judged."""
    if commit.is_ours and commit.repeated_version is None:
        return commit
    if commit.metadata_change is not None:
        commit = replace(commit, metadata_change=_altered(table, commit.delta_version))
    if (
        any(remove.row_count is None for remove in commit.removes)
        or commit.operation == STATISTICS_OPERATION
    ):
        before = _rows_before(table, commit.delta_version)
        removes = [_counted(remove, before) for remove in commit.removes]
        if commit.operation == STATISTICS_OPERATION:
            # It adds present files again, with other statistics.
            removes += [_counted(add, before) for add in commit.adds if add.path in before]
        commit = replace(commit, removes=tuple(removes))
    return commit


def _counted(file: FileAction, before: Mapping[str, int]) -> FileAction:
    """Return a file with the number of its rows. A `remove` that delta-rs writes has no
    such number."""
    if file.row_count is not None or file.path not in before:
        return file
    return replace(file, row_count=before[file.path] - file.deleted_rows)


def _rows_before(table: LakePath, version: int) -> Mapping[str, int]:
    """Return the rows of each file that the table had before a version, deleted rows
    included."""
    if version == 0:
        return {}
    try:
        with lake_errors(table):
            files = delta_table(table, version - 1).get_add_actions(flatten=True)
        counts = pa.table(files).select(["path", "num_records"]).to_pylist()
    except (DeltaError, LakeUnavailable, OSError, pa.ArrowException, KeyError):
        return {}
    return {row["path"]: row["num_records"] for row in counts if row["num_records"] is not None}


def _altered(table: LakePath, version: int) -> MetadataChange:
    """Return whether a version changed the table's columns (None if that is unknown),
    and the properties that it changed."""
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


FAR: Final = 50
"""Most commits that are read, from the newest back, to find what the newest checksum
file lacks."""


def drop_stray_checksum(file: LakePath, commit: bytes) -> None:
    """Delete the checksum file beside a commit's file if it is of another transaction.
    Spark then reads the log."""
    checksum, name = _beside(file), _transaction(commit)
    if checksum is not None and (name is None or checksum.get("txnId") != name):
        file.with_suffix(".crc").unlink(missing_ok=True)


def checksum_of(table: LakePath, version: int) -> Mapping[str, Any]:
    """Return the content of a version's checksum file, with the names of Delta's
    protocol; empty if there is none, or if it belongs to another commit."""
    commit = _commit(table, version)
    return {} if commit is None else _own_beside(commit_file(table, version), commit)


def needs_no_list(
    table: LakePath, version: int, listed: Sequence[Mapping[str, Any]] | None
) -> bool:
    """Return whether Delta should be told not to list the table's files in the checksum
    file of the commit after a version. Delta would run a query for the list if the
    version's checksum file has none. We need no list as long as recent commits tell the
    files. `listed`: the result of `files_listed`."""
    return listed is not None and "allFiles" not in checksum_of(table, version)


def files_listed(table: LakePath, version: int) -> list[Mapping[str, Any]] | None:
    """Return the `add` actions of a version's files (protocol, "Action
    Reconciliation").

    They are taken from the newest checksum file that lists files, and from the commits
    after it. Return None if the last `FAR` commits have no such file. delta-rs is not
    asked, because it does not give the deletion vectors, which Spark needs to remove a
    file.
    """
    files: list[Mapping[str, Any]] = []
    settled: set[tuple[str, str]] = set()
    # From the newest commit back: the newest action of a file decides, older ones are
    # outdated.
    for at in range(version, max(version - FAR, -1), -1):
        commit = _commit(table, at)
        if commit is None:
            return None
        listed = _own_beside(commit_file(table, at), commit).get("allFiles")
        if listed is not None:
            return files + [file for file in listed if file_key(file) not in settled]
        changes = list(actions(commit.decode(), "add", "remove"))
        files += [file for kind, file in changes if kind == "add" and file_key(file) not in settled]
        if at == 0:
            return files
        settled |= {file_key(file) for _, file in changes}
    return None


def file_key(file: Mapping[str, Any]) -> tuple[str, str]:
    """Return the identity of a file in a log: its path and its deletion vector, since
    the same file can be added again with more rows deleted."""
    return file["path"], json.dumps(file.get("deletionVector"), sort_keys=True)


def _commit(table: LakePath, version: int) -> bytes | None:
    try:
        return commit_file(table, version).read_bytes()
    except FileNotFoundError:
        return None


def _own_beside(file: LakePath, commit: bytes) -> dict[str, Any]:
    """Return the content of the checksum file beside a commit's file; empty if there is
    none, or if it belongs to another commit."""
    name, checksum = _transaction(commit), _beside(file) or {}
    return checksum if name is not None and checksum.get("txnId") == name else {}


def _transaction(commit: bytes) -> str | None:
    """Return the id that Delta gave the transaction, `commitInfo.txnId`."""
    for _, info in actions(commit.decode(), "commitInfo"):
        name = info.get("txnId")
        return name if isinstance(name, str) else None
    return None


def _beside(file: LakePath) -> dict[str, Any] | None:
    """Return the content of the checksum file beside a commit's file, of whichever
    transaction; None if there is none. Only a missing file is caught: other errors of
    the storage are raised."""
    try:
        checksum = json.loads(file.with_suffix(".crc").read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return checksum if isinstance(checksum, dict) else {}
