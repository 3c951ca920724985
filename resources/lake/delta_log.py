"""Reading a Delta table's log without Java: which commit recorded a transaction.

Format: Delta protocol, sections "Delta Log Entries", "Transaction Identifiers" and
"Commit Provenance Information". Only commit files are parsed; where they have been
cleaned up, delta-rs answers from the checkpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from pipeline.errors import ForeignCommit
from resources.lake.storage import lake_errors

_COMMIT = re.compile(r"(\d{20})\.json")


@dataclass(frozen=True, slots=True)
class LoggedTransaction:
    """A commit that recorded an application's transaction."""

    delta_version: int
    txn_version: int
    user_metadata: str | None


def newest_version(table: Path) -> int | None:
    """The newest Delta version in a table's folder; None where there is no table."""
    return max(_versions(table), default=None)


def transactions(table: Path, app_id: str) -> Iterator[LoggedTransaction]:
    """The transactions an application recorded, newest commit first, as far back as
    the log's commit files reach."""
    for version in sorted(_versions(table), reverse=True):
        found = _transaction(commit_file(table, version), app_id)
        if found is not None:
            yield LoggedTransaction(version, *found)


def said_since(table: Path, version: int) -> Iterator[tuple[int, str]]:
    """(Delta version, userMetadata) of the commits behind a version that say something,
    oldest first, as far as the log's commit files reach."""
    for number in sorted(found for found in _versions(table) if found > version):
        commit = commit_file(table, number)
        with lake_errors(commit), commit.open(encoding="utf-8") as lines:
            for line in lines:
                if line.startswith('{"commitInfo"'):
                    metadata = json.loads(line)["commitInfo"].get("userMetadata")
                    if metadata is not None:
                        yield number, metadata


def recorded(table: Path, app_id: str, txn_version: int) -> LoggedTransaction | None:
    """The commit that recorded (app_id, txn_version); None if it was never made.

    `ForeignCommit` when the table recorded a higher version of this application and
    none that is ours: a later write would be skipped by Delta without a word.
    """
    newest: int | None = None
    for found in transactions(table, app_id):
        if found.txn_version == txn_version:
            return found
        if newest is None:
            newest = found.txn_version
    if newest is None:
        newest = _from_checkpoint(table, app_id)
    if newest is not None and newest >= txn_version:
        raise ForeignCommit(
            f"{table} recorded transaction {newest} of {app_id}, and its log does not show "
            f"transaction {txn_version}",
            hint="compare the ledger with the table's history: one of them was restored or "
            "written by something else",
        )
    return None


def _versions(table: Path) -> list[int]:
    with lake_errors(table):
        try:
            names = [entry.name for entry in (table / "_delta_log").iterdir()]
        except FileNotFoundError:
            return []
    return [int(match[1]) for name in names if (match := _COMMIT.fullmatch(name))]


def commit_file(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"


def _transaction(commit: Path, app_id: str) -> tuple[int, str | None] | None:
    """(transaction version, userMetadata) if this commit recorded one of `app_id`."""
    version: int | None = None
    metadata: str | None = None
    with lake_errors(commit), commit.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith('{"txn"'):
                txn = json.loads(line)["txn"]
                if txn["appId"] == app_id:
                    version = int(txn["version"])
            elif line.startswith('{"commitInfo"'):
                metadata = json.loads(line)["commitInfo"].get("userMetadata")
    return None if version is None else (version, metadata)


def _from_checkpoint(table: Path, app_id: str) -> int | None:
    if not _versions(table) or commit_file(table, 0).is_file():
        return None
    with lake_errors(table):
        version: int | None = DeltaTable(table).transaction_version(app_id)
    return version
