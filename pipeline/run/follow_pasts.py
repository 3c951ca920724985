"""Tables that are captured late, together with their pasts: the earlier changes of a
table that the server's log still has.

First the log is scanned up to the end of the newest batch, to find the place from which
each table can be captured (`pipeline.supply.past`). Then a batch captures these tables
from that place up to the same end. Before each of these two passes, another pass over
the log's statements alone finds the structures of the tables where the pass begins. If
rows also have to be read from MySQL, the load begins with the same batch, so that no
change is lost between the batch and the load.

If the run dies, the next run abandons the batch, and carries out the order from the
beginning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

from lockstep.pipeline.binlog.search.log_scan import log_between
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.framing import FIRST_OFFSET
from lockstep.pipeline.binlog.stream.ring import Block, TransactionGroup
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.model.batch import Batch, Cursor
from lockstep.pipeline.model.load import Load, LoadBegin, SourceReading
from lockstep.pipeline.model.table_state import OrderKind, StoppedTable, Supplier, TableOrder
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.run.begin import RunStart, read_anchor_of, start_at_known_place
from lockstep.pipeline.run.catch_up import begin_catching_up, read_proven
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.dump.basis import Basis, tables_of
from lockstep.pipeline.run.dump.batch_capture import BatchCapture
from lockstep.pipeline.run.dump.captured_tables import ReturningTable
from lockstep.pipeline.run.dump.cascade_watch import CascadeWatch
from lockstep.pipeline.run.dump.initial_schemas import history_of, structures_of_server
from lockstep.pipeline.run.dump.log_reader import LogReading
from lockstep.pipeline.run.find_place import boundary_at
from lockstep.pipeline.run.repair import discard
from lockstep.pipeline.run.reports import CaptureReport
from lockstep.pipeline.run.stop_errors import reread_error
from lockstep.pipeline.run.table_plans import ReadingReach, TablePlans
from lockstep.pipeline.schema.consequences import consequences
from lockstep.pipeline.schema.effects import FollowedStatement, LoggedStatement
from lockstep.pipeline.schema.history import BatchHistory, VersionOrigin
from lockstep.pipeline.schema.tracker import SchemaTracker
from lockstep.pipeline.snapshot.keys import chunk_key
from lockstep.pipeline.start.bounds import RunBounds
from lockstep.pipeline.start.question import AnchorReading
from lockstep.pipeline.supply.past import Past, after_statement
from lockstep.pipeline.supply.plan import Have, Plan, Price, Standing, Want, plan
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import (
    LockstepError,
    Need,
    Recovery,
    TableError,
    UnsupportedStatement,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, Position
from lockstep.pipeline.values.table import TableName

# -- the scan of the log ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pasts:
    """The pasts of some tables, up to `cursor`, the end of the newest batch. A table
    without a past has a sentence that says why. `facts`: facts about the server whose
    log was scanned."""

    by_table: Mapping[TableName, Past | str]
    cursor: Cursor | None = None
    facts: ServerFacts | None = None

    def log_bytes(self, past: Past) -> int:
        """Return the number of bytes of the log that are read for a past: the whole log
        twice for the scan, and the part from `past.reads_from` on twice for the
        capture."""
        assert self.cursor is not None and self.facts is not None, "there are pasts"
        starts = (_beginning(self.facts), past.reads_from)
        end, binlogs = self.cursor.position.at, self.facts.binlogs
        return sum(2 * log_between(start, end, binlogs) for start in starts)


def find_pasts(work: Workplace, tables: Collection[TableName]) -> Pasts:
    """Scan the log, and return the pasts of these tables. Nothing is written."""
    cursor = work.ledger.cursors(work.source.name).captured
    if cursor is None:
        return Pasts(dict.fromkeys(tables, "no run has captured anything of the source yet"))
    facts, end = work.server.facts(), cursor.position.at
    if read_anchor_of(work, cursor, facts) is not AnchorReading.SAME:
        return Pasts(dict.fromkeys(tables, "the server's log is not the one that was read"))
    try:
        scan = _scanned(work, tables, facts, end)
    except LockstepError as error:
        if error.recovery is Recovery.RETRY:
            raise
        return Pasts(dict.fromkeys(tables, error.message))
    return Pasts({table: scan.past_of(table, end) for table in tables}, cursor, facts)


def _scanned(
    work: Workplace, tables: Collection[TableName], facts: ServerFacts, end: Coordinates
) -> Scan:
    run_start = _start_at(work, _beginning(facts), facts)
    basis = Basis(
        work,
        run_start,
        RunBounds(end, GtidSet()),
        tables=tables_of(work, run_start.start, 0, tables, before=0),
        structures=structures_of_server(work, run_start),
        prepared={},
    )
    scan = Scan(basis, tables)
    LogReading(basis, scan, on_unfollowed=scan.stopped, starts_spark=False).run()
    return scan


def _beginning(facts: ServerFacts) -> Coordinates:
    return Coordinates(facts.binlogs[0].file, FIRST_OFFSET)


def _start_at(work: Workplace, place: Coordinates, facts: ServerFacts) -> RunStart:
    proven = boundary_at(work, place)
    start = Position(proven.at, proven.gtid_set, facts.server_uuid)
    return start_at_known_place(start, proven.anchor, facts, "the past of tables")


_WHOLE_LOG: Final = "the server's log begins there"


class Scan:
    """A `log_reader.LogTaker` that finds where the pasts of tables begin, and keeps no
    rows. `pasts`: at first, each past is the whole log. It begins later after each
    change that the log does not have."""

    changes = rows = 0

    def __init__(self, basis: Basis, tables: Collection[TableName]) -> None:
        self.structures: SchemaTracker = basis.structures
        self._start = basis.run_start.start.at
        self.pasts = {table: Past.after(self._start, _WHOLE_LOG) for table in tables}
        self._source, self._shaping = basis.work.source, basis.work.shaping
        self._watch = CascadeWatch(basis.structures, self.wanted)
        self._unlogged: dict[TableName, tuple[Coordinates | None, str]] = {}
        """Tables with a change in the present group that is not in the log, each with
        the place of the change (None if it is not known) and the reason."""

    def follow(self, buffer: TransactionBuffer) -> None:
        self._buffer = buffer
        buffer.prepared.lenient = True

    def wanted(self, table: TableName) -> bool:
        return table in self.pasts

    def watches(self, table: TableName) -> bool:
        return self._watch.watches(table)

    def reach(self, at: Coordinates | None) -> None:
        """Do nothing, since no table of a scan waits for a place."""

    def changed(self, logged: LoggedStatement, followed: FollowedStatement) -> None:
        treated = self._shaping.treatments_in_words
        by_table = consequences(followed, self._source.policies_of, logged, treated)
        for table in self.pasts.keys() & by_table.keys():
            before = self.pasts[table]
            past = after_statement(before, by_table[table], logged)
            if past != before:
                self._begins(table, past)
        if self._watch.refresh():
            self._buffer.maps.update_wanted()

    def may_have_changed(self, table: TableName, at: Coordinates, error: TableError) -> None:
        self._unlogged[table] = at, error.reason

    def lose(self, table: TableName, at: Coordinates, reason: str) -> None:
        self._unlogged[table] = at, reason

    def stopped(self, error: UnsupportedStatement) -> None:
        """Record that a statement that is not understood may have changed any table."""
        self._unlogged |= dict.fromkeys(self.pasts, (None, error.message))

    def put(self, group: TransactionGroup) -> None:
        for block in group.blocks:
            self._put_block(group, block)
        unread = self._buffer.prepared.unread
        for xid, at in unread:
            why = f"the XA transaction {xid} is committed there, and its prepare is not in the log"
            self._unlogged |= dict.fromkeys(self.pasts, (at, why))
        unread.clear()
        for table, (place, why) in self._unlogged.items():
            self._begins(table, Past.after(_end_of(group, place), why))
        self._unlogged = {}

    def past_of(self, table: TableName, end: Coordinates) -> Past | str:
        """Return the past of a table after the scan up to `end`, or the reason why it
        has none."""
        past, version = self.pasts[table], self.structures.version(table)
        if version is None or version.schema is None:
            return f"at {end} its structure is not known"
        if not past.begins < end:
            return f"nothing that can be read comes after {past.begins}: {past.why}"
        return past

    def _put_block(self, group: TransactionGroup, block: Block) -> None:
        """Let each past begin after the last unlogged change by a cascade in this
        block. The watch returns only the first such change of each table, so it is
        asked again about the events after that change."""
        while len(block.events):
            lost = self._watch.lost(group, block, self._buffer.maps.maps)
            if not lost:
                return
            for table, loss in lost.items():
                self._begins(table, Past.after(group.end(loss.transaction), loss.reason))
            first = min(loss.transaction for loss in lost.values())
            later = block.events[:, columns.TRANSACTION] > first
            block = Block(block.data, block.events[later])

    def _begins(self, table: TableName, past: Past) -> None:
        """Let the table's past begin where `past` does, unless it already begins later.
        If XA transactions are prepared there, the log is read from its beginning: their
        rows are logged before this place, and their commits come after it."""
        prepared = self._buffer.prepared.waiting
        if not past.begins < self.pasts[table].begins:
            self.pasts[table] = replace(past, reads_from=self._start) if prepared else past


def _end_of(group: TransactionGroup, place: Coordinates | None) -> Coordinates:
    """Return the end of the transaction at this place; if it is None, the end of the
    group's last transaction."""
    ends = (group.end(number) for number in range(len(group.transactions)))
    after = (end for end in ends if place is not None and place < end)
    return next(after, group.end(-1))


# -- plans -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PastReach(ReadingReach):
    """The supplies of a table that no run has captured: the server, and its past in the
    log, or a sentence that says why it has none."""

    past: Past | str = ""


def plan_pasts(work: Workplace, plans: TablePlans) -> TablePlans:
    """Return the plans, and added to them the plans for tables that are captured with
    their past. Nothing is written."""
    loads = {load.table: load for load in _ordered(work)[0]}
    if not loads:
        return plans
    pasts = find_pasts(work, loads)
    with_pasts = {table: _plan(load, pasts) for table, load in loads.items()}
    return replace(plans, plans={**plans.plans, **with_pasts})


def _plan(load: Load, pasts: Pasts) -> Plan:
    have = Have(load.table, Standing.NEW, reason=load.reason, load=load)
    past = pasts.by_table[load.table]
    decided = plan(have, Want(supplier=Supplier.LOG, author=load.author), PastReach(past=past))
    if isinstance(past, str):
        return decided
    first, *more = decided.steps
    priced = replace(first, price=Price(log_bytes=pasts.log_bytes(past)))
    return replace(decided, steps=(priced, *more))


def _ordered(work: Workplace) -> tuple[list[Load], list[Load]]:
    """Return the loads that were ordered with the table's past, and those for which it
    is too late: the table is in the lake by now, or its rows are being read as of
    another place than the captured position. Both lists are empty for a run with
    `--until`, because it reads no rows."""
    if work.source.until is not None:
        return [], []
    states, cursor = work.ledger.table_states(work.source.name), None
    ordered, late = list[Load](), list[Load]()
    for load in work.ledger.open_loads(work.source.name):
        if not load.with_past or load.followed_from is not None:
            continue
        cursor = cursor or work.ledger.cursors(work.source.name).captured
        at = None if cursor is None else cursor.position.at
        if load.table in states or (load.begin is not None and load.begin.low != at):
            late.append(load)
        elif work.source.patterns.matches(load.table):
            ordered.append(load)
    return ordered, late


# -- the capture of the pasts ----------------------------------------------------------------


def follow_pasts(work: Workplace, lease: Lease) -> CaptureReport | None:
    """Capture the tables that were ordered with their past, and return the report; None
    if there is no past to capture. A table without a past is read from MySQL alone, and
    a message says why."""
    clock, (ordered, late) = perf_counter(), _ordered(work)
    for load in late:
        _without_past(work, lease, load, "it is in the lake, or being read from MySQL, by now")
    if not ordered:
        return None
    pasts = find_pasts(work, [load.table for load in ordered])
    loads, tables = dict[TableName, Load](), dict[TableName, Past]()
    for load in ordered:
        past = pasts.by_table[load.table]
        if isinstance(past, str):
            _without_past(work, lease, load, past)
        else:
            loads[load.table], tables[load.table] = load, past
    if not loads:
        return None
    cursor, facts = pasts.cursor, pasts.facts
    assert cursor is not None and facts is not None, "there are pasts"
    batch = _begin_batch(work, lease, tables, cursor, facts)
    try:
        return _capture_pasts(work, lease, batch, tables, loads, cursor, facts, clock)
    except LockstepError as error:
        if error.recovery is Recovery.RETRY:
            raise
        work.ledger.abandon(lease, batch.id, error.message)
        discard(work, batch)
        for load in loads.values():
            _without_past(work, lease, load, error.message)
        return None


def _without_past(work: Workplace, lease: Lease, load: Load, why: str) -> None:
    work.progress.note(f"{load.table} is followed without the earlier changes in the log: {why}")
    work.ledger.load_without_past(lease, load.id)


def _begin_batch(
    work: Workplace,
    lease: Lease,
    pasts: Mapping[TableName, Past],
    cursor: Cursor,
    facts: ServerFacts,
) -> Batch:
    for table, past in pasts.items():
        work.progress.note(f"{table} is followed from {past.begins} on: {past.why}")
    start = _start_at(work, min(past.reads_from for past in pasts.values()), facts).start
    names = ", ".join(sorted(map(str, pasts)))
    reason = f"{names} is followed with its past, from {start} to {cursor.position}"
    return begin_catching_up(work, lease, start, cursor, reason, {})


def _capture_pasts(
    work: Workplace,
    lease: Lease,
    batch: Batch,
    pasts: Mapping[TableName, Past],
    loads: Mapping[TableName, Load],
    cursor: Cursor,
    facts: ServerFacts,
    clock: float,
) -> CaptureReport:
    run_start = _start_at(work, batch.start.at, facts)
    structures = structures_of_server(work, run_start)
    for table in pasts:
        version = structures.version(table)
        if version is not None and version.schema is not None:
            # The history may have versions of an earlier table with this name, which do
            # not count.
            structures.record_read(version.schema, run_start.start.at)
    basis = Basis(
        work,
        run_start,
        RunBounds(cursor.position.at, GtidSet()),
        tables=tables_of(work, batch.start, batch.id, pasts, base=batch.base, before=0),
        structures=structures,
        prepared={},
    )
    comebacks = [
        ReturningTable(_order_of(loads[table]), past.begins) for table, past in pasts.items()
    ]
    loaded = {table for table, past in pasts.items() if not past.whole}
    basis.tables.take_up(returning=comebacks, completed=loaded)
    capture = BatchCapture(basis, batch)
    # If an XA PREPARE is not in the log, the scan let all pasts begin after the commit
    # of that transaction, so its rows are not needed.
    capture.reading.buffer.prepared.lenient = True
    read_proven(lease, capture)
    reading = {table: loads[table] for table in loaded}
    quarantined = tuple(_begin_loads(lease, capture, reading, cursor))
    record = capture.record(
        end=cursor.position, anchor=cursor.anchor, by_gtid=cursor.by_gtid, orders_done=()
    )
    stopped = {quarantine.table for quarantine in quarantined}
    record = replace(
        record,
        history=_without_statements(record.history, pasts),
        stopped_tables=quarantined,
        needless_loads=tuple(loads[table].id for table in pasts.keys() - loaded - stopped),
        scope=work.source.patterns,
    )
    work.ledger.record_capture(lease, batch.id, record)
    return capture.report(record, began=clock)


def _without_statements(history: BatchHistory, tables: Collection[TableName]) -> BatchHistory:
    """Return the versions of these tables without their statements. The ledger numbers
    statements in the order in which runs recorded them, so these earlier ones cannot be
    added."""
    versions = history_of(history, dict.fromkeys(tables)).versions
    carried = VersionOrigin.CARRIED
    return BatchHistory(
        versions=tuple(
            version
            if version.statement is None
            else replace(version, statement=None, origin=carried)
            for version in versions
        )
    )


def _order_of(load: Load) -> TableOrder:
    values = (load.author, load.reason, load.ordered_at)
    return TableOrder(0, load.table, OrderKind.RELOAD, *values, stopped=None)


def _begin_loads(
    lease: Lease, capture: BatchCapture, loads: Mapping[TableName, Load], cursor: Cursor
) -> Iterable[StoppedTable]:
    """Begin to read the rows of these tables from MySQL. The log after the cursor is
    then applied to these rows. Return the tables that stop: the next capture reads them
    from the source, unless a person has to consent first. A table without a key for
    chunks stops too, because its rows are read in one piece, as of a later place."""
    basis, work = capture.basis, capture.basis.work
    at, stopped = cursor.position.at, basis.tables.stopped
    for table, quarantined in stopped.items():
        waits = quarantined.need is Need.ROWS and not quarantined.starts_by_itself
        if not waits and quarantined.need is not Need.CONSENT:
            error = reread_error(quarantined.reason)
            stopped[table] = StoppedTable.of(table, error, quarantined.position, quarantined.at)
    estimates = work.server.estimated_rows(loads)
    for table, load in loads.items():
        version = basis.structures.version(table)
        if table in stopped or version is None or version.schema is None:
            continue
        try:
            if not chunk_key(version.schema):
                raise reread_error(load.reason)
            shape = work.shaping.shape_fingerprint(version.schema)
            uuid = cursor.position.server_uuid
            reading = LoadBegin(version.schema, uuid, at, estimates.get(table), shape)
            begun = load if load.begin is not None else replace(load, begin=reading)
            capture.segmenter.begin_load(
                SourceReading(table, load.reason, version.schema, at, at, load=begun)
            )
        except TableError as error:
            stopped[table] = basis.tables.stop(table, at, error)
            continue
        if load.begin is None:
            work.ledger.begin_load(lease, load.id, reading)
    return stopped.values()
