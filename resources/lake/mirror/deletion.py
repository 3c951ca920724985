"""Deletion of all earlier versions of a mirror (the Delta table with a table's present
rows), so that values which were removed from it cannot be read any more. Its log then
begins at the newest version, and files that this version does not need are deleted.

The log must be cut, too, because commits and checkpoints contain statistics of files,
which have values of rows. The statistics of removed files are taken out of the
checkpoint with which the log then begins.

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
import io
import json
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.pipeline.ports.lease_check import RequireHeld
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
    sync_folder,
    write_durably,
)

_VERSIONED_NAME: Final = re.compile(r"\.?(\d{20})\..+")
"""The pattern of the names of a log's files, which begin with their version: commits,
checkpoints and their parts, checksum files, compacted commits, and the checksum that
Hadoop keeps beside each of them."""

_SIDECARS: Final = "_sidecars"

_FILE_COLUMNS: Final = [
    "add.path",
    "add.deletionVector.storageType",
    "add.deletionVector.pathOrInlineDv",
]
_STORED_INLINE: Final = "i"
_STORED_RELATIVE: Final = "u"
"""Values of `storageType`: the deletion vector is in the log itself, or in a file of
the table's folder."""


def delete_history(
    path: LakePath,
    version: int,
    user_metadata: str,
    on_commit: Callable[[int], None],
    require_held: RequireHeld,
) -> None:
    """Implement `Mirrors.delete_history`. `user_metadata`: for the empty commit.
    `on_commit` is called with the version of that commit. `require_held` raises an
    error if another run has taken over the source."""
    log = path / "_delta_log"
    with (
        lake_errors(path),
        _delete_function(log) as delete_from_log,
        _delete_function(path) as delete_from_table,
    ):
        files = files_below(path).keys()
        head = head_of(path)
        if head.version != version:
            raise commit_conflict(path)
        require_held()
        empty_commit = _make_empty_commit(path, head, user_metadata)
        cut_version = empty_commit.version
        on_commit(cut_version)
        # delta-rs opens the table by its path. If another table was created there
        # meanwhile, this is a correct checkpoint of that table, and the next line
        # raises an error.
        delta_table(path, cut_version).create_checkpoint()
        _require_commit(path, empty_commit)
        checkpoint = log / f"{cut_version:020d}.checkpoint.parquet"
        _delete_removed_statistics(checkpoint)
        needed_files = _needed_files(checkpoint)
        if missing := needed_files - files:
            raise MirrorRefused(
                f"{len(missing)} of the files that its mirror needs are missing",
                hint="reload the table",
            )
        earlier_log_files = [
            file.name
            for file in log.iterdir()
            if (match := _VERSIONED_NAME.fullmatch(file.name)) and int(match[1]) < cut_version
        ]
        # Parts of v2 checkpoints, which the new checkpoint replaces.
        sidecars = [f"{_SIDECARS}/{file.name}" for file in (log / _SIDECARS).glob("*")]
        require_held()
        _require_commit(path, empty_commit)
        delete_from_log([*earlier_log_files, *sidecars])
        require_held()
        unneeded_files = files - needed_files
        delete_from_table(unneeded_files)
        delete_from_table(map(_crc_name, unneeded_files))


def _crc_name(name: str) -> str:
    """Return the name of the hidden checksum file that Hadoop keeps beside a file."""
    file = PurePosixPath(name)
    return str(file.with_name(f".{file.name}.crc"))


@contextmanager
def _delete_function(folder: LakePath) -> Iterator[Callable[[Iterable[str]], None]]:
    """Yield a function that deletes files of a folder by name. In a file system, the
    function is bound to the folder that exists now: if another folder replaces it, the
    function does not delete that folder's files."""
    if isinstance(folder, ObjectPath):
        yield folder.unlink_below
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def delete(names: Iterable[str]) -> None:
        for name in names:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=descriptor)

    try:
        yield delete
    finally:
        os.close(descriptor)


def _make_empty_commit(path: LakePath, head: Head, user_metadata: str) -> Head:
    """Make an empty commit with this userMetadata directly after `head`, and return it.
    Raise `CommitConflict` if another commit came first. This is the only commit to a
    mirror that Lockstep writes without Delta: it has neither files nor columns, so
    Spark is not needed. Its format: Delta protocol, "Commit Provenance
    Information"."""
    version = head.version + 1
    parent = _require_commit(path, head).decode()
    now_ms = int(time.time() * 1000)
    commit_info: dict[str, Any] = {
        "timestamp": now_ms,
        "operation": "Empty Commit",
        "operationParameters": {},
        "readVersion": head.version,
        "isolationLevel": "SnapshotIsolation",
        "isBlindAppend": True,
        "operationMetrics": {},
        "userMetadata": user_metadata,
        "engineInfo": "Lockstep",
        "txnId": str(uuid.uuid4()),
    }
    for _, info in actions(parent, "commitInfo"):
        if (parent_ms := info.get("inCommitTimestamp")) is not None:
            # Each of these timestamps must be later than the one before (Delta
            # protocol, "In-Commit Timestamps").
            commit_info["inCommitTimestamp"] = max(now_ms, parent_ms + 1)
    content = f"{json.dumps({'commitInfo': commit_info})}\n".encode()
    if not _create_commit_file(commit_file(path, version), content):
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


def _create_commit_file(path: LakePath, content: bytes) -> bool:
    """Create a commit's file, complete and durable. Return False, without changing it,
    if another commit's file exists."""
    if isinstance(path, ObjectPath):
        return path.create_once(content) or path.has_content(content)
    draft = path.with_name(f".{path.name}.{uuid.uuid4()}.tmp")
    write_durably(draft, content)
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def _delete_removed_statistics(checkpoint: LakePath) -> None:
    """Replace a checkpoint by one without the statistics of removed files, which
    readers do not need (Delta protocol, "Add File and Remove File")."""
    with pq.ParquetFile(parquet_content(checkpoint)) as file:
        table = file.read().combine_chunks()
    remove_index = table.schema.get_field_index("remove")
    if remove_index < 0 or table.num_rows == 0:
        return
    removes: pa.StructArray = table.column(remove_index).chunk(0)
    stats_index = removes.type.get_field_index("stats")
    if stats_index < 0:
        return
    fields = [removes.field(index) for index in range(removes.type.num_fields)]
    if fields[stats_index].null_count == len(removes):
        return
    fields[stats_index] = pa.nulls(len(removes), removes.type.field(stats_index).type)
    cleared = pa.StructArray.from_arrays(fields, fields=list(removes.type), mask=removes.is_null())
    content = io.BytesIO()
    table = table.set_column(remove_index, table.schema.field(remove_index), cleared)
    pq.write_table(table, content, store_schema=False)
    write_durably(checkpoint, content.getvalue())


def _needed_files(checkpoint: LakePath) -> set[str]:
    """Return the names, relative to the table's folder, of the data files and the files
    of deletion vectors that a checkpoint's version needs."""
    with pq.ParquetFile(parquet_content(checkpoint)) as file:
        adds = file.read(columns=_FILE_COLUMNS)
    names = set()
    for add in adds.column("add").to_pylist():
        if add is None or add["path"] is None:
            continue
        names.add(unquote(add["path"]))
        vector = add.get("deletionVector") or {}
        if vector.get("storageType") not in (None, _STORED_INLINE):
            names.add(_vector_file(vector["storageType"], vector["pathOrInlineDv"]))
    return names


_UUID_CHARACTERS: Final = 20
"""Number of characters at the end of `pathOrInlineDv` that are the UUID of a deletion
vector's file, in base 85."""
_Z85_TO_B85: Final = str.maketrans(
    digits + ascii_lowercase + ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#",
    digits + ascii_uppercase + ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~",
)
"""Delta writes base 85 with the characters of Z85, and Python's `b85decode` reads other
ones."""


def _vector_file(storage: str, path: str) -> str:
    """Return the name of a deletion vector's file (Delta protocol, "Deletion Vector
    Descriptor Schema"). An absolute path is returned unchanged; no file of the table's
    folder has such a name.
    """
    if storage != _STORED_RELATIVE:
        return path
    folder, encoded_uuid = path[:-_UUID_CHARACTERS], path[-_UUID_CHARACTERS:]
    name = uuid.UUID(bytes=base64.b85decode(encoded_uuid.translate(_Z85_TO_B85)))
    return f"{folder}/deletion_vector_{name}.bin".lstrip("/")
