"""One table's commit: the mirror's columns first, then all changes in one write.

Belongs here: which of the lake's ways of writing a job takes. Does not: what the job is
(`job`), trying again (`merge`), Spark (`resources.lake`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.changes.coalescing import coalesced
from pipeline.changes.layout import changelog_names, origin_names
from pipeline.changes.mapping import folded, kept_columns
from pipeline.changes.plan import key_bounds, only_inserts, too_many_to_fold
from pipeline.claim import HINT
from pipeline.decisions import Lease
from pipeline.errors import ForeignCommit
from pipeline.lake_commit import same_write
from pipeline.ports.held import Held
from pipeline.ports.mirror_writes import MirrorWrite, Part
from pipeline.ports.mirrors import MirrorCommit
from pipeline.runs.context import Workplace
from pipeline.runs.merging.job import Job, Task, snapshot_paths
from pipeline.segment import SegmentFile

_FOLDING = Lock()
"""One table is folded in memory at a time: what that takes is bounded per table."""


def commit_made(work: Workplace, task: Task) -> MirrorCommit | None:
    """The task's commit, if it is in the lake. `ForeignCommit` where that one says other
    words: another history made it, a ledger restored from a backup or made anew beside an
    old lake."""
    intent = task.intent
    commit = work.mirrors.recorded(task.state.mirror, intent.app_id, intent.txn_version)
    if commit is not None and not same_write(commit.user_metadata, task.metadata):
        raise ForeignCommit(
            f"version {commit.delta_version} of {task.state.mirror} carries write "
            f"{intent.txn_version} of {intent.app_id}, but for another range of the log",
            hint=HINT.format(source=work.source.name),
        )
    return commit


def write_once(work: Workplace, lease: Lease, job: Job) -> MirrorCommit:
    """The job's commit, made or found. `CommitConflict` where somebody else was first,
    `LeaseLost` where somebody else holds the source: each commit is planned on what the mirror's
    log ended with before that was asked."""
    made = commit_made(work, job.task)
    if made is not None:
        return made

    def held() -> None:
        work.ledger.require_held(lease)

    if job.steps:
        work.mirrors.evolve(
            job.task.state.mirror,
            job.steps,
            app_id=job.task.intent.app_id,
            txn_version=job.task.intent.txn_version,
            after=job.after,
            held=held,
        )
    return _write(work, job, held)


def _write(work: Workplace, job: Job, held: Held) -> MirrorCommit:
    parts = _parts(work, job)
    if job.task.plan.replaces:
        return _replace(work, job, parts, held)
    if job.lineage.asked and (not parts or _too_many(work, job)):
        return work.mirrors.write(_mirror_write(work, job, "fold", parts=parts), held)
    inserts = only_inserts(segment.counts for segment in job.task.plan.segments)
    appends = job.all_new and inserts and not job.lineage.marked
    if not parts or (appends and not job.lineage.asked):
        return work.mirrors.write(_mirror_write(work, job, "append", parts=parts), held)
    if not job.key or _too_many(work, job):
        return work.mirrors.write(_mirror_write(work, job, "fold", parts=parts), held)
    with _staged(work, job, parts) as staged:
        return work.mirrors.write(
            _mirror_write(work, job, "merge", parts=parts, staged=staged), held
        )


def _replace(work: Workplace, job: Job, parts: tuple[Part, ...], held: Held) -> MirrorCommit:
    snapshot = _snapshot(work, job)
    partial = any(part.present is not None for part in parts)
    if not partial or not job.key or _too_many(work, job):
        return work.mirrors.write(
            _mirror_write(work, job, "replace", parts=parts, snapshot=snapshot), held
        )
    with _staged(work, job, parts) as staged:
        return work.mirrors.write(
            _mirror_write(work, job, "replace", parts=parts, staged=staged, snapshot=snapshot), held
        )


def _parts(work: Workplace, job: Job) -> tuple[Part, ...]:
    """The segments' files by the version they were written under, those apart whose images
    leave columns out."""
    return tuple(
        job.lineage.part(
            version,
            tuple(work.mirrors.path(f"{job.folders[version]}/{file.path}") for file in files),
            above=job.task.plan.above,
            partial=partial,
        )
        for version, partial, files in _by_kind(job)
    )


def _by_kind(job: Job) -> Iterator[tuple[int, bool, list[SegmentFile]]]:
    for version in job.task.plan.versions:
        for partial in (False, True):
            files = [file for file in _files(job, version) if file.partial is partial]
            if files:
                yield version, partial, files


def _files(job: Job, version: int | None = None) -> list[SegmentFile]:
    return [
        file
        for segment in job.task.plan.segments
        for file in segment.files
        if version is None or segment.schema_version == version
    ]


def _snapshot(work: Workplace, job: Job) -> tuple[Part, ...]:
    part = job.task.plan.snapshot
    if part is None:
        return ()
    return (job.lineage.part(part.version, snapshot_paths(work, part), snapshot=True),)


def _completion(work: Workplace, job: Job) -> Part | None:
    part = job.task.plan.completion
    if part is None or not job.lineage.asked:
        return None
    return job.lineage.completion(part.version, snapshot_paths(work, part), part.low_sequence)


def _too_many(work: Workplace, job: Job) -> bool:
    files = _files(job)
    unpacked = sum(
        work.segments.unpacked(job.folders[version], _files(job, version))
        for version in job.task.plan.versions
    )
    return too_many_to_fold(sum(file.images for file in files), unpacked)


def _mirror_write(
    work: Workplace,
    job: Job,
    mode: str,
    *,
    parts: tuple[Part, ...] = (),
    staged: _Staged | None = None,
    snapshot: tuple[Part, ...] = (),
) -> MirrorWrite:
    policies = job.lineage.policies
    kept = kept_columns((part.columns for part in parts), job.lineage.schema)
    return MirrorWrite(
        mirror=job.task.state.mirror,
        mode=mode,
        files=() if staged is None else (staged.path,),
        schema=job.lineage.schema,
        key=job.key,
        app_id=job.task.intent.app_id,
        txn_version=job.task.intent.txn_version,
        user_metadata=job.task.metadata,
        # What is completed are rows of any key.
        bounds=() if staged is None or job.lineage.asked else staged.bounds,
        parts=parts if staged is None else (),
        snapshot=snapshot,
        completion=_completion(work, job),
        kept=() if staged is None else kept,
        lacking=() if staged is None else staged.lacking,
        folded=staged is not None,
        deletes=policies.deletes,
        moment=job.moment,
        readers=policies.readers,
    )


@dataclass(frozen=True, slots=True)
class _Staged:
    """Folded changes in a file for Spark to read, with the bounds of the keys that it is about,
    in the mirror, and the columns that some of its rows lack."""

    path: str
    bounds: tuple[tuple[str, str, str], ...]
    lacking: tuple[str, ...]


@contextmanager
def _staged(work: Workplace, job: Job, parts: Sequence[Part]) -> Iterator[_Staged]:
    with _FOLDING:
        staged = _stage(work, job, parts)
    try:
        yield staged
    finally:
        work.mirrors.unstage(staged.path)


def _stage(work: Workplace, job: Job, parts: Sequence[Part]) -> _Staged:
    """Fold the segments to the last image per key and write that."""
    line, schema = job.lineage, job.lineage.schema
    marks = ["_committed_at"] if line.policies.deletes == "soft" else []
    images = []
    for (version, _, files), part in zip(_by_kind(job), parts, strict=True):
        own = changelog_names(list(line.names[version]))
        present = [] if part.present is None else [part.present]
        columns = ["_change_type", "_sequence", *marks, *own, *present]
        read = work.segments.read(job.folders[version], files, columns)
        images.append((_above(read, job.task.plan.above), part))
    lacking: tuple[str, ...] = ()
    if any(part.present is not None for part in parts):
        changes, lacking = coalesced(images, schema, job.key, marks, moves=_moves(job))
    else:
        pairs = [(one, part.columns) for one, part in images]
        changes = folded(pairs, schema, job.key, marks, numbered=bool(line.asked))
    path = work.mirrors.stage(f"{work.source.name}-{job.task.intent.txn_version}", changes)
    return _Staged(path, _bounds(changes, job, lacking=bool(lacking)), lacking)


def _bounds(changes: pa.Table, job: Job, *, lacking: bool) -> tuple[tuple[str, str, str], ...]:
    names = job.lineage.schema.names
    spelled = dict(zip(names, changelog_names(names), strict=True))
    keys = changes.select([spelled[name] for name in job.key])
    if lacking:
        origins = dict(zip(names, origin_names(names), strict=True))
        others = changes.select([origins[name] for name in job.key])
        keys = pa.concat_tables([keys, others.rename_columns(keys.column_names)])
    return key_bounds(keys, {spelled[name]: name for name in job.key})


def _moves(job: Job) -> bool:
    """Whether the mirror shows each row under the key of before the first change."""
    return not job.again and job.task.plan.snapshot is None


def _above(images: pa.Table, number: int) -> pa.Table:
    return images.filter(pc.greater(images.column("_sequence"), number)) if number else images
