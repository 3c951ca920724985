"""Compares the segments of a batch in the lake with the same segments read again. A
segment is the changes of one table in one batch, under one version of its structure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from typing import ClassVar

import pyarrow as pa

from lockstep.pipeline.mirror.layout import changelog_names, changelog_path, scratch_path
from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.replay.rows import (
    ReplayDifference,
    content_difference,
    have_same_rows,
    row_difference,
)
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.replay.selection import Selection
from lockstep.pipeline.schema.rows import merge_key
from lockstep.pipeline.values.segment import Segment, SegmentFile
from lockstep.pipeline.values.table import TableName


class SegmentStanding(StrEnum):
    """The result of comparing a segment's files."""

    SAME = "same"
    """They hold the changes that the log has."""
    DIFFERENT = "different"
    """They hold other changes than the log."""
    DAMAGED = "damaged"
    """They differ from what was recorded, or the changelog does not list them."""
    AS_RECORDED = "untold"
    """They are as recorded. Whether the log has the same changes is unknown."""


@dataclass(frozen=True, slots=True)
class Details:
    """The limits of a report on rows that differ. `most_rows`: the largest number of
    rows for each segment or table; `show_values`: also report their values."""

    most_rows: int = 500
    show_values: bool = False


@dataclass(frozen=True, slots=True)
class SegmentResult:
    """The comparison of one segment. `why`: what is wrong with its files, if DAMAGED.
    `new_files`: the files in the scratch folder that will replace them. `wrong`,
    `columns`, `rows`: for DIFFERENT and if details were requested, the number of row
    images that differ, the columns in which they differ, and some of these images.
    `reason_waiting`: why the files cannot be replaced yet."""

    json_keys: ClassVar = (
        "batch",
        "schema_version",
        "standing",
        "why",
        "wrong",
        "columns",
        "rows as differences",
    )

    batch: int
    table: TableName
    schema_version: int
    standing: SegmentStanding
    why: str | None = None
    new_files: tuple[SegmentFile, ...] = ()
    wrong: int = 0
    columns: tuple[str, ...] = ()
    rows: tuple[ReplayDifference, ...] = ()
    reason_waiting: str | None = None

    @property
    def has_replacement(self) -> bool:
        return bool(self.new_files)


@dataclass(slots=True)
class SegmentComparison:
    """Compares the segments of `selection`, batch by batch. Each changelog's files are
    listed only once, because the source's lock keeps other runs from changing the
    list."""

    ports: RunPorts
    selection: Selection
    details: Details | None = None
    _listed_files: dict[str, frozenset[str]] = field(default_factory=dict)
    _folders: dict[tuple[TableName, int], str] = field(default_factory=dict)

    def compare(self, batch: Batch, recaptured: Iterable[Segment]) -> list[SegmentResult]:
        """Compare the segments of a batch with those that were captured again. Remove
        the files in the scratch folder that will not replace others."""
        new_segments = {(segment.table, segment.schema_version): segment for segment in recaptured}
        results = []
        for segment in batch_content(self.ports.ledger, batch.source, batch.id).segments:
            new_segment = new_segments.get((segment.table, segment.schema_version))
            folder = self._folder(segment)
            keeps_new_files = False
            if self.selection.replays(segment.table, batch):
                result = self._compare(batch, segment, new_segment, folder)
                results.append(result)
                keeps_new_files = result.has_replacement
            if new_segment is not None and not keeps_new_files:
                self.ports.segments.delete_files(self._scratch(folder), new_segment.files)
        return results

    def _compare(
        self, batch: Batch, segment: Segment, new_segment: Segment | None, folder: str
    ) -> SegmentResult:
        damages = self.ports.segments.damage_sentences(folder, segment.files)
        unlisted = (
            f"the changelog {folder} does not list {file.path}"
            for file in segment.files
            if file.path not in self._files_listed_in(folder)
        )
        damage = next(chain(damages, unlisted), None)
        if damage is not None:
            standing = SegmentStanding.DAMAGED
        elif new_segment is None:
            standing = SegmentStanding.AS_RECORDED
        else:
            pairs = self._pieces_by_kind(folder, segment, new_segment)
            is_same = all(have_same_rows(new_pieces, pieces) for new_pieces, pieces in pairs)
            standing = SegmentStanding.SAME if is_same else SegmentStanding.DIFFERENT
        files = () if new_segment is None or standing is SegmentStanding.SAME else new_segment.files
        result = SegmentResult(
            batch.id, segment.table, segment.schema_version, standing, damage, files
        )
        if new_segment is None or standing is not SegmentStanding.DIFFERENT or self.details is None:
            return result
        return self._with_differing_rows(result, folder, segment, new_segment, self.details)

    def _with_differing_rows(
        self,
        result: SegmentResult,
        folder: str,
        segment: Segment,
        new_segment: Segment,
        details: Details,
    ) -> SegmentResult:
        """Add the rows that differ, at most `details.most_rows`, to a result."""
        version = self.ports.ledger.schema_version(
            self.ports.source.name, segment.table, segment.schema_version
        )
        key = () if version.shown_schema is None else merge_key(version.shown_schema)
        names = version.shown_structure.names
        names_in_changelog = dict(zip(names, changelog_names([*names]), strict=True))
        shown_columns = ("_sequence", *(names_in_changelog[name] for name in key))
        count = 0
        columns: dict[str, None] = {}
        rows: list[ReplayDifference] = []
        for new_pieces, pieces in self._pieces_by_kind(folder, segment, new_segment):
            content = content_difference(new_pieces, pieces, most=details.most_rows - len(rows))
            count += content.row_count
            columns |= dict.fromkeys(content.columns)
            rows += (
                row_difference(
                    in_log,
                    in_lake,
                    {name: in_log[name] for name in shown_columns},
                    show_values=details.show_values,
                )
                for in_log, in_lake in content.examples
            )
        return replace(result, wrong=count, columns=tuple(columns), rows=tuple(rows))

    def _pieces_by_kind(
        self, folder: str, segment: Segment, new_segment: Segment
    ) -> Iterator[tuple[Iterable[pa.Table], Iterable[pa.Table]]]:
        """Yield the rows of the new segment and of the segment in the lake, for each
        kind of file. Images that omit columns are in files of their own, which have
        more columns."""
        for kind in sorted({_kind_of(file) for file in (*new_segment.files, *segment.files)}):
            new_files = [file for file in new_segment.files if _kind_of(file) == kind]
            files = [file for file in segment.files if _kind_of(file) == kind]
            yield (
                self.ports.segments.pieces(self._scratch(folder), new_files),
                self.ports.segments.pieces(folder, files),
            )

    def _files_listed_in(self, folder: str) -> frozenset[str]:
        if folder not in self._listed_files:
            self._listed_files[folder] = frozenset(self.ports.changelog.listed_files(folder) or {})
        return self._listed_files[folder]

    def _folder(self, segment: Segment) -> str:
        key = segment.table, segment.schema_version
        if key not in self._folders:
            self._folders[key] = changelog_folder(self.ports, segment)
        return self._folders[key]

    def _scratch(self, folder: str) -> str:
        return scratch_path(self.ports.source.name, folder)


def _kind_of(file: SegmentFile) -> tuple[bool, bool]:
    """Return which further columns the file has (`segment.FILE_ENDINGS`)."""
    return file.has_logged, file.has_present


def changelog_folder(ports: RunPorts, segment: Segment) -> str:
    source = ports.source.name
    version = ports.ledger.schema_version(source, segment.table, segment.schema_version)
    return changelog_path(source, segment.table, version.generation)
