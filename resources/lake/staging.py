"""Staged files: what Spark reads of ours, and what it reads more than once.

Belongs here: where they lie, and that they go, however their process ends. Does not: what is in
them.

Each process has a folder of its own below the staging folder, and a lock beside it for as long as
it lives. Whoever stages first removes the folders whose lock nobody holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.segment import GROUP_ROWS
from resources.lake.storage import lake_errors
from resources.private import make_private

_LOCKED: Final = ".lock"


class Staging:
    """The staged files of this process; its folder is made when it is needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn = Lock()
        self._own: Path | None = None
        self._ended: Callable[[], object] = lambda: None

    def stage(self, name: str, rows: pa.Table) -> str:
        """A Parquet file of these rows; its absolute path. Nothing stays of one that could not
        be written."""
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
        """A folder for files of Spark's that goes when it is done with."""
        with lake_errors(self._folder):
            folder = tempfile.mkdtemp(prefix="folder-", dir=self._of_process())
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def end(self) -> None:
        """All that was staged goes now; repeating it changes nothing."""
        with self._turn:
            self._ended()
            self._own = None

    def _of_process(self) -> Path:
        with self._turn:
            if self._own is None:
                make_private(self._folder)
                for lock in self._folder.glob(f"*{_LOCKED}"):
                    _remove_left(lock)
                self._own, descriptor = _made(self._folder)
                self._ended = weakref.finalize(self, _end, self._own, descriptor)
            return self._own


def _made(staging: Path) -> tuple[Path, int]:
    """A new folder, and its lock, which is held before the folder is there."""
    while True:
        descriptor, name = tempfile.mkstemp(prefix="run-", suffix=_LOCKED, dir=staging)
        if _locked(descriptor) and os.fstat(descriptor).st_nlink:
            folder = Path(name).with_suffix("")
            folder.mkdir(mode=0o700)
            return folder, descriptor
        os.close(descriptor)


def _remove_left(lock: Path) -> None:
    """The folder of a process that is gone."""
    with suppress(FileNotFoundError, PermissionError):
        descriptor = os.open(lock, os.O_RDWR)
        if _locked(descriptor):
            _end(lock.with_suffix(""), descriptor)
        else:
            os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _end(folder: Path, descriptor: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_name(folder.name + _LOCKED).unlink(missing_ok=True)
    os.close(descriptor)
