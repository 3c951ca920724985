"""Rows that went with the table's emptying: what they were last, for a mirror that keeps them.

Belongs here: which files have them, and their fold. Does not: when they went (`emptied`), the
mirror's own rows, of which no image is at hand (`resources.lake`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pipeline.changes.fold import Fold
from pipeline.changes.layout import changelog_names, changelog_path, changelog_schema
from pipeline.changes.strategy import buckets_for
from pipeline.changes.widening import TypeChange, type_change
from pipeline.ports.mirror_writes import FoldedChanges, PartColumn, StagedFiles
from pipeline.runs.context import Workplace
from pipeline.runs.merging.folding import staged_fold
from pipeline.runs.merging.job import Job
from pipeline.runs.merging.segment_parts import SegmentPart
from pipeline.schema.column_names import folded
from pipeline.schema.history import SchemaVersion


@contextmanager
def gone_rows(work: Workplace, job: Job) -> Iterator[FoldedChanges]:
    """Yield the rows that a job's images were about and that its `emptied` took, as deletes, in
    files that last as long as the context. Nothing if some images leave columns out: then these
    rows stay as the mirror has them."""
    parts = _parts(work, job) if job.emptied else []
    if not parts:
        yield FoldedChanges()
        return
    fold = Fold(
        schema=job.lineage.schema,
        key=job.key,
        parts=tuple(part.part for part in parts),
        marks=("_committed_at",),
        emptied=job.emptied,
    )
    images = sum(file.images for part in parts for file in part.files)
    unpacked = sum(work.segments.unpacked(part.folder, part.files) for part in parts)
    name = f"{work.source.name}-{job.task.intent.txn_version}"
    with staged_fold(work, name, fold, parts, buckets_for(images, unpacked)) as staged:
        yield staged.changes


def _parts(work: Workplace, job: Job) -> Sequence[SegmentPart]:
    plan, table = job.task.plan, job.task.state.table
    if any(file.partial for segment in plan.gone for file in segment.files):
        return ()
    versions = work.ledger.schema_versions(work.source.name, table)
    numbers = {segment.schema_version for segment in plan.gone}
    found = []
    for version in (version for version in versions if version.version in numbers):
        segments = [one for one in plan.gone if one.schema_version == version.version]
        files = tuple(file for segment in segments for file in segment.files)
        if files and (part := _part(job, version)) is not None:
            folder = changelog_path(work.source.name, table, version.generation)
            names = tuple(column.name for column in version.structure.columns)
            found.append(SegmentPart(folder, files, names, part))
    return found


def _part(job: Job, version: SchemaVersion) -> StagedFiles | None:
    """What the images of a version are to the mirror; None where they lack its key. A version that
    does not go on in the mirror has the columns of the same names, as the mirror's own rows do."""
    line, above = job.lineage, job.task.plan.above
    if version.version in line.versions:
        return line.part(version.version, through=above)
    own = changelog_schema(version.structure)
    spelled = dict(
        zip(
            (folded(column.name) for column in version.structure.columns),
            changelog_names([column.name for column in version.structure.columns]),
            strict=True,
        )
    )
    columns = []
    for field in line.schema:
        source = spelled.get(folded(field.name))
        kind = None if source is None else own.field(source).type
        fits = kind is not None and type_change(kind, field.type) is not TypeChange.REREAD
        columns.append(PartColumn(source, kind) if fits else PartColumn())
    absent = {field.name for field, one in zip(line.schema, columns, strict=True) if one.absent}
    if not absent.isdisjoint(job.key):
        return None
    return StagedFiles((), tuple(columns), through=above)
