"""Segments in memory: a file is a table, its checksum its content's.

Belongs here: the port's calls, and what is damaged. Does not: who lists the files (`changelog`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence

import pyarrow as pa

from lockstep.pipeline.ports.lease_check import RequireHeld, no_check
from lockstep.pipeline.values.segment import (
    FILE_ENDINGS,
    UPDATED_INFIX,
    SegmentFile,
    SystemTable,
    batch_of,
    name_before_revision,
)
from tests.twins.lake import MemoryLake


class MemorySegments:
    """`pipeline.ports.SegmentStore`: a file is a table, its checksum its content's."""

    def __init__(self, lake: MemoryLake) -> None:
        self._lake = lake

    def open(
        self,
        folder: str,
        *,
        batch: int,
        schema_version: int,
        schema: pa.Schema,
        has_updated: bool = False,
    ) -> MemorySegmentWriter:
        mark = UPDATED_INFIX if has_updated else ""
        name = f"batch-{batch:012d}-v{schema_version}-00000{mark}.parquet"
        return MemorySegmentWriter(self._lake, folder, name, schema)

    def open_chunk(
        self, folder: str, *, load: int, chunk: int, schema: pa.Schema
    ) -> MemorySegmentWriter:
        name = f"load-{load:012d}-{chunk:06d}-00000.parquet"
        return MemorySegmentWriter(self._lake, folder, name, schema)

    def damage_sentences(self, folder: str, files: Iterable[SegmentFile]) -> list[str]:
        return damaged(self._lake, folder, files)

    def pieces(
        self, folder: str, files: Iterable[SegmentFile], columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        for file in files:
            table = self._lake.files[self._lake.path(f"{folder}/{file.path}")]
            yield table if columns is None else table.select(list(columns))

    def unpacked_bytes(self, folder: str, files: Iterable[SegmentFile]) -> int:
        found = (self._lake.files[self._lake.path(f"{folder}/{file.path}")] for file in files)
        return sum(table.nbytes for table in found)

    def delete_batch(self, source: str, batch: int) -> int:
        below = tuple(
            self._lake.path(f"{source}/{folder}/") for folder in ("_changes", *SystemTable)
        )
        gone = [
            path
            for path in self._lake.files
            if path.startswith(below) and f"/batch-{batch:012d}-v" in path
        ]
        for path in gone:
            del self._lake.files[path]
        return len(gone)

    def abort_uploads(self, source: str) -> None:
        """What was on its way went with its process."""

    def delete_load(self, folder: str, load: int) -> None:
        begin = self._lake.path(f"{folder}/load-{load:012d}-")
        for path in [path for path in self._lake.files if path.startswith(begin)]:
            del self._lake.files[path]

    def move_files(self, origin: str, target: str, files: Iterable[SegmentFile]) -> None:
        for file in files:
            moved = self._lake.files.pop(
                self._lake.path(f"{origin}/{name_before_revision(file.path)}"), None
            )
            if moved is not None:
                self._lake.files[self._lake.path(f"{target}/{file.path}")] = moved

    def delete_folder(self, folder: str) -> None:
        below = self._lake.path(f"{folder}/")
        for path in [path for path in self._lake.files if path.startswith(below)]:
            del self._lake.files[path]

    def delete_batches(
        self,
        folder: str,
        through: int,
        kept_names: Collection[str] = (),
        require_held: RequireHeld = no_check,
    ) -> int:
        below = f"{self._lake.path(folder)}/"
        gone = [
            path
            for path in self._lake.files
            if path.startswith(below)
            and "/" not in (name := path.removeprefix(below))
            and (batch_of(name) or 0) <= through
            and name not in kept_names
        ]
        require_held()
        for path in gone:
            del self._lake.files[path]
        return len(gone)

    def delete_files(self, folder: str, files: Iterable[SegmentFile]) -> None:
        for file in files:
            self._lake.files.pop(self._lake.path(f"{folder}/{file.path}"), None)


class MemorySegmentWriter:
    """`pipeline.ports.SegmentWriter`: one file, however large; others for images that leave
    columns out."""

    def __init__(self, lake: MemoryLake, folder: str, name: str, schema: pa.Schema) -> None:
        self._lake = lake
        self._folder = folder
        self._name = name
        self._schema = schema
        self._tables: list[pa.Table] = []

    def write(self, changes: pa.Table) -> None:
        self._tables.append(changes)

    def end_file(self) -> int:
        return len(self._tables)

    def drop(self, file_count: int) -> None:
        del self._tables[file_count:]

    def close(self) -> tuple[SegmentFile, ...]:
        found = []
        for more, ending in enumerate(FILE_ENDINGS):
            whole = [t for t in self._tables if len(t.schema) == len(self._schema) + more]
            if sum(table.num_rows for table in whole):
                name = self._name.replace(".parquet", ending)
                table = pa.concat_tables(whole)
                self._lake.files[self._lake.path(f"{self._folder}/{name}")] = table
                found.append(SegmentFile(name, table.num_rows, *print_of(table)))
        return tuple(found)


def print_of(table: pa.Table) -> tuple[int, str]:
    """Size in bytes and SHA-256 of a table's content."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    content = sink.getvalue()
    return content.size, hashlib.sha256(content).hexdigest()


def damaged(lake: MemoryLake, folder: str, files: Iterable[SegmentFile]) -> list[str]:
    found = []
    for file in files:
        path = lake.path(f"{folder}/{file.path}")
        table = lake.files.get(path)
        if table is None:
            found.append(f"{path} is missing")
        elif not _agrees(file, *print_of(table)):
            found.append(f"{path} has another checksum than when it was written")
    return found


def _agrees(file: SegmentFile, size: int, sha256: str) -> bool:
    """Whether a file is as recorded: a size or a checksum may never have been."""
    return file.size in (0, size) and file.sha256 in ("", sha256)
