"""What the lake has of a batch, held against what was read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.batch import Batch
from pipeline.changes.layout import changelog_names, changelog_path, scratch_path
from pipeline.ports.ledger import content_of
from pipeline.replay.rows import ReplayDifference, difference
from pipeline.runs.context import Workplace
from pipeline.schema.rows import merge_key
from pipeline.segment import ENDINGS, Segment, SegmentFile
from pipeline.table import TableName


class SegmentStanding(StrEnum):
    """What a segment's files were found to be."""

    SAME = "same"
    """They hold what the log says."""
    DIFFERENT = "different"
    """They hold something else."""
    DAMAGED = "damaged"
    """They are not what was recorded, or the changelog does not list them."""
    UNTOLD = "untold"
    """They are what was recorded; the log was not read again."""


@dataclass(frozen=True, slots=True)
class Details:
    """What is told of rows that differ: of how many for each file or table, and whether their
    values are."""

    most: int = 500
    show_values: bool = False


@dataclass(frozen=True, slots=True)
class SegmentFound:
    """One segment of a batch; `why`: what is wrong with its files, for DAMAGED. `fresh`: the
    files in the scratch folder that are to stand in their place. `wrong`: how many row images are
    others, `columns`: in which columns, `rows`: some of them; where that was asked for and the
    files are DIFFERENT. `waits`: why files that the log brings again do not stand there yet."""

    json_keys: ClassVar = (
        "batch",
        "schema_version",
        "standing",
        "why",
        "wrong",
        "columns",
        "rows",
    )

    batch: int
    table: TableName
    schema_version: int
    standing: SegmentStanding
    why: str | None = None
    fresh: tuple[SegmentFile, ...] = ()
    wrong: int = 0
    columns: tuple[str, ...] = ()
    rows: tuple[ReplayDifference, ...] = ()
    waits: str | None = None

    @property
    def replaced(self) -> bool:
        return bool(self.fresh)


@dataclass(slots=True)
class SegmentComparison:
    """The segments of one batch after the other. A changelog is asked once what it lists: nobody
    else writes to it meanwhile, or it is not the source's lock that the pass has."""

    work: Workplace
    only: frozenset[TableName] | None
    details: Details | None = None
    _listed: dict[str, frozenset[str]] = field(default_factory=dict)
    _folders: dict[tuple[TableName, int], str] = field(default_factory=dict)

    def found(self, batch: Batch, read: Iterable[Segment]) -> list[SegmentFound]:
        """What stands in the lake of a batch, of which `read` was read again. Files in the scratch
        folder that say nothing new go."""
        again = {(one.table, one.schema_version): one for one in read}
        found = []
        for segment in content_of(self.work.ledger, batch.source, batch.id).segments:
            fresh = again.get((segment.table, segment.schema_version))
            folder = self._folder(segment)
            if self.only is None or segment.table in self.only:
                found.append(self._found(batch, segment, fresh, folder))
            if fresh is not None and not (found and found[-1].fresh == fresh.files):
                self.work.segments.remove(self._waiting(folder), fresh.files)
        return found

    def _found(
        self, batch: Batch, segment: Segment, fresh: Segment | None, folder: str
    ) -> SegmentFound:
        why = next(iter(self.work.segments.damaged(folder, segment.files)), None)
        if why is None:
            listed = self._files_of(folder)
            lacking = [file.path for file in segment.files if file.path not in listed]
            why = f"the changelog {folder} does not list {lacking[0]}" if lacking else None
        if why is not None:
            standing = SegmentStanding.DAMAGED
        elif fresh is None:
            standing = SegmentStanding.UNTOLD
        else:
            same = self._same_content(folder, segment, fresh)
            standing = SegmentStanding.SAME if same else SegmentStanding.DIFFERENT
        files = () if fresh is None or standing is SegmentStanding.SAME else fresh.files
        found = SegmentFound(batch.id, segment.table, segment.schema_version, standing, why, files)
        if fresh is None or standing is not SegmentStanding.DIFFERENT or self.details is None:
            return found
        return self._with_rows(found, folder, segment, fresh, self.details)

    def _with_rows(
        self,
        found: SegmentFound,
        folder: str,
        segment: Segment,
        fresh: Segment,
        details: Details,
    ) -> SegmentFound:
        version = self.work.ledger.schema_version(
            self.work.source.name, segment.table, segment.schema_version
        )
        key = () if version.shown is None else merge_key(version.shown)
        names = version.shown_structure.names
        own = dict(zip(names, changelog_names([*names]), strict=True))
        shown = ("_sequence", *(own[name] for name in key))
        count, columns, rows = 0, dict[str, None](), list[ReplayDifference]()
        for ending in range(len(ENDINGS)):
            told = differences(
                self.work.segments.pieces(self._waiting(folder), files_with(fresh.files, ending)),
                self.work.segments.pieces(folder, files_with(segment.files, ending)),
                most=details.most - len(rows),
            )
            count += told.rows
            columns |= dict.fromkeys(told.columns)
            rows += (
                difference(
                    ours,
                    theirs,
                    {name: ours[name] for name in shown},
                    show_values=details.show_values,
                )
                for ours, theirs in told.some
            )
        return replace(found, wrong=count, columns=tuple(columns), rows=tuple(rows))

    def _same_content(self, folder: str, segment: Segment, other: Segment) -> bool:
        """Images that leave columns out are in files of their own."""
        return all(
            same_rows(
                self.work.segments.pieces(folder, files_with(segment.files, ending)),
                self.work.segments.pieces(self._waiting(folder), files_with(other.files, ending)),
            )
            for ending in range(len(ENDINGS))
        )

    def _files_of(self, folder: str) -> frozenset[str]:
        if folder not in self._listed:
            self._listed[folder] = frozenset(self.work.changelog.listed(folder) or {})
        return self._listed[folder]

    def _folder(self, segment: Segment) -> str:
        which = segment.table, segment.schema_version
        if which not in self._folders:
            self._folders[which] = changelog_of(self.work, segment)
        return self._folders[which]

    def _waiting(self, folder: str) -> str:
        return scratch_path(self.work.source.name, folder)


def changelog_of(work: Workplace, segment: Segment) -> str:
    source = work.source.name
    version = work.ledger.schema_version(source, segment.table, segment.schema_version)
    return changelog_path(source, segment.table, version.generation)


def files_with(files: Iterable[SegmentFile], more: int) -> list[SegmentFile]:
    """Those of one ending: with so many columns more than others."""
    return [file for file in files if file.listed + file.partial == more]


Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ContentDifference:
    """How many rows differ, in which columns any of them does, and some of them: each as it is in
    the one, and in the other. Where one has fewer rows, the others are not among them."""

    rows: int
    columns: tuple[str, ...]
    some: tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...] = ()


def same_rows(one: Iterable[pa.Table], other: Iterable[pa.Table]) -> bool:
    """All columns, by name, type and value."""
    return all(
        a is not None and b is not None and a.schema.equals(b.schema) and a.equals(b)
        for a, b in _aligned(one, other)
    )


def differences(
    one: Iterable[pa.Table], other: Iterable[pa.Table], *, most: int
) -> ContentDifference:
    """In what they differ, with `most` of the rows."""
    count, columns = 0, dict[str, None]()
    some: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
    for a, b in _aligned(one, other):
        if a is None or b is None:
            count += sum(table.num_rows for table in (a, b) if table is not None)
            continue
        wrong = np.zeros(a.num_rows, np.bool_)
        for name in dict.fromkeys([*a.column_names, *b.column_names]):
            differs = _differs(a, b, name)
            if differs.any():
                columns[name] = None
                wrong |= differs
        count += int(wrong.sum())
        rows = pa.array(np.flatnonzero(wrong)[: most - len(some)])
        some += zip(a.take(rows).to_pylist(), b.take(rows).to_pylist(), strict=True)
    return ContentDifference(count, tuple(columns), tuple(some))


def _differs(one: pa.Table, other: pa.Table, name: str) -> Flags:
    """Of each row; all of them where one has no such column, or of another type."""
    if name not in one.column_names or name not in other.column_names:
        return np.ones(one.num_rows, np.bool_)
    ours, theirs = (table.column(name).combine_chunks() for table in (one, other))
    if ours.type != theirs.type:
        return np.ones(one.num_rows, np.bool_)
    if ours.equals(theirs):
        return np.zeros(one.num_rows, np.bool_)
    if pa.types.is_nested(ours.type):
        pairs = zip(ours.to_pylist(), theirs.to_pylist(), strict=True)
        return np.array([a != b for a, b in pairs], np.bool_)
    values = pc.fill_null(pc.not_equal(ours, theirs), True)
    neither = pc.and_(pc.is_null(ours), pc.is_null(theirs))
    flags = pc.and_not(values, neither).to_numpy(zero_copy_only=False)
    return np.asarray(flags, np.bool_)


def _aligned(
    one: Iterable[pa.Table], other: Iterable[pa.Table]
) -> Iterator[tuple[pa.Table | None, pa.Table | None]]:
    """The same rows of both, cut alike; None behind the end of one."""
    ones, others = _filled(one), _filled(other)
    a, b = next(ones, None), next(others, None)
    while a is not None or b is not None:
        count = min(table.num_rows for table in (a, b) if table is not None)
        yield (
            None if a is None else a.slice(0, count),
            None if b is None else b.slice(0, count),
        )
        a = next(ones, None) if a is None or count == a.num_rows else a.slice(count)
        b = next(others, None) if b is None or count == b.num_rows else b.slice(count)


def _filled(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    return (piece for piece in pieces if piece.num_rows)
