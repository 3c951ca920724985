"""A Delta table's log, read without Java: the one place that reads the actions of commit files.

Format: Delta protocol, sections "Delta Log Entries", "Actions", "Transaction Identifiers" and
"Commit Provenance Information", "Version Checksum File". What commits mean is
`pipeline.foreign_commits`; for whatever a snapshot tells, delta-rs is asked: schema, properties,
files, protocol.

What delta-rs also tells is read here all the same where its answer is another or too dear. Its
`history` numbers commits by counting down, so that one without a commitInfo, or a file that is
gone, gives all older ones a wrong version. Its `transaction_version` does not say which commit
recorded a transaction. To tell a version, it opens the table and lists all its files: 0.6 ms for a
log of one commit, 6 to 16 ms for one of a thousand, where the names of files tell it in 0.1 ms; a
run asks that several times of each table that it writes, and of a store in two requests.

Checksum files beside commits say which files and properties the table has with each. Spark writes
them and believes them, so that it need not put the log together again; a log that was cut or copied
back by hand may have those of commits that are gone. OSError is not caught where they are read, but
for files that are not there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from deltalake.exceptions import DeltaError

from pipeline.errors import ForeignCommit, LakeUnavailable
from pipeline.lake_commit import STATISTICS, FileAction, LakeCommit, LogAbove, MetadataChange
from resources.lake.columns import mirror_schema
from resources.lake.paths import LakePath, ObjectPath
from resources.lake.storage import delta_table, lake_errors

_COMMIT = re.compile(r"(\d{20})\.json")
_STEPS = 200
"""So many files are asked for one by one before the folder is listed, or the snapshot read."""


def newest_version(table: LakePath) -> int | None:
    """The newest Delta version in a table's folder; None where there is no table.

    From the newest checkpoint on, files are asked for by name; only where that leads nowhere
    is the folder listed. A store lists what is behind the checkpoint in one request.
    """
    with lake_errors(table):
        version = _checkpointed(table) or 0
        if isinstance(table, ObjectPath):
            since = (table / "_delta_log").from_name(f"{version:020d}")
            found = max(_numbered(path.name for path in since), default=None)
            if found is not None or not version:
                return found
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
    """Whether that is the table's newest version, as far as two file names tell."""
    with lake_errors(table):
        there = commit_file(table, version).is_file()
        return there and not commit_file(table, version + 1).is_file()


def commit_file(table: LakePath, version: int) -> LakePath:
    return table / "_delta_log" / f"{version:020d}.json"


def actions(commit: str, *kinds: str) -> Iterator[tuple[str, Any]]:
    """A commit file's actions with their kinds, in order; with `kinds`, only those."""
    begins = tuple(f'{{"{kind}"' for kind in kinds)
    for line in commit.splitlines():
        if line and (not kinds or line.startswith(begins)):
            yield from json.loads(line).items()


def read_commit(table: LakePath, version: int, *kinds: str) -> LakeCommit | None:
    """Return a commit, with all it says or only what actions of some `kinds` say; None where the
    log has no file of it."""
    with lake_errors(commit_file(table, version)):
        commit = _commit(table, version)
    return None if commit is None else _parsed(version, commit.decode(), kinds)


def look(table: LakePath, above: int) -> LogAbove:
    """The log above a version (-1: from the beginning), and the commit of that version."""
    base = read_commit(table, above) if above >= 0 else None
    commits: list[LakeCommit] = []
    while (commit := read_commit(table, above + 1 + len(commits))) is not None:
        commits.append(_judgeable(table, commit))
    last = above + len(commits)
    if not commits and base is None:
        # Nothing under these names: the log ends before, was cleaned up, or there is none.
        newest = newest_version(table)
        missing = above + 1 if newest is not None and newest > above else None
        return LogAbove(newest, None, (), missing)
    behind = _checkpointed(table)
    missing = last + 1 if behind is not None and behind > last else None
    newest = last if missing is None else newest_version(table)
    return LogAbove(newest, base, tuple(commits), missing)


def commits_back(table: LakePath) -> Iterator[LakeCommit]:
    """The log's commits, newest first, as far back as its files go."""
    return (_judgeable(table, commit) for commit in _back(table, newest_version(table)))


def said_since(table: LakePath, version: int) -> Iterator[tuple[int, str]]:
    """(Delta version, userMetadata) of the commits after a version that say something, oldest
    first, as far as the log has files of them."""
    newest = newest_version(table)
    for number in range(version + 1, 0 if newest is None else newest + 1):
        commit = read_commit(table, number, "commitInfo")
        if commit is not None and commit.user_metadata is not None:
            yield number, commit.user_metadata


def recorded(table: LakePath, app_id: str, txn_version: int) -> LakeCommit | None:
    """The commit that recorded (app_id, txn_version), without its files; None if it was never made.

    `ForeignCommit` when the table recorded a higher version of this application and
    none that is ours: a later write would be skipped by Delta without a word.
    """
    newest = newest_version(table)
    reached = 0 if newest is None else newest + 1
    latest: int | None = None
    for commit in _back(table, newest, "txn", "commitInfo"):
        reached = commit.delta_version
        found = commit.transactions.get(app_id)
        if found == txn_version:
            return commit
        if found is not None:
            latest = found if latest is None else latest
            if found < txn_version:
                break  # an application's transactions ascend: an older commit has a lower one
        elif latest is None and newest is not None and newest - reached >= _STEPS:
            break  # nothing of it for long: the snapshot knows
    if latest is None and reached > 0:
        with lake_errors(table):
            latest = delta_table(table).transaction_version(app_id)
    if latest is not None and latest >= txn_version:
        raise ForeignCommit(
            f"{table} recorded transaction {latest} of {app_id}, and its log does not show "
            f"transaction {txn_version}",
            hint="restore ledger and lake from the same moment; `lockstep recover` goes "
            "on with this ledger; without `--yes` it only shows what it would do",
        )
    return None


def table_id(table: LakePath) -> str:
    """Which Delta table that is (`metaData.id`), as its first commit says, since a file is read
    sooner than a table opened; where it was cleaned up, as the snapshot does."""
    with lake_errors(table):
        for _, metadata in actions((_commit(table, 0) or b"").decode(), "metaData"):
            return str(metadata["id"])
        return str(delta_table(table).metadata().id)


def _checkpointed(table: LakePath) -> int | None:
    """The version of the newest checkpoint (protocol, "Last Checkpoint File")."""
    try:
        text = (table / "_delta_log" / "_last_checkpoint").read_text(encoding="utf-8")
        return int(json.loads(text)["version"])
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None


def _numbered(names: Iterable[str]) -> list[int]:
    return [int(match[1]) for name in names if (match := _COMMIT.fullmatch(name))]


def _back(table: LakePath, newest: int | None, *kinds: str) -> Iterator[LakeCommit]:
    version = -1 if newest is None else newest
    while version >= 0 and (commit := read_commit(table, version, *kinds)) is not None:
        yield commit
        version -= 1


def _parsed(version: int, text: str, kinds: Iterable[str]) -> LakeCommit:
    info: Mapping[str, Any] = {}
    transactions: dict[str, int] = {}
    adds, removes = [], []
    altered = None
    for kind, found in actions(text, *kinds):
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
    """With what is known of the table before and after somebody else's commit, or upkeep's, so that
    it can be judged whether the table is as it was."""
    if commit.ours and commit.repeats is None:
        return commit
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


FAR: Final = 50
"""So many commits are read for the list of files that Delta left out of its checksum files."""


def drop_stray_checksum(file: LakePath, commit: bytes) -> None:
    """Delete the checksum file beside a commit's file unless the same transaction wrote it as the
    commit. Without one, Spark reads the log."""
    told, name = _beside(file), _transaction(commit)
    if told is not None and (name is None or told.get("txnId") != name):
        file.with_suffix(".crc").unlink(missing_ok=True)


def checksum_of(table: LakePath, version: int) -> Mapping[str, Any]:
    """What the checksum file of a version says, by its names in Delta's protocol; nothing where
    there is none that belongs to the commit."""
    commit = _commit(table, version)
    return {} if commit is None else _told_beside(commit_file(table, version), commit)


def needs_no_list(
    table: LakePath, version: int, listed: Sequence[Mapping[str, Any]] | None
) -> bool:
    """Whether the commit behind a version may be made without a list of the table's files, for
    which Delta would run a query: the version's checksum file has none, and the log near by tells
    the files all the same (`listed`, of `files_listed`)."""
    return listed is not None and "allFiles" not in checksum_of(table, version)


def files_listed(table: LakePath, version: int) -> list[Mapping[str, Any]] | None:
    """The files of a table with a version, as Delta's protocol says it ("Action Reconciliation"):
    those of the newest checksum file that lists them, and what commits say since. None where that
    is not near."""
    found: list[Mapping[str, Any]] = []
    known: set[tuple[str, str]] = set()
    for at in range(version, max(version - FAR, -1), -1):
        commit = _commit(table, at)
        if commit is None:
            return None
        listed = _told_beside(commit_file(table, at), commit).get("allFiles")
        if listed is not None:
            return found + [file for file in listed if file_key(file) not in known]
        changes = list(actions(commit.decode(), "add", "remove"))
        found += [file for kind, file in changes if kind == "add" and file_key(file) not in known]
        if at == 0:
            return found
        known |= {file_key(file) for _, file in changes}
    return None


def file_key(file: Mapping[str, Any]) -> tuple[str, str]:
    """What tells a file of a log from others: it may be there again with other rows deleted."""
    return file["path"], json.dumps(file.get("deletionVector"), sort_keys=True)


def _commit(table: LakePath, version: int) -> bytes | None:
    try:
        return commit_file(table, version).read_bytes()
    except FileNotFoundError:
        return None


def _told_beside(file: LakePath, commit: bytes) -> dict[str, Any]:
    name, told = _transaction(commit), _beside(file) or {}
    return told if name is not None and told.get("txnId") == name else {}


def _transaction(commit: bytes) -> str | None:
    """The name that Delta gave the transaction, `commitInfo.txnId`."""
    for _, info in actions(commit.decode(), "commitInfo"):
        name = info.get("txnId")
        return name if isinstance(name, str) else None
    return None


def _beside(file: LakePath) -> dict[str, Any] | None:
    """What the file beside a commit's says, whoever wrote it; None where there is none."""
    try:
        found = json.loads(file.with_suffix(".crc").read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
