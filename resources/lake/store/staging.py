"""Staged files: temporary files that this process writes for Spark to read, and
intermediate results that Spark reads more than once.

Each process has its own folder below the staging folder. It holds a lock on a file
beside its folder until it ends. A process that begins to stage removes the folders
whose lock no process holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.pipeline.values.segment import GROUP_ROWS
from lockstep.resources.lake.store.storage import lake_errors
from lockstep.resources.private import make_private

_LOCKED: Final = ".lock"


class Staging:
    """The staged files of this process; its folder is created when it is needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn = Lock()
        self._own: Path | None = None
        self._ended: Callable[[], object] = lambda: None

    def stage(self, name: str, rows: pa.Table) -> str:
        """Write the rows to a Parquet file and return its absolute path. After an error
        there is no file. `name` is the beginning of the file's name."""
        with lake_errors(self._folder):
            readable = "".join(c if c.isalnum() and c.isascii() else "-" for c in name)
            descriptor, path = tempfile.mkstemp(
                prefix=f"{readable[:60]}-", suffix=".parquet", dir=self._of_process()
            )
            try:
                with os.fdopen(descriptor, "wb") as sink:
                    pq.write_table(
                        rows,
                        sink,
                        compression="snappy",
                        coerce_timestamps="us",
                        store_decimal_as_integer=True,
                        row_group_size=GROUP_ROWS,
                    )
            except BaseException:
                Path(path).unlink()
                raise
        return path

    def unstage(self, path: str) -> None:
        with lake_errors(self._folder):
            Path(path).unlink(missing_ok=True)

    @contextmanager
    def folder(self) -> Iterator[str]:
        """Yield the path of a new folder for files that Spark writes. The folder is
        removed at the end of the context."""
        with lake_errors(self._folder):
            folder = tempfile.mkdtemp(prefix="folder-", dir=self._of_process())
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def end(self) -> None:
        """Remove all staged files and the folder; a second call has no effect."""
        with self._turn:
            self._ended()
            self._own = None

    def _of_process(self) -> Path:
        with self._turn:
            if self._own is None:
                make_private(self._folder)
                held = held_folder(self._folder, "run-")
                self._own = held.folder
                self._ended = weakref.finalize(self, held.end)
            return self._own


@dataclass(frozen=True, slots=True)
class HeldFolder:
    """A folder of this process. `held`: the descriptor of the locked file beside the
    folder. The operating system releases the lock when the process ends."""

    folder: Path
    held: int

    def end(self) -> None:
        """Remove the folder and release its lock. What cannot be removed now, the next
        process removes."""
        _remove(self.folder.with_name(self.folder.name + _LOCKED))
        os.close(self.held)


def held_folder(among: Path, prefix: str) -> HeldFolder:
    """Create a folder below `among`, and remove the folders there whose process has
    ended."""
    for lock in among.glob(f"{prefix}*{_LOCKED}"):
        _remove_left(lock)
    while True:
        held, name = tempfile.mkstemp(prefix=prefix, suffix=_LOCKED, dir=among)
        fcntl.flock(held, fcntl.LOCK_EX)
        if os.fstat(held).st_nlink:
            break
        os.close(held)  # another process removed it before it was locked
    folder = Path(name.removesuffix(_LOCKED))
    folder.mkdir(mode=0o700)
    return HeldFolder(folder, held)


def _remove_left(lock: Path) -> None:
    """Remove the folder of a lock if its process has ended and the lock is this
    account's."""
    try:
        held = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(held).st_uid == os.getuid():
            _remove(lock)
    except BlockingIOError:
        pass
    finally:
        os.close(held)


def _remove(lock: Path) -> None:
    """Remove a folder, then its lock. If the folder cannot be removed, the lock stays,
    so that a later process tries again."""
    folder = Path(str(lock).removesuffix(_LOCKED))
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        with suppress(OSError):
            lock.unlink()
