"""Segments: Parquet files of row images, which are durable before the ledger records
them.

pyarrow writes them, without Java, in a form that Spark, delta-rs and DuckDB read alike:
zstd, timestamps in microseconds, no INT96, no unsigned integers. `damage_sentences`
compares them with what the ledger recorded. `pipeline.run.dump.segmenter` decides
which changes go into a segment; `changelog` adds the files to a Delta table.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockstep.pipeline.ports.lease_check import RequireHeld, no_check
from lockstep.pipeline.values.errors import SegmentsLost
from lockstep.pipeline.values.row_groups import GROUP_ROWS
from lockstep.pipeline.values.segment import (
    FILE_ENDINGS,
    UPDATED_INFIX,
    SegmentFile,
    SystemTable,
    batch_of,
    name_before_revision,
)
from lockstep.resources.lake.spark.java_classes import path_and_file_system
from lockstep.resources.lake.spark.spark import Spark
from lockstep.resources.lake.store.paths import LakePath, ObjectPath
from lockstep.resources.lake.store.storage import (
    close_durably,
    create_file,
    lake_errors,
    make_durable_folder,
    parquet_content,
    remove_folder,
    sha256_of,
    sync_folder,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_FILE_BYTES = 512 * 1024**2
"""Size in bytes at which a file is closed and the next one is begun."""
_MOST_PENDING_WRITES = 2
"""Largest number of writes that wait for the writing thread."""
_PIECE_ROWS = 4 * GROUP_ROWS
_PIECE_BYTES = 32 << 20
"""Largest numbers of rows and of uncompressed bytes that `pieces` reads at once. A
single row group may exceed them."""
_VALUE_BYTES = 8
"""Bytes that most values take in memory, NULL included."""
_BATCH_FILE = re.compile(
    r"batch-(\d{12,})-v\d+-([0-9a-f]{8}-)?\d{5}(-updated)?(-logged|-partial)?\.parquet"
)
"""Names of files that wait for their publishing. Lockstep 0.1 wrote no random digits into them."""


class ParquetSegments:
    """`pipeline.ports.SegmentStore` in the lake. `spark` is used only to abort
    unfinished uploads.

    Each store has random digits, which are in its files' names. Two copies of a ledger
    (one was restored from a backup, while the other goes on) give the same numbers to
    batches and loads. The claim refuses one of them when it publishes, but until then
    both write. Because of the digits, neither overwrites a file of the other, nor
    deletes the other's files of a batch that both began.
    """

    def __init__(
        self,
        lake: LakePath,
        *,
        file_bytes: int = _FILE_BYTES,
        spark: Spark | None = None,
    ) -> None:
        self._lake = lake
        self._spark = spark
        self._file_bytes = file_bytes
        self._random_digits = secrets.token_hex(4)
        self._own_batches = set[int]()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="lockstep-segments")

    def open(
        self,
        folder: str,
        *,
        batch: int,
        schema_version: int,
        schema: pa.Schema,
        has_updated: bool = False,
    ) -> ParquetSegmentWriter:
        self._own_batches.add(batch)
        stem = f"batch-{batch:012d}-v{schema_version}-{self._random_digits}"
        return self._writer(folder, stem, UPDATED_INFIX if has_updated else "", schema)

    def open_chunk(
        self, folder: str, *, load: int, chunk: int, schema: pa.Schema
    ) -> ParquetSegmentWriter:
        stem = f"load-{load:012d}-{chunk:06d}"
        self._unlink(folder, f"{stem}-*.parquet")
        return self._writer(folder, f"{stem}-{self._random_digits}", "", schema)

    def _writer(
        self, folder: str, stem: str, name_mark: str, schema: pa.Schema
    ) -> ParquetSegmentWriter:
        path = self._lake / folder
        return ParquetSegmentWriter(path, stem, name_mark, schema, self._file_bytes, self._pool)

    def damage_sentences(self, folder: str, files: Iterable[SegmentFile]) -> list[str]:
        return damage_sentences(self._lake / folder, files)

    def pieces(
        self, folder: str, files: Iterable[SegmentFile], columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        column_list = None if columns is None else list(columns)
        for file in files:
            path = self._lake / folder / file.path
            # Not read as a dataset, which would take `=XX` in a folder's name for a
            # partition.
            with lake_errors(path), pq.ParquetFile(parquet_content(path)) as content:
                for groups in _row_group_lists(content.metadata):
                    yield content.read_row_groups(groups, columns=column_list)

    def unpacked_bytes(self, folder: str, files: Iterable[SegmentFile]) -> int:
        total = 0
        for file in files:
            path = self._lake / folder / file.path
            with lake_errors(path), pq.ParquetFile(parquet_content(path)) as content:
                metadata = content.metadata
                groups = map(metadata.row_group, range(metadata.num_row_groups))
                stored = sum(group.total_byte_size for group in groups)
                # NULLs and values of a dictionary take memory, but little of a file.
                least = metadata.num_rows * metadata.num_columns * _VALUE_BYTES
                total += max(stored, least)
        return total

    def delete_batch(self, source: str, batch: int) -> int:
        # If this process began the batch, the batch's files have its digits. If another
        # process began the batch, their digits are unknown.
        own_digits = f"{self._random_digits}-" if batch in self._own_batches else ""
        deleted_count = 0
        source_folder = self._lake / source
        with lake_errors(source_folder):
            for folder in ("_changes/*/*", *SystemTable):
                for path in source_folder.glob(
                    f"{folder}/batch-{batch:012d}-v*-{own_digits}*.parquet"
                ):
                    if _BATCH_FILE.fullmatch(path.name):
                        path.unlink()
                        deleted_count += 1
        return deleted_count

    def abort_uploads(self, source: str) -> None:
        if (
            isinstance(self._lake, ObjectPath)
            and self._spark is not None
            and self._spark.can_call_java
        ):
            _abort_uploads(self._spark.session(), self._lake / source)

    def delete_load(self, folder: str, load: int) -> None:
        self._unlink(folder, f"load-{load:012d}-*.parquet")

    def _unlink(self, folder: str, pattern: str) -> None:
        path = self._lake / folder
        with lake_errors(path):
            files: list[LakePath] = [*path.glob(pattern)]
            for file in files:
                file.unlink()

    def move_files(self, origin: str, target: str, files: Iterable[SegmentFile]) -> None:
        source_folder, target_folder = self._lake / origin, self._lake / target
        with lake_errors(target_folder):
            make_durable_folder(target_folder)
            for file in files:
                with suppress(FileNotFoundError):
                    path: Any = source_folder / name_before_revision(file.path)
                    path.replace(target_folder / file.path)
            sync_folder(target_folder)

    def delete_folder(self, folder: str) -> None:
        path = self._lake / folder
        with lake_errors(path):
            remove_folder(path)

    def delete_batches(
        self,
        folder: str,
        through: int,
        kept_names: Collection[str] = (),
        require_held: RequireHeld = no_check,
    ) -> int:
        path = self._lake / folder
        with lake_errors(path):
            deletable = [
                file
                for file in path.glob("*.parquet")
                if (batch_of(file.name) or 0) <= through and file.name not in kept_names
            ]
            require_held()
            for file in deletable:
                file.unlink(missing_ok=True)
        return len(deletable)

    def delete_files(self, folder: str, files: Iterable[SegmentFile]) -> None:
        for file in files:
            path = self._lake / folder / file.path
            with lake_errors(path):
                path.unlink(missing_ok=True)


def _row_group_lists(file: pq.FileMetaData) -> Iterator[list[int]]:
    """Yield lists of indexes of a file's row groups; the groups of a list are read at
    once."""
    groups: list[int] = []
    row_count = byte_count = 0
    for index in range(file.num_row_groups):
        group = file.row_group(index)
        if groups and (
            row_count + group.num_rows > _PIECE_ROWS
            or byte_count + group.total_byte_size > _PIECE_BYTES
        ):
            yield groups
            groups, row_count, byte_count = [], 0, 0
        groups.append(index)
        row_count += group.num_rows
        byte_count += group.total_byte_size
    if groups:
        yield groups


def _abort_uploads(session: SparkSession, prefix: ObjectPath) -> None:
    """Abort all unfinished multipart uploads below a prefix. No process may be writing
    there.

    If a process is killed during such an upload, the uploaded parts remain in the
    store: they are billed, but a listing of objects does not show them. Hadoop's client
    can abort uploads; obstore cannot. The parts remain if the store refuses to list
    uploads, or if Spark runs outside this process (Spark Connect).
    """
    from py4j.protocol import Py4JJavaError

    with suppress(Py4JJavaError):
        path, store = path_and_file_system(session, f"{prefix}/")
        uploader = store.createMultipartUploader(path).build()
        uploader.abortUploadsUnderPath(path).get()


def damage_sentences(folder: LakePath, files: Iterable[SegmentFile]) -> list[str]:
    """Return a sentence for each file that is damaged in `folder` or missing from it.
    If the checksum of a file was never recorded, only its size is compared."""
    damages = []
    for file in files:
        path = folder / file.path
        with lake_errors(path):
            damage = _damage(path, file)
        if damage is not None:
            damages.append(f"{path} {damage}")
    return damages


def refuse_damaged(folder: LakePath, files: Iterable[SegmentFile]) -> None:
    """Raise `SegmentsLost` if a file is missing or differs from what the ledger
    recorded."""
    damages = damage_sentences(folder, files)
    if damages:
        raise SegmentsLost(
            damages[0],
            hint="restore the file from a copy of the lake, or run again: a batch of which nothing "
            "is merged is captured again",
        )


def _damage(path: LakePath, file: SegmentFile) -> str | None:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return "is missing"
    if file.size and size != file.size:
        return f"has {size} bytes instead of {file.size}"
    if file.sha256 and sha256_of(path) != file.sha256:
        return "has another checksum than when it was written"
    return None


class ParquetSegmentWriter:
    """`pipeline.ports.SegmentWriter`: files of limited size, written by another thread.
    A file's name consists of `stem`, a number, `name_mark` and one of `FILE_ENDINGS`;
    `name_mark` and the ending say which columns the file has besides
    `layout.changelog_schema`.

    Encoding Parquet takes as long as decoding the log and releases the GIL, so the two
    run in parallel. At most `_MOST_PENDING_WRITES` writes wait. An error in the thread
    is raised by the next call.
    """

    def __init__(
        self,
        folder: LakePath,
        stem: str,
        name_mark: str,
        schema: pa.Schema,
        file_bytes: int,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._folder = folder
        self._stem, self._name_mark = stem, name_mark
        self._schema = schema
        self._file_bytes = file_bytes
        self._pool = pool
        self._pending_writes: deque[Future[None]] = deque()
        self._open_file: _OpenFile | None = None
        self._finished_files: list[SegmentFile] = []

    def write(self, changes: pa.Table) -> None:
        if not changes.num_rows:
            return
        self._wait(_MOST_PENDING_WRITES)
        self._pending_writes.append(self._pool.submit(self._write, changes))

    def end_file(self) -> int:
        self._wait(0)
        if self._open_file is not None:
            self._finish(self._open_file)
        return len(self._finished_files)

    def drop(self, file_count: int) -> None:
        # Errors of these writes are ignored, because the files are dropped.
        wait(self._pending_writes)
        self._pending_writes.clear()
        dropped_files = self._finished_files[file_count:]
        self._finished_files = self._finished_files[:file_count]
        with lake_errors(self._folder):
            if self._open_file is not None:
                self._open_file.abandon()
                self._open_file = None
            for file in dropped_files:
                (self._folder / file.path).unlink()

    def close(self) -> tuple[SegmentFile, ...]:
        if self.end_file():
            with lake_errors(self._folder):
                sync_folder(self._folder)
        return tuple(self._finished_files)

    def _wait(self, most_pending: int) -> None:
        """Wait until at most `most_pending` writes are unfinished."""
        while len(self._pending_writes) > most_pending:
            self._pending_writes.popleft().result()

    def _write(self, table: pa.Table) -> None:
        with lake_errors(self._folder):
            if self._open_file is not None and self._open_file.column_count != len(table.schema):
                self._finish(self._open_file)
            open_file = self._open_file or self._begin(table)
            self._open_file = open_file
            open_file.write(table)
        if open_file.size >= self._file_bytes:
            self._finish(open_file)

    def _begin(self, first_rows: pa.Table) -> _OpenFile:
        make_durable_folder(self._folder)
        extra_column_count = len(first_rows.schema) - len(self._schema)
        ending = f"{self._name_mark}{FILE_ENDINGS[extra_column_count]}"
        name = f"{self._stem}-{len(self._finished_files):05d}{ending}"
        schema = first_rows.schema if extra_column_count else self._schema
        return _OpenFile(self._folder / name, schema, *_column_encodings(first_rows))

    def _finish(self, open_file: _OpenFile) -> None:
        with lake_errors(open_file.path):
            self._finished_files.append(open_file.finish())
        self._open_file = None


class _OpenFile:
    """A Parquet file that is being written, and hashed on its way to disk."""

    def __init__(
        self,
        path: LakePath,
        schema: pa.Schema,
        dictionary_columns: list[str],
        delta_columns: list[str],
    ) -> None:
        self.path = path
        self.column_count = len(schema)
        self._image_count = 0
        self._sink = _HashingSink(path)
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            compression="zstd",
            coerce_timestamps="us",
            store_decimal_as_integer=True,
            use_dictionary=dictionary_columns,
            column_encoding=dict.fromkeys(delta_columns, "DELTA_BINARY_PACKED"),
        )

    @property
    def size(self) -> int:
        return self._sink.size

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=GROUP_ROWS)
        self._image_count += table.num_rows

    def abandon(self) -> None:
        """Close and delete the file. Its footer is not written, because a full disk has
        no room for it."""
        self._sink.discard_rest()
        with suppress(OSError, pa.ArrowException):
            self._writer.close()
        self.path.unlink()

    def finish(self) -> SegmentFile:
        self._writer.close()
        size, sha256 = self._sink.seal()
        return SegmentFile(self.path.name, self._image_count, size, sha256)


class _HashingSink:
    """A file that computes its size and SHA-256 while it is written."""

    def __init__(self, path: LakePath) -> None:
        self._path = path
        self._file = create_file(path)
        self._closed = False
        self._hash = hashlib.sha256()
        self._is_discarding = False
        self.size = 0

    def write(self, data: bytes | bytearray | memoryview) -> int:
        view = memoryview(data).cast("B")
        self._hash.update(view)
        written = len(view) if self._is_discarding else 0
        while written < len(view):
            written += self._file.write(view[written:]) or 0
        self.size += len(view)
        return len(view)

    def flush(self) -> None:
        """Do nothing, because `write` has already passed everything to the operating
        system."""

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True
        self._file.close()

    def discard_rest(self) -> None:
        """Close the file and ignore everything written from now on."""
        self._is_discarding = True
        self._file.close()

    def seal(self) -> tuple[int, str]:
        """Make the content durable and close the file; return its size and SHA-256 in
        hex."""
        self._closed = True
        close_durably(self._path, self._file, self.size)
        return self.size, self._hash.hexdigest()


_SAMPLE_ROWS = 8192
_ROWS_PER_VALUE = 16
"""Smallest average number of rows per distinct value at which a dictionary is used."""


def _column_encodings(rows: pa.Table) -> tuple[list[str], list[str]]:
    """Return the columns of a file that are written with a dictionary, and those that
    are written as differences, judged by the file's first rows.

    A dictionary makes a column of few distinct values small and fast. With many
    distinct values, the writer builds a dictionary, finds it too large and discards it;
    for a table of numbers, this takes three times the seconds and bytes. Numbers
    without a dictionary are written as differences (DELTA_BINARY_PACKED), which Spark,
    delta-rs and DuckDB read.
    """
    dictionary_columns, delta_columns = [], []
    sample = rows.slice(0, _SAMPLE_ROWS)
    for column in sample.schema:
        values, kind = sample.column(column.name), column.type
        is_hashable = not (pa.types.is_nested(kind) or pa.types.is_boolean(kind))
        if is_hashable and pc.count_distinct(values, mode="all").as_py() * _ROWS_PER_VALUE <= len(
            values
        ):
            dictionary_columns.append(column.name)
        elif pa.types.is_integer(kind) or pa.types.is_temporal(kind):
            delta_columns.append(column.name)
    return dictionary_columns, delta_columns
