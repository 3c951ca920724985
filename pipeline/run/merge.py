"""Merge: write the captured changes of each table to its mirror (the Delta table with
the current rows), in one commit per table.

The ledger records an intent before each write: the table, its batches, and the
application transaction that the Delta commit will have. Intents of a dead run are
carried out first, with the same batches and the same transaction, because a process
that hung may still wake up and commit. If such a write is refused, its intent is given
up and the table is quarantined. When the table comes back, a new write replaces the
mirror, with these batches and all others that the mirror lacks.

If a process dies, its own Spark dies with it, but a Spark Connect server continues its
statement. That does no harm, because its commit is bound to a version of the Delta
table. But it takes the cores and the memory that the repeated write needs, so the next
run ends it (`_recorded_session`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from time import perf_counter

import pyarrow as pa

from lockstep.pipeline.mirror.layout import DELETED_AT, application_id
from lockstep.pipeline.mirror.merging import begins_with_mirror, end_of_first_write, plan_merge
from lockstep.pipeline.model.batch import Batch, BatchState
from lockstep.pipeline.model.table_state import StoppedTable, TableState
from lockstep.pipeline.ports.mirrors import MirrorSize
from lockstep.pipeline.run.agreement.claim import require_claim
from lockstep.pipeline.run.agreement.lake_logs import (
    checked_version,
    mirror_judgement,
    mirrors_with_new_commits,
)
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.expected_log import waiting_log_bytes
from lockstep.pipeline.run.mirror_folders import FULL_REWRITE_EVENTS, move_reason, replace_mirror
from lockstep.pipeline.run.progress import table_progress
from lockstep.pipeline.run.publish import publish
from lockstep.pipeline.run.replay.settle import settle_replays
from lockstep.pipeline.run.reports import MergeReport, TableMerge
from lockstep.pipeline.run.stop_errors import (
    arrow_errors_as_table_error,
    read_after_resume_error,
    reload_hint,
    reread_error,
)
from lockstep.pipeline.run.write.job import (
    Job,
    TableRecords,
    Task,
    prepare_job,
    table_records,
    task_of,
)
from lockstep.pipeline.run.write.mirror_write import (
    FOUND_REASON,
    WriteResult,
    find_commit_of,
    write_once,
)
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import (
    CommitConflict,
    MirrorRefused,
    Need,
    StoppedBy,
    TableError,
)
from lockstep.pipeline.values.intent import Intent
from lockstep.pipeline.values.policies import Readers
from lockstep.pipeline.values.retries import MERGE
from lockstep.pipeline.values.table import TableName

_TABLES_AT_ONCE = 4
"""Number of tables that are written at the same time."""


def merge(
    ports: RunPorts,
    lease: Lease,
    only_tables: frozenset[TableName] | None = None,
    on_merged: Callable[[TableMerge], None] = lambda _: None,
) -> MergeReport:
    """Publish captured changes to the changelogs, then merge all tables with such
    changes, or those of `only_tables`. `on_merged` is called in this thread after each
    merge that the ledger has recorded."""
    timer_start = perf_counter()
    require_claim(ports)
    for note in settle_replays(ports, lease):
        ports.progress.note(note)
    has_pending = bool(ports.ledger.pending_batches(ports.source.name))
    if has_pending:
        ports.mirrors.prepare(waiting_log_bytes(ports.ledger, ports.source.name))
    quarantined = publish(ports, lease)
    if has_pending:
        # An intent fixes its batches. While Spark cannot start, none is recorded, so
        # that one later write merges all batches that wait.
        ports.mirrors.require_ready()
    merge_start = perf_counter()
    merger = _Merger(ports, lease, only_tables, on_merged, quarantined=list(quarantined))
    merger.check_idle_mirrors()
    with _recorded_session(ports, lease) if has_pending else nullcontext():
        while merger.write_round():
            pass
    unfinished = ports.ledger.unfinished_batches(ports.source.name)
    batches_merged = ports.ledger.mark_merged(lease) if unfinished else []
    waiting_tables = tuple(sorted(ports.ledger.pending_batches(ports.source.name)))
    return MergeReport(
        merges=tuple(sorted(merger.merges, key=lambda report: (report.table, report.first_batch))),
        quarantined=tuple(merger.quarantined),
        waiting_tables=waiting_tables,
        merged_batches=tuple(batches_merged),
        publish_seconds=merge_start - timer_start,
        merge_seconds=perf_counter() - merge_start,
    )


@contextmanager
def _recorded_session(ports: RunPorts, lease: Lease) -> Iterator[None]:
    """End the statements of dead runs on the Spark Connect server, and record this
    run's session there while it writes, so that the next run can do the same for it.
    After an error the record remains, because the server may still be working."""
    client_id, source = ports.mirrors.client_id, lease.source
    if client_id is None:
        yield
        return
    for other_id in ports.ledger.spark_clients(source):
        if other_id != client_id:
            ports.mirrors.end_statements(other_id)
            ports.ledger.forget_spark_client(lease, other_id)
    ports.ledger.note_spark_client(lease, client_id)
    yield
    ports.ledger.forget_spark_client(lease, client_id)


def missing_batches(ports: RunPorts) -> Mapping[TableName, list[Batch]]:
    """Return the batches that each table's mirror lacks, oldest first. They include
    batches that were acknowledged while the table was stopped."""
    source = ports.source.name
    pending = ports.ledger.pending_batches(source)
    batches = {batch.id: batch for batch in ports.ledger.unfinished_batches(source)}
    older_ids = set(chain.from_iterable(pending.values())) - batches.keys()
    if older_ids:
        acknowledged = ports.ledger.live_batches(source, min(older_ids), max(older_ids))
        batches |= {batch.id: batch for batch in acknowledged}
    return {table: [batches[batch_id] for batch_id in pending[table]] for table in sorted(pending)}


def _new_intent(source: str, state: TableState, batches: Sequence[Batch]) -> Intent:
    """Return a new intent (not recorded yet) to write all of these batches, which are
    given oldest first."""
    return Intent(
        id=0,
        table=state.table,
        app_id=application_id(source, state, "mirror"),
        txn_version=0,
        first_batch=batches[0].id,
        last_batch=batches[-1].id,
        step="merge",
    )


@dataclass(slots=True)
class _Merger:
    """One merge of a source, with the tables that were merged and quarantined so far.

    - `only_tables`: the tables to merge; None for all. `on_merged`: as for `merge`.
    - `tables_with_all_rows`: tables whose next write has all rows.
      `tables_with_new_mirror`: those of them that got a new mirror for this write.
    - `tables_without_changes`: dropped tables whose mirrors end without the changes
      that cannot be merged.
    - `examined_versions`: for each mirror, the version up to which its Delta log was
      checked for commits of other programs.
    - `records`: the ledger's records of the tables that this round writes.
    """

    ports: RunPorts
    lease: Lease
    only_tables: frozenset[TableName] | None
    on_merged: Callable[[TableMerge], None]
    merges: list[TableMerge] = field(default_factory=list)
    quarantined: list[StoppedTable] = field(default_factory=list)
    tables_with_all_rows: frozenset[TableName] = frozenset()
    tables_with_new_mirror: set[TableName] = field(default_factory=set)
    tables_without_changes: set[TableName] = field(default_factory=set)
    examined_versions: dict[str, int] = field(default_factory=dict)
    records: Mapping[TableName, TableRecords] = field(default_factory=dict)

    def check_idle_mirrors(self) -> None:
        """Check the mirrors without changes to merge. If another program wrote to one
        or deleted it, the table is quarantined."""
        ports = self.ports
        self.examined_versions = ports.ledger.examined_versions(ports.source.name)
        pending = ports.ledger.pending_batches(ports.source.name)
        cursor = ports.ledger.cursors(ports.source.name).captured
        for state in mirrors_with_new_commits(ports, self.examined_versions):
            if state.table in pending or cursor is None:
                continue
            try:
                examined_version = self.examined_versions.get(state.mirror)
                judgement = mirror_judgement(ports, state, examined_version)
                self._note_examined(state, checked_version(ports, state, judgement))
            except TableError as error:
                self._quarantine(state.table, cursor.batch, error)

    def _note_examined(self, state: TableState, version: int | None) -> None:
        """Record the version up to which the mirror's log was checked."""
        if version is not None and version != self.examined_versions.get(state.mirror):
            self.ports.ledger.note_examined_versions(self.lease, {state.mirror: version})
            self.examined_versions[state.mirror] = version

    def write_round(self) -> bool:
        """Write each table once: carry out its open intent, or else a new one with all
        batches that the mirror lacks. The batches after an open intent wait for the
        next round. Return whether another round may have something to write."""
        ports, source = self.ports, self.ports.source.name
        states = ports.ledger.table_states(source)
        open_intents = {intent.table: intent for intent in ports.ledger.open_intents(source)}
        counts_before = self._counts
        batches_by_table = {
            table: batches
            for table, batches in missing_batches(ports).items()
            if self.only_tables is None or table in self.only_tables
        }
        intents = {
            table: open_intents.get(table) or _new_intent(source, states[table], batches)
            for table, batches in batches_by_table.items()
        }
        app_ids = {table: intent.app_id for table, intent in intents.items()}
        self.records = table_records(ports, batches_by_table, states, app_ids)
        self.tables_with_all_rows = _tables_written_whole(batches_by_table, self.records)
        jobs = list[Job]()
        for table, batches in batches_by_table.items():
            intent = intents[table]
            if not intent.is_recorded:
                if self._renew_if_needed(states[table]):
                    continue
                last_batch = self._last_batch_of_write(table, batches)
                if last_batch is not None:
                    intent = replace(intent, last_batch=last_batch)
            job = self._prepare(intent, states[table], batches)
            if job is not None:
                jobs.append(job)
        self._write(self._record_intents(jobs))
        return self._counts != counts_before

    @property
    def _counts(self) -> tuple[int, ...]:
        """Numbers that only rise. If a round raises one, another round may have something
        to write."""
        return (
            len(self.merges),
            len(self.tables_with_new_mirror),
            len(self.tables_without_changes),
        )

    @property
    def _tables_to_renew(self) -> frozenset[TableName]:
        """The tables that may get a new mirror, because their next write has all rows."""
        return self.tables_with_all_rows - self.tables_with_new_mirror

    def _last_batch_of_write(self, table: TableName, batches: Sequence[Batch]) -> int | None:
        """Return the last batch that one write may cover; None if it may cover all
        batches."""
        records = self.records[table]
        if records.removes_deleted_rows or not self.ports.source.policies_of(table).keeps_rows:
            return None
        # The files of rows that an acknowledged batch read from the source are deleted.
        unacknowledged = {
            batch.id for batch in batches if batch.state is not BatchState.ACKNOWLEDGED
        }
        return end_of_first_write(
            content for content in records.contents if content.batch in unacknowledged
        )

    def _renew_if_needed(self, state: TableState) -> bool:
        """Give the table a new mirror if its next write has all rows and the present
        mirror cannot take them. Return whether this was done: then the next round
        writes the table."""
        if state.table not in self._tables_to_renew:
            return False
        name = self.ports.source.new_mirror_name(state)
        try:
            reason = (
                _reason_to_change_readers(self.ports, state) if name is None else move_reason(name)
            )
        except MirrorRefused as error:
            reason = error.reason
        if reason is not None:
            self._renew(state.table, reason)
        return reason is not None

    def _prepare(self, intent: Intent, state: TableState, batches: Sequence[Batch]) -> Job | None:
        """Return the job of a write. Return None if the table had to be quarantined, or
        if a dead run has already made the commit, which is then recorded."""
        records = self.records[intent.table]
        without_changes = intent.table in self.tables_without_changes
        try:
            with arrow_errors_as_table_error("prepare its changes"):
                task = task_of(
                    self.ports, records, intent, state, batches, without_changes=without_changes
                )
                commit = find_commit_of(self.ports, task) if intent.is_recorded else None
                if commit is not None:
                    schema = self.ports.mirrors.schema(state.mirror, commit.delta_version)
                    columns = [column for column in schema if column.name != DELETED_AT.name]
                    self._settle(task, WriteResult(commit, FOUND_REASON), columns, 0.0)
                    return None
                # The checked version is recorded before the write. So the next check
                # finds at most one commit of this run after this version.
                tried_intent = intent if intent.is_recorded else None
                self._note_examined(state, self._check_log(task, tried_intent))
                return prepare_job(self.ports, records, task)
        except TableError as error:
            self._handle_refusal(intent.table, intent.first_batch, error)
            return None

    def _record_intents(self, jobs: Sequence[Job]) -> list[Job]:
        """Record the intents of the jobs: by now the jobs are known to be possible.
        Return the jobs with the recorded intents."""
        intents = [job.task.intent for job in jobs]
        new_intents = [intent for intent in intents if not intent.is_recorded]
        recorded_intents = self.ports.ledger.intend(self.lease, new_intents) if new_intents else {}
        for intent in intents:
            if intent.is_recorded and intent.may_have_kept_rows:
                self.ports.ledger.note_kept_rows(self.lease, intent)
        jobs_to_write = []
        for job in jobs:
            intent = recorded_intents.get(job.task.intent.table, job.task.intent)
            jobs_to_write.append(replace(job, task=replace(job.task, intent=intent)))
        return jobs_to_write

    def _write(self, jobs: Collection[Job]) -> None:
        """Write several tables at a time. Only this thread writes to the ledger."""
        errors: list[Exception] = []
        with ThreadPoolExecutor(_TABLES_AT_ONCE, thread_name_prefix="merge") as pool:
            running = {
                pool.submit(_write_with_retries, self.ports, self.lease, job): job for job in jobs
            }
            for done_count, future in enumerate(as_completed(running), start=1):
                job = running[future]
                try:
                    written, seconds, size = future.result()
                except TableError as error:
                    self._handle_refusal(job.task.intent.table, job.task.intent.first_batch, error)
                except Exception as error:  # noqa: BLE001 - raised once the others are settled
                    errors.append(error)
                else:
                    self._settle(job.task, written, list(job.lineage.schema), seconds, size)
                table = job.task.intent.table
                self.ports.progress.tell(table_progress("merge", done_count, len(jobs), table))
        if errors:
            raise errors[0]

    def _check_log(self, task: Task, intent: Intent | None) -> int | None:
        """Check the mirror's Delta log for commits of other programs. Return the
        version up to which it was checked, or raise `TableError`. `intent`: the write
        that is being made."""
        newest = self.records[task.state.table].newest_writes
        if intent is not None:
            newest = replace(
                newest, last_txn_version=max(newest.last_txn_version, intent.txn_version)
            )
        judgement = mirror_judgement(
            self.ports,
            task.state,
            self.examined_versions.get(task.state.mirror),
            intent,
            will_be_replaced=task.plan.replaces_rows,
            newest_writes=newest,
        )
        return checked_version(self.ports, task.state, judgement)

    def _settle(
        self,
        task: Task,
        written: WriteResult,
        columns: Collection[pa.Field],
        seconds: float,
        size: MirrorSize | None = None,
    ) -> None:
        """Record a write that was made. If another program also wrote, quarantine the
        table."""
        version, intent = written.commit.delta_version, task.intent
        foreign_error: TableError | None = None
        try:
            # Another program may have committed between the version that was read and
            # our commit.
            self._check_log(task, intent)
        except TableError as error:
            foreign_error = error
        self.ports.ledger.settle(
            self.lease,
            intent,
            version,
            schema_version=task.plan.final_version,
            reason=written.reason,
            table_id=written.commit.table_id,
            is_examined=foreign_error is None,
        )
        if foreign_error is None:
            self.examined_versions[task.state.mirror] = version
        else:
            self._quarantine(intent.table, intent.last_batch, foreign_error)
        report = TableMerge(
            table=intent.table,
            counts=task.counts,
            delta_version=version,
            mirror=task.state.mirror,
            changelog=task.state.changelog,
            seconds=seconds,
            first_batch=intent.first_batch,
            last_batch=intent.last_batch,
            columns=tuple((column.name, column.type) for column in columns),
            shown_version=task.plan.final_version,
            reason=written.reason,
            rows_read=task.rows_read,
            size=size,
        )
        self.merges.append(report)
        self.on_merged(report)

    def _handle_refusal(self, table: TableName, batch_id: int, error: TableError) -> None:
        """Give the table a new mirror if its present one refused a write of all rows;
        have the mirror end without the changes if the table was dropped, so that it
        cannot be read from the source again; otherwise quarantine it."""
        contents = self.records[table].contents
        if isinstance(error, MirrorRefused):
            if table in self._tables_to_renew:
                self._renew(table, error.reason)
                return
        elif error.need is None and plan_merge(contents).copy_event is not None:
            # The write was to begin with a copy of another table's rows.
            error = reread_error(error.reason)
        may_leave_changes_out = (
            error.by is StoppedBy.RUN and table not in self.tables_without_changes
        )
        if may_leave_changes_out and plan_merge(contents).is_dropped:
            self.tables_without_changes.add(table)
            self.ports.progress.note(
                f"{table} was dropped at the source before all of its changes could be merged: "
                f"its mirror ends without them ({error.reason})"
            )
            return
        if error.by is StoppedBy.RUN and begins_with_mirror(contents):
            error = read_after_resume_error(table, error.reason)
        self._quarantine(table, batch_id, error)

    def _renew(self, table: TableName, reason: str) -> None:
        replace_mirror(self.ports, self.lease, table, reason)
        self.tables_with_new_mirror.add(table)

    def _quarantine(self, table: TableName, batch_id: int, error: TableError) -> None:
        """Quarantine a table. This gives up its open intent, which is safe: the intent
        is settled by now, or it was not committed, since `find_commit_of` found no
        commit."""
        stopped = StoppedTable.of(table, error, f"batch {batch_id}")
        stopped = replace(stopped, need=error.need or Need.MIRROR)
        if isinstance(error, MirrorRefused):
            stopped = replace(stopped, hint=reload_hint(table))
        self.ports.ledger.quarantine(self.lease, stopped)
        self.ports.progress.note(f"{stopped.table} was quarantined: {stopped.reason}")
        self.quarantined.append(stopped)


def _write_with_retries(
    ports: RunPorts, lease: Lease, job: Job
) -> tuple[WriteResult, float, MirrorSize | None]:
    """Write one table. Try again with the same intent if another program committed
    first. Return the write, the seconds it took, and the mirror's size."""
    timer_start = perf_counter()
    for wait_seconds in MERGE.tries():
        try:
            with arrow_errors_as_table_error("fold its changes"):
                written = write_once(ports, job, lambda: ports.ledger.require_held(lease))
            seconds = perf_counter() - timer_start
            mirror = job.task.state.mirror
            return written, seconds, ports.mirrors.size(mirror, written.commit.delta_version)
        except CommitConflict:
            if wait_seconds is None:
                raise
    raise AssertionError("a loop over tries returns or raises")


def _tables_written_whole(
    batches_by_table: Mapping[TableName, Sequence[Batch]], records: Mapping[TableName, TableRecords]
) -> frozenset[TableName]:
    """Return the tables whose next write has all rows."""
    missing_ids = {
        (table, batch.id) for table, batches in batches_by_table.items() for batch in batches
    }
    return frozenset(
        table
        for table, records_of_table in records.items()
        for content in records_of_table.contents
        if (table, content.batch) in missing_ids
        and any(event.kind in FULL_REWRITE_EVENTS for event in content.events)
    )


def _reason_to_change_readers(ports: RunPorts, state: TableState) -> str | None:
    """Return the reason if all rows have to be written to a new mirror because of
    `readers`: the reader features of a Delta table cannot be reduced. Otherwise return
    None. A mirror that keeps rows which the source deleted is never replaced, because
    nothing else has them."""
    policies = ports.source.policies_of(state.table)
    readers, wanted_readers = ports.mirrors.readers(state.mirror), policies.readers
    if (
        policies.keeps_rows
        or state.mirror_schema_version is None
        or readers is None
        or readers == wanted_readers
    ):
        return None
    in_words = {Readers.SPARK: "for Spark", Readers.ANY: "for any reader"}
    return f'{state.mirror} was made {in_words[readers]}, and `readers` is "{wanted_readers}"'
