"""Delta's checksum files: beside a commit, the files and properties that the table has with it.

Spark writes them and believes them, so that it need not put the log together again. Belongs here:
whether one is of its commit; a log that was cut or copied back by hand may have those of commits
that are gone; and what they say of a table's files. Does not: writing them, which is
Delta's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from resources.lake.delta_log import actions, commit_file
from resources.lake.paths import LakePath


def drop_stray_checksum(file: LakePath, commit: bytes) -> None:
    """Delete the checksum file of a version unless the same transaction wrote it as its commit,
    which is `commit`. Without one, Spark reads the log. OSError is not caught."""
    told = _checksum(file)
    if told is None:
        return
    if _transaction_of(told) != _committed_by(commit) or not _committed_by(commit):
        file.with_suffix(".crc").unlink(missing_ok=True)


def has_no_vectors(table: LakePath, version: int) -> bool:
    """Whether the checksum file of a version says that no row of the table's files is marked as
    deleted. OSError is not caught, but for files that are not there."""
    commit = _commit(table, version)
    if commit is None:
        return False
    return _told_beside(commit_file(table, version), commit).get("numDeletionVectorsOpt") == 0


def lists_files(table: LakePath, version: int) -> bool:
    """Whether the checksum file of a version lists the table's files. OSError is not caught, but
    for files that are not there."""
    commit = _commit(table, version)
    return commit is not None and "allFiles" in _told_beside(commit_file(table, version), commit)


def needs_no_list(
    table: LakePath, version: int, listed: Sequence[Mapping[str, Any]] | None
) -> bool:
    """Whether the commit behind a version may be made without a list of the table's files, for
    which Delta would run a query: the version's checksum file has none, and the log near by tells
    the files all the same (`listed`, of `files_listed`)."""
    return listed is not None and not lists_files(table, version)


def deleted_rows(table: LakePath, version: int) -> int | None:
    """How many rows of the table's files are marked as deleted, where the checksum file beside its
    newest commit counts them."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        told = _parsed(_checksum(commit_file(table, version)) or b"")
        return int(told["numDeletedRecordsOpt"])
    return None


FAR: Final = 50
"""So many commits are read for the list of files that Delta left out of its checksum files."""


def files_listed(table: LakePath, version: int) -> list[Mapping[str, Any]] | None:
    """The files of a table with a version, as Delta's protocol says it ("Action Reconciliation"):
    those of the newest checksum file that lists them, and what commits say since. None where that
    is not near. OSError is not caught, but for files that are not there."""
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
    """A commit's checksum file; empty where there is none that belongs to it."""
    told, name = _checksum(file), _committed_by(commit)
    if told is None or name is None or _transaction_of(told) != name:
        return {}
    return _parsed(told)


def _checksum(file: LakePath) -> bytes | None:
    """What stands beside a commit's file, whoever wrote it."""
    try:
        return file.with_suffix(".crc").read_bytes()
    except FileNotFoundError:
        return None


def _committed_by(commit: bytes) -> str | None:
    """The name that Delta gave the transaction, `commitInfo.txnId`."""
    for _, info in actions(commit.decode(), "commitInfo"):
        name = info.get("txnId")
        return name if isinstance(name, str) else None
    return None


def _transaction_of(checksum: bytes) -> str | None:
    name = _parsed(checksum).get("txnId")
    return name if isinstance(name, str) else None


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
