"""One table's commit: the mirror's columns first, then all changes in one write.

Belongs here: the facts that a strategy is chosen by, and the write that it comes to. Does not:
choosing (`pipeline.changes.strategy`), folding (`folding`), what the job is (`job`), trying again
(`merge`), Spark (`resources.lake`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, assert_never

from pipeline.changes.strategy import Facts, Strategy, Way, choose, only_inserts
from pipeline.claim import HINT
from pipeline.errors import ForeignCommit
from pipeline.lake_commit import same_write
from pipeline.policies import Deletes
from pipeline.ports.held import Held
from pipeline.ports.mirror_writes import (
    Append,
    Count,
    Merge,
    MirrorTarget,
    MirrorWrite,
    Recount,
    Replace,
    StagedFiles,
)
from pipeline.ports.mirrors import MirrorCommit
from pipeline.runs.commit_records import keep_structures
from pipeline.runs.context import Workplace
from pipeline.runs.merging.folding import folded_changes
from pipeline.runs.merging.gone_rows import gone_rows
from pipeline.runs.merging.job import Job, Task, snapshot_paths
from pipeline.runs.merging.segment_parts import SegmentPart, segment_parts

FOUND: Final = "an earlier try had made the commit"


@dataclass(frozen=True, slots=True)
class Written:
    """A job's commit, and why it was made the way it was."""

    commit: MirrorCommit
    reason: str


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


def write_once(work: Workplace, job: Job, held: Held) -> Written:
    """The job's commit, made or found. `CommitConflict` where somebody else was first, and what
    `held` raises, such as `LeaseLost`: each commit is planned on what the mirror's log ended with
    before that was asked."""
    made = commit_made(work, job.task)
    if made is not None:
        return Written(made, FOUND)
    if job.task.structure is not None:
        keep_structures(work, [job.task.structure])
    if job.steps:
        work.mirrors.evolve(
            job.task.state.mirror,
            job.steps,
            app_id=job.task.intent.app_id,
            txn_version=job.task.intent.txn_version,
            after=job.after,
            told=job.task.metadata,
            held=held,
        )
    parts = segment_parts(work, job)
    strategy = choose(_facts(work, job, parts))
    with _write(work, job, parts, strategy) as write:
        commit = work.mirrors.write(write, held)
    told = (strategy.reason, commit.scale or FOUND)
    return Written(commit, "; ".join(told))


def _facts(work: Workplace, job: Job, parts: Sequence[SegmentPart]) -> Facts:
    return Facts(
        keyed=bool(job.key),
        soft=job.lineage.policies.deletes == Deletes.SOFT,
        replaces=job.task.plan.replaces,
        partial=any(part.part.present is not None for part in parts),
        images=sum(file.images for part in parts for file in part.files),
        unpacked=sum(work.segments.unpacked(part.folder, part.files) for part in parts),
        inserts_only=only_inserts(segment.counts for segment in job.task.plan.segments),
        all_new=job.all_new,
        marked=job.lineage.marked,
        completes=bool(job.lineage.asked),
    )


@contextmanager
def _write(
    work: Workplace, job: Job, parts: Sequence[SegmentPart], strategy: Strategy
) -> Iterator[MirrorWrite]:
    """The write, whose staged files last as long as the context."""
    target, images = _target(job), tuple(part.part for part in parts)
    match strategy.way:
        case Way.APPEND:
            yield Append(target, images)
        case Way.COUNT:
            yield Count(target, images)
        case Way.RECOUNT:
            yield Recount(target, images, _snapshot(work, job))
        case Way.MERGE:
            with folded_changes(work, job, parts, strategy.buckets) as folded:
                # What is completed are rows of any key.
                bounds = () if job.lineage.asked else folded.bounds
                yield Merge(target, job.key, folded.changes, bounds, _completion(work, job))
        case Way.REPLACE:
            moment = job.emptied[0][1] if job.emptied else None
            with (
                folded_changes(work, job, parts, strategy.buckets) as folded,
                gone_rows(work, job) as gone,
            ):
                snapshot = _snapshot(work, job)
                yield Replace(target, job.key, snapshot, folded.changes, moment, gone)
        case _:
            assert_never(strategy.way)


def _target(job: Job) -> MirrorTarget:
    policies = job.lineage.policies
    return MirrorTarget(
        mirror=job.task.state.mirror,
        schema=job.lineage.schema,
        app_id=job.task.intent.app_id,
        txn_version=job.task.intent.txn_version,
        user_metadata=job.task.metadata,
        deletes=policies.deletes,
        readers=policies.readers,
    )


def _snapshot(work: Workplace, job: Job) -> tuple[StagedFiles, ...]:
    part = job.task.plan.snapshot
    if part is None:
        return ()
    return (job.lineage.part(part.version, snapshot_paths(work, part), snapshot=True),)


def _completion(work: Workplace, job: Job) -> StagedFiles | None:
    part = job.task.plan.completion
    if part is None or not job.lineage.asked:
        return None
    return job.lineage.completion(part.version, snapshot_paths(work, part), part.low_sequence)
