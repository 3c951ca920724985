"""A disk that is full, by whichever library finds it out.

Belongs here: telling it among errors, and where. Does not: storage of the lake, which names its
files itself (`resources.lake.storage`).
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from pipeline.errors import DiskFull

_NUMBERS: Final = (errno.ENOSPC, errno.EDQUOT)
_ENOUGH: Final = 1 << 20
"""A file system with so many bytes left is not the one that is full."""


def disk_full(error: BaseException, folders: Iterable[Path]) -> DiskFull | None:
    """What an error says if a full disk is behind it, None for any other. `folders`: where it may
    be, for what names no file (a write to an open one does not, SQLite does not)."""
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.errno in _NUMBERS:
            named = [] if cause.filename is None else [os.fsdecode(cause.filename)]
        elif isinstance(cause, sqlite3.OperationalError) and "disk is full" in str(cause):
            named = []
        else:
            continue
        where = ", ".join(named or map(str, _without_room(folders))) or "this machine"
        return DiskFull(f"No space left on {where}.", hint="Free some space there, then run again.")
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what it came of, also where a library keeps that as an attribute (`orig`)."""
    seen: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop()
        if cause is None or cause in seen:
            continue
        seen.append(cause)
        yield cause
        waiting += [cause.__context__, cause.__cause__, getattr(cause, "orig", None)]


def _without_room(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        with suppress(OSError):
            room = os.statvfs(folder)
            if room.f_bavail * room.f_frsize < _ENOUGH:
                yield folder
