"""Delta's checksum files: beside a commit, the files and properties that the table has with it.

Spark writes them and believes them, so that it need not put the log together again. Belongs here:
whether one is of its commit; a log that was cut or copied back by hand may have those of commits
that are gone. Does not: what is in them, which is Delta's.
"""

from __future__ import annotations

import json
from typing import Any

from resources.lake.paths import LakePath


def drop_stray_checksum(commit_file: LakePath, commit: bytes) -> None:
    """Delete the checksum file of a version unless the same transaction wrote it as its commit,
    which is `commit`. Without one, Spark reads the log. OSError is not caught."""
    checksum = commit_file.with_suffix(".crc")
    try:
        told = checksum.read_bytes()
    except FileNotFoundError:
        return
    if _transaction_of(told) != _committed_by(commit) or not _committed_by(commit):
        checksum.unlink(missing_ok=True)


def _committed_by(commit: bytes) -> str | None:
    """The name that Delta gave the transaction, `commitInfo.txnId`."""
    for line in commit.splitlines():
        action = _parsed(line)
        if isinstance(action.get("commitInfo"), dict):
            name = action["commitInfo"].get("txnId")
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
