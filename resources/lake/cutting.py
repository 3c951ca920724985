"""A mirror whose versions of before are gone: its log begins at its newest one, and files that this
one does not list are deleted.

A log has more than the names of files: statistics of those that a commit adds are values of rows,
and checkpoints repeat them. Of files that it removes a commit has the number of rows alone, so that
the commit which wrote all rows anew may stay.

No lock keeps others away: upkeep rewrites files without one, and a run that hung still writes when
it wakes up. So nothing is deleted that anybody can still commit:

1. The files are listed.
2. An empty commit is made after the version that was judged, or nothing happens. Every commit is
   bound to the one it was planned on (`pin`), so that whoever wrote a listed file can commit it no
   more, and whatever is planned from here on lists no file of before which this version does not.
3. The log loses what comes before that commit, so that no version of before is restored any more.
4. The holder is asked. Whoever takes over from here on finds the log that was cut.
5. The listed files go that the commit's version does not need. Those that came since stay.
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

from pipeline.errors import MirrorRefused
from pipeline.ports.held import Held
from resources.lake.delta_log import actions, commit_file
from resources.lake.java_errors import conflict
from resources.lake.paths import LakePath, ObjectPath
from resources.lake.pin import Head, head_of
from resources.lake.storage import (
    delta_table,
    files_below,
    lake_errors,
    parquet_content,
    remove_folder,
    sync_folder,
    write_durably,
)

_OF_VERSION: Final = re.compile(r"\.?(\d{20})\..+")
"""What a log calls its files by: commits, checkpoints and their parts, checksum files, commits put
together up to a second version, and the checksums that Hadoop has beside each of them."""


def cut(path: LakePath, version: int, said: str, noted: Callable[[int], None], held: Held) -> None:
    """As `Mirrors.cut`."""
    log = path / "_delta_log"
    with lake_errors(path), _deleting(log) as from_log, _deleting(path) as from_table:
        there = files_below(path).keys()
        head = head_of(path)
        if head.version != version:
            raise conflict(path)
        held()
        cut_at = _commit_nothing(path, head, said)
        noted(cut_at)
        delta_table(path, cut_at).create_checkpoint()
        needed = _needed(log / f"{cut_at:020d}.checkpoint.parquet")
        if lost := needed - there:
            raise MirrorRefused(
                f"{len(lost)} of the files that it needs are not in its folder", hint="reload it"
            )
        held()
        from_log(name for name in _names(log) if _version_of(name, cut_at) < cut_at)
        # Parts of checkpoints of another kind, which that one replaces.
        remove_folder(log / "_sidecars")
        held()
        gone = there - needed
        from_table(gone)
        from_table(map(_sums_of, gone))


def _sums_of(name: str) -> str:
    """The file of checksums that Hadoop has beside one, which Delta hides."""
    file = PurePosixPath(name)
    return str(file.with_name(f".{file.name}.crc"))


@contextmanager
def _deleting(folder: LakePath) -> Iterator[Callable[[Iterable[str]], None]]:
    """What deletes files of a folder by their names: of the folder that is there now, never of one
    that is made in its place."""
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


def _commit_nothing(path: LakePath, head: Head, said: str) -> int:
    """Make the commit after `head`, which leaves the table as it is; its version. `CommitConflict`
    where somebody else did. Of commits of mirrors this one alone is not Delta's: it has neither
    files nor columns, and so needs no Spark."""
    version = head.version + 1
    parent = commit_file(path, head.version).read_bytes()
    if hashlib.sha256(parent).hexdigest() != head.digest:
        raise conflict(path)
    told = (info for _, info in actions(parent.decode(), "commitInfo"))
    before: Mapping[str, Any] = next(told, {})
    content = json.dumps({"commitInfo": _info(before, head.version, said)}) + "\n"
    if not _made(commit_file(path, version), content.encode()):
        raise conflict(path)
    return version


def _info(before: Mapping[str, Any], planned_on: int, said: str) -> Mapping[str, Any]:
    """What a commit tells of itself (Delta protocol, "Commit Provenance Information"); its moment
    comes after that of the commit before ("In-Commit Timestamps")."""
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
        "userMetadata": said,
        "engineInfo": "Lockstep",
        "txnId": str(uuid.uuid4()),
    }


def _made(commit: LakePath, content: bytes) -> bool:
    """Whether this made the commit's file, whole and durable: False where there is one."""
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


def _names(log: LakePath) -> list[str]:
    return [file.name for file in log.iterdir()]


def _version_of(name: str, otherwise: int) -> int:
    named = _OF_VERSION.fullmatch(name)
    return otherwise if named is None else int(named[1])


_OF_FILES: Final = [
    "add.path",
    "add.deletionVector.storageType",
    "add.deletionVector.pathOrInlineDv",
]


def _needed(checkpoint: LakePath) -> set[str]:
    """Names, below the table's folder, of the files that a checkpoint's version needs: those of
    rows, and of deletion vectors."""
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
_NUMBER: Final = 20
"""So many characters at the end are the number of a deletion vector's file, in base 85."""
_DIGITS: Final = "0123456789" + "abcdefghijklmnopqrstuvwxyz"
_Z85: Final = f"{_DIGITS}{_DIGITS[10:].upper()}.-:+=^!/*?&<>()[]{{}}@%$#"
_B85: Final = f"{_DIGITS[:10]}{_DIGITS[10:].upper()}{_DIGITS[10:]}!#$%&()*+-;<=>?@^_`{{|}}~"
_AS_PYTHON: Final = str.maketrans(_Z85, _B85)


def _vector_file(storage: str, told: str) -> str:
    """The name of a deletion vector's file (Delta protocol, "Deletion Vector Descriptor Schema");
    one outside of the table's folder as it is told, under which no file is found."""
    if storage != _RELATIVE:
        return told
    folder, number = told[:-_NUMBER], told[-_NUMBER:]
    name = uuid.UUID(bytes=base64.b85decode(number.translate(_AS_PYTHON)))
    return f"{folder}/deletion_vector_{name}.bin".lstrip("/")
