"""Deletion of all earlier versions of a mirror (the Delta table with a table's present
rows), so that values which were removed from it cannot be read any more. Its log then
begins at the newest version, and files that this version does not need are deleted.

The log must be cut, too, because commits and checkpoints contain statistics of added
files, which have values of rows. The commit that rewrote all rows can stay: for a
removed file, it has only the number of rows.

No lock excludes other writers: upkeep rewrites files without a lock, and a suspended
run still writes when it wakes up. Therefore no file is deleted that another writer
could still commit:

1. The files are listed.
2. An empty commit is made directly after the version that the caller named; if another
   commit came first, nothing is deleted. Every commit is bound to the version that it
   was planned on (`pin`). So a listed file that was not committed by then cannot be
   committed any more, and a write that is planned from now on uses only files of this
   version.
3. Everything before that commit is deleted from the log, so that no earlier version can
   be restored. Before that, `require_held` checks that no other run has taken over the
   source, and the log must still have that commit: a table that was created in the
   folder meanwhile has files of the same names.
4. `require_held` checks again. A run that takes over after this check finds the log
   already cut.
5. The listed files that the commit's version does not need are deleted; files written
   since the listing stay.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import unquote

import pyarrow.parquet as pq

from lockstep.pipeline.ports.held import RequireHeld
from lockstep.pipeline.values.errors import MirrorRefused
from lockstep.resources.lake.delta.delta_log import actions, commit_file
from lockstep.resources.lake.delta.pin import Head, head_of
from lockstep.resources.lake.spark.java_errors import commit_conflict
from lockstep.resources.lake.store.paths import LakePath, ObjectPath
from lockstep.resources.lake.store.storage import (
    delta_table,
    files_below,
    lake_errors,
    parquet_content,
    remove_folder,
    sync_folder,
    write_durably,
)

_OF_VERSION: Final = re.compile(r"\.?(\d{20})\..+")
"""The pattern of the names of a log's files, which begin with their version: commits,
checkpoints and their parts, checksum files, compacted commits, and the checksum that
Hadoop keeps beside each of them."""


def cut(
    path: LakePath,
    version: int,
    user_metadata: str,
    on_commit: Callable[[int], None],
    require_held: RequireHeld,
) -> None:
    """Implement `Mirrors.cut`. `user_metadata`: that of the empty commit.
    `on_commit` is called with the version of that commit. `require_held` raises an
    error if another run has taken over the source."""
    log = path / "_delta_log"
    with lake_errors(path), _deleting(log) as from_log, _deleting(path) as from_table:
        files = files_below(path).keys()
        head = head_of(path)
        if head.version != version:
            raise commit_conflict(path)
        require_held()
        own = _commit_empty(path, head, user_metadata)
        cut_at = own.version
        on_commit(cut_at)
        delta_table(path, cut_at).create_checkpoint()
        needed = _needed(log / f"{cut_at:020d}.checkpoint.parquet")
        if lost := needed - files:
            raise MirrorRefused(
                f"{len(lost)} of the files that its mirror needs are missing",
                hint="reload the table",
            )
        earlier = [
            name for file in log.iterdir() if _version_of(name := file.name, cut_at) < cut_at
        ]
        require_held()
        _require_commit(path, own)
        from_log(earlier)
        # Parts of v2 checkpoints, which the new checkpoint replaces.
        remove_folder(log / "_sidecars")
        require_held()
        unneeded = files - needed
        from_table(unneeded)
        from_table(map(_checksum_of, unneeded))


def _checksum_of(name: str) -> str:
    """Return the name of the hidden checksum file that Hadoop keeps beside a file."""
    file = PurePosixPath(name)
    return str(file.with_name(f".{file.name}.crc"))


@contextmanager
def _deleting(folder: LakePath) -> Iterator[Callable[[Iterable[str]], None]]:
    """Yield a function that deletes files of a folder by name. In a file system, the
    function is bound to the folder that exists now: if another folder replaces it, the
    function does not delete that folder's files."""
    if isinstance(folder, ObjectPath):
        yield folder.unlink_below
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def delete(names: Iterable[str]) -> None:
        for name in names:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=opened)

    try:
        yield delete
    finally:
        os.close(opened)


def _commit_empty(path: LakePath, head: Head, user_metadata: str) -> Head:
    """Make an empty commit with this userMetadata directly after `head`,
    and return it. Raise `CommitConflict` if another commit came first. This is the only
    commit to a mirror that Lockstep writes without Delta: it has neither files nor
    columns, so Spark is not needed."""
    version = head.version + 1
    parent = _require_commit(path, head)
    infos = (info for _, info in actions(parent.decode(), "commitInfo"))
    before: Mapping[str, Any] = next(infos, {})
    content = f"{json.dumps({'commitInfo': _info(before, head.version, user_metadata)})}\n".encode()
    if not _created(commit_file(path, version), content):
        raise commit_conflict(path)
    return Head(version, hashlib.sha256(content).hexdigest())


def _require_commit(path: LakePath, head: Head) -> bytes:
    """Return the content of a commit's file. Raise `CommitConflict` if the file is
    missing, or if it is the file of another commit."""
    with suppress(FileNotFoundError):
        commit = commit_file(path, head.version).read_bytes()
        if hashlib.sha256(commit).hexdigest() == head.digest:
            return commit
    raise commit_conflict(path)


def _info(before: Mapping[str, Any], planned_on: int, user_metadata: str) -> Mapping[str, Any]:
    """Return the commitInfo (Delta protocol, "Commit Provenance Information") of a
    commit. `before`: the commitInfo of the commit before it, whose timestamp must be
    earlier ("In-Commit Timestamps"); `planned_on`: that commit's version."""
    now = int(time.time() * 1000)
    moment = before.get("inCommitTimestamp")
    dated = {} if moment is None else {"inCommitTimestamp": max(now, moment + 1)}
    return {
        **dated,
        "timestamp": now,
        "operation": "Empty Commit",
        "operationParameters": {},
        "readVersion": planned_on,
        "isolationLevel": "SnapshotIsolation",
        "isBlindAppend": True,
        "operationMetrics": {},
        "userMetadata": user_metadata,
        "engineInfo": "Lockstep",
        "txnId": str(uuid.uuid4()),
    }


def _created(commit: LakePath, content: bytes) -> bool:
    """Create a commit's file, complete and durable. Return False, without changing it,
    if another commit's file exists."""
    if isinstance(commit, ObjectPath):
        return commit.create_once(content) or commit.read_bytes() == content
    draft = commit.with_name(f".{commit.name}.{uuid.uuid4()}.tmp")
    write_durably(draft, content)
    try:
        os.link(draft, commit)
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(commit.parent)
    return True


def _version_of(name: str, otherwise: int) -> int:
    match = _OF_VERSION.fullmatch(name)
    return otherwise if match is None else int(match[1])


_OF_FILES: Final = [
    "add.path",
    "add.deletionVector.storageType",
    "add.deletionVector.pathOrInlineDv",
]


def _needed(checkpoint: LakePath) -> set[str]:
    """Return the names, relative to the table's folder, of the data files and the files
    of deletion vectors that a checkpoint's version needs."""
    with pq.ParquetFile(parquet_content(checkpoint)) as file:
        read = file.read(columns=_OF_FILES)
    needed = set()
    for add in read.column("add").to_pylist():
        if add is None or add["path"] is None:
            continue
        needed.add(unquote(add["path"]))
        vector = add.get("deletionVector") or {}
        if vector.get("storageType") not in (None, _INLINE):
            needed.add(_vector_file(vector["storageType"], vector["pathOrInlineDv"]))
    return needed


_INLINE: Final = "i"
_RELATIVE: Final = "u"
"""Values of `storageType`: the deletion vector is in the log itself, or in a file of
the table's folder."""
_NUMBER: Final = 20
"""Number of characters at the end of `pathOrInlineDv` that are the UUID of a deletion
vector's file, in base 85."""
_DIGITS: Final = "0123456789" + "abcdefghijklmnopqrstuvwxyz"
_Z85: Final = f"{_DIGITS}{_DIGITS[10:].upper()}.-:+=^!/*?&<>()[]{{}}@%$#"
_B85: Final = f"{_DIGITS[:10]}{_DIGITS[10:].upper()}{_DIGITS[10:]}!#$%&()*+-;<=>?@^_`{{|}}~"
_AS_PYTHON: Final = str.maketrans(_Z85, _B85)
"""Delta writes base 85 with the characters of Z85, and Python's `b85decode` reads other
ones."""


def _vector_file(storage: str, path: str) -> str:
    """Return the name of a deletion vector's file (Delta protocol, "Deletion Vector
    Descriptor Schema"). An absolute path is returned unchanged; no file of the table's
    folder has such a name.
    """
    if storage != _RELATIVE:
        return path
    folder, number = path[:-_NUMBER], path[-_NUMBER:]
    name = uuid.UUID(bytes=base64.b85decode(number.translate(_AS_PYTHON)))
    return f"{folder}/deletion_vector_{name}.bin".lstrip("/")
