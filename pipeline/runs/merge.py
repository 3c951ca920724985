"""Merge: all captured and not yet merged changes of each table, in one commit per table.

Belongs here: which batches a table's write covers, the order intent → commit → read back
→ settle, and several tables at a time. Does not: how Spark does it (`resources.lake`).

Open intents are settled first, with the same batches and the same version, never
regrouped: a holder that hung may still wake up and commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from time import perf_counter

from pipeline.changes.layout import application_id
from pipeline.decisions import Lease
from pipeline.errors import CommitConflict, ForeignCommit, TableError
from pipeline.intent import Intent
from pipeline.ports.mirrors import MirrorCommit
from pipeline.runs.context import MergeReport, TableMerge, Workplace
from pipeline.runs.merging import Job, prepare_job
from pipeline.runs.publish import publish
from pipeline.runs.writing import write_once
from pipeline.table import TableName
from pipeline.table_state import SetAside

TABLES_AT_ONCE = 4
CONFLICT_TRIES = 3


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
    while jobs := list(_jobs(work, lease, only, failed)):
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


def _merge_tables(
    work: Workplace,
    lease: Lease,
    jobs: Sequence[Job],
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
                failed.append(_put_aside(work, lease, job.intent, error))
            except Exception as error:  # noqa: BLE001 - raised once the others are settled
                errors.append(error)
            else:
                work.ledger.settle(lease, job.intent, commit.delta_version, shows=job.plan.final)
                merged.append(_report(job, commit, seconds))
            work.progress.merge(done=done, total=len(jobs), table=job.intent.table)
    if errors:
        raise errors[0]


def _jobs(
    work: Workplace, lease: Lease, only: frozenset[TableName] | None, failed: list[SetAside]
) -> Iterator[Job]:
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
        app_id = application_id(source, state, "mirror")
        first, last = pending[table][0], pending[table][-1]
        open_intent = open_intents.get(table)
        # A table that cannot go on leaves no intent behind: nothing of it was tried.
        intent = open_intent or Intent(0, table, app_id, 0, first, last, "merge")
        try:
            job = prepare_job(work, intent, state, batches)
        except TableError as error:
            failed.append(_put_aside(work, lease, intent, error))
            continue
        if open_intent is None:
            opened = work.ledger.open_intent(
                lease, table, app_id=app_id, first_batch=first, last_batch=last, step="merge"
            )
            job = replace(job, intent=opened)
        yield job


def _write(work: Workplace, job: Job) -> tuple[MirrorCommit, float]:
    """One table's commit, tried again on the same intent when somebody else was first."""
    clock = perf_counter()
    for attempt in range(1, CONFLICT_TRIES + 1):
        try:
            return write_once(work, job), perf_counter() - clock
        except CommitConflict:
            if attempt == CONFLICT_TRIES:
                raise
    raise AssertionError("a loop over tries returns or raises")


def _put_aside(work: Workplace, lease: Lease, intent: Intent, error: TableError) -> SetAside:
    aside = SetAside(intent.table, error.reason, error.hint, f"batch {intent.first_batch}")
    work.ledger.set_aside(lease, aside)
    work.progress.note(f"{aside.table} was set aside: {aside.reason}")
    return aside


def _report(job: Job, commit: MirrorCommit, seconds: float) -> TableMerge:
    return TableMerge(
        table=job.intent.table,
        counts=job.counts,
        delta_version=commit.delta_version,
        mirror=job.state.mirror,
        changelog=job.state.changelog,
        seconds=seconds,
        first_batch=job.intent.first_batch,
        last_batch=job.intent.last_batch,
        columns=tuple((field.name, str(field.type)) for field in job.lineage.schema),
    )
