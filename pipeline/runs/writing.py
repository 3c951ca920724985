"""One table's commit: the mirror's columns first, then all changes in one write.

Belongs here: which of the lake's ways of writing a job takes. Does not: what the job is
(`merging`), trying again (`merge`), Spark (`resources.lake`).
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.changes.layout import changelog_names
from pipeline.changes.mapping import folded, kept_columns
from pipeline.changes.plan import key_bounds, only_inserts, too_many_to_fold
from pipeline.errors import ForeignCommit, TableError
from pipeline.ports.mirror_writes import MirrorWrite, Part
from pipeline.ports.mirrors import MirrorCommit
from pipeline.runs.context import Workplace
from pipeline.runs.merging import Job, snapshot_paths
from pipeline.segment import SegmentFile

_FOLDING = Lock()
"""One table is folded in memory at a time: what that takes is bounded per table."""


def write_once(work: Workplace, job: Job) -> MirrorCommit:
    """The job's commit, made or found. `CommitConflict` where somebody else was first."""
    mirrors, intent = work.mirrors, job.intent
    recorded = mirrors.recorded(job.state.mirror, intent.app_id, intent.txn_version)
    if recorded is not None:
        return _require_ours(job, recorded)
    key = job.lineage.key_of(job.plan.versions)
    if key is None:
        raise TableError(
            "no key tells its rows apart in all the versions that were captured",
            hint=f"`lockstep release {intent.table}` reads it anew",
        )
    if job.steps:
        mirrors.evolve(
            job.state.mirror,
            job.steps,
            app_id=intent.app_id,
            txn_version=intent.txn_version,
            after=job.after,
        )
    return _write(work, job, key)


def _write(work: Workplace, job: Job, key: tuple[str, ...]) -> MirrorCommit:
    parts = _parts(work, job)
    if job.plan.replaces:
        return work.mirrors.write(
            _mirror_write(job, "replace", key, parts=parts, snapshot=_snapshot(work, job))
        )
    inserts = only_inserts(segment.counts for segment in job.plan.segments)
    if job.all_new and inserts and not job.lineage.marked:
        return work.mirrors.write(_mirror_write(job, "append", key, parts=parts))
    if not key or _too_many(work, job):
        return work.mirrors.write(_mirror_write(job, "fold", key, parts=parts))
    with _FOLDING:
        staged, bounds = _stage(work, job, key)
    kept = kept_columns((part.columns for part in parts), job.lineage.schema)
    try:
        return work.mirrors.write(
            _mirror_write(job, "merge", key, files=(staged,), bounds=bounds, kept=kept)
        )
    finally:
        work.mirrors.unstage(staged)


def _require_ours(job: Job, commit: MirrorCommit) -> MirrorCommit:
    """A commit under our number that says other words was made by another history: a
    ledger restored from a backup, or made anew beside an old lake."""
    if commit.user_metadata != job.metadata:
        raise ForeignCommit(
            f"version {commit.delta_version} of {job.state.mirror} carries write "
            f"{job.intent.txn_version} of {job.intent.app_id}, but for another range of the log",
            hint="the ledger and the lake do not belong together (was one restored or deleted "
            "alone?): restore both from one moment, or begin again with a new lake folder",
        )
    return commit


def _parts(work: Workplace, job: Job) -> tuple[Part, ...]:
    """The segments' files by the version they were written under."""
    return tuple(
        job.lineage.part(
            version,
            tuple(
                work.mirrors.path(f"{job.folders[version]}/{file.path}")
                for file in _files(job, version)
            ),
            above=job.plan.above,
        )
        for version in job.plan.versions
    )


def _files(job: Job, version: int | None = None) -> list[SegmentFile]:
    return [
        file
        for segment in job.plan.segments
        for file in segment.files
        if version is None or segment.schema_version == version
    ]


def _snapshot(work: Workplace, job: Job) -> tuple[Part, ...]:
    part = job.plan.snapshot
    if part is None:
        return ()
    return (job.lineage.part(part.version, snapshot_paths(work, part), snapshot=True),)


def _too_many(work: Workplace, job: Job) -> bool:
    files = _files(job)
    unpacked = sum(
        work.segments.unpacked(job.folders[version], _files(job, version))
        for version in job.plan.versions
    )
    return too_many_to_fold(sum(file.images for file in files), unpacked)


def _mirror_write(
    job: Job,
    mode: str,
    key: tuple[str, ...],
    *,
    files: tuple[str, ...] = (),
    parts: tuple[Part, ...] = (),
    snapshot: tuple[Part, ...] = (),
    bounds: tuple[tuple[str, str, str], ...] = (),
    kept: tuple[str, ...] = (),
) -> MirrorWrite:
    policies = job.lineage.policies
    return MirrorWrite(
        mirror=job.state.mirror,
        mode=mode,
        files=files,
        schema=job.lineage.schema,
        key=key,
        app_id=job.intent.app_id,
        txn_version=job.intent.txn_version,
        user_metadata=job.metadata,
        bounds=bounds,
        parts=parts,
        snapshot=snapshot,
        kept=kept,
        deletes=policies.deletes,
        moment=job.moment,
        readers=policies.readers,
    )


def _stage(
    work: Workplace, job: Job, key: Sequence[str]
) -> tuple[str, tuple[tuple[str, str, str], ...]]:
    """Fold the segments to the last image per key and write that for Spark to read."""
    line, schema = job.lineage, job.lineage.schema
    marks = ["_committed_at"] if line.policies.deletes == "soft" else []
    images = []
    for version in job.plan.versions:
        own = changelog_names(list(line.names[version]))
        columns = ["_change_type", "_sequence", *marks, *own]
        read = work.segments.read(job.folders[version], _files(job, version), columns)
        images.append((_above(read, job.plan.above), line.part(version).columns))
    changes = folded(images, schema, key, marks)
    spelled = dict(zip(schema.names, changelog_names(schema.names), strict=True))
    bounds = key_bounds(changes, {spelled[name]: name for name in key})
    staged = work.mirrors.stage(f"{work.source.name}-{job.intent.txn_version}", changes)
    return staged, bounds


def _above(images: pa.Table, number: int) -> pa.Table:
    return images.filter(pc.greater(images.column("_sequence"), number)) if number else images
