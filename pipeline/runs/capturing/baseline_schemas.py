"""The structures that a server has now, and what they say about an earlier place of its log."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from pipeline.binlog.stream.framing import FIRST_OFFSET
from pipeline.binlog.transactions.buffer import TransactionBuffer
from pipeline.binlog.transactions.limits import Limits
from pipeline.changes.generations import next_generation
from pipeline.errors import LogStops, SourceMoving
from pipeline.gtid import GtidSet
from pipeline.ports.source import Baseline
from pipeline.position import Coordinates
from pipeline.retries import STRUCTURES
from pipeline.runs.begin import RunStart
from pipeline.runs.capturing.known_structures import Given
from pipeline.runs.capturing.logged_statements import facts_of_writer, logged_statements
from pipeline.runs.capturing.obstacles import with_way_on
from pipeline.runs.context import Workplace
from pipeline.schema.code import changes_code
from pipeline.schema.history import DatabaseVersion, Knowledge, SchemaVersion, VersionOrigin
from pipeline.schema.logged import LoggedStatement
from pipeline.schema.statements.changes import (
    AlterTable,
    CreateLike,
    CreateSelect,
    CreateTable,
    DropTables,
    Irrelevant,
    NotUnderstood,
    RenameTables,
    RenameTo,
)
from pipeline.schema.statements.read import read_change
from pipeline.schema.statements.touched import Touched, needed_by, touched_by
from pipeline.schema.tracker import Later, SchemaTracker
from pipeline.table import TableName


def structures_of_server(work: Workplace, run_start: RunStart, folding: int) -> SchemaTracker:
    baseline, between = quiet_baseline(work, run_start)
    whole = _is_whole(run_start) and nothing_was_before(baseline, between, folding)
    return _seeded(work, baseline, between, run_start.start.at, folding, whole=whole)


def _is_whole(run_start: RunStart) -> bool:
    """Return whether the start is the beginning of the first log file that the server ever wrote,
    as far as the log itself can tell."""
    facts, start = run_start.facts, run_start.start.at
    begins = start.file == facts.binlogs[0].file and start.offset == FIRST_OFFSET
    return begins and start.file.number == 1 and not facts.gtid_purged


def nothing_was_before(
    baseline: Baseline, between: Iterable[LoggedStatement], folding: int
) -> bool:
    """Return whether the statements since the first log file may be all that there ever were: they
    make every table that the server has, and need none that they did not make. A log that was
    switched on later, or that RESET BINARY LOGS AND GTIDS began once more, begins with others."""

    def fold(name: TableName) -> TableName:
        return TableName(name.database.lower(), name.name.lower()) if folding else name

    made = set[TableName]()
    for logged in between:
        changes = read_change(logged.text, logged.context)
        if isinstance(changes, Irrelevant):
            continue
        if isinstance(changes, NotUnderstood):
            return False
        for change in changes:
            if not made.issuperset(map(fold, needed_by([change]))):
                return False
            made.update(map(fold, touched_by([change], ())))
    present = {*(table.name for table in baseline.tables), *baseline.unread}
    return made.issuperset(map(fold, present))


def quiet_baseline(work: Workplace, run_start: RunStart) -> tuple[Baseline, list[LoggedStatement]]:
    """The server's structures, and the statements between the start and them, of which none came
    while they were read; `SourceMoving`."""
    for _ in STRUCTURES.tries():
        baseline = work.server.baseline()
        between = list(statements_between(work, run_start, run_start.start.at, baseline.high))
        if not any(_moves(statement, baseline) for statement in between):
            return baseline, between
    raise SourceMoving(
        "the structures of the source's tables kept changing while they were read",
        hint="run again when the schema changes are over",
    )


def _moves(logged: LoggedStatement, baseline: Baseline) -> bool:
    """Whether a statement may have come while the structures were read."""
    if logged.end <= baseline.low:
        return False
    if logged.gtid and GtidSet.parse(baseline.low_set).contains(GtidSet.parse(logged.gtid)):
        return False
    return not isinstance(read_change(logged.text, logged.context), Irrelevant)


def statements_between(
    work: Workplace, run_start: RunStart, start: Coordinates, end: Coordinates
) -> Iterator[LoggedStatement]:
    """The statements between two places of the log that may change a structure."""
    if start >= end:
        return
    dump = work.server.dump(start)
    buffer = TransactionBuffer(
        start,
        begins=dump.begins,
        wants=lambda _: False,
        spool=work.spool,
        limits=Limits(end),
        leave_out=run_start.leave_out,
    )
    buffer.prepared.rowless = True
    try:
        for received in dump:
            buffer.put(received)
            while (run := buffer.get()) is not None:
                facts = facts_of_writer(run_start.facts, buffer.description)
                yield from logged_statements(run, facts)
                buffer.ack()
            if buffer.stopped or buffer.ended:
                break
    except LogStops as error:
        raise with_way_on(error, work.server, end) from error
    finally:
        dump.close()


def _seeded(
    work: Workplace,
    baseline: Baseline,
    between: Sequence[LoggedStatement],
    start: Coordinates,
    folding: int,
    *,
    whole: bool,
) -> SchemaTracker:
    """What the server has, and for tables that statements after the start changed, from the
    last of those on. `whole`: no table was there before them."""
    present = [*(table.name for table in baseline.tables), *baseline.unread]
    touched = touched_between(between, present)
    versions: dict[TableName, SchemaVersion] = {}
    later: dict[TableName, Later] = {}
    for schema in baseline.tables:
        found = touched.pop(schema.name, None)
        if found is None:
            versions[schema.name] = SchemaVersion(
                schema.name, 1, start, Knowledge.KNOWN, VersionOrigin.BASELINE, schema
            )
            continue
        later[schema.name] = Later(found.last, schema)
        if not found.created and not whole:
            versions[schema.name] = _unknown(schema.name, start, found.last)
    for name, found in touched.items():
        if not found.created and not whole:
            versions[name] = _unknown(name, start, found.last)
    for name, why in baseline.unread.items():
        if name not in touched:
            versions[name] = _not_known(name, start, why)
    unknown = _unknown_code(between, [database.name for database in baseline.databases])
    databases = tuple(
        DatabaseVersion(
            database.name,
            start,
            replace(database, code=None) if database.name in unknown else database,
        )
        for database in baseline.databases
    )
    numbers = work.ledger.last_versions(work.source.name)
    source = work.source.name
    known = Given(work.ledger, source, versions, databases, numbers)
    tracker = SchemaTracker(
        known, lower_case_table_names=folding, generation=next_generation, later=later
    )
    tracker.begin_with(versions.values(), databases)
    for newest in work.ledger.schemas_at(source):
        if newest.table not in versions and newest.table not in later:
            tracker.carry(newest.table, None, start)
    return tracker


def _unknown_code(between: Iterable[LoggedStatement], databases: Collection[str]) -> frozenset[str]:
    """Databases that may have had other triggers and views at the start than the server has now:
    triggers go with a table that is dropped, and follow one that is renamed."""
    found = set[str]()
    for logged in between:
        read = read_change(logged.text, logged.context)
        if isinstance(read, Irrelevant):
            if changes_code(logged.text, logged.context):
                return frozenset(databases)
            continue
        if isinstance(read, NotUnderstood):
            if read.may_touch is None:
                return frozenset(databases)
            found |= {table.database for table in read.may_touch}
            continue
        for change in read:
            match change:
                case DropTables(tables):
                    found |= {table.database for table in tables}
                case RenameTables(pairs):
                    found |= {table.database for pair in pairs for table in pair}
                case AlterTable(table, clauses) if any(isinstance(c, RenameTo) for c in clauses):
                    found.add(table.database)
                case CreateTable() | CreateLike() | CreateSelect() if change.or_replace:
                    found.add(change.table.database)
                case _:
                    pass
    return frozenset(found)


def _unknown(table: TableName, start: Coordinates, until: Coordinates) -> SchemaVersion:
    why = f"statements up to {until} changed it, and nobody recorded what it was before them"
    return _not_known(table, start, why)


def _not_known(table: TableName, start: Coordinates, why: str) -> SchemaVersion:
    return SchemaVersion(table, 1, start, Knowledge.UNKNOWN, VersionOrigin.BASELINE, reason=why)


def touched_between(
    between: Iterable[LoggedStatement], tables: Sequence[TableName]
) -> dict[TableName, Touched]:
    """Which tables the statements changed: where the last one ends, and whether the first
    one made it."""
    found: dict[TableName, Touched] = {}
    for logged in between:
        read = read_change(logged.text, logged.context)
        if isinstance(read, Irrelevant):
            continue
        if isinstance(read, NotUnderstood):
            names = dict.fromkeys(tables if read.may_touch is None else read.may_touch, False)
        else:
            names = touched_by(read, tables)
        for name, created in names.items():
            first = found.get(name)
            found[name] = Touched(logged.end, created if first is None else first.created)
    return found
