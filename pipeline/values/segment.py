"""Segments: the files of changes that a capture writes, and revisions, the files with which a
replay replaces those of a batch.

Not here: which batch they belong to (`pipeline.model.batch`), writing them
(`ports.segments`), which segments get another revision (`pipeline.replay`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from lockstep.pipeline.values.table import TableName

GROUP_ROWS: Final = 128 * 1024
"""Rows of a row group in segments, staged files and snapshot files. They are few, so that even a
small file is read by several threads."""

GROUP_BYTES: Final = 48 << 20
"""Bytes of rows in memory that are written as a row group even if they are fewer rows."""


class ChangeType(StrEnum):
    """`_change_type` of one row image, as in Delta's change data feed."""

    INSERT = "insert"
    UPDATE_PREIMAGE = "update_preimage"
    UPDATE_POSTIMAGE = "update_postimage"
    DELETE = "delete"
    TRUNCATE = "truncate"
    """The table was emptied. The row with this type has no values of the table."""
    RESNAPSHOT = "resnapshot"
    """The table was read again, because the log does not have all its changes as row events."""


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Rows by operation; an update is one row although it has two images."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(
            self.inserted + other.inserted,
            self.updated + other.updated,
            self.deleted + other.deleted,
        )

    @property
    def total(self) -> int:
        return self.inserted + self.updated + self.deleted


ENDINGS = (".parquet", "-logged.parquet", "-partial.parquet")
"""Ends of files' names, by the columns that follow the changelog's: none; the one that lists which
columns the log had of each image; and also the one that lists which columns are known."""

UPDATED = "-updated"
"""Comes before that in the name of a file that lists which columns each update changed."""

_MARK: Final = r"r[0-9a-f]{12}-"
"""The beginning of a revised file's name: 12 hex digits of its SHA-256."""

_OF_BATCH: Final = re.compile(rf"(?:{_MARK})?batch-(\d{{12,}})-v(\d+)-")


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """One durable Parquet file: its path relative to the changelog's folder, number of row images,
    size in bytes, and SHA-256 (hex) of its content."""

    path: str
    images: int
    size: int
    sha256: str

    @property
    def partial(self) -> bool:
        """True if images in it lack columns; then it has the column `layout.present_name`."""
        return self.path.endswith(ENDINGS[2])

    @property
    def listed(self) -> bool:
        """True if it has the column `layout.logged_field`."""
        return self.path.endswith(ENDINGS[1:])

    @property
    def updated(self) -> bool:
        """True if it has the column `layout.updated_field`."""
        return self.path.endswith(tuple(UPDATED + ending for ending in ENDINGS))


def batch_and_version_of(path: str) -> tuple[int, int] | None:
    """Return the batch and the schema version in the name of a changelog's file, or None."""
    match = _OF_BATCH.match(path)
    return None if match is None else (int(match[1]), int(match[2]))


def batch_of(path: str) -> int | None:
    written = batch_and_version_of(path)
    return None if written is None else written[0]


class SourceTable(StrEnum):
    """The lake's tables that a source has besides those of its tables, by the names of their
    folders."""

    DDL = "_ddl"
    TRANSACTIONS = "_transactions"


@dataclass(frozen=True, slots=True)
class SourcePart:
    """The files that one batch adds to one of them."""

    table: SourceTable
    files: tuple[SegmentFile, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """The changes of one batch, table and schema version."""

    table: TableName
    schema_version: int
    files: tuple[SegmentFile, ...]
    counts: RowCounts
    first_sequence: int
    last_sequence: int


def rows_by_table(segments: Iterable[Segment]) -> dict[TableName, RowCounts]:
    """Return the rows of each table, over all schema versions."""
    rows: dict[TableName, RowCounts] = {}
    for segment in segments:
        rows[segment.table] = rows.get(segment.table, RowCounts()) + segment.counts
    return rows


@dataclass(frozen=True, slots=True)
class RevisedSegment:
    """The files that a segment has from this revision on. Batch, table and schema version identify
    the segment."""

    batch: int
    table: TableName
    schema_version: int
    files: tuple[SegmentFile, ...]

    def is_of(self, batch: int, segment: Segment) -> bool:
        identity = self.batch, self.table, self.schema_version
        return identity == (batch, segment.table, segment.schema_version)


@dataclass(frozen=True, slots=True)
class Revision:
    """An open revision of a source's batches: its files are durable, but not yet in all
    changelogs."""

    id: int
    segments: tuple[RevisedSegment, ...]


@dataclass(frozen=True, slots=True)
class Revisions:
    """`newest`: the number of a source's newest revision, open or not, or 0 if it has none. `open`:
    the open one, or None."""

    newest: int
    open: Revision | None


def with_revised_names(files: Iterable[SegmentFile]) -> tuple[SegmentFile, ...]:
    """Return the files with the names that they get in a changelog. These contain a checksum, so
    that they differ from the names of the files that they replace."""
    return tuple(replace(file, path=f"r{file.sha256[:12]}-{file.path}") for file in files)


def unrevised_name(path: str) -> str:
    """Return the name that a file had before it was `revised`."""
    return re.sub(f"^{_MARK}", "", path)
