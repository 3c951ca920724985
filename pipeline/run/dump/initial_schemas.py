"""The structures of all tables at the place where a reading of the log starts. A
`SchemaTracker` begins with them, and applies the statements of the log to them.

| the start | the structures |
|---|---|
| follows the last batch, on this or another server | the newest versions in the ledger |
| is a place that an earlier batch read | the versions of that place, recorded again |
| is any other place, or the first start | the server's, except for tables changed after it |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from lockstep.pipeline.binlog.stream.framing import FIRST_OFFSET
from lockstep.pipeline.mirror.generations import ChangelogGenerations
from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.ports.ledger import Ledger, Structures
from lockstep.pipeline.ports.source import Baseline, ServerFacts
from lockstep.pipeline.run.begin import RunStart
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.logged_statements import dialect_of, statements_between
from lockstep.pipeline.run.find_place import read_anchor_of
from lockstep.pipeline.schema.code import changes_code
from lockstep.pipeline.schema.effects import LoggedStatement
from lockstep.pipeline.schema.history import (
    DatabaseVersion,
    Knowledge,
    SchemaVersion,
    VersionOrigin,
)
from lockstep.pipeline.schema.model import (
    DatabaseSchema,
    ServerSchema,
    TableSchema,
    schema_fingerprint,
)
from lockstep.pipeline.schema.statements.changes import (
    AlterTable,
    CreateDatabase,
    CreateLike,
    CreateSelect,
    CreateTable,
    DropDatabase,
    DropTables,
    Irrelevant,
    NotUnderstood,
    RenameTables,
    RenameTo,
    required_tables,
    restructured_tables,
)
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.schema.tracker import (
    ColumnsFrom,
    FindRecorded,
    InitialStructures,
    LaterStructure,
    SchemaTracker,
    StructuresInMemory,
)
from lockstep.pipeline.shape.shaping import redact_schema
from lockstep.pipeline.start.question import AnchorReading
from lockstep.pipeline.values.errors import SourceMoving
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.retries import STRUCTURES
from lockstep.pipeline.values.table import TableName


def structures_at(ports: RunPorts, run_start: RunStart) -> SchemaTracker:
    """Return a tracker with the structures at the start. Raise `SourceMoving` if
    structures change faster than they can be read."""
    ledger, source = ports.ledger, ports.source.name
    if not ledger.has_history(source):
        return structures_of_server(ports, run_start)
    if run_start.decision.continues_log:
        tracker = tracker_of(ports, NewestStructures(ledger, source), run_start.facts)
        _forget_hidden_columns(tracker, ledger, source, run_start)
        return tracker
    batch = _batch_with_start(ports, run_start)
    if batch is None or run_start.leave_out:
        # Statements of transactions that are left out are not followed: only the server
        # knows their result.
        return structures_of_server(ports, run_start)
    return _tracker_from_history(ports, batch, run_start)


def _forget_hidden_columns(
    tracker: SchemaTracker, ledger: Ledger, source: str, run_start: RunStart
) -> None:
    """Forget the places of hidden columns (of functional indexes) if another server is
    read now. If its tables were loaded from a dump, hidden columns may be at other
    places there."""
    cursor = ledger.cursors(source).captured
    if cursor is None or cursor.position.server_uuid == run_start.start.server_uuid:
        return
    for version in ledger.schemas_at(source):
        if version.schema is not None and version.schema.expression_columns:
            schema = replace(version.schema, expression_columns=())
            tracker.record_carried_version(
                version.table, replace(version, schema=schema), run_start.start.at
            )


def tracker_of(
    ports: RunPorts,
    initial_structures: InitialStructures,
    facts: ServerFacts,
    *,
    later: Mapping[TableName, LaterStructure] | None = None,
    find_recorded: FindRecorded | None = None,
) -> SchemaTracker:
    """Return a tracker of structures from a place in the server's log on.
    `initial_structures`: the structures at this place. `later`: structures that are
    known only from a later place on. `find_recorded`: finds the versions that an
    earlier reading of this log recorded."""
    return SchemaTracker(
        initial_structures,
        lower_case_table_names=dialect_of(facts).lower_case_table_names,
        generations_of=ChangelogGenerations,
        later_structures=later,
        find_recorded=find_recorded,
        shaping=ports.shaping,
    )


def structures_in_batch(ports: RunPorts, batch: Batch, at: Coordinates) -> StructuresInMemory:
    """Return the structures at `at`, a place in the log that the batch read."""
    ledger, source = ports.ledger, ports.source.name
    versions = {
        version.table: version for version in ledger.schemas_at(source, batch=batch.id, place=at)
    }
    databases = tuple(ledger.databases_at(source, batch=batch.id, place=at))
    return _structures_in_memory(ledger, source, versions, databases)


def _batch_with_start(ports: RunPorts, run_start: RunStart) -> Batch | None:
    """Return the earlier batch that contains the start. Return None if there is none,
    or if the batch read another log."""
    # After RESET MASTER, a log has the same places again, but events with other
    # checksums.
    start = run_start.start
    batch = ports.ledger.captured_batch(ports.source.name, start.server_uuid, start.at)
    if batch is None:
        return None
    anchor_reading = read_anchor_of(ports, batch.captured_cursor, run_start.facts)
    return batch if anchor_reading is AnchorReading.SAME else None


def _tracker_from_history(ports: RunPorts, batch: Batch, run_start: RunStart) -> SchemaTracker:
    """Return a tracker with the recorded structures at the start, a place that the
    batch read. A structure that differs from the newest version of its table is
    recorded again, from the start on."""
    ledger, source, at = ports.ledger, ports.source.name, run_start.start.at
    structures = structures_in_batch(ports, batch, at)
    structures_then = structures.tables
    structures_now = {schema.table: schema for schema in ledger.schemas_at(source)}
    tracker = tracker_of(ports, structures, run_start.facts)
    for table in sorted({*structures_then, *structures_now}):
        version_then, version_now = structures_then.get(table), structures_now.get(table)
        if (
            version_then is not None
            and version_now is not None
            and version_then.version == version_now.version
        ):
            continue
        tracker.record_carried_version(table, version_then, at)
    if structures.database_versions != tuple(ledger.databases_at(source)):
        tracker.record_initial_versions(
            (),
            (
                replace(database, since=at, statement_number=None)
                for database in structures.database_versions
            ),
        )
    return tracker


class NewestStructures:
    """The newest versions in the ledger, as `InitialStructures` of a run that continues
    after the last batch."""

    def __init__(self, ledger: Ledger, source: str) -> None:
        self._ledger, self._source = ledger, source

    def newest(self, table: TableName) -> SchemaVersion | None:
        return self._ledger.schema_at(self._source, table)

    def all_newest(self) -> Sequence[SchemaVersion]:
        return self._ledger.schemas_at(self._source)

    def with_foreign_keys(self) -> Sequence[SchemaVersion]:
        return self._ledger.schemas_at(self._source, referring=True)

    def versions(self, table: TableName) -> Sequence[SchemaVersion]:
        return self._ledger.schema_versions(self._source, table)

    def databases(self) -> Sequence[DatabaseVersion]:
        return self._ledger.databases_at(self._source)

    def last_number(self, table: TableName) -> int:
        return self._last_numbers.get(table, 0)

    @cached_property
    def _last_numbers(self) -> dict[TableName, int]:
        return self._ledger.last_versions(self._source)


def _structures_in_memory(
    ledger: Structures,
    source: str,
    tables: dict[TableName, SchemaVersion],
    databases: tuple[DatabaseVersion, ...],
) -> StructuresInMemory:
    """Return structures with these versions in memory. Earlier versions are read from
    the ledger when they are needed."""
    versions, last_numbers = partial(ledger.schema_versions, source), ledger.last_versions(source)
    return StructuresInMemory(tables, databases, versions, last_numbers)


FoldCase = Callable[[TableName], TableName]
"""Returns a name as the server compares names: in lower case if it ignores case."""


def case_folding(facts: ServerFacts) -> FoldCase:
    folding = dialect_of(facts).lower_case_table_names
    return ServerSchema(lower_case_table_names=folding).fold_case


def structures_of_server(ports: RunPorts, run_start: RunStart) -> SchemaTracker:
    """Return a tracker with the server's present structures. If statements after the
    start changed a table, its structure is known only from the last of them on. If the
    first of them created the table, it is known from its CREATE TABLE on."""
    baseline, statements = undisturbed_baseline(ports, run_start)
    facts, start, source = run_start.facts, run_start.start.at, ports.source.name
    fold_case = case_folding(facts)
    has_all_statements = _is_first_log(run_start) and _log_has_all_statements(
        baseline, statements, fold_case
    )
    spans = spans_of_changes(statements, baseline.names, fold_case)
    reasons_unknown = dict(baseline.unread_tables)
    for name, span in spans.items():
        reasons_unknown.pop(name, None)
        if not span.is_created and not has_all_statements:
            reasons_unknown[name] = (
                f"statements up to {span.end} changed it, and its structure before them was "
                "not recorded"
            )
    first_version = partial(SchemaVersion, version=1, since=start, origin=VersionOrigin.BASELINE)
    versions = {
        name: first_version(name, knowledge=Knowledge.UNKNOWN, reason=reason)
        for name, reason in reasons_unknown.items()
    }
    later_structures: dict[TableName, LaterStructure] = {}
    for schema in baseline.tables:
        if schema.name in spans:
            later_structures[schema.name] = LaterStructure(spans[schema.name].end, schema)
        else:
            versions[schema.name] = first_version(
                schema.name, knowledge=Knowledge.KNOWN, schema=schema
            )
    unknown_code = _databases_with_unknown_code(statements, baseline.databases, fold_case)
    # A database that a whole log creates did not exist at the start, so a CREATE
    # DATABASE IF NOT EXISTS created it.
    created = _created_databases(statements, fold_case) if has_all_statements else frozenset()
    databases = tuple(
        DatabaseVersion(
            database.name,
            start,
            replace(database, code=None) if database.name in unknown_code else database,
        )
        for database in baseline.databases
        if fold_case(TableName(database.name, "")) not in created
    )
    structures = _structures_in_memory(ports.ledger, source, versions, databases)
    tracker = tracker_of(ports, structures, facts, later=later_structures)
    recorded_versions = ports.ledger.schemas_at(source)
    shaped_versions = _shaped_versions(ports, recorded_versions)
    tracker.record_initial_versions(versions.values(), databases, shaped_versions)
    for recorded in recorded_versions:
        if recorded.table not in versions and recorded.table not in later_structures:
            tracker.record_carried_version(recorded.table, None, start)
    return tracker


def _shaped_versions(ports: RunPorts, newest: Sequence[SchemaVersion]) -> list[SchemaVersion]:
    """Return the last known version of each table that the lake does not show as it is;
    the unknown version of a table that was never known, because its settings cannot be
    applied. `newest`: the newest versions of all tables that are not dropped. If one of
    them was never known, it may have the rows of any table, so dropped tables count as
    well: a RENAME dropped the old name, and the settings could not be applied to the new
    one."""
    ledger, source = ports.ledger, ports.source.name
    versions = {version.table: version for version in newest}
    unknown = [version.table for version in newest if version.knowledge is Knowledge.UNKNOWN]
    known_before: dict[TableName, SchemaVersion] = {}
    for version in ledger.schema_versions(source, *unknown):
        if version.knowledge is Knowledge.DROPPED:
            known_before.pop(version.table, None)
        elif version.schema is not None:
            known_before[version.table] = version
    never_known = [versions[table] for table in unknown if table not in known_before]
    if never_known:
        dropped = ledger.last_versions(source).keys() - versions.keys()
        for version in ledger.schema_versions(source, *sorted(dropped)):
            if version.schema is not None:
                known_before[version.table] = version
    versions |= known_before
    return [
        *(version for version in versions.values() if version.shown_as is not None),
        *(version for version in never_known if ports.shaping.rules_of(version.table) is not None),
    ]


def _is_first_log(run_start: RunStart) -> bool:
    """Return whether the start is the beginning of the first log file that the server
    ever wrote. That file has the number 1, and no GTIDs were purged."""
    facts, start = run_start.facts, run_start.start.at
    is_log_start = start.file == facts.binlogs[0].file and start.offset == FIRST_OFFSET
    return is_log_start and start.file.number == 1 and not facts.gtid_purged


def _log_has_all_statements(
    baseline: Baseline, statements: Iterable[LoggedStatement], fold_case: FoldCase
) -> bool:
    """Return whether the statements create every table of the server, and none needs a
    table that no earlier one created. If not, tables existed before the log was
    switched on, or before RESET BINARY LOGS AND GTIDS."""
    created_tables = set[TableName]()
    for statement in statements:
        changes = read_change(statement.text, statement.context)
        if isinstance(changes, Irrelevant):
            continue
        if isinstance(changes, NotUnderstood):
            return False
        for change in changes:
            if not created_tables.issuperset(map(fold_case, required_tables([change]))):
                return False
            created_tables.update(map(fold_case, restructured_tables([change], ())))
    return created_tables.issuperset(map(fold_case, baseline.names))


def undisturbed_baseline(
    ports: RunPorts, run_start: RunStart
) -> tuple[Baseline, list[LoggedStatement]]:
    """Return the server's structures, and the statements of the log from the start up
    to the place where the structures were read. Try again if a statement changed one of
    them during the reading. Raise `SourceMoving` if that happened at every attempt."""
    for _ in STRUCTURES.tries():
        baseline = ports.server.baseline()
        statements = list(statements_between(ports, run_start, run_start.start.at, baseline.high))
        if not any(_may_disturb(statement, baseline) for statement in statements):
            return baseline, statements
    raise SourceMoving(
        "the structures of the source's tables kept changing while they were read",
        hint="run again when the schema changes are over",
    )


def _may_disturb(statement: LoggedStatement, baseline: Baseline) -> bool:
    """Return whether the statement may have changed a structure while the baseline was
    read."""
    if statement.end <= baseline.low:
        return False
    if statement.gtid and GtidSet.parse(baseline.low_set).contains(GtidSet.parse(statement.gtid)):
        return False
    return not isinstance(read_change(statement.text, statement.context), Irrelevant)


def _created_databases(
    statements: Iterable[LoggedStatement], fold_case: FoldCase
) -> frozenset[TableName]:
    """Return the databases that CREATE DATABASE statements name, each as a folded
    `TableName` without a table."""
    return frozenset(
        fold_case(TableName(change.name, ""))
        for statement in statements
        if isinstance(changes := read_change(statement.text, statement.context), tuple)
        for change in changes
        if isinstance(change, CreateDatabase)
    )


def _databases_with_unknown_code(
    statements: Iterable[LoggedStatement],
    databases: Iterable[DatabaseSchema],
    fold_case: FoldCase,
) -> frozenset[str]:
    """Return the databases whose triggers and views may have changed since the start.
    DROP and RENAME count, because they also drop or move triggers."""
    all_databases = frozenset(database.name for database in databases)
    names = set[str]()
    for statement in statements:
        changes = read_change(statement.text, statement.context)
        if isinstance(changes, Irrelevant):
            if changes_code(statement.text, statement.context):
                return all_databases
            continue
        if isinstance(changes, NotUnderstood):
            if changes.possible_tables is None:
                return all_databases
            names |= {table.database for table in changes.possible_tables}
            continue
        for change in changes:
            match change:
                case DropTables(tables):
                    names |= {table.database for table in tables}
                case RenameTables(pairs):
                    names |= {table.database for pair in pairs for table in pair}
                case AlterTable(table, clauses) if any(isinstance(c, RenameTo) for c in clauses):
                    names.add(table.database)
                case CreateTable() | CreateLike() | CreateSelect() if change.or_replace:
                    names.add(change.table.database)
                case DropDatabase(database) | CreateDatabase(database, or_replace=True):
                    names.add(database)
                case _:
                    pass
    folded_names = {fold_case(TableName(name, "")) for name in names}
    return frozenset(
        name for name in all_databases if fold_case(TableName(name, "")) in folded_names
    )


@dataclass(frozen=True, slots=True)
class StatementSpan:
    """The statements that changed one table in a part of the log. `end`: the end of the
    last statement. `is_created`: the first statement certainly created the table."""

    end: Coordinates
    is_created: bool


def spans_of_changes(
    statements: Iterable[LoggedStatement], tables: Sequence[TableName], fold_case: FoldCase
) -> dict[TableName, StatementSpan]:
    """Return the tables that the statements changed, as `tables` spells them. `tables`:
    all existing tables, which a statement that is not understood may have changed."""
    spellings = {fold_case(table): table for table in tables}
    spans: dict[TableName, StatementSpan] = {}
    for statement in statements:
        changes = read_change(statement.text, statement.context)
        if isinstance(changes, Irrelevant):
            continue
        if isinstance(changes, NotUnderstood):
            changed_tables = dict.fromkeys(
                tables if changes.possible_tables is None else changes.possible_tables, False
            )
        else:
            changed_tables = restructured_tables(changes, tables)
        for name, is_created in changed_tables.items():
            folded = fold_case(name)
            table = spellings.get(folded, folded)
            # The first statement says whether the table was created, the last the end.
            first_span = spans.get(table, StatementSpan(statement.end, is_created))
            spans[table] = replace(first_span, end=statement.end)
    return spans


# -- structures that earlier batches recorded ------------------------------------------


class RecordedVersions:
    """Finds versions that an earlier reading of this log recorded, so that a second
    reading gets the same numbers. A version is found if the batch `first_batch` or a
    later one recorded the same structure at the same place. Once a version of a table
    is not found, the later versions of that table are new, too."""

    def __init__(self, ledger: Ledger, source: str, first_batch: int) -> None:
        self._ledger, self._source, self._first_batch = ledger, source, first_batch
        self._versions: dict[TableName, list[SchemaVersion]] = {}
        self._differing_tables: set[TableName] = set()

    def __call__(
        self,
        table: TableName,
        since: Coordinates,
        schema: TableSchema | None,
        reason: str | None,
        columns_from: ColumnsFrom | None = None,
    ) -> SchemaVersion | None:
        if table in self._differing_tables:
            return None
        if table not in self._versions:
            self._versions[table] = self._ledger.schema_versions(self._source, table)
        knowledge_without_schema = Knowledge.DROPPED if reason is None else Knowledge.UNKNOWN
        for version in reversed(self._versions[table]):
            # Only the few versions of this place are compared by their fingerprints.
            if version.since != since or version.batch < self._first_batch:
                continue
            fingerprint = knowledge_without_schema.value
            if schema is not None:
                fingerprint = schema_fingerprint(redact_schema(schema, version.hidden_columns))
            if version.fingerprint == fingerprint and columns_from in (None, version.columns_from):
                return version
        self._differing_tables.add(table)
        return None
