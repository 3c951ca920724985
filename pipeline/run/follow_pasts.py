"""Tables that are captured late, together with their pasts: the earlier changes of a
table that the server's log still has.

First the log is scanned up to the end of the newest batch, to find the place from which
each table can be captured (`pipeline.supply`). Then a batch captures these tables
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

from lockstep.pipeline.binlog.search.log_scan import log_bytes_between
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.framing import FIRST_OFFSET
from lockstep.pipeline.binlog.stream.ring import Block, TransactionGroup
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.model.batch import Batch, CaptureRecord, Cursor
from lockstep.pipeline.model.load import Load, LoadBasis, SourceReading
from lockstep.pipeline.model.table_state import OrderKind, StoppedTable, Supplier, TableOrder
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.run.abandon import abandon
from lockstep.pipeline.run.begin import RunStart, start_at_known_place
from lockstep.pipeline.run.catch_up import begin_catching_up, read_proven
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.basis import Basis, tables_of
from lockstep.pipeline.run.dump.batch_capture import BatchCapture
from lockstep.pipeline.run.dump.captured_tables import ReturningTable
from lockstep.pipeline.run.dump.cascade_watch import CascadeWatch
from lockstep.pipeline.run.dump.initial_schemas import structures_of_server
from lockstep.pipeline.run.dump.log_reader import LogReading
from lockstep.pipeline.run.find_place import boundary_at, read_anchor_of
from lockstep.pipeline.run.reports import CaptureReport
from lockstep.pipeline.run.stop_errors import reread_error, waits_for_rows
from lockstep.pipeline.run.table_plans import KnownReach, TablePlans
from lockstep.pipeline.schema.consequences import consequences
from lockstep.pipeline.schema.effects import FollowedStatement, LoggedStatement
from lockstep.pipeline.schema.history import BatchHistory, VersionOrigin
from lockstep.pipeline.schema.tracker import SchemaTracker
from lockstep.pipeline.snapshot.chunks import chunk_key
from lockstep.pipeline.start.bounds import RunBounds
from lockstep.pipeline.start.question import AnchorReading
from lockstep.pipeline.supply import (
    Have,
    Past,
    Plan,
    Price,
    SupplyStanding,
    Want,
    after_statement,
    plan,
)
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import (
    LockstepError,
    Recovery,
    TableError,
    UnsupportedStatement,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, Position
from lockstep.pipeline.values.table import TableName

# -- the scan of the log ---------------------------------------------------------------


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
        twice for the scan, and the part from `past.read_from` on twice for the
        capture."""
        assert self.cursor is not None and self.facts is not None, "there are pasts"
        starts = (_log_start(self.facts), past.read_from)
        end, binlogs = self.cursor.position.at, self.facts.binlogs
        return sum(2 * log_bytes_between(start, end, binlogs) for start in starts)


def find_pasts(ports: RunPorts, tables: Collection[TableName]) -> Pasts:
    """Scan the log, and return the pasts of these tables. Nothing is written."""
    cursor = ports.ledger.cursors(ports.source.name).captured
    if cursor is None:
        return Pasts(dict.fromkeys(tables, "no run has captured anything of the source yet"))
    facts, end = ports.server.facts(), cursor.position.at
    if read_anchor_of(ports, cursor, facts) is not AnchorReading.SAME:
        return Pasts(dict.fromkeys(tables, "the server's log is not the one that was read"))
    try:
        scan = _scan_log(ports, tables, facts, end)
    except LockstepError as error:
        if error.recovery is Recovery.RETRY:
            raise
        return Pasts(dict.fromkeys(tables, error.message))
    return Pasts({table: scan.past_of(table, end) for table in tables}, cursor, facts)


def _scan_log(
    ports: RunPorts, tables: Collection[TableName], facts: ServerFacts, end: Coordinates
) -> _PastScan:
    run_start = _start_at(ports, _log_start(facts), facts)
    basis = Basis(
        ports,
        run_start,
        RunBounds(end, GtidSet()),
        tables=tables_of(ports, run_start.start, 0, tables, first_caught_up_batch=0),
        structures=structures_of_server(ports, run_start),
        prepared_transactions={},
    )
    scan = _PastScan(basis, tables)
    LogReading(basis, scan, on_unfollowed=scan.note_unknown_statement).run()
    return scan


def _log_start(facts: ServerFacts) -> Coordinates:
    return Coordinates(facts.binlogs[0].file, FIRST_OFFSET)


def _start_at(ports: RunPorts, place: Coordinates, facts: ServerFacts) -> RunStart:
    proven = boundary_at(ports, place)
    start = Position(proven.at, proven.gtid_set, facts.server_uuid)
    return start_at_known_place(start, proven.anchor, facts, "the past of tables")


_WHOLE_LOG_REASON: Final = "the server's log begins there"


class _PastScan:
    """A `log_reader.LogTaker` that finds where the pasts of tables begin, and keeps no
    rows. `pasts`: at first, each past is the whole log. A change that is missing in the
    log lets the past begin after this change."""

    row_count = 0

    def __init__(self, basis: Basis, tables: Collection[TableName]) -> None:
        self.structures: SchemaTracker = basis.structures
        self._start = basis.run_start.start.at
        self.pasts = {table: Past.after(self._start, _WHOLE_LOG_REASON) for table in tables}
        self._source, self._shaping = basis.ports.source, basis.ports.shaping
        self.watch = CascadeWatch(basis.structures, self.is_wanted)
        self._unlogged_changes: dict[TableName, tuple[Coordinates | None, str]] = {}
        """Tables with a change in the present group that is not in the log, each with
        the place of the change (None if it is not known) and the reason."""

    def use_buffer(self, buffer: TransactionBuffer) -> None:
        self._buffer = buffer
        buffer.prepared.leaves_out_unread = True

    def is_wanted(self, table: TableName) -> bool:
        return table in self.pasts

    def reach(self, at: Coordinates | None) -> None:
        """Do nothing: no table of a scan waits for a place."""

    def apply_statement(self, statement: LoggedStatement, followed: FollowedStatement) -> None:
        by_table = consequences(
            followed, self._source.policies_of, statement, self._shaping.column_uses
        )
        for table in self.pasts.keys() & by_table.keys():
            past_before = self.pasts[table]
            past = after_statement(past_before, by_table[table], statement)
            if past != past_before:
                self._begin_later(table, past)

    def note_unlogged_change(self, table: TableName, at: Coordinates, error: TableError) -> None:
        self._unlogged_changes[table] = at, error.reason

    def note_lost_rows(self, table: TableName, at: Coordinates, reason: str) -> None:
        self._unlogged_changes[table] = at, reason

    def note_unknown_statement(self, error: UnsupportedStatement) -> None:
        """Record that a statement that is not understood may have changed any table."""
        self._unlogged_changes |= dict.fromkeys(self.pasts, (None, error.message))

    def put(self, group: TransactionGroup) -> None:
        for block in group.blocks:
            self._put_block(group, block)
        unread_commits = self._buffer.prepared.unread_commits
        for xid, at in unread_commits:
            reason = (
                f"the XA transaction {xid} is committed there, and its prepare is not in the log"
            )
            self._unlogged_changes |= dict.fromkeys(self.pasts, (at, reason))
        unread_commits.clear()
        for table, (place, reason) in self._unlogged_changes.items():
            self._begin_later(table, Past.after(_end_of(group, place), reason))
        self._unlogged_changes = {}

    def past_of(self, table: TableName, end: Coordinates) -> Past | str:
        """Return the past of a table after the scan up to `end`, or the reason why it
        has none."""
        past, version = self.pasts[table], self.structures.version(table)
        if version is None or version.schema is None:
            return f"at {end} its structure is not known"
        if not past.begins < end:
            return f"nothing that can be read comes after {past.begins}: {past.reason}"
        return past

    def _put_block(self, group: TransactionGroup, block: Block) -> None:
        """Let each past begin after the last unlogged change by a cascade in this
        block. The watch returns only the first such change of each table, so it is
        asked again about the events after that change."""
        while len(block.events):
            losses = self.watch.find_unlogged(group, block, self._buffer.maps.table_maps)
            if not losses:
                return
            for table, loss in losses.items():
                self._begin_later(table, Past.after(group.end(loss.transaction_index), loss.reason))
            first_loss = min(loss.transaction_index for loss in losses.values())
            later = block.events[:, columns.TRANSACTION] > first_loss
            block = block.subset(later)

    def _begin_later(self, table: TableName, past: Past) -> None:
        """Let the table's past begin where `past` does, unless it already begins later.
        If XA transactions are prepared there, the log is read from its beginning: their
        rows are logged before this place, and their commits come after it."""
        if not past.begins < self.pasts[table].begins:
            has_prepared = self._buffer.prepared.has_open
            self.pasts[table] = replace(past, read_from=self._start) if has_prepared else past


def _end_of(group: TransactionGroup, place: Coordinates | None) -> Coordinates:
    """Return the end of the transaction at this place; if it is None, the end of the
    group's last transaction."""
    ends = (group.end(transaction) for transaction in range(len(group.transactions)))
    later_ends = (end for end in ends if place is not None and place < end)
    return next(later_ends, group.end(-1))


# -- plans -----------------------------------------------------------------------------


def plan_pasts(ports: RunPorts, plans: TablePlans) -> TablePlans:
    """Return the plans, and added to them the plans for tables that are captured with
    their past. Nothing is written."""
    loads = {load.table: load for load in _loads_with_past(ports)[0]}
    if not loads:
        return plans
    pasts = find_pasts(ports, loads)
    new_plans = {table: _plan_past(load, pasts) for table, load in loads.items()}
    return replace(plans, plans={**plans.plans, **new_plans})


def _plan_past(load: Load, pasts: Pasts) -> Plan:
    have = Have(load.table, SupplyStanding.NEW, reason=load.reason, load=load)
    past = pasts.by_table[load.table]
    table_plan = plan(have, Want(supplier=Supplier.LOG, author=load.author), KnownReach(past=past))
    if isinstance(past, str):
        return table_plan
    first_step, *later_steps = table_plan.steps
    priced_step = replace(first_step, price=Price(log_bytes=pasts.log_bytes(past)))
    return replace(table_plan, steps=(priced_step, *later_steps))


def _loads_with_past(ports: RunPorts) -> tuple[list[Load], list[Load]]:
    """Return the loads that were ordered with the table's past, and the loads for which
    it is too late: the table is in the lake by now, or its rows are being read as of
    another place than the captured position. Both lists are empty for a run with
    `--until`, because it reads no rows."""
    if ports.source.until is not None:
        return [], []
    states = ports.ledger.table_states(ports.source.name)
    cursor = None
    ordered_loads, late_loads = list[Load](), list[Load]()
    for load in ports.ledger.open_loads(ports.source.name):
        if not load.with_past or load.followed_from is not None:
            continue
        cursor = cursor or ports.ledger.cursors(ports.source.name).captured
        at = None if cursor is None else cursor.position.at
        if load.table in states or (load.basis is not None and load.basis.low != at):
            late_loads.append(load)
        elif ports.source.patterns.matches(load.table):
            ordered_loads.append(load)
    return ordered_loads, late_loads


# -- the capture of the pasts ----------------------------------------------------------


def follow_pasts(ports: RunPorts, lease: Lease) -> CaptureReport | None:
    """Capture the tables that were ordered with their past, and return the report; None
    if there is no past to capture. A table without a past is read from MySQL alone, and
    a message says why."""
    timer_start = perf_counter()
    ordered_loads, late_loads = _loads_with_past(ports)
    for load in late_loads:
        _give_up_past(ports, lease, load, "it is in the lake, or being read from MySQL, by now")
    if not ordered_loads:
        return None
    pasts = find_pasts(ports, [load.table for load in ordered_loads])
    loads_and_pasts = dict[TableName, tuple[Load, Past]]()
    for load in ordered_loads:
        past = pasts.by_table[load.table]
        if isinstance(past, str):
            _give_up_past(ports, lease, load, past)
        else:
            loads_and_pasts[load.table] = load, past
            ports.progress.note(f"{load.table} is followed from {past.begins} on: {past.reason}")
    if not loads_and_pasts:
        return None
    cursor, facts = pasts.cursor, pasts.facts
    assert cursor is not None and facts is not None, "there are pasts"
    first_place = min(past.read_from for _, past in loads_and_pasts.values())
    run_start = _start_at(ports, first_place, facts)
    names = ", ".join(sorted(map(str, loads_and_pasts)))
    reason = f"the past of {names} is captured, from {run_start.start} to {cursor.position}"
    batch = begin_catching_up(ports, lease, run_start.start, cursor, reason, {})
    try:
        capture, record = _capture_pasts(ports, lease, batch, run_start, loads_and_pasts, cursor)
    except LockstepError as error:
        if error.recovery is Recovery.RETRY:
            raise
        abandon(ports, lease, batch, error.message)
        for load, _ in loads_and_pasts.values():
            _give_up_past(ports, lease, load, error.message)
        return None
    return capture.report(record, timer_start)


def _give_up_past(ports: RunPorts, lease: Lease, load: Load, reason: str) -> None:
    ports.progress.note(
        f"{load.table} is followed without the earlier changes in the log: {reason}"
    )
    ports.ledger.load_without_past(lease, load.id)


def _capture_pasts(
    ports: RunPorts,
    lease: Lease,
    batch: Batch,
    run_start: RunStart,
    loads_and_pasts: Mapping[TableName, tuple[Load, Past]],
    cursor: Cursor,
) -> tuple[BatchCapture, CaptureRecord]:
    """Capture the pasts in the batch, from `run_start` to the cursor, and record it."""
    structures = structures_of_server(ports, run_start)
    for table in loads_and_pasts:
        version = structures.version(table)
        if version is not None and version.schema is not None:
            # The history may have versions of an earlier table with this name, which do
            # not count.
            structures.record_server_schema(version.schema, run_start.start.at)
    basis = Basis(
        ports,
        run_start,
        RunBounds(cursor.position.at, GtidSet()),
        tables=tables_of(
            ports,
            batch.start,
            batch.id,
            loads_and_pasts,
            last_sequence_before=batch.sequence_before,
            first_caught_up_batch=0,
        ),
        structures=structures,
        prepared_transactions={},
    )
    returning = [
        ReturningTable(_order_of(load), past.begins) for load, past in loads_and_pasts.values()
    ]
    loads_to_begin = {
        table: load for table, (load, past) in loads_and_pasts.items() if not past.is_whole
    }
    basis.tables.add_returning(returning, completed_later={*loads_to_begin})
    capture = BatchCapture(basis, batch)
    # If an XA PREPARE is not in the log, the scan let all pasts begin after the commit
    # of that transaction, so its rows are not needed.
    capture.reading.buffer.prepared.leaves_out_unread = True
    read_proven(lease, capture)
    quarantines = tuple(_begin_loads(lease, capture, loads_to_begin, cursor))
    record = capture.finish(
        end=cursor.position, anchor=cursor.anchor, by_gtid=cursor.by_gtid, carried_out_orders=()
    )
    stopped_tables = {quarantine.table for quarantine in quarantines}
    record = replace(
        record,
        history=_carried_versions(record.history, loads_and_pasts),
        stopped_tables=quarantines,
        needless_loads=tuple(
            load.id
            for table, (load, past) in loads_and_pasts.items()
            if past.is_whole and table not in stopped_tables
        ),
    )
    ports.ledger.record_capture(lease, batch.id, record)
    return capture, record


def _carried_versions(history: BatchHistory, tables: Collection[TableName]) -> BatchHistory:
    """Return the versions of these tables without their statements. The ledger numbers
    statements in the order in which runs recorded them, so these earlier ones cannot be
    added."""
    carried = VersionOrigin.CARRIED
    return BatchHistory(
        versions=tuple(
            version
            if version.statement_number is None
            else replace(version, statement_number=None, origin=carried)
            for version in history.versions
            if version.table in tables
        )
    )


def _order_of(load: Load) -> TableOrder:
    return TableOrder(
        0, load.table, OrderKind.RELOAD, load.author, load.reason, load.ordered_at, stopped=None
    )


def _begin_loads(
    lease: Lease, capture: BatchCapture, loads: Mapping[TableName, Load], cursor: Cursor
) -> Iterable[StoppedTable]:
    """Begin to read the rows of these tables from MySQL. The log after the cursor is
    then applied to these rows. Return the tables that stop: the next capture reads them
    from the source, unless a person has to consent first. A table without a key for
    chunks stops too, because its rows are read in one piece, as of a later place."""
    basis, ports = capture.basis, capture.basis.ports
    at, quarantines = cursor.position.at, basis.tables.quarantines
    for table, quarantine in quarantines.items():
        if not waits_for_rows(quarantine):
            error = reread_error(quarantine.reason)
            quarantines[table] = StoppedTable.of(table, error, quarantine.position, quarantine.at)
    estimates = ports.server.estimated_rows(loads)
    for table, load in loads.items():
        version = basis.structures.version(table)
        if table in quarantines or version is None or version.schema is None:
            continue
        try:
            if not chunk_key(version.schema):
                raise reread_error(load.reason)
            shape = ports.shaping.shape_fingerprint(version.schema)
            uuid = cursor.position.server_uuid
            load_basis = LoadBasis(version.schema, uuid, at, estimates.get(table), shape)
            begun_load = load if load.basis is not None else replace(load, basis=load_basis)
            capture.table_changes.begin_load(
                SourceReading(table, load.reason, version.schema, at, at, load=begun_load)
            )
        except TableError as error:
            quarantines[table] = basis.tables.stop(table, at, error)
            continue
        if load.basis is None:
            ports.ledger.begin_load(lease, load.id, load_basis)
    return quarantines.values()
