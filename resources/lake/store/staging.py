"""Staged files: temporary files that this process writes for Spark to read, and
intermediate results that Spark reads more than once.

Each process has its own folder below the staging folder, and until it ends it holds a
lock on a file beside the folder. A process that begins to stage removes the folders
whose lock no process holds.
"""

from __future__ import annotations

import fcntl
import os
import re
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

from lockstep.pipeline.values.row_groups import GROUP_ROWS
from lockstep.resources.lake.store.storage import lake_errors
from lockstep.resources.private import make_private

_LOCK_SUFFIX: Final = ".lock"


class Staging:
    """The staged files of this process; its folder is created when it is needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._process_folder: Path | None = None
        self._remove_process_folder: Callable[[], object] = lambda: None

    def stage(self, name: str, rows: pa.Table) -> str:
        """Write the rows to a Parquet file and return its absolute path. After an error
        there is no file. `name` is the beginning of the file's name."""
        with lake_errors(self._folder):
            safe_name = re.sub("[^0-9A-Za-z]", "-", name)[:60]
            descriptor, path = tempfile.mkstemp(
                prefix=f"{safe_name}-", suffix=".parquet", dir=self._folder_of_process()
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
    def new_folder(self) -> Iterator[str]:
        """Yield the path of a new folder for files that Spark writes. The folder is
        removed at the end of the context."""
        with lake_errors(self._folder):
            folder = tempfile.mkdtemp(prefix="folder-", dir=self._folder_of_process())
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def end(self) -> None:
        """Remove all staged files and the folder; a second call has no effect."""
        with self._lock:
            self._remove_process_folder()
            self._process_folder = None

    def _folder_of_process(self) -> Path:
        with self._lock:
            if self._process_folder is None:
                make_private(self._folder)
                locked_folder = make_locked_folder(self._folder, "run-")
                self._process_folder = locked_folder.folder
                self._remove_process_folder = weakref.finalize(self, locked_folder.end)
            return self._process_folder


@dataclass(frozen=True, slots=True)
class LockedFolder:
    """A folder of this process. `lock_descriptor`: the descriptor of the locked file
    beside it. The operating system releases the lock when the process ends."""

    folder: Path
    lock_descriptor: int

    def end(self) -> None:
        """Remove the folder and release its lock. The next process removes what cannot
        be removed now."""
        _remove_with_lock(self.folder)
        os.close(self.lock_descriptor)


def make_locked_folder(parent: Path, prefix: str) -> LockedFolder:
    """Create a folder below `parent`, and remove the folders there whose process has
    ended."""
    for lock in parent.glob(f"{prefix}*{_LOCK_SUFFIX}"):
        _remove_if_abandoned(lock.with_name(lock.name.removesuffix(_LOCK_SUFFIX)))
    while True:
        descriptor, lock_path = tempfile.mkstemp(prefix=prefix, suffix=_LOCK_SUFFIX, dir=parent)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            break
        os.close(descriptor)  # another process removed it before it was locked
    folder = Path(lock_path.removesuffix(_LOCK_SUFFIX))
    folder.mkdir(mode=0o700)
    return LockedFolder(folder, descriptor)


def _remove_if_abandoned(folder: Path) -> None:
    """Remove the folder if its process has ended and the lock is this account's."""
    try:
        descriptor = os.open(_lock_of(folder), os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_uid == os.getuid():
            _remove_with_lock(folder)
    except BlockingIOError:
        pass
    finally:
        os.close(descriptor)


def _remove_with_lock(folder: Path) -> None:
    """Remove a folder, then its lock. If the folder cannot be removed, the lock stays,
    so that a later process tries again."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        with suppress(OSError):
            _lock_of(folder).unlink()


def _lock_of(folder: Path) -> Path:
    return folder.with_name(folder.name + _LOCK_SUFFIX)
