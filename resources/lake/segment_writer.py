"""Writing one segment: Parquet files that end at a size, and are durable when they are told of.

Encodings are chosen by looking at the first rows. A dictionary makes a column of few values small
and fast, and one of many values slow: it is built, outgrown and thrown away (three times the
seconds and the bytes for a table of numbers). Numbers that are no dictionary's business are written
as differences (DELTA_BINARY_PACKED), which Spark, delta-rs and DuckDB read.
"""

from __future__ import annotations

import hashlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.segment import ENDINGS, GROUP_ROWS, SegmentFile
from resources.lake.paths import LakePath
from resources.lake.storage import (
    lake_errors,
    make_durable,
    make_durable_folder,
    new_file,
    sync_folder,
)

FILE_BYTES = 512 * 1024**2
"""A file is closed once it has grown to this size."""
AHEAD = 2
"""Writes that may wait for the thread that writes."""


class ParquetSegmentWriter:
    """`pipeline.ports.SegmentWriter`: files that roll over, written by another thread. Their names
    are a `stem`, their number, and a `mark` of what they have.

    Encoding takes as long as decoding and holds no lock of Python's, so the two run side by
    side. At most `AHEAD` writes wait; whatever went wrong is raised by the next call.
    """

    def __init__(
        self,
        folder: LakePath,
        stem: str,
        mark: str,
        schema: pa.Schema,
        file_bytes: int,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._folder = folder
        self._stem, self._mark = stem, mark
        self._schema = schema
        self._file_bytes = file_bytes
        self._pool = pool
        self._coming: deque[Future[None]] = deque()
        self._current: _OpenFile | None = None
        self._finished: list[SegmentFile] = []

    def write(self, changes: pa.Table) -> None:
        if not changes.num_rows:
            return
        self._wait(AHEAD)
        self._coming.append(self._pool.submit(self._write, changes))

    def cut(self) -> int:
        self._wait(0)
        if self._current is not None:
            self._finish(self._current)
        return len(self._finished)

    def drop(self, files: int) -> None:
        # What is dropped may be what failed to be written.
        wait(self._coming)
        self._coming.clear()
        gone, self._finished = self._finished[files:], self._finished[:files]
        with lake_errors(self._folder):
            if self._current is not None:
                self._current.abandon()
                self._current = None
            for file in gone:
                (self._folder / file.path).unlink()

    def close(self) -> tuple[SegmentFile, ...]:
        if self.cut():
            with lake_errors(self._folder):
                sync_folder(self._folder)
        return tuple(self._finished)

    def _wait(self, most: int) -> None:
        """Until no more writes than that are under way."""
        while len(self._coming) > most:
            self._coming.popleft().result()

    def _write(self, table: pa.Table) -> None:
        with lake_errors(self._folder):
            if self._current is not None and self._current.width != len(table.schema):
                self._finish(self._current)
            current = self._current or self._begin(table)
            self._current = current
            current.write(table)
        if current.size >= self._file_bytes:
            self._finish(current)

    def _begin(self, first: pa.Table) -> _OpenFile:
        make_durable_folder(self._folder)
        more = len(first.schema) - len(self._schema)
        name = f"{self._stem}-{len(self._finished):05d}{self._mark}{ENDINGS[more]}"
        schema = first.schema if more else self._schema
        return _OpenFile(self._folder / name, schema, *_encodings(first))

    def _finish(self, current: _OpenFile) -> None:
        with lake_errors(current.path):
            self._finished.append(current.finish())
        self._current = None


class _OpenFile:
    """One Parquet file being written, hashed on its way to disk."""

    def __init__(
        self, path: LakePath, schema: pa.Schema, dictionary: list[str], delta: list[str]
    ) -> None:
        self.path = path
        self.width = len(schema)
        self._images = 0
        self._sink = _HashingSink(path)
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            compression="zstd",
            coerce_timestamps="us",
            store_decimal_as_integer=True,
            use_dictionary=dictionary,
            column_encoding=dict.fromkeys(delta, "DELTA_BINARY_PACKED"),
        )

    @property
    def size(self) -> int:
        return self._sink.size

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=GROUP_ROWS)
        self._images += table.num_rows

    def abandon(self) -> None:
        """Close and delete: what was written is not wanted, and its end, which a full disk would
        not take, is not written."""
        self._sink.forget()
        with suppress(OSError, pa.ArrowException):
            self._writer.close()
        self.path.unlink()

    def finish(self) -> SegmentFile:
        self._writer.close()
        size, sha256 = self._sink.seal()
        return SegmentFile(self.path.name, self._images, size, sha256)


class _HashingSink:
    """A file that knows its size and SHA-256 without being read again."""

    def __init__(self, path: LakePath) -> None:
        self._path = path
        self._file = new_file(path)
        self._closed = False
        self._hash = hashlib.sha256()
        self._forgotten = False
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview) -> int:
        view = memoryview(data).cast("B")
        self._hash.update(view)
        done = len(view) if self._forgotten else 0
        while done < len(view):
            done += self._file.write(view[done:]) or 0
        self.size += len(view)
        return len(view)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Nothing waits in here: every write went to the operating system."""

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True
        self._file.close()

    def forget(self) -> None:
        """Close; what is written from now on goes nowhere."""
        self._forgotten = True
        self._file.close()

    def seal(self) -> tuple[int, str]:
        """Make the content durable and close; (size, SHA-256 in hex)."""
        self._closed = True
        make_durable(self._path, self._file, self.size)
        return self.size, self._hash.hexdigest()


_SAMPLE_ROWS = 8192
_FEW = 16
"""A dictionary is worth its while where so many rows share a value, on average."""


def _encodings(rows: pa.Table) -> tuple[list[str], list[str]]:
    """Columns with a dictionary, and columns written as differences, of a file that begins with
    these rows."""
    dictionary, delta = [], []
    sample = rows.slice(0, _SAMPLE_ROWS)
    for column in sample.schema:
        values, kind = sample.column(column.name), column.type
        hashable = not (pa.types.is_nested(kind) or pa.types.is_boolean(kind))
        if hashable and pc.count_distinct(values, mode="all").as_py() * _FEW <= len(values):
            dictionary.append(column.name)
        elif pa.types.is_integer(kind) or pa.types.is_temporal(kind):
            delta.append(column.name)
    return dictionary, delta
