"""Segments: Parquet files that are durable before the ledger hears of them.

Written by pyarrow, no Java. Microsecond timestamps, no INT96, no unsigned integers, zstd:
what Spark, delta-rs and DuckDB read alike. Which changes go into a segment is decided in
`pipeline.runs.capturing.segment_builder`; adding the files to a Delta table is `changelog`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.revision import written_as
from pipeline.segment import GROUP_ROWS, UPDATED, SegmentFile, SourceTable
from resources.lake.folders import remove_folder
from resources.lake.java_classes import hadoop_path
from resources.lake.paths import LakePath, ObjectPath
from resources.lake.segment_checks import damaged_files
from resources.lake.segment_writer import FILE_BYTES, ParquetSegmentWriter, SegmentNames
from resources.lake.spark import Spark
from resources.lake.storage import (
    lake_errors,
    make_durable_folder,
    move_file,
    parquet_content,
    sync_folder,
)

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
        names = SegmentNames(f"batch-{batch:012d}-v{schema_version}", UPDATED if updated else "")
        return ParquetSegmentWriter(
            self._lake / folder, names, schema, self._file_bytes, self._pool
        )

    def open_chunk(
        self, folder: str, *, load: int, chunk: int, schema: pa.Schema
    ) -> ParquetSegmentWriter:
        stem = f"load-{load:012d}-{chunk:06d}"
        self._unlink(folder, f"{stem}-*.parquet")
        return ParquetSegmentWriter(
            self._lake / folder, SegmentNames(stem, ""), schema, self._file_bytes, self._pool
        )

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
        if isinstance(self._lake, ObjectPath) and self._spark is not None:
            _give_up_uploads(self._spark, self._lake / source)

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
                    move_file(below / written_as(file.path), into / file.path)
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


def _give_up_uploads(spark: Spark, below: ObjectPath) -> None:
    """Give up the uploads in parts, of all objects below a prefix, that nobody finished. Whoever is
    killed inside of one leaves its parts, which are in no listing and on every bill. The store's
    Python client has no request for that, Hadoop's has. A store that does not let itself be asked
    for them keeps them, and so does one that only a Spark elsewhere could ask. Nobody may be
    writing there."""
    if not spark.java:
        return
    from py4j.protocol import Py4JJavaError

    with suppress(Py4JJavaError):
        path, store = hadoop_path(spark.session(), f"{below}/")
        uploader = store.createMultipartUploader(path).build()
        uploader.abortUploadsUnderPath(path).get()
