"""Segments and revisions. A segment is the Parquet files with the changes of one table
in one batch (the part of the log that one run captures). A replay reads a part of the
log again and replaces files. The files that it puts in place of a segment's files are a
revision.

Not here: which batch a segment belongs to (`pipeline.model.batch`), writing them
(`ports.segments`), which segments get another revision (`pipeline.replay`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from lockstep.pipeline.values.table import TableName


class ChangeType(StrEnum):
    """A value of `_change_type`, which each row image has. The first four are those of
    Delta's change data feed."""

    INSERT = "insert"
    UPDATE_PREIMAGE = "update_preimage"
    UPDATE_POSTIMAGE = "update_postimage"
    DELETE = "delete"
    TRUNCATE = "truncate"
    """The table was emptied. The row with this type has no values of the table."""
    RESNAPSHOT = "resnapshot"
    """The table was read again, because the log does not have all its changes as row
    events."""


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Numbers of changed rows by operation. An update counts once, although it has two
    images."""

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


FILE_ENDINGS = (".parquet", "-logged.parquet", "-partial.parquet")
"""Endings of file names, by the columns that a file has in addition to the changelog's.
First: none. Second: `layout.logged_field`, the columns of each image that were logged.
Third: also `layout.present_name`, the columns of each image whose values are known."""

UPDATED_INFIX = "-updated"
"""The text before the ending in names of files with the column `layout.updated_field`:
the columns that each update changed."""

_REVISED_PREFIX: Final = r"r[0-9a-f]{12}-"
"""The beginning of a revised file's name: 12 hex digits of its SHA-256."""

_BATCH_FILE: Final = re.compile(rf"(?:{_REVISED_PREFIX})?batch-(\d{{12,}})-v(\d+)-")


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """One durable Parquet file: its path relative to the changelog's folder, number of
    row images, size in bytes, and SHA-256 (hex) of its content. If no ledger recorded
    the file, the last three are 0 and empty, except for a size that the lake's log
    has."""

    path: str
    images: int = 0
    size: int = 0
    sha256: str = ""

    @property
    def has_present(self) -> bool:
        """True if images in it lack columns; then it has the column
        `layout.present_name`."""
        return self.path.endswith(FILE_ENDINGS[2])

    @property
    def has_logged(self) -> bool:
        """True if it has the column `layout.logged_field`."""
        return self.path.endswith(FILE_ENDINGS[1:])

    @property
    def has_updated(self) -> bool:
        """True if it has the column `layout.updated_field`."""
        return self.path.endswith(tuple(UPDATED_INFIX + ending for ending in FILE_ENDINGS))


def batch_and_version_of(path: str) -> tuple[int, int] | None:
    """Return the batch and the schema version in the name of a changelog's file, or
    None."""
    match = _BATCH_FILE.match(path)
    return None if match is None else (int(match[1]), int(match[2]))


def batch_of(path: str) -> int | None:
    numbers = batch_and_version_of(path)
    return None if numbers is None else numbers[0]


class SystemTable(StrEnum):
    """A Delta table that Lockstep adds for each source: `_transactions` has a row for
    each transaction, `_ddl` one for each statement that can change a structure. The
    value is the name of its folder."""

    DDL = "_ddl"
    TRANSACTIONS = "_transactions"

    @property
    def word(self) -> str:
        """The name as `TableName.word` has it."""
        return self.value


@dataclass(frozen=True, slots=True)
class SystemTableSegment:
    """The files that one batch adds to a system table."""

    table: SystemTable
    files: tuple[SegmentFile, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """The changes of one batch, table and schema version. `first_sequence` and
    `last_sequence`: the least and the greatest `_sequence` of their row images."""

    table: TableName
    schema_version: int
    files: tuple[SegmentFile, ...]
    counts: RowCounts
    first_sequence: int
    last_sequence: int


def rows_by_table(segments: Iterable[Segment]) -> dict[TableName, RowCounts]:
    """Return the numbers of changed rows of each table, over all schema versions."""
    rows: dict[TableName, RowCounts] = {}
    for segment in segments:
        rows[segment.table] = rows.get(segment.table, RowCounts()) + segment.counts
    return rows


@dataclass(frozen=True, slots=True)
class RevisedSegment:
    """The files that a segment has from this revision on. Batch, table and schema
    version identify the segment."""

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
    """A source's revisions, as far as writers need to know them. `newest`: the id of
    the newest revision, open or not, or 0 if the source has none. `open`: the open
    revision, or None."""

    newest: int
    open: Revision | None


def with_revised_names(files: Iterable[SegmentFile]) -> tuple[SegmentFile, ...]:
    """Return the files with the names that they get in a changelog. These contain a
    checksum, so that they differ from the names of the files that they replace."""
    return tuple(replace(file, path=f"r{file.sha256[:12]}-{file.path}") for file in files)


def name_before_revision(path: str) -> str:
    """Return the name that a file had before `with_revised_names`."""
    return re.sub(f"^{_REVISED_PREFIX}", "", path)
