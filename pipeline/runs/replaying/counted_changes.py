"""Which changes of a table count for its mirror, and what they are to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pipeline.changes.column_lineage import ColumnLineage
from pipeline.changes.layout import changelog_path
from pipeline.changes.lineage import lineage
from pipeline.changes.merging import BatchPart, MergePlan
from pipeline.errors import TableError
from pipeline.ports.mirror_writes import PartColumn, StagedFiles
from pipeline.runs.context import Workplace
from pipeline.runs.merging.job import moments_of, versions_between
from pipeline.runs.replaying.scratch import ScratchStore
from pipeline.runs.replaying.segments_found import SegmentFound
from pipeline.segment import SegmentFile
from pipeline.table import TableName
from pipeline.table_state import TableCondition, TableState


@dataclass(frozen=True, slots=True)
class Kind:
    """Images of one version of the table, and what they are to the mirror."""

    folder: str
    files: tuple[SegmentFile, ...]
    names: tuple[str, ...]
    part: StagedFiles


def require_mirror(state: TableState) -> None:
    """`TableError` unless the mirror shows all that its changelog says."""
    table = state.table
    if state.condition is not TableCondition.ACTIVE:
        said = state.condition.value
        raise TableError(f"it is {said}", hint="`lockstep status` says what brings it back")
    if state.behind is not None:
        raise TableError("its mirror lacks batches that others have", hint="`lockstep run`")
    if state.adopted is not None or state.mirror_version is None:
        raise TableError(
            "its mirror came with rows that its changelog does not have",
            hint=f"`lockstep verify {table}`",
        )


def lineage_of(work: Workplace, state: TableState, plan: MergePlan) -> ColumnLineage:
    """From the structures of the changes that count to that of the mirror."""
    table, final = state.table, state.mirror_version
    assert final is not None
    history = [version.version for version in work.ledger.schema_versions(work.source.name, table)]
    first = min((*plan.versions, final), key=history.index)
    versions = versions_between(work, table, first, final)
    line = lineage(versions, work.source.lake, moments=moments_of(work, versions))
    if line.reread:
        raise TableError(line.reread[0], hint=f"`lockstep verify {table} --repair` reads it again")
    return line


def with_fresh(part: BatchPart, fresh: Sequence[SegmentFound]) -> BatchPart:
    """With the files that are to stand in the place of others."""
    told = {
        (segment.table, segment.schema_version): segment.fresh
        for segment in fresh
        if segment.batch == part.batch
    }
    segments = (
        replace(segment, files=told.get((segment.table, segment.schema_version), segment.files))
        for segment in part.segments
    )
    return replace(part, segments=tuple(segments))


def kinds_of(
    work: Workplace,
    plan: MergePlan,
    line: ColumnLineage,
    own: pa.Schema,
    table: TableName,
    waiting: frozenset[SegmentFile],
) -> Iterator[Kind]:
    """`waiting`: files that are in the scratch folder."""
    scratch = ScratchStore(work.segments, work.source.name)
    for version in plan.versions:
        segments = (segment for segment in plan.segments if segment.schema_version == version)
        files = tuple(file for segment in segments for file in segment.files)
        if any(file.partial for file in files):
            raise TableError(
                "row images leave columns out, so its newest changes lack values",
                hint=f"`lockstep verify {table} --repair` compares it with MySQL",
            )
        part = line.part(version, above=plan.above)
        columns = dict(zip(line.schema.names, part.columns, strict=True))
        shown = tuple(columns.get(name, PartColumn()) for name in own.names)
        generation = work.ledger.schema_version(work.source.name, table, version).generation
        folder = changelog_path(work.source.name, table, generation)
        for path, inside in ((folder, False), (scratch.path(folder), True)):
            some = tuple(file for file in files if (file in waiting) is inside)
            if some:
                yield Kind(path, some, line.names[version], replace(part, columns=shown))
