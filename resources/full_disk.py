"""Detects a full disk in the errors of any library. The lake's storage translates its
own errors (`resources.lake.store.storage`)."""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from lockstep.pipeline.values.errors import DiskFull

_FULL_DISK_ERRNOS: Final = (errno.ENOSPC, errno.EDQUOT)
FULL_CURE: Final = (
    "enlarge it, or free space that is not Lockstep's; delete nothing in the lake or in .lockstep "
    "by hand; then run again"
)
_LEAST_FREE_BYTES: Final = 1 << 20
"""A file system with at least this many free bytes is not full."""


def disk_full_error(error: BaseException, folders: Iterable[Path] = ()) -> DiskFull | None:
    """Return the error to show if a full disk caused this one, else None. Errors of
    SQLite, and of files that are already open, name no file. For them, the error to
    show names each folder whose disk is full, of `folders` and the folder for temporary
    files."""
    folders = (*folders, Path(tempfile.gettempdir()))
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.errno in _FULL_DISK_ERRNOS:
            files = [] if cause.filename is None else [os.fsdecode(cause.filename)]
        elif isinstance(cause, sqlite3.OperationalError) and "disk is full" in str(cause):
            files = []
        else:
            continue
        places = ", ".join(files or map(str, filter(is_full, folders))) or "this machine"
        return DiskFull(f"No space left on {places}.", hint=FULL_CURE)
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes. SQLAlchemy keeps the driver's error in the
    attribute `orig`."""
    causes: list[BaseException] = []
    unvisited: list[BaseException | None] = [error]
    while unvisited:
        cause = unvisited.pop()
        if cause is None or cause in causes:
            continue
        causes.append(cause)
        yield cause
        unvisited += [cause.__context__, cause.__cause__, getattr(cause, "orig", None)]


def is_full(folder: Path) -> bool:
    """Return whether the disk of a folder is full. A folder that is missing is not."""
    with suppress(OSError):
        status = os.statvfs(folder)
        return status.f_bavail * status.f_frsize < _LEAST_FREE_BYTES
    return False
