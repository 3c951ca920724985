"""Revisions: files that a replay puts in the place of a batch's recorded ones.

Belongs here: the values, and how their files are called. Does not: which segments get another
revision (`pipeline.replay`), moving files (`ports.segments`), commits (`ports.changelog`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from pipeline.segment import Segment, SegmentFile
from pipeline.table import TableName

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


def revised(files: Iterable[SegmentFile]) -> tuple[SegmentFile, ...]:
    """Files as a changelog is to know them: named by their content, so that no other one of that
    batch has their name."""
    return tuple(replace(file, path=f"r{file.sha256[:12]}-{file.path}") for file in files)


def written_as(path: str) -> str:
    """The name a file was written under before it was `revised`."""
    mark = _MARK.match(path)
    return path if mark is None else path[mark.end() :]
