"""The folder of a Spark while it runs: its log, what it spills, and where it listens.

Belongs here: making it, and clearing away behind processes that were killed. Does not: what is in
it (`session`, `settings`), a server's folder, which has a place of its own (`serving`).

Each folder has a file beside it that its process holds locked. One that nobody holds was left by a
process that is dead, and Java ends with that.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PREFIX: Final = "lockstep-spark-"
_LOCK: Final = ".lock"


@dataclass(frozen=True, slots=True)
class Scratch:
    """A folder for this process alone; `held` is the descriptor of its lock."""

    folder: Path
    held: int

    def end(self) -> None:
        """Remove it; what cannot be removed is left to the next process."""
        _remove(_lock_of(self.folder))
        os.close(self.held)


def make_scratch() -> Scratch:
    """A new one among the machine's temporary files, with those of dead processes gone."""
    _clear(Path(tempfile.gettempdir()))
    while True:
        held, name = tempfile.mkstemp(prefix=_PREFIX, suffix=_LOCK)
        fcntl.flock(held, fcntl.LOCK_EX)
        if os.fstat(held).st_nlink:
            break
        os.close(held)  # somebody cleared it away before it was held
    folder = Path(name.removesuffix(_LOCK))
    folder.mkdir(mode=0o700)
    return Scratch(folder, held)


def _clear(among: Path) -> None:
    for lock in among.glob(f"{_PREFIX}*{_LOCK}"):
        with _taken(lock) as free:
            if free:
                _remove(lock)


@contextmanager
def _taken(lock: Path) -> Iterator[bool]:
    """Whether nobody else holds it. Another account's is never ours."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield os.fstat(descriptor).st_uid == os.getuid()
    finally:
        os.close(descriptor)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(folder.name + _LOCK)


def _remove(lock: Path) -> None:
    """The folder, then its lock; the lock stays where the folder does."""
    folder = Path(str(lock).removesuffix(_LOCK))
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        with suppress(OSError):
            lock.unlink()
