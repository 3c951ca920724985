"""Merge: all captured and not yet merged changes of each table, in one commit per table.

Belongs here: which batches a table's write covers, the order intent → commit → read back
→ settle, and several tables at a time. Does not: how Spark does it (`resources.lake`).

Open intents are settled first, with the same batches and the same version, never
regrouped: a holder that hung may still wake up and commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Lock
from time import perf_counter

from pipeline.batch import (
    Batch,
    BatchState,
    Continuity,
    Intent,
    Lease,
    RowCounts,
    Segment,
    SetAside,
    TableCondition,
    TableState,
)
from pipeline.changes.latest import latest
from pipeline.changes.layout import application_id, changelog_names
from pipeline.changes.plan import key_bounds, only_inserts, too_many_to_fold
from pipeline.errors import CommitConflict, ForeignCommit, TableError
from pipeline.ports import MirrorCommit, MirrorWrite
from pipeline.runs.context import MergeReport, TableMerge, Workplace
from pipeline.runs.publish import captured_segments, commit_metadata, publish
from pipeline.schema.types import arrow_schema
from pipeline.table import TableName, TableStructure

TABLES_AT_ONCE = 4
CONFLICT_TRIES = 3
_FOLDING = Lock()
"""One table is folded in memory at a time: what that takes is bounded per table."""


def merge(work: Workplace, lease: Lease, only: frozenset[TableName] | None = None) -> MergeReport:
    """Publish, then merge every table that has captured changes, or those of `only`."""
    clock = perf_counter()
    pending = bool(work.ledger.pending(work.source.name))
    if pending:
        work.mirrors.prepare()
    publish(work)
    if pending:
        # Before any intent: batches that wait for Java are merged together later.
        work.mirrors.require_ready()
    _require_mirrors(work)
    published = perf_counter()
    merged: list[TableMerge] = []
    failed: list[SetAside] = []
    while jobs := list(_jobs(work, lease, only)):
        _merge_tables(work, lease, jobs, merged, failed)
    moved = work.ledger.mark_merged(lease)
    waiting = tuple(sorted(work.ledger.pending(work.source.name)))
    return MergeReport(
        merged=tuple(sorted(merged, key=lambda done: (done.table, done.first_batch))),
        failed=tuple(failed),
        waiting=waiting,
        batches_merged=tuple(moved),
        publish_seconds=published - clock,
        merge_seconds=perf_counter() - published,
    )


def _require_mirrors(work: Workplace) -> None:
    """The mirrors about to be written still show what the ledger acknowledged: a folder
    that was removed, or is not mounted, is never quietly begun again."""
    cursor = work.ledger.acknowledged_cursor(work.source.name)
    if cursor is None:
        return
    pending = work.ledger.pending(work.source.name)
    for entry in work.ledger.version_set(work.source.name, cursor.batch):
        found = work.mirrors.version(entry.mirror) if entry.table in pending else None
        if entry.table in pending and (found is None or found < entry.delta_version):
            there = "is not there" if found is None else f"ends at version {found}"
            raise ForeignCommit(
                f"the mirror {entry.mirror} {there}, but version {entry.delta_version} of it "
                "is acknowledged",
                hint="mount or restore the lake's folder, then run again",
            )


@dataclass(frozen=True, slots=True)
class _Job:
    """One table's write, ready to be tried: all it needs without asking the ledger."""

    intent: Intent
    state: TableState
    structure: TableStructure
    segments: tuple[Segment, ...]
    metadata: str
    all_new: bool
    """Whether a row that the log inserts cannot be in the mirror yet."""

    @property
    def counts(self) -> RowCounts:
        return sum((segment.counts for segment in self.segments), RowCounts())


def _merge_tables(
    work: Workplace,
    lease: Lease,
    jobs: Sequence[_Job],
    merged: list[TableMerge],
    failed: list[SetAside],
) -> None:
    """Write each job's table, several at a time; the ledger is told from this thread."""
    errors: list[Exception] = []
    with ThreadPoolExecutor(TABLES_AT_ONCE, thread_name_prefix="merge") as pool:
        running = {pool.submit(_write, work, job): job for job in jobs}
        for done, future in enumerate(as_completed(running), start=1):
            job = running[future]
            try:
                commit, seconds = future.result()
            except TableError as error:
                failed.append(_put_aside(work, lease, job, error))
            except Exception as error:  # noqa: BLE001 - raised once the others are settled
                errors.append(error)
            else:
                work.ledger.settle(lease, job.intent, commit.delta_version)
                merged.append(_report(job, commit, seconds))
            work.progress.merge(done=done, total=len(jobs), table=job.intent.table)
    if errors:
        raise errors[0]


def _jobs(work: Workplace, lease: Lease, only: frozenset[TableName] | None) -> Iterator[_Job]:
    """One write per table: its open intent as it stands, else a new one over all that is
    captured. What came after an open intent is the next round's."""
    source = work.source.name
    batches = {batch.id: batch for batch in work.ledger.unfinished(source)}
    states = work.ledger.table_states(source)
    pending = work.ledger.pending(source)
    open_intents = {intent.table: intent for intent in work.ledger.open_intents(source)}
    for table in sorted(pending):
        if only is not None and table not in only:
            continue
        state = states[table]
        if state.condition is not TableCondition.ACTIVE:
            continue
        intent = open_intents.get(table) or work.ledger.open_intent(
            lease,
            table,
            app_id=application_id(source, state, "mirror"),
            first_batch=pending[table][0],
            last_batch=pending[table][-1],
            step="merge",
        )
        yield _job(work, intent, state, batches)


def _job(work: Workplace, intent: Intent, state: TableState, batches: Mapping[int, Batch]) -> _Job:
    covered = [
        batch
        for number, batch in sorted(batches.items())
        if intent.first_batch <= number <= intent.last_batch and batch.state is BatchState.CAPTURED
    ]
    segments = tuple(captured_segments(work, [batch.id for batch in covered], intent.table))
    version = work.ledger.table_version(work.source.name, intent.table, segments[-1].schema_version)
    metadata = commit_metadata(intent.table, covered)
    # Behind a gap a row may be inserted whose deletion nobody read; in an overlap, again.
    overlaps = any(batch.continuity is Continuity.OVERLAP for batch in covered)
    all_new = not overlaps and not work.ledger.gaps(work.source.name)
    return _Job(intent, state, version.structure, segments, metadata, all_new)


def _write(work: Workplace, job: _Job) -> tuple[MirrorCommit, float]:
    """One table's commit, tried again on the same intent when somebody else was first."""
    clock = perf_counter()
    for attempt in range(1, CONFLICT_TRIES + 1):
        try:
            return _write_once(work, job), perf_counter() - clock
        except CommitConflict:
            if attempt == CONFLICT_TRIES:
                raise
    raise AssertionError("a loop over tries returns or raises")


def _write_once(work: Workplace, job: _Job) -> MirrorCommit:
    mirrors, intent = work.mirrors, job.intent
    recorded = mirrors.recorded(job.state.mirror, intent.app_id, intent.txn_version)
    if recorded is not None:
        return _require_ours(job, recorded)
    files = [file for segment in job.segments for file in segment.files]
    paths = tuple(mirrors.path(f"{job.state.changelog}/{file.path}") for file in files)
    if job.all_new and only_inserts(segment.counts for segment in job.segments):
        return mirrors.write(_mirror_write(job, "append", paths))
    unpacked = work.segments.unpacked(job.state.changelog, files)
    if too_many_to_fold(sum(file.images for file in files), unpacked):
        return mirrors.write(_mirror_write(job, "fold", paths))
    with _FOLDING:
        staged, bounds = _stage(work, job)
    try:
        return mirrors.write(_mirror_write(job, "merge", (staged,), bounds))
    finally:
        mirrors.unstage(staged)


def _require_ours(job: _Job, commit: MirrorCommit) -> MirrorCommit:
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


def _mirror_write(
    job: _Job, mode: str, files: tuple[str, ...], bounds: tuple[tuple[str, str, str], ...] = ()
) -> MirrorWrite:
    return MirrorWrite(
        mirror=job.state.mirror,
        mode=mode,
        files=files,
        schema=arrow_schema(job.structure),
        key=job.structure.primary_key,
        app_id=job.intent.app_id,
        txn_version=job.intent.txn_version,
        user_metadata=job.metadata,
        bounds=bounds,
    )


def _stage(work: Workplace, job: _Job) -> tuple[str, tuple[tuple[str, str, str], ...]]:
    """Fold the segments to the last image per key and write that for Spark to read."""
    names = [column.name for column in job.structure.columns]
    spelled = changelog_names(names)
    key = [spelled[names.index(column)] for column in job.structure.primary_key]
    files = [file for segment in job.segments for file in segment.files]
    changes = work.segments.read(
        job.state.changelog, files, ["_change_type", "_sequence", *spelled]
    )
    folded = latest(changes, key)
    bounds = key_bounds(folded, dict(zip(key, job.structure.primary_key, strict=True)))
    staged = work.mirrors.stage(f"{work.source.name}-{job.intent.txn_version}", folded)
    return staged, bounds


def _put_aside(work: Workplace, lease: Lease, job: _Job, error: TableError) -> SetAside:
    aside = SetAside(job.intent.table, error.reason, error.hint, f"batch {job.intent.first_batch}")
    work.ledger.set_aside(lease, aside)
    work.progress.note(f"{aside.table} was set aside: {aside.reason}")
    return aside


def _report(job: _Job, commit: MirrorCommit, seconds: float) -> TableMerge:
    schema = arrow_schema(job.structure)
    return TableMerge(
        table=job.intent.table,
        counts=job.counts,
        delta_version=commit.delta_version,
        mirror=job.state.mirror,
        changelog=job.state.changelog,
        seconds=seconds,
        first_batch=job.intent.first_batch,
        last_batch=job.intent.last_batch,
        columns=tuple((field.name, str(field.type)) for field in schema),
    )
