"""Reading a Delta table's log without Java: which commit recorded a transaction.

Format: Delta protocol, sections "Delta Log Entries", "Transaction Identifiers" and
"Commit Provenance Information". Only commit files are parsed; where they have been
cleaned up, delta-rs answers from the checkpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pipeline.errors import ForeignCommit
from resources.lake.paths import LakePath, ObjectPath
from resources.lake.storage import delta_table, lake_errors

_COMMIT = re.compile(r"(\d{20})\.json")
_STEPS = 200
"""So many files are asked for one by one before the folder is listed, or the snapshot read."""


@dataclass(frozen=True, slots=True)
class LoggedTransaction:
    """A commit that recorded an application's transaction."""

    delta_version: int
    txn_version: int
    user_metadata: str | None


def newest_version(table: LakePath) -> int | None:
    """The newest Delta version in a table's folder; None where there is no table.

    From the newest checkpoint on, files are asked for by name; only where that leads nowhere
    is the folder listed. A store lists what is behind the checkpoint in one request.
    """
    with lake_errors(table):
        version = checkpointed(table) or 0
        if isinstance(table, ObjectPath):
            since = (table / "_delta_log").from_name(f"{version:020d}")
            found = max(_numbered(path.name for path in since), default=None)
            return max(_versions(table), default=None) if found is None and version else found
        if not commit_file(table, version).is_file():
            return max(_versions(table), default=None)
        for _ in range(_STEPS):
            if not commit_file(table, version + 1).is_file():
                return version
            version += 1
    return max(_versions(table), default=None)


def checkpointed(table: LakePath) -> int | None:
    """The version of the newest checkpoint (protocol, "Last Checkpoint File")."""
    try:
        text = (table / "_delta_log" / "_last_checkpoint").read_text(encoding="utf-8")
        return int(json.loads(text)["version"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, NotADirectoryError):
        return None


def commit_file(table: LakePath, version: int) -> LakePath:
    """Where a commit stands."""
    return table / "_delta_log" / f"{version:020d}.json"


def actions(commit: str, *kinds: str) -> Iterator[tuple[str, Any]]:
    """What a commit file says, line by line, each with its kind; of some kinds only, whose lines
    alone are parsed then."""
    begins = tuple(f'{{"{kind}"' for kind in kinds)
    for line in commit.splitlines():
        if line and (not kinds or line.startswith(begins)):
            yield from json.loads(line).items()


def transactions(table: LakePath, app_id: str) -> Iterator[LoggedTransaction]:
    """The transactions an application recorded, newest commit first, as far back as
    the log's commit files reach."""
    newest = newest_version(table)
    version = -1 if newest is None else newest
    while version >= 0 and commit_file(table, version).is_file():
        found = _transaction(commit_file(table, version), app_id)
        if found is not None:
            yield LoggedTransaction(version, *found)
        version -= 1


def said_since(table: LakePath, version: int) -> Iterator[tuple[int, str]]:
    """(Delta version, userMetadata) of the commits behind a version that say something,
    oldest first, as far as the log's commit files reach."""
    newest = newest_version(table)
    for number in range(version + 1, 0 if newest is None else newest + 1):
        commit = commit_file(table, number)
        if not commit.is_file():
            continue
        with lake_errors(commit):
            for _, info in actions(commit.read_text(encoding="utf-8"), "commitInfo"):
                metadata = info.get("userMetadata")
                if metadata is not None:
                    yield number, metadata


def recorded(table: LakePath, app_id: str, txn_version: int) -> LoggedTransaction | None:
    """The commit that recorded (app_id, txn_version); None if it was never made.

    `ForeignCommit` when the table recorded a higher version of this application and
    none that is ours: a later write would be skipped by Delta without a word.
    """
    newest = newest_version(table)
    version = -1 if newest is None else newest
    latest: int | None = None
    while version >= 0 and commit_file(table, version).is_file():
        found = _transaction(commit_file(table, version), app_id)
        if found is not None and found[0] == txn_version:
            return LoggedTransaction(version, *found)
        if found is not None:
            latest = found[0] if latest is None else latest
            if found[0] < txn_version:
                break  # an application's transactions ascend: an older commit has a lower one
        elif latest is None and newest is not None and newest - version >= _STEPS:
            break  # nothing of it for long: the snapshot knows
        version -= 1
    if latest is None and version >= 0:
        latest = _from_snapshot(table, app_id)
    if latest is not None and latest >= txn_version:
        raise ForeignCommit(
            f"{table} recorded transaction {latest} of {app_id}, and its log does not show "
            f"transaction {txn_version}",
            hint="restore ledger and lake from the same moment; `lockstep adopt --reason …` goes "
            "on with this ledger; without `--reason` it only shows what it would do",
        )
    return None


def table_id(table: LakePath) -> str:
    """Which Delta table that is (`metaData.id`), as its first commit says, which is a file to
    read; where it was cleaned up, as the snapshot does."""
    first = commit_file(table, 0)
    with lake_errors(first), suppress(FileNotFoundError):
        for _, metadata in actions(first.read_text(encoding="utf-8"), "metaData"):
            return str(metadata["id"])
    with lake_errors(table):
        return str(delta_table(table).metadata().id)


def _versions(table: LakePath) -> list[int]:
    with lake_errors(table):
        try:
            names = [entry.name for entry in (table / "_delta_log").iterdir()]
        except FileNotFoundError:
            return []
    return _numbered(names)


def _numbered(names: Iterable[str]) -> list[int]:
    """The versions of commits' files."""
    return [int(match[1]) for name in names if (match := _COMMIT.fullmatch(name))]


def _transaction(commit: LakePath, app_id: str) -> tuple[int, str | None] | None:
    """(transaction version, userMetadata) if this commit recorded one of `app_id`."""
    version: int | None = None
    metadata: str | None = None
    with lake_errors(commit):
        for kind, told in actions(commit.read_text(encoding="utf-8"), "txn", "commitInfo"):
            if kind == "commitInfo":
                metadata = told.get("userMetadata")
            elif told["appId"] == app_id:
                version = int(told["version"])
    return None if version is None else (version, metadata)


def _from_snapshot(table: LakePath, app_id: str) -> int | None:
    with lake_errors(table):
        version: int | None = delta_table(table).transaction_version(app_id)
    return version
