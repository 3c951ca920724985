"""Delta's checksum files: beside a commit, the files and properties that the table has with it.

Spark writes them and believes them, so that it need not put the log together again. Belongs here:
whether one is of its commit, since a log that was cut or copied back by hand may have those of
commits that are gone; and what they say of a table's files. OSError is not caught, but for files
that are not there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from resources.lake.delta_log import actions, commit_file
from resources.lake.paths import LakePath

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
