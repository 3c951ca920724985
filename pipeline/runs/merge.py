"""Merge: all captured and not yet merged changes of each table, in one commit per table.

Open intents are settled first, with the same batches and the same version, never
regrouped: a holder that hung may still wake up and commit. One that is refused is given up
with its table, which is quarantined: when the table comes back, another write takes its
batches together with what cured it. That one replaces the mirror (`catch_up`), whatever
the refused write made of its columns.

A process that dies takes a Spark of its own along. A server goes on with what it was asked for.
The commit that this would come to is bound to a version, so that it does no harm; but it takes
the cores and the memory that the same write needs once more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from time import perf_counter

import pyarrow as pa

from pipeline.arrow_errors import for_one_table
from pipeline.batch import Batch, BatchState
from pipeline.changes.layout import DELETED_AT, application_id
from pipeline.changes.merging import plan_merge, read_before
from pipeline.decisions import Lease
from pipeline.errors import CommitConflict, MirrorRefused, Need, TableError
from pipeline.intent import Intent
from pipeline.policies import Readers
from pipeline.ports.mirrors import MirrorSize
from pipeline.retries import MERGE
from pipeline.runs.agreement.claim import require_claim
from pipeline.runs.agreement.lake_logs import look_at, moved
from pipeline.runs.context import Workplace, tables_done
from pipeline.runs.cures import owed, reload_hint
from pipeline.runs.expect import waiting_log
from pipeline.runs.merging.job import Job, TableBooks, Task, books_of, prepare_job, task_of
from pipeline.runs.merging.mirror_write import FOUND, Written, commit_made, write_once
from pipeline.runs.mirror_places import WRITTEN_ANEW, renew, why_elsewhere
from pipeline.runs.publish import publish
from pipeline.runs.replaying.settle import settle_replays
from pipeline.runs.reports import MergeReport, TableMerge
from pipeline.table import TableName
from pipeline.table_state import Quarantine, TableState

TABLES_AT_ONCE = 4


def merge(
    work: Workplace,
    lease: Lease,
    only: frozenset[TableName] | None = None,
    settled: Callable[[TableMerge], None] = lambda _: None,
) -> MergeReport:
    """Publish, then merge every table that has captured changes, or those of `only`. `settled` is
    told each, in this thread, once the ledger has it."""
    clock = perf_counter()
    require_claim(work)
    for note in settle_replays(work, lease):
        work.progress.note(note)
    pending = bool(work.ledger.pending(work.source.name))
    if pending:
        work.mirrors.prepare(waiting_log(work.ledger, work.source.name))
    quarantined = publish(work, lease)
    if pending:
        # Before any intent: batches that wait for Java are merged together later.
        work.mirrors.require_ready()
    published = perf_counter()
    merging = _Merging(work, lease, only, settled, failed=list(quarantined))
    merging.look_around()
    with statements_noted(work, lease) if pending else nullcontext():
        while merging.round():
            pass
    moved = work.ledger.mark_merged(lease) if work.ledger.unfinished(work.source.name) else []
    waiting = tuple(sorted(work.ledger.pending(work.source.name)))
    return MergeReport(
        merged=tuple(sorted(merging.merged, key=lambda done: (done.table, done.first_batch))),
        failed=tuple(merging.failed),
        waiting=waiting,
        batches_merged=tuple(moved),
        publish_seconds=published - clock,
        merge_seconds=perf_counter() - published,
    )


@contextmanager
def statements_noted(work: Workplace, lease: Lease) -> Iterator[None]:
    """What is written inside is known to the next run, should this one not come to its end; first
    it ends what was left by others. An error inside leaves the note: nobody knows then what the
    server does."""
    client, source = work.mirrors.client, lease.source
    if client is None:
        yield
        return
    for other in work.ledger.spark_clients(source):
        if other != client:
            work.mirrors.end_statements(other)
            work.ledger.note_spark_client(lease, other, gone=True)
    work.ledger.note_spark_client(lease, client)
    yield
    work.ledger.note_spark_client(lease, client, gone=True)


def lacking_of(work: Workplace) -> Mapping[TableName, list[Batch]]:
    """The batches that each table's mirror lacks, oldest first, those among them that were
    acknowledged without it."""
    source = work.source.name
    pending = work.ledger.pending(source)
    known = {batch.id: batch for batch in work.ledger.unfinished(source)}
    missed = {number for numbers in pending.values() for number in numbers} - known.keys()
    if missed:
        batches = work.ledger.live_batches(source, min(missed), max(missed))
        known |= {batch.id: batch for batch in batches}
    return {table: [known[number] for number in pending[table]] for table in sorted(pending)}


def intent_over(source: str, state: TableState, batches: Sequence[Batch]) -> Intent:
    """One over all batches, not yet recorded."""
    numbers = [batch.id for batch in batches]
    app_id = application_id(source, state, "mirror")
    return Intent(0, state.table, app_id, 0, min(numbers), max(numbers), "merge")


@dataclass(slots=True)
class _Merging:
    """Tables merged and quarantined so far."""

    work: Workplace
    lease: Lease
    only: frozenset[TableName] | None
    settled: Callable[[TableMerge], None]
    merged: list[TableMerge] = field(default_factory=list)
    failed: list[Quarantine] = field(default_factory=list)
    anew: frozenset[TableName] = frozenset()
    renewed: set[TableName] = field(default_factory=set)
    looked: dict[str, int] = field(default_factory=dict)
    books: Mapping[TableName, TableBooks] = field(default_factory=dict)

    def look_around(self) -> None:
        """Tables that have nothing to merge are looked at too: what somebody else wrote into a
        mirror, and a mirror that is gone, is said by the next run."""
        work = self.work
        self.looked = work.ledger.looked(work.source.name)
        pending = work.ledger.pending(work.source.name)
        newest = work.ledger.cursors(work.source.name).captured
        for state in moved(work, self.looked):
            if state.table in pending or newest is None:
                continue
            try:
                self._note(state, look_at(work, state, self.looked.get(state.mirror)))
            except TableError as error:
                self._quarantine(state.table, newest.batch, error)

    def _note(self, state: TableState, version: int | None) -> None:
        """Up to there the mirror's log was looked at."""
        if version is not None and version != self.looked.get(state.mirror):
            self.work.ledger.note_looked(self.lease, {state.mirror: version})
            self.looked[state.mirror] = version

    def round(self) -> bool:
        """One write per table: its open intent as it stands, else a new one over all that it
        lacks. What came after an open intent is the next round's. Whether any was made."""
        work, source = self.work, self.work.source.name
        states = work.ledger.table_states(source)
        intents = {intent.table: intent for intent in work.ledger.open_intents(source)}
        before, jobs = len(self.merged) + len(self.renewed), []
        lacking = {
            table: batches
            for table, batches in lacking_of(work).items()
            if self.only is None or table in self.only
        }
        for table, batches in lacking.items():
            intents.setdefault(table, intent_over(source, states[table], batches))
        applications = {table: intents[table].app_id for table in lacking}
        self.books = books_of(work, lacking, states, applications)
        for table, batches in lacking.items():
            last = self._bound(table, batches)
            if not intents[table].id and last is not None:
                intents[table] = replace(intents[table], last_batch=last)
        self.anew = written_anew(lacking, self.books)
        for table, batches in lacking.items():
            intent = intents[table]
            if not intent.id and self._renewed(states[table]):
                continue
            job = self._prepared(intent, states[table], batches)
            jobs += [job] if job is not None else []
        self._write(self._intended(jobs))
        return len(self.merged) + len(self.renewed) > before

    def _bound(self, table: TableName, batches: Sequence[Batch]) -> int | None:
        """The last batch that one write may cover; None where it may cover all."""
        books = self.books[table]
        if books.forgets or not self.work.source.policies_of(table).keeps_rows:
            return None
        # What an acknowledged batch read from the source is not there any more.
        there = {batch.id for batch in batches if batch.state is not BatchState.ACKNOWLEDGED}
        return read_before(part for part in books.parts if part.batch in there)

    def _renewed(self, state: TableState) -> bool:
        """Whether the next write is of all rows, and goes into another mirror: the next round's."""
        if state.table not in self.anew - self.renewed:
            return False
        name = self.work.source.other_place(state)
        try:
            why = made_for_others(self.work, state) if name is None else why_elsewhere(name)
        except MirrorRefused as error:
            why = error.reason
        if why is not None:
            self._renew(state.table, why)
        return why is not None

    def _prepared(self, intent: Intent, state: TableState, batches: Sequence[Batch]) -> Job | None:
        """None where nothing is to be written: the table cannot go on, or a commit that a dead
        run made is found. Only what can be carried out becomes an intent."""
        try:
            with for_one_table("prepare its changes"):
                task = task_of(self.work, self.books[intent.table], intent, state, batches)
                made = commit_made(self.work, task) if intent.id else None
                if made is not None:
                    found = self.work.mirrors.schema(state.mirror, made.delta_version)
                    columns = [one for one in found if one.name != DELETED_AT.name]
                    self._settle(task, Written(made, FOUND), columns, 0.0)
                    return None
                # Noted before it is written to: of all writes behind the last look, one is
                # settled.
                self._note(state, self._look(task, intent if intent.id else None))
                return prepare_job(self.work, self.books[intent.table], task)
        except TableError as error:
            self._refused(intent.table, intent.first_batch, error)
            return None

    def _intended(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs with their intents: only what can be carried out becomes one."""
        fresh = [job.task.intent for job in jobs if not job.task.intent.id]
        opened = self.work.ledger.intend(self.lease, fresh) if fresh else {}
        return [
            replace(
                job,
                task=replace(job.task, intent=opened.get(job.task.state.table, job.task.intent)),
            )
            for job in jobs
        ]

    def _write(self, jobs: Collection[Job]) -> None:
        """Several tables at a time; the ledger is told from this thread."""
        errors: list[Exception] = []
        with ThreadPoolExecutor(TABLES_AT_ONCE, thread_name_prefix="merge") as pool:
            running = {pool.submit(_tried, self.work, self.lease, job): job for job in jobs}
            for done, future in enumerate(as_completed(running), start=1):
                job = running[future]
                try:
                    written, seconds, size = future.result()
                except TableError as error:
                    self._refused(job.task.intent.table, job.task.intent.first_batch, error)
                except Exception as error:  # noqa: BLE001 - raised once the others are settled
                    errors.append(error)
                else:
                    self._settle(job.task, written, list(job.lineage.schema), seconds, size)
                table = job.task.intent.table
                self.work.progress.tell(tables_done("merge", done, len(jobs), table))
        if errors:
            raise errors[0]

    def _look(self, task: Task, intent: Intent | None) -> int | None:
        newest = self.books[task.state.table].newest
        if intent is not None:
            newest = replace(newest, intended=max(newest.intended, intent.txn_version))
        return look_at(
            self.work,
            task.state,
            self.looked.get(task.state.mirror),
            intent,
            replaced=task.plan.replaces,
            newest=newest,
        )

    def _settle(
        self,
        task: Task,
        written: Written,
        columns: Collection[pa.Field],
        seconds: float,
        size: MirrorSize | None = None,
    ) -> None:
        version, intent = written.commit.delta_version, task.intent
        foreign: TableError | None = None
        try:
            # Somebody may have committed between the snapshot that was read and the commit.
            self._look(task, intent)
        except TableError as error:
            foreign = error
        self.work.ledger.settle(
            self.lease,
            intent,
            version,
            shows=task.plan.final,
            reason=written.reason,
            table_id=written.commit.table_id,
            looked=foreign is None,
        )
        if foreign is None:
            self.looked[task.state.mirror] = version
        else:
            self._quarantine(intent.table, intent.last_batch, foreign)
        done = TableMerge(
            table=task.intent.table,
            counts=task.counts,
            delta_version=version,
            mirror=task.state.mirror,
            changelog=task.state.changelog,
            seconds=seconds,
            first_batch=task.intent.first_batch,
            last_batch=task.intent.last_batch,
            columns=tuple((field.name, field.type) for field in columns),
            shows=task.plan.final,
            reason=written.reason,
            read=task.read,
            size=size,
        )
        self.merged.append(done)
        self.settled(done)

    def _refused(self, table: TableName, batch: int, error: TableError) -> None:
        """A mirror to be written anew gets a successor; any other table is quarantined. One that
        was to have another one's rows is read from the source then, whatever they lack."""
        catches_up = error.need is None and not isinstance(error, MirrorRefused)
        if catches_up and plan_merge(self.books[table].parts).copied is not None:
            error = owed(error.reason)
        if isinstance(error, MirrorRefused) and table in self.anew - self.renewed:
            self._renew(table, error.reason)
        else:
            self._quarantine(table, batch, error)

    def _renew(self, table: TableName, why: str) -> None:
        renew(self.work, self.lease, table, why)
        self.renewed.add(table)

    def _quarantine(self, table: TableName, batch: int, error: TableError) -> None:
        """Nothing of an open intent is in the lake, or `commit_made` had found it."""
        hint = reload_hint(table) if isinstance(error, MirrorRefused) else error.hint
        quarantined = replace(
            Quarantine.of(table, error, f"batch {batch}"),
            hint=hint,
            need=error.need or Need.MIRROR,
        )
        self.work.ledger.quarantine(self.lease, quarantined)
        self.work.progress.note(f"{quarantined.table} was quarantined: {quarantined.reason}")
        self.failed.append(quarantined)


def _tried(work: Workplace, lease: Lease, job: Job) -> tuple[Written, float, MirrorSize | None]:
    """One table's commit, tried again on the same intent when somebody else was first; its
    seconds, and the size of what it made."""
    clock = perf_counter()
    for wait in MERGE.tries():
        try:
            with for_one_table("fold its changes"):
                written = write_once(work, job, lambda: work.ledger.require_held(lease))
            seconds = perf_counter() - clock
            mirror = job.task.state.mirror
            return written, seconds, work.mirrors.size(mirror, written.commit.delta_version)
        except CommitConflict:
            if wait is None:
                raise
    raise AssertionError("a loop over tries returns or raises")


def written_anew(
    lacking: Mapping[TableName, Sequence[Batch]], books: Mapping[TableName, TableBooks]
) -> frozenset[TableName]:
    """The tables of which all rows are among what their mirrors lack."""
    lacks = {(table, batch.id) for table, batches in lacking.items() for batch in batches}
    return frozenset(
        table
        for table, own in books.items()
        for part in own.parts
        if (table, part.batch) in lacks and any(event.kind in WRITTEN_ANEW for event in part.events)
    )


def made_for_others(work: Workplace, state: TableState) -> str | None:
    """Why a mirror that is there is not the one to write all rows into: a Delta table keeps what
    it once asked of its readers. One that keeps rows which are gone at the source is the only place
    that has them."""
    policies = work.source.policies_of(state.table)
    made, wanted = work.mirrors.made_for(state.mirror), policies.readers
    if policies.keeps_rows or state.mirror_version is None or made is None or made == wanted:
        return None
    words = {Readers.SPARK: "for Spark", Readers.ANY: "for any reader"}
    return f'{state.mirror} was made {words[made]}, and `readers` is "{wanted}"'
