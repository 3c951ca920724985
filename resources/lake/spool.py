"""The spool on disk: where row events wait that fit no memory, or whose end is not yet read.

What is in them is `pipeline.binlog.transactions.spill`.

Two kinds of files. A scratch file has no name, so the operating system takes it back with
the process, however that ends. A prepared file is
`<lake>/<source>/_prepared/batch-<batch, 12 digits>-<number, 5 digits>.events`; a source's
databases never begin with `_` there (`pipeline.changes.layout`). In an object store it is
written to a scratch file, and uploaded when it is sealed; to be read, it is brought back to one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Final

from pipeline.errors import SegmentsLost
from pipeline.ports.spool import EventFile
from pipeline.segment import SegmentFile
from resources.lake.paths import LakePath, ObjectPath
from resources.lake.storage import lake_errors, make_durable, make_durable_folder, sync_folder
from resources.private import make_private

_WRITE_BYTES: Final = 1 << 20
"""Smaller pieces are collected to this size before they are written."""

_NAME = re.compile(r"batch-\d{12,}-\d{5,}\.events")


class FileSpool:
    """`pipeline.ports.Spool` in the lake.

    `scratch` is a folder of this machine for files that need not survive the process; it is made
    at the first one, for this account alone.
    """

    def __init__(self, lake: LakePath, scratch: Path) -> None:
        self._lake = lake
        self._scratch = scratch

    def scratch(self) -> DiskEventFile:
        return DiskEventFile(self._unnamed(), self._scratch)

    def _unnamed(self) -> int:
        """The descriptor of a scratch file."""
        with lake_errors(self._scratch):
            make_private(self._scratch)
            with tempfile.TemporaryFile(dir=self._scratch, buffering=0) as file:
                return os.dup(file.fileno())

    def prepared(self, source: str, batch: int, number: int) -> DiskEventFile:
        folder = self._folder(source)
        path = folder / f"batch-{batch:012d}-{number:05d}.events"
        with lake_errors(path):
            make_durable_folder(folder)
            if isinstance(path, ObjectPath):
                descriptor = self._unnamed()
            else:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
        return DiskEventFile(descriptor, path, hashed=True)

    def seal(self, file: EventFile) -> SegmentFile:
        """`SegmentFile.path` is relative to the source's folder `_prepared`; its `images`
        are not counted and 0."""
        if not isinstance(file, DiskEventFile):
            raise TypeError(f"{file!r} is no file of this spool")
        sealed = SegmentFile(file.path.name, 0, *file.seal())
        with lake_errors(file.path):
            sync_folder(file.path.parent)
        return sealed

    def open(self, source: str, file: SegmentFile) -> DiskEventFile:
        path = self._folder(source) / file.path
        with lake_errors(path):
            try:
                if isinstance(path, ObjectPath):
                    descriptor = self._brought(path)
                else:
                    descriptor = os.open(path, os.O_RDONLY)
            except FileNotFoundError as error:
                raise _lost(path, "is missing") from error
            size = os.fstat(descriptor).st_size
        opened = DiskEventFile(descriptor, path, size=size)
        wrong = opened.unlike(file)
        if wrong is not None:
            opened.close()
            raise _lost(path, wrong)
        return opened

    def _brought(self, path: ObjectPath) -> int:
        """The descriptor of a scratch file with an object's content."""
        with path.open() as content:
            descriptor = self._unnamed()
            with open(descriptor, "wb", closefd=False) as copy:
                shutil.copyfileobj(content, copy, _WRITE_BYTES)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def discard(self, source: str, batch: int) -> int:
        removed = 0
        folder = self._folder(source)
        with lake_errors(folder):
            found: list[LakePath] = [*folder.glob(f"batch-{batch:012d}-*.events")]
            for path in found:
                if _NAME.fullmatch(path.name):
                    path.unlink()
                    removed += 1
        return removed

    def remove(self, source: str, file: SegmentFile) -> None:
        path = self._folder(source) / file.path
        with lake_errors(path):
            path.unlink(missing_ok=True)

    def _folder(self, source: str) -> LakePath:
        return self._lake / source / "_prepared"


class DiskEventFile:
    """`pipeline.ports.EventFile` over a descriptor, which goes when this object does.

    `path` is the file's, or of a file without a name the folder. `size` in bytes,
    whatever of it waits to be written included.
    """

    def __init__(
        self, descriptor: int, path: LakePath, *, size: int = 0, hashed: bool = False
    ) -> None:
        self.path = path
        self.size = size
        self._descriptor = descriptor
        self._release = weakref.finalize(self, os.close, descriptor)
        self._digest = hashlib.sha256() if hashed else None
        self._waiting = bytearray()

    def write(self, data: bytes | memoryview) -> None:
        if self._digest is not None:
            self._digest.update(data)
        length = memoryview(data).nbytes
        self.size += length
        with lake_errors(self.path):
            if len(self._waiting) + length < _WRITE_BYTES:
                self._waiting += data
                return
            self._flush()
            self._write(memoryview(data).cast("B"))

    def read(self, at: int, count: int) -> bytes:
        if at < 0 or count < 0 or at + count > self.size:
            raise _lost(self.path, f"ends at byte {self.size}, before {at} + {count}")
        with lake_errors(self.path):
            self._flush()
            found = os.pread(self._descriptor, count, at)
            while len(found) < count:
                more = os.pread(self._descriptor, count - len(found), at + len(found))
                if not more:
                    raise _lost(self.path, "was cut off while it was read")
                found += more
        return found

    def close(self) -> None:
        """Repeating it changes nothing."""
        self._release()
        self._descriptor = -1
        self._waiting.clear()

    def seal(self) -> tuple[int, str]:
        """Make the content durable and close; (size, SHA-256 in hex)."""
        if self._digest is None:
            raise ValueError(f"{self.path} is not a prepared file being written")
        with lake_errors(self.path):
            self._flush()
            if isinstance(self.path, ObjectPath):
                self._upload(self.path)
            else:
                os.fsync(self._descriptor)
        self.close()
        return self.size, self._digest.hexdigest()

    def _upload(self, path: ObjectPath) -> None:
        sink = path.create()
        at = 0
        while at < self.size:
            at += sink.write(os.pread(self._descriptor, _WRITE_BYTES, at)) or 0
        make_durable(path, sink, self.size)

    def unlike(self, file: SegmentFile) -> str | None:
        """What differs from what was sealed, in words; None if nothing does."""
        if self.size != file.size:
            return f"has {self.size} bytes instead of {file.size}"
        with (
            lake_errors(self.path),
            open(self._descriptor, "rb", buffering=0, closefd=False) as content,
        ):
            if hashlib.file_digest(content, "sha256").hexdigest() != file.sha256:
                return "has another checksum than when it was written"
        return None

    def _flush(self) -> None:
        if self._waiting:
            self._write(memoryview(bytes(self._waiting)))
            self._waiting.clear()

    def _write(self, data: memoryview) -> None:
        done = 0
        while done < len(data):
            done += os.write(self._descriptor, data[done:])


def _lost(path: LakePath, what: str) -> SegmentsLost:
    return SegmentsLost(
        f"Row events that waited in a file are lost: {path} {what}",
        hint="nothing was recorded; restore the file from a copy of the lake, then run again",
    )
