"""The checksum files beside the commits of a Delta table's log (protocol, "Version
Checksum File").

A checksum file repeats the files and properties that the table has after its commit.
Spark writes checksum files and trusts them instead of reading the log. In a log that
was cut or restored by hand, a checksum file can belong to a commit that is gone, so
each is compared with its commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lockstep.resources.lake.delta.delta_log import actions, commit_content, commit_file
from lockstep.resources.lake.store.paths import LakePath

_MOST_COMMITS_BACK: Final = 50
"""Most commits that are read, from the newest back, to find what the newest checksum
file lacks."""


def delete_stray_checksum(file: LakePath, content: bytes) -> None:
    """Delete the checksum file beside a commit's file if it is of another transaction.
    Spark then reads the log."""
    if not _own_checksum(file, content):
        file.with_suffix(".crc").unlink(missing_ok=True)


def read_checksum_file(path: LakePath, version: int) -> Mapping[str, Any]:
    """Return the fields of a version's checksum file, named as in Delta's protocol;
    empty if there is none, or if it belongs to another commit."""
    content = commit_content(path, version)
    return {} if content is None else _own_checksum(commit_file(path, version), content)


def recent_commits(path: LakePath, version: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the text of a version's commit file and the content of its checksum file
    (as `read_checksum_file` does), then those of the versions before it, newest first:
    at most `_MOST_COMMITS_BACK` in all. End at the first missing commit file."""
    for log_version in range(version, max(version - _MOST_COMMITS_BACK, -1), -1):
        content = commit_content(path, log_version)
        if content is None:
            return
        yield content.decode(), _own_checksum(commit_file(path, log_version), content)


_NO_FILE_LIST: Final = {"spark.databricks.delta.allFilesInCrc.enabled": "false"}
"""The session setting with which a commit's checksum file does not list the table's
files."""


def file_list_settings(path: LakePath, version: int, *, must_list: bool) -> Mapping[str, str]:
    """Return the session settings for the commit after a version. If the version's
    checksum file does not list the table's files, Delta would run a query to list them,
    and `_NO_FILE_LIST` prevents that. `must_list`: the new checksum file must list them
    all the same, because no recent one does (`add_actions_at` returned None)."""
    if must_list or "allFiles" in read_checksum_file(path, version):
        return {}
    return _NO_FILE_LIST


def add_actions_at(path: LakePath, version: int) -> list[Mapping[str, Any]] | None:
    """Return the `add` actions of a version's files (protocol, "Action
    Reconciliation").

    They are taken from the newest checksum file that lists files, and from the commits
    after it; None if no recent commit has such a file. delta-rs is not asked, because
    it does not give the deletion vectors, which Spark needs to remove a file.
    """
    adds: list[Mapping[str, Any]] = []
    decided_keys: set[tuple[str, str]] = set()
    # From the newest commit back: the newest action of a file decides, older ones are
    # outdated.
    for age, (commit_text, checksum) in enumerate(recent_commits(path, version)):
        listed_files = checksum.get("allFiles")
        if listed_files is not None:
            return adds + [file for file in listed_files if _file_key(file) not in decided_keys]
        file_actions = list(actions(commit_text, "add", "remove"))
        adds += [
            file
            for kind, file in file_actions
            if kind == "add" and _file_key(file) not in decided_keys
        ]
        if age == version:  # the table's first commit
            return adds
        decided_keys |= {_file_key(file) for _, file in file_actions}
    return None


def _file_key(file: Mapping[str, Any]) -> tuple[str, str]:
    """Return the identity of a file in a log: its path and its deletion vector, because
    the same file can be added again with more rows deleted."""
    return file["path"], json.dumps(file.get("deletionVector"), sort_keys=True)


def _own_checksum(file: LakePath, content: bytes) -> dict[str, Any]:
    """Return the content of the checksum file beside a commit's file; empty if there is
    none, or if it belongs to another commit. Other errors of the storage than a missing
    file are raised."""
    try:
        checksum = json.loads(file.with_suffix(".crc").read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    txn_id = _txn_id(content)
    if txn_id is None or not isinstance(checksum, dict) or checksum.get("txnId") != txn_id:
        return {}
    return checksum


def _txn_id(content: bytes) -> str | None:
    """Return the id that Delta gave the transaction, `commitInfo.txnId`."""
    for _, info in actions(content.decode(), "commitInfo"):
        txn_id = info.get("txnId")
        return txn_id if isinstance(txn_id, str) else None
    return None
