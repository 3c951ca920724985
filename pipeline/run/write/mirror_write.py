"""Commits one table's write to its mirror (the Delta table with the current rows):
first the changes of columns, then all changes of rows in one commit. After a crash, the
next run finds that the commit was made, or makes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Final, assert_never

import pyarrow as pa

from lockstep.pipeline.mirror.fold import Fold
from lockstep.pipeline.mirror.layout import changelog_path, changelog_schema, changelog_spelling
from lockstep.pipeline.mirror.strategy import (
    Strategy,
    Way,
    WriteFacts,
    buckets_for,
    choose,
    only_inserts,
)
from lockstep.pipeline.mirror.type_changes import TypeChange, type_change
from lockstep.pipeline.model.claim import recovery_hint
from lockstep.pipeline.model.lake_commit import is_same_write
from lockstep.pipeline.ports.lease_check import RequireHeld
from lockstep.pipeline.ports.mirror_writes import (
    Append,
    ColumnOrigin,
    CountedMerge,
    CountedReplace,
    FoldedChanges,
    Inputs,
    Merge,
    MirrorRows,
    MirrorTarget,
    MirrorWrite,
    Replace,
    StagedFiles,
)
from lockstep.pipeline.ports.mirrors import MirrorCommit
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.write.job import Job, Task, snapshot_paths
from lockstep.pipeline.run.write.staged_fold import (
    SegmentPart,
    StagedFold,
    image_count,
    staged_fold,
    unpacked_bytes,
)
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.schema.types import comparable_name
from lockstep.pipeline.values.errors import ForeignCommit
from lockstep.pipeline.values.policies import Deletes
from lockstep.pipeline.values.segment import SegmentFile

FOUND_REASON: Final = "an earlier try had made the commit"
"""The reason of a write whose commit was in the log already."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """A job's commit, and why it was written in that way: append, merge or replace."""

    commit: MirrorCommit
    reason: str


def find_commit_of(ports: RunPorts, task: Task) -> MirrorCommit | None:
    """Return the task's commit if it is in the mirror's log, else None. Raise
    `ForeignCommit` if a commit has the same transaction number but other batches: the
    ledger was restored from a backup, or a new ledger writes to an old lake."""
    intent = task.intent
    commit = ports.mirrors.find_commit(task.state.mirror, intent.app_id, intent.txn_version)
    if commit is not None and not is_same_write(commit.user_metadata, task.metadata):
        raise ForeignCommit(
            f"version {commit.delta_version} of {task.state.mirror} carries write "
            f"{intent.txn_version} of {intent.app_id}, but for another range of the log",
            hint=recovery_hint(ports.source.name),
        )
    return commit


def write_once(ports: RunPorts, job: Job, require_held: RequireHeld) -> WriteResult:
    """Make the job's commit, or find it. Raise `CommitConflict` if another writer
    committed first, and any error of `require_held`, such as `LeaseLost`. Each commit
    reads the mirror's newest version before it calls `require_held`; so if another run
    takes the lease and commits after that call, this commit conflicts."""
    commit = find_commit_of(ports, job.task)
    if commit is not None:
        return WriteResult(commit, FOUND_REASON)
    parts = _segment_parts(ports, job)
    strategy = choose(_strategy_facts(ports, job, parts))
    if job.task.structure is not None:
        # The commits name the file with the structure, so it is written first.
        ports.claims.store_structures(ports.source.name, [job.task.structure])
    if job.steps:
        ports.mirrors.evolve(
            job.task.state.mirror,
            job.steps,
            app_id=job.task.intent.app_id,
            txn_version=job.task.intent.txn_version,
            after_version=job.last_written_version,
            write_metadata=job.task.metadata,
            require_held=require_held,
        )
    with _mirror_write(ports, job, parts, strategy) as write:
        commit = ports.mirrors.write(write, require_held)
    # A commit has no `scale_reason` if it was found in the log.
    return WriteResult(commit, f"{strategy.reason}; {commit.scale_reason or FOUND_REASON}")


def _segment_parts(ports: RunPorts, job: Job) -> tuple[SegmentPart, ...]:
    """Return the files of the job's segments, grouped by schema version. Files whose
    row images lack columns (`binlog_row_image=MINIMAL`) are groups of their own."""
    return tuple(
        SegmentPart(
            job.folders[version],
            files,
            job.lineage.part(
                version,
                tuple(ports.mirrors.path(f"{job.folders[version]}/{file.path}") for file in files),
                # A version with a number below 1 is of a former name of the table: its
                # changes get the stamp of the RENAME.
                stamp=None if version > 0 else job.read_stamp,
                above=job.above,
                through=job.task.plan.through,
                partial=lacks_columns,
            ),
        )
        for version, lacks_columns, files in _files_by_version(job)
    )


def _files_by_version(job: Job) -> Iterator[tuple[int, bool, tuple[SegmentFile, ...]]]:
    """Yield the files of each version, and whether their images lack columns."""
    for version in job.versions:
        segments = (segment for segment in job.segments if segment.schema_version == version)
        files = [file for segment in segments for file in segment.files]
        for lacks_columns in (False, True):
            part = tuple(file for file in files if file.has_present is lacks_columns)
            if part:
                yield version, lacks_columns, part


def _strategy_facts(ports: RunPorts, job: Job, parts: Sequence[SegmentPart]) -> WriteFacts:
    policies = job.lineage.policies
    return WriteFacts(
        has_key=bool(job.key),
        keeps_deleted=policies.keeps_rows,
        replaces=job.task.plan.replaces_rows,
        replace_reason="" if job.task.copied_rows is None else job.task.copied_rows.sentence,
        has_partial_images=any(part.mapping.present_column is not None for part in parts),
        image_count=image_count(parts),
        unpacked_bytes=unpacked_bytes(ports.segments, parts),
        inserts_only=only_inserts(segment.counts for segment in job.task.plan.segments),
        inserts_are_new=job.inserts_are_new,
        may_repeat=job.may_repeat,
        may_have_kept_rows=job.lineage.has_deleted_at
        or policies.keeps_unmarked_rows
        or job.task.intent.may_have_kept_rows,
        fills_columns=bool(job.lineage.columns_by_key),
        has_stamps=bool(policies.stamps),
    )


@contextmanager
def _mirror_write(
    ports: RunPorts, job: Job, parts: Sequence[SegmentPart], strategy: Strategy
) -> Iterator[MirrorWrite]:
    """Yield the write; its staged files exist until the context ends."""
    target, mappings = _target(job), tuple(part.mapping for part in parts)
    match strategy.way:
        case Way.APPEND:
            yield Append(target, mappings)
        case Way.COUNT:
            yield CountedMerge(target, mappings)
        case Way.RECOUNT:
            yield CountedReplace(target, mappings, _snapshot(ports, job))
        case Way.MERGE:
            with _folded_changes(ports, job, parts, strategy.bucket_count) as fold:
                # New columns are filled in for rows of any key.
                bounds = () if job.lineage.columns_by_key else fold.bounds
                yield Merge(target, job.key, fold.changes, bounds, _completion(ports, job))
        case Way.REPLACE:
            with (
                _folded_changes(ports, job, parts, strategy.bucket_count) as fold,
                _lost_rows(ports, job) as lost_rows,
            ):
                yield Replace(
                    target,
                    job.key,
                    _snapshot(ports, job),
                    fold.changes,
                    emptied_by=next(iter(job.emptying_stamps), None),
                    deleted_rows=lost_rows,
                    drops_earlier_rows=job.removes_deleted_rows,
                )
        case _:
            assert_never(strategy.way)


def _target(job: Job) -> MirrorTarget:
    return MirrorTarget(
        job.task.state.mirror,
        job.lineage.schema,
        app_id=job.task.intent.app_id,
        txn_version=job.task.intent.txn_version,
        user_metadata=job.task.metadata,
        policies=job.lineage.policies,
    )


def _snapshot(ports: RunPorts, job: Job) -> Inputs:
    files, copied_rows = job.task.plan.snapshot, job.task.copied_rows
    copied_version = None if copied_rows is None else copied_rows.copied_version
    if copied_version is not None:
        columns = job.lineage.mirror_origins
        if job.read_stamp is not None:
            columns = job.lineage.with_stamp(columns, job.read_stamp)
        path = ports.mirrors.path(copied_version.mirror)
        return (MirrorRows(path, copied_version.delta_version, columns),)
    if files is None:
        return ()
    return (
        job.lineage.part(
            files.version, snapshot_paths(ports, files), snapshot_stamp=job.read_stamp
        ),
    )


def _completion(ports: RunPorts, job: Job) -> StagedFiles | None:
    files = job.task.plan.completion
    if files is None or not job.lineage.columns_by_key:
        return None
    return job.lineage.completion(files.version, snapshot_paths(ports, files), files.low_sequence)


@contextmanager
def _lost_rows(ports: RunPorts, job: Job) -> Iterator[FoldedChanges]:
    """Yield the rows that the table lost when it was emptied, with the values of their
    last images (`Fold.losses`), in files that exist until the context ends. A mirror
    that keeps deleted rows gets these values. A lost row without an image in the job's
    files keeps its values in the mirror; all lost rows do so if images lack columns."""
    parts = _parts_of_lost_rows(ports, job) if job.emptying_stamps else []
    if not parts:
        yield FoldedChanges()
        return
    fold = replace(_fold(job, parts), losses=job.emptying_stamps)
    bucket_count = buckets_for(image_count(parts), unpacked_bytes(ports.segments, parts))
    with staged_fold(ports, _staging_name(ports, job), fold, parts, bucket_count) as staged:
        yield staged.changes


def _parts_of_lost_rows(ports: RunPorts, job: Job) -> Sequence[SegmentPart]:
    """Return the files with images of rows that the table lost when it was emptied;
    none if some images lack columns."""
    segments, table = job.task.plan.segments_of_lost_rows, job.task.state.table
    if any(file.has_present for segment in segments for file in segment.files):
        return ()
    parts = []
    for version in ports.ledger.schema_versions(ports.source.name, table):
        files = tuple(
            file
            for segment in segments
            if segment.schema_version == version.version
            for file in segment.files
        )
        if files and (mapping := _mapping_of_lost_rows(job, version)) is not None:
            folder = changelog_path(ports.source.name, table, version.generation)
            parts.append(SegmentPart(folder, files, mapping))
    return parts


def _mapping_of_lost_rows(job: Job, version: SchemaVersion) -> StagedFiles | None:
    """Return how the mirror's columns are made from the images of a version; None if
    the images lack the mirror's key. If the table was created again since, the lineage
    does not have this version. Its columns are then matched by name."""
    lineage, above = job.lineage, job.task.plan.above
    if version.version in lineage.versions:
        return lineage.part(version.version, through=above)
    structure = version.shown_structure
    fields = changelog_schema(structure)
    spelled = changelog_spelling(structure.names)
    sources = {comparable_name(name): source for name, source in spelled.items()}
    origins = []
    for column in lineage.schema:
        source = sources.get(comparable_name(column.name))
        if column.name in lineage.policies.stamps:
            origin = ColumnOrigin(column.name, column.type)
        elif source is None or not _is_castable(fields.field(source).type, column.type):
            origin = ColumnOrigin()
        else:
            origin = ColumnOrigin(source, fields.field(source).type)
        if origin.is_absent and column.name in job.key:
            return None
        origins.append(origin)
    return StagedFiles((), tuple(origins), through=above)


def _is_castable(source_type: pa.DataType, target_type: pa.DataType) -> bool:
    return type_change(source_type, target_type) is not TypeChange.REREAD


def _folded_changes(
    ports: RunPorts, job: Job, parts: Sequence[SegmentPart], bucket_count: int
) -> AbstractContextManager[StagedFold]:
    """Return a context with the job's changes, folded to one for each key."""
    fold = replace(
        _fold(job, parts),
        keeps_sequence=bool(job.lineage.columns_by_key),
        doubtful_through=sys.maxsize if job.may_repeat else job.task.plan.read_until,
        unmarked_through=0 if job.task.copied_rows is None else job.task.copied_rows.through,
    )
    return staged_fold(ports, _staging_name(ports, job), fold, parts, bucket_count)


def _fold(job: Job, parts: Sequence[SegmentPart]) -> Fold:
    """Return what the folds of changes and of lost rows have in common."""
    policies = job.lineage.policies
    return Fold(
        schema=job.lineage.schema,
        key=job.key,
        parts=tuple(part.mapping for part in parts),
        # A soft delete needs the time of the deletion.
        marks=("_committed_at",) if policies.marks_deleted else (),
        ignores_deletes=policies.deletes is Deletes.IGNORE,
        stamps=policies.stamps,
    )


def _staging_name(ports: RunPorts, job: Job) -> str:
    return f"{ports.source.name}-{job.task.intent.txn_version}"
