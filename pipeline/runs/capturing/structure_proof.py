"""The structures that a batch was read by, compared with the server's before anything is recorded.

An ALTER under `sql_log_bin=0` is nowhere in the log. If it keeps the number and types of the
columns, the rows after it look like those before it. So the server is asked once everything is
read, when whatever was altered before the batch's end shows:

1. All tables at once, and after them the end of the log. The log up to there is read for its
   statements alone, which are followed on a copy of the structures: a table that is like that is
   proven.
2. A table that differs may be about to be altered by a statement that is not logged yet, or that is
   logged and not carried out yet. So it is asked about once more, while a lock keeps it as it is:
   whoever altered it before has finished and is logged then. If it still differs, no statement of
   the log made the difference.

Parents of foreign keys are asked about too, captured or not, if the server left it to their events
to tell that rows of captured children changed: read by a wrong structure, an UPDATE of the column
that children refer to looks like one of another column, and the children keep their old values.

A batch that cannot be compared is recorded all the same, for the log itself is sound. Which tables
it left open is noted in the ledger, and the next run that reads the log compares them, whether it
reads rows of them or not. A batch that ends long before the log's end is not compared either: what
lies between is not worth reading for that alone.

Indexes, comments, collations, visibility and the like may differ: rows are read the same way. Each
server prints a generated column's expression in its own form, so only whether there is one is
compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pipeline.binlog.search.log_scan import log_between
from pipeline.decisions import STRUCTURES, Decision, Lease, Unproven
from pipeline.errors import (
    DamagedEvent,
    LogStops,
    Need,
    SourceMoving,
    StoppedBy,
    TableBusy,
    TableError,
)
from pipeline.ports.source import CurrentSchemas
from pipeline.runs.capturing.basis import Basis
from pipeline.runs.capturing.initial_schemas import statements_between
from pipeline.runs.capturing.log_reader import LogReading
from pipeline.runs.capturing.logged_statements import with_views
from pipeline.runs.capturing.segment_builder import Segmenter
from pipeline.runs.context import Workplace
from pipeline.runs.cures import Reread
from pipeline.schema.code import changes_code, with_code
from pipeline.schema.compare import aligned, comparable, differences
from pipeline.schema.evolve import evolve, forget
from pipeline.schema.logged import LoggedStatement
from pipeline.schema.model import ColumnSchema, ServerSchema, TableSchema
from pipeline.schema.rows import key_candidates, merge_key, row_structure, schema_of
from pipeline.schema.statements.changes import Irrelevant, NotUnderstood
from pipeline.schema.statements.read import read_change
from pipeline.shown import listed
from pipeline.table import TableName

FEW_BYTES: Final = 64 << 20
"""The log after a batch is read for this proof if it is no longer than this, or than the log that
the batch read."""

_SHOWN: Final = 5
"""Largest number of differences that a sentence names."""

_GONE: Final = ("the source does not have it",)

_BUSY: Final = "others kept it locked"


@dataclass(frozen=True, slots=True)
class StructureProof:
    """What the server's structures say of a batch. `misread`: captured tables of which nothing may
    be recorded, and why. `parents`: tables that differ and are not captured, as the server has
    them. `compared`: tables that could be compared; `unproven`: those that could not, and `why`."""

    misread: Mapping[TableName, TableError] = field(default_factory=dict)
    parents: Mapping[TableName, TableSchema] = field(default_factory=dict)
    compared: frozenset[TableName] = frozenset()
    unproven: frozenset[TableName] = frozenset()
    why: str = ""


def prove_structures(
    basis: Basis,
    reading: LogReading,
    segmenter: Segmenter,
    rereads: Sequence[Reread] = (),
    *,
    left_open: Unproven | None = None,
) -> StructureProof:
    """Compare the structures that a batch was read by with the server's. `rereads`: tables that
    were read from the source. `left_open`: tables that earlier runs could not compare.

    `SourceMoving` if a table differs, and others keep it from being asked about again.
    """
    affected = _affected(segmenter, rereads, left_open)
    moved = _moved(basis, segmenter)
    if not affected and not moved:
        return StructureProof()
    server, later = basis.work.server, _LaterStructures(basis, reading, segmenter)
    called = {table: {table, segmenter.renamed.get(table, table)} for table in affected}
    current = server.current_schemas(sorted(moved.union(*called.values())))
    if (why := later.reach(current)) is not None:
        return StructureProof(unproven=frozenset(affected), why=why)
    # An account that may not read a parent is not shown it, either.
    own = frozenset().union(*(called[table] for table in affected if table in affected[table]))
    differing = [
        name
        for name in sorted({*current.tables} | own)
        if later.differences(name, current.tables.get(name))
    ]
    confirmed, unclear = _confirmed(basis, later, differing, current)
    misread: dict[TableName, TableError] = {}
    parents: dict[TableName, TableSchema] = {}
    for table in sorted(affected):
        for name in sorted(called[table] & confirmed.keys()):
            schema, differences = confirmed[name]
            for one in affected[table] - misread.keys():
                misread[one] = _error(one, table, name, differences)
            if table not in affected[table] and schema is not None:
                parents[table] = replace(schema, name=table)
    for table in misread.keys() & segmenter.renamed.keys():
        to = segmenter.renamed[table]
        if to not in segmenter.renamed:  # it has these rows: without them the next run reads it
            misread.pop(to, None)
    for table in sorted(moved - misread.keys()):
        if table in current.tables and later.lacks(table) and _stays(basis, later, table):
            misread[table] = _not_renamed(table, segmenter.renamed[table])
    unproven = frozenset(table for table in affected if called[table] & unclear.keys())
    why = "; ".join(dict.fromkeys(unclear.values()))
    return StructureProof(misread, parents, frozenset(affected) - unproven, unproven, why)


def _affected(
    segmenter: Segmenter, rereads: Sequence[Reread], left_open: Unproven | None
) -> dict[TableName, frozenset[TableName]]:
    """Return the tables to be compared, each with the captured tables that were misread if it
    differs: itself, if it is captured, and children whose rows its events stand for."""
    gone = {reread.table for reread in rereads if reread.schema is None}
    selected = {reread.table for reread in rereads if reread.error is None}
    earlier = frozenset() if left_open is None else left_open.tables
    own = {*segmenter.tables_with_rows(), *filter(segmenter.wanted, selected | earlier)} - gone
    parents = segmenter.parents(filter(segmenter.watches, earlier))
    tables = own | {parent for parent, children in parents.items() if children}
    return {
        table: parents.get(table, frozenset()) | ({table} if table in own else frozenset())
        for table in tables
    }


def _moved(basis: Basis, segmenter: Segmenter) -> frozenset[TableName]:
    """Return captured tables that RENAME TABLE moved in this batch, if the log says so of temporary
    tables too, as MariaDB's does."""
    if basis.run_start.facts.flavour != "mariadb":
        return frozenset()
    return frozenset(filter(basis.tables.known, filter(segmenter.wanted, segmenter.renamed)))


def _stays(basis: Basis, later: _LaterStructures, table: TableName) -> bool:
    """Return whether the server still has a table that the history moved away, while nobody can
    create one of this name."""
    locked = _locked(basis, table, is_shown=False)
    return (
        isinstance(locked, CurrentSchemas)
        and later.reach(locked) is None
        and table in locked.tables
        and later.lacks(table)
    )


def _not_renamed(table: TableName, to: TableName) -> TableError:
    return TableError(
        f"the log says that it was renamed to {to}, and the source still has it: the statement "
        "moved a temporary table of this name",
        hint=f"`lockstep resume {table} --reason …` re-reads it from MySQL",
        need=Need.ROWS,
    )


_Confirmed = Mapping[TableName, tuple[TableSchema | None, tuple[str, ...]]]


def _confirmed(
    basis: Basis, later: _LaterStructures, names: Iterable[TableName], current: CurrentSchemas
) -> tuple[_Confirmed, dict[TableName, str]]:
    """Return which of the tables differ while a lock keeps them as they are, with what the server
    has and the differences; and those of which that could not be told, and why."""
    confirmed: dict[TableName, tuple[TableSchema | None, tuple[str, ...]]] = {}
    unclear: dict[TableName, str] = {}
    for name in names:
        locked = _locked(basis, name, is_shown=name in current.tables)
        if isinstance(locked, str):
            unclear[name] = locked
        elif locked is not None and (why := later.reach(locked)) is not None:
            unclear[name] = why
        elif locked is not None:
            schema = locked.tables.get(name)
            if differences := later.differences(name, schema):
                confirmed[name] = schema, differences
    return confirmed, unclear


def _locked(basis: Basis, table: TableName, *, is_shown: bool) -> CurrentSchemas | str | None:
    """Return the table as it is while nobody can alter it; None if the account may not read all of
    it, so that there is nothing to compare; a reason if others keep it locked. `is_shown`: the
    first answer had it, without a lock."""
    try:
        return basis.work.server.locked_schema(table)
    except TableBusy as error:
        if not is_shown:
            return _BUSY
        raise SourceMoving(
            f"the structure of {table} is not the history's, and nobody can tell yet whether a "
            f"statement is about to be logged: {error.reason}",
            hint=f"run again; `show processlist` shows who keeps {table} locked",
        ) from error
    except TableError:
        return None


def _error(
    table: TableName, subject: TableName, name: TableName, differences: tuple[str, ...]
) -> TableError:
    """`subject`: the table that differs, `table` itself or a parent of it; `name`: what it is
    called now."""
    whose = "" if subject == table else f"{subject}, which its foreign keys lead to: "
    if differences == _GONE:
        reason = "the source does not have it any more, and no statement in the log dropped it"
    else:
        what = (
            "its structure" if name == subject else f"the structure of {name}, as it is called now,"
        )
        shown = "; ".join(differences[:_SHOWN])
        more = f"; and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
        reason = (
            f"{what} is not the history's, and no statement in the log made the difference "
            f"(history, source): {shown}{more}"
        )
    return TableError(
        f"{whose}{reason}",
        hint="it was altered with sql_log_bin=0, or restored: "
        f"`lockstep resume {table} --reason …` re-reads it from MySQL",
        need=Need.ROWS,
    )


def note_unproven(
    work: Workplace, lease: Lease, proof: StructureProof, left_open: Unproven | None
) -> None:
    """Say which tables could not be compared, and record which are still to be compared. Called
    before the batch is recorded: if the run dies between the two, a table is compared once more
    for nothing, and none is forgotten."""
    before = frozenset() if left_open is None else left_open.tables
    rule, sentence = "structures-compared", f"{_named(before)}: the structures are the server's"
    if proof.unproven:
        rule = "structures-not-compared"
        sentence = (
            f"the structures of {_named(proof.unproven)} could not be compared with the server's: "
            f"{proof.why}; their rows are recorded, and the next run that reads the log compares "
            "them"
        )
        work.progress.note(sentence)
    left = proof.unproven
    if others := before - proof.compared - left:
        states = work.ledger.table_states(work.source.name)
        paused = {t for t, state in states.items() if state.stopped_by is StoppedBy.PERSON}
        left |= others & paused
    if left != before:
        decision = Decision(STRUCTURES, rule, sentence, structures=tuple(sorted(left)))
        work.ledger.decide(lease, decision)


def _named(tables: Collection[TableName]) -> str:
    return listed(sorted(tables))


class _LaterStructures:
    """The structures at a place after the batch's end, which the statements in between lead to.
    Nothing of them is recorded: the next batch follows them again."""

    def __init__(self, basis: Basis, reading: LogReading, segmenter: Segmenter) -> None:
        self._basis = basis
        self._segmenter = segmenter
        self._at = reading.end.at
        self._most_bytes = max(FEW_BYTES, reading.log_bytes)
        self._schema: ServerSchema | None = None

    def reach(self, current: CurrentSchemas) -> str | None:
        """Follow the log up to the place that the server's answer holds for; return why that is
        not possible."""
        facts, head = self._basis.run_start.facts, current.head
        if current.server_uuid != facts.server_uuid:
            return (
                f"another server ({current.server_uuid}) answered than the one whose log was read "
                f"({facts.server_uuid})"
            )
        if head < self._at:
            return f"the server's log ends at {head}, before {self._at}, up to where it was read"
        between = log_between(self._at, head, facts.binlogs)
        if between > self._most_bytes:
            return f"{between:,} bytes of log come after the run's end"
        begin, self._at = self._at, head
        run_start = self._basis.run_start
        try:
            statements = list(statements_between(self._basis.work, run_start, begin, head))
        except (LogStops, DamagedEvent) as error:
            # The next run meets it, and says what is to be done.
            return f"the log cannot be followed from {begin} to {head}: {error.message}"
        # Statements after one that is not understood are followed too.
        unclear = [statement for statement in statements if not self._follow(statement)]
        return f"the statement at {unclear[0].begin} may change any table" if unclear else None

    def lacks(self, table: TableName) -> bool:
        """Return whether the history has no table of that name at this place."""
        if self._schema is not None and self._schema.fold(table) in self._schema.unknown:
            return False
        return self._structure(table) is None

    def differences(self, table: TableName, server: TableSchema | None) -> tuple[str, ...]:
        """Return how the server's structure differs; nothing if the table's structure is not known
        at this place, or if it was dropped."""
        history = self._structure(table)
        if history is None:
            return ()
        if server is None:
            return _GONE
        defaults = table in self._segmenter.filled
        found = changed_meaning(history, server, defaults=defaults)
        if found and self._basis.structures.told_by_log(table):
            found = changed_meaning(history, server, told_by_log=True)
        return found

    def _structure(self, table: TableName) -> TableSchema | None:
        if self._schema is not None:
            return self._schema.table(table)
        version = self._basis.structures.version(table)
        return None if version is None else version.schema

    def _known(self) -> ServerSchema:
        return self._basis.structures.whole() if self._schema is None else self._schema

    def _follow(self, logged: LoggedStatement) -> bool:
        """Follow a statement; return whether it is known which tables it changed."""
        statement = with_views(logged, self._known, self._basis.work.server)
        change = read_change(statement.text, statement.context)
        if isinstance(change, Irrelevant):
            if changes_code(statement.text, statement.context):
                self._schema = with_code(self._known(), statement.text, statement.context)
            return True
        before = self._known()
        if isinstance(change, NotUnderstood):
            self._schema = forget(before, change.may_touch or ())
            return change.may_touch is not None
        self._schema = evolve(before, change, statement.context).schema
        return True


def changed_meaning(
    history: TableSchema,
    server: TableSchema,
    *,
    told_by_log: bool = False,
    defaults: bool = False,
) -> tuple[str, ...]:
    """Return the differences that make rows mean something else, each as "what: history, server".

    `told_by_log`: the history knows only what a TABLE_MAP says of the table. `defaults`: row images
    left columns out, which were filled with the history's defaults.
    """
    return tuple(_changed(history, server, told_by_log, defaults))


def _changed(
    history: TableSchema, server: TableSchema, told_by_log: bool, defaults: bool
) -> Iterator[str]:
    ours, theirs = comparable(history), aligned(comparable(server), history)
    if told_by_log:
        ours, theirs = (schema_of(row_structure(table)) for table in (ours, theirs))
    yield from differences(*(_of_rows(table, defaults) for table in (ours, theirs)))
    hashed = [sum(key.hashed for key in table.keys) for table in (ours, theirs)]
    if hashed[0] != hashed[1]:
        yield f"UNIQUE keys that are hashed: {hashed[0]}, {hashed[1]}"
    yield from _changed_key(history, [*key_candidates(server), *key_candidates(theirs)])


def _of_rows(table: TableSchema, defaults: bool) -> TableSchema:
    columns = tuple(_of_row(column, defaults) for column in table.columns)
    return TableSchema(table.name, columns, system_versioned=table.system_versioned)


def _of_row(column: ColumnSchema, defaults: bool) -> ColumnSchema:
    return replace(
        column,
        # information_schema does not show this column.
        nullable=column.nullable or column.name.startswith("DB_ROW_HASH_"),
        zerofill=False,
        collation=None,
        default=column.default if defaults else None,
        on_update=False,
        auto_increment=False,
        stored=False,
        invisible=False,
        srid=None,
    )


def _changed_key(history: TableSchema, candidates: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield a difference if the server no longer has the key that identifies a mirror's rows."""
    key = merge_key(history)
    if key and {*key} not in [{*candidate} for candidate in candidates]:
        theirs = " or ".join(f"({', '.join(other)})" for other in dict.fromkeys(candidates))
        yield f"key: ({', '.join(key)}), {theirs or 'none'}"
