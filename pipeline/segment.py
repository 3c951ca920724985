"""Files of changes: what a capture leaves for the lake, and revisions, which a replay puts in the
place of a batch's recorded files.

Not here: which batch they belong to (`pipeline.batch`), writing them
(`ports.segments`), which segments get another revision (`pipeline.replay`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from pipeline.table import TableName

GROUP_ROWS: Final = 128 * 1024
"""Rows of a row group in segments, staged files and snapshot files: so few that both cores of a
small machine find work when one is read."""

GROUP_BYTES: Final = 48 << 20
"""Rows are written when there are enough for a row group, or when they take so many bytes."""


class ChangeType(StrEnum):
    """`_change_type` of one row image, as in Delta's change data feed."""

    INSERT = "insert"
    UPDATE_PREIMAGE = "update_preimage"
    UPDATE_POSTIMAGE = "update_postimage"
    DELETE = "delete"
    TRUNCATE = "truncate"
    """The table was emptied here; the row stands for none of it."""
    RESNAPSHOT = "resnapshot"
    """The table was read again: no row event tells what happened to it here."""


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
"""How the names of files end, by the columns they have behind the changelog's: none; which
columns the log had of each image; and besides, which are known where some are not."""

UPDATED = "-updated"
"""What stands before that in the names of files that say which columns an update changed."""


_OF_BATCH: Final = re.compile(r"(?:r[0-9a-f]{12}-)?batch-(\d{12,})-v(\d+)-")
"""With a mark in front once it was revised (`pipeline.segment`)."""


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """One durable Parquet file: path relative to the changelog table's folder, row
    images in it, size in bytes and SHA-256 (hex) of its content."""

    path: str
    images: int
    size: int
    sha256: str

    @property
    def partial(self) -> bool:
        """Whether images in it leave columns out: it has `layout.present_name` besides."""
        return self.path.endswith(ENDINGS[2])

    @property
    def listed(self) -> bool:
        """Whether it has `layout.logged_field`."""
        return self.path.endswith(ENDINGS[1:])

    @property
    def updated(self) -> bool:
        """Whether it has `layout.updated_field`."""
        return self.path.endswith(tuple(UPDATED + ending for ending in ENDINGS))


def written_for(path: str) -> tuple[int, int] | None:
    """The batch whose changes a changelog's file has, and the version of the table's structure they
    were written under, by its name; None where that tells none."""
    match = _OF_BATCH.match(path)
    return None if match is None else (int(match[1]), int(match[2]))


def batch_of(path: str) -> int | None:
    found = written_for(path)
    return None if found is None else found[0]


class SourceTable(StrEnum):
    """The tables in the lake that are a source's own, by the names of their folders."""

    DDL = "_ddl"
    TRANSACTIONS = "_transactions"


@dataclass(frozen=True, slots=True)
class SourcePart:
    """What one batch adds to one of them."""

    table: SourceTable
    files: tuple[SegmentFile, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """The changes of one batch, one table, one schema version."""

    table: TableName
    schema_version: int
    files: tuple[SegmentFile, ...]
    counts: RowCounts
    first_sequence: int
    last_sequence: int


def rows_by_table(segments: Iterable[Segment]) -> dict[TableName, RowCounts]:
    """Rows per table, whatever versions they were written under."""
    found: dict[TableName, RowCounts] = {}
    for segment in segments:
        found[segment.table] = found.get(segment.table, RowCounts()) + segment.counts
    return found


_MARK: Final = re.compile(r"r[0-9a-f]{12}-")


@dataclass(frozen=True, slots=True)
class RevisedSegment:
    """The files that a segment has from this revision on; the segment is told by its batch, its
    table and the version its rows were written under."""

    batch: int
    table: TableName
    schema_version: int
    files: tuple[SegmentFile, ...]

    def is_of(self, batch: int, segment: Segment) -> bool:
        told = self.batch, self.table, self.schema_version
        return told == (batch, segment.table, segment.schema_version)


@dataclass(frozen=True, slots=True)
class Revision:
    """An open revision of a source's batches: its files are durable, and on their way into
    changelogs."""

    id: int
    segments: tuple[RevisedSegment, ...]


@dataclass(frozen=True, slots=True)
class Revisions:
    """The number of a source's newest revision, whatever became of it, 0 for none; and the one
    that is open, if one is."""

    newest: int
    open: Revision | None


def revised(files: Iterable[SegmentFile]) -> tuple[SegmentFile, ...]:
    """Files as a changelog is to know them: named by their content, so that no other one of that
    batch has their name."""
    return tuple(replace(file, path=f"r{file.sha256[:12]}-{file.path}") for file in files)


def written_as(path: str) -> str:
    """The name a file was written under before it was `revised`."""
    mark = _MARK.match(path)
    return path if mark is None else path[mark.end() :]
