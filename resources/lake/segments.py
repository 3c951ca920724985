"""Segments: Parquet files that are durable before the ledger hears of them.

Written by pyarrow, no Java. Microsecond timestamps, no INT96, no unsigned integers, zstd:
what Spark, delta-rs and DuckDB read alike. Whether files are what the ledger recorded is said here,
too. Which changes go into a segment is decided in `pipeline.runs.capturing.segment_builder`; adding
the files to a Delta table is `changelog`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import SegmentsLost
from pipeline.revision import written_as
from pipeline.segment import GROUP_ROWS, UPDATED, SegmentFile, SourceTable
from resources.lake.folders import remove_folder
from resources.lake.java_classes import hadoop_path
from resources.lake.paths import LakePath, ObjectPath
from resources.lake.segment_writer import FILE_BYTES, ParquetSegmentWriter
from resources.lake.spark import Spark
from resources.lake.storage import (
    lake_errors,
    make_durable_folder,
    parquet_content,
    sha256_of,
    sync_folder,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIECE_ROWS = 4 * GROUP_ROWS
PIECE_BYTES = 32 << 20
"""What is read at once, before compression, unless a single row group is more."""
_NAME = re.compile(r"batch-(\d{12,})-v\d+-\d{5}(-updated)?(-logged|-partial)?\.parquet")


class ParquetSegments:
    """`pipeline.ports.SegmentStore` in the lake; `spark` is asked for uploads in parts."""

    def __init__(
        self,
        lake: LakePath,
        *,
        file_bytes: int = FILE_BYTES,
        spark: Spark | None = None,
    ) -> None:
        self._lake = lake
        self._spark = spark
        self._file_bytes = file_bytes
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="lockstep-segments")

    def open(
        self,
        folder: str,
        *,
        batch: int,
        schema_version: int,
        schema: pa.Schema,
        updated: bool = False,
    ) -> ParquetSegmentWriter:
        stem = f"batch-{batch:012d}-v{schema_version}"
        return self._writer(folder, stem, UPDATED if updated else "", schema)

    def open_chunk(
        self, folder: str, *, load: int, chunk: int, schema: pa.Schema
    ) -> ParquetSegmentWriter:
        stem = f"load-{load:012d}-{chunk:06d}"
        self._unlink(folder, f"{stem}-*.parquet")
        return self._writer(folder, stem, "", schema)

    def _writer(self, folder: str, stem: str, mark: str, schema: pa.Schema) -> ParquetSegmentWriter:
        path = self._lake / folder
        return ParquetSegmentWriter(path, stem, mark, schema, self._file_bytes, self._pool)

    def damaged(self, folder: str, files: Iterable[SegmentFile]) -> list[str]:
        return damaged_files(self._lake / folder, files)

    def pieces(
        self, folder: str, files: Iterable[SegmentFile], columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        wanted = None if columns is None else list(columns)
        for file in files:
            path = self._lake / folder / file.path
            # By itself: a dataset would take `=XX` in folder names for partitions.
            with lake_errors(path), pq.ParquetFile(parquet_content(path)) as content:
                for groups in _together(content.metadata):
                    yield content.read_row_groups(groups, columns=wanted)

    def unpacked(self, folder: str, files: Iterable[SegmentFile]) -> int:
        return sum(_unpacked(self._lake / folder / file.path) for file in files)

    def discard(self, source: str, batch: int) -> int:
        removed = 0
        below = self._lake / source
        with lake_errors(below):
            for folder in ("_changes/*/*", *SourceTable):
                for path in below.glob(f"{folder}/batch-{batch:012d}-v*-*.parquet"):
                    if _NAME.fullmatch(path.name):
                        path.unlink()
                        removed += 1
        return removed

    def give_up_uploads(self, source: str) -> None:
        if isinstance(self._lake, ObjectPath) and self._spark is not None and self._spark.java:
            _give_up_uploads(self._spark.session(), self._lake / source)

    def discard_load(self, folder: str, load: int) -> int:
        return self._unlink(folder, f"load-{load:012d}-*.parquet")

    def _unlink(self, folder: str, pattern: str) -> int:
        below = self._lake / folder
        with lake_errors(below):
            found: list[LakePath] = [*below.glob(pattern)]
            for path in found:
                path.unlink()
        return len(found)

    def bring(self, origin: str, folder: str, files: Iterable[SegmentFile]) -> None:
        below, into = self._lake / origin, self._lake / folder
        with lake_errors(into):
            make_durable_folder(into)
            for file in files:
                with suppress(FileNotFoundError):
                    path: Any = below / written_as(file.path)
                    path.replace(into / file.path)
            sync_folder(into)

    def clear(self, folder: str) -> None:
        path = self._lake / folder
        with lake_errors(path):
            remove_folder(path)

    def remove(self, folder: str, files: Iterable[SegmentFile]) -> None:
        for file in files:
            path = self._lake / folder / file.path
            with lake_errors(path):
                path.unlink(missing_ok=True)


def _together(file: pq.FileMetaData) -> Iterator[list[int]]:
    """Row groups that are read at once."""
    groups: list[int] = []
    rows = size = 0
    for number in range(file.num_row_groups):
        group = file.row_group(number)
        if groups and (
            rows + group.num_rows > PIECE_ROWS or size + group.total_byte_size > PIECE_BYTES
        ):
            yield groups
            groups, rows, size = [], 0, 0
        groups.append(number)
        rows, size = rows + group.num_rows, size + group.total_byte_size
    if groups:
        yield groups


def _unpacked(path: LakePath) -> int:
    with lake_errors(path), pq.ParquetFile(parquet_content(path)) as file:
        groups = range(file.metadata.num_row_groups)
        return sum(file.metadata.row_group(group).total_byte_size for group in groups)


def _give_up_uploads(session: SparkSession, below: ObjectPath) -> None:
    """Give up the uploads in parts, of all objects below a prefix, that nobody finished. Whoever is
    killed inside of one leaves its parts, which are in no listing and on every bill. The store's
    Python client has no request for that, Hadoop's has. A store that does not let itself be asked
    for them keeps them, and so does one that only a Spark elsewhere could ask. Nobody may be
    writing there."""
    from py4j.protocol import Py4JJavaError

    with suppress(Py4JJavaError):
        path, store = hadoop_path(session, f"{below}/")
        uploader = store.createMultipartUploader(path).build()
        uploader.abortUploadsUnderPath(path).get()


def damaged_files(folder: LakePath, files: Iterable[SegmentFile]) -> list[str]:
    """What is wrong with files that should be in `folder`, a sentence each. Of a file whose
    checksum nobody knows, the size counts."""
    found = []
    for file in files:
        path = folder / file.path
        with lake_errors(path):
            wrong = _wrong(path, file)
        if wrong is not None:
            found.append(f"{path} {wrong}")
    return found


def refuse_damaged(folder: LakePath, files: Iterable[SegmentFile]) -> None:
    """`SegmentsLost` if a file is missing or is not what the ledger recorded."""
    wrong = damaged_files(folder, files)
    if wrong:
        raise SegmentsLost(
            wrong[0],
            hint="restore the file from a copy of the lake, or run again: a batch of which nothing "
            "is merged is captured again",
        )


def _wrong(path: LakePath, file: SegmentFile) -> str | None:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return "is missing"
    if size != file.size:
        return f"has {size} bytes instead of {file.size}"
    if file.sha256 and sha256_of(path) != file.sha256:
        return "has another checksum than when it was written"
    return None
