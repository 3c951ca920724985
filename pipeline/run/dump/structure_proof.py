"""The proof that a batch was decoded with the structures that the server has, made
before the batch is recorded.

An ALTER under `sql_log_bin=0` is not in the log. If it keeps the number and types of
the columns, the rows after it look like those before it. So after the batch was read,
its structures are compared with the server's:

1. The structures of all tables are read from the server, and then the place where its log ends. The
   statements of the log between the batch and this place are applied to a copy of the batch's
   structures. A table that is now equal is proven.
2. A table may differ because a statement is in progress: already carried out and not yet logged, or
   already logged and not yet carried out. So the table is read again under a lock, for which an
   ALTER that began earlier must have ended. If the table still differs, no statement in the log
   explains the difference.

Parents of foreign keys are compared too, captured or not, if changes of captured
children by cascades are not logged. Decoded with a wrong structure, an UPDATE of the
column to which children refer looks like an UPDATE of another column, and the children
would keep their old values.

If tables cannot be compared, the batch is recorded nevertheless, because its log is
sound. The ledger records these tables, and the next run that reads the log compares
them, even if it reads no rows of them. A batch that ends long before the log's end is
not compared either, because reading all of that log would cost too much.

Indexes, comments, collations, visibility and the like may differ: they do not change
how rows are read. Each server prints the expression of a generated column in its own
form, so only its presence is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from lockstep.pipeline.binlog.search.log_scan import log_between
from lockstep.pipeline.model.load import SourceReading
from lockstep.pipeline.ports.source import CurrentSchemas
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.dump.batch_capture import BatchCapture
from lockstep.pipeline.run.dump.initial_schemas import statements_between
from lockstep.pipeline.run.dump.logged_statements import with_view_noted
from lockstep.pipeline.run.dump.segment_builder import Segmenter
from lockstep.pipeline.schema.code import changes_code, with_code
from lockstep.pipeline.schema.compare import comparable_table, differences, with_unlogged_properties
from lockstep.pipeline.schema.effects import LoggedStatement
from lockstep.pipeline.schema.evolve import evolve, forget
from lockstep.pipeline.schema.model import ColumnSchema, ServerSchema, TableSchema
from lockstep.pipeline.schema.rows import key_candidates, merge_key, row_structure, schema_of
from lockstep.pipeline.schema.statements.changes import Irrelevant, NotUnderstood
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.values.decisions import STRUCTURES_KIND, Decision, Lease, UnprovenStructures
from lockstep.pipeline.values.errors import (
    DamagedEvent,
    LogStops,
    Need,
    SourceMoving,
    StoppedBy,
    TableBusy,
    TableError,
)
from lockstep.pipeline.values.shown import listed
from lockstep.pipeline.values.table import TableName

FEW_BYTES: Final = 64 << 20
"""Largest part of the log after a batch, in bytes, that is read for this proof. If the
batch itself was larger, its size is the limit."""

_SHOWN: Final = 5
"""Largest number of differences that a message names."""

_GONE: Final = ("the source does not have it",)

_BUSY: Final = "others kept it locked"


@dataclass(frozen=True, slots=True)
class StructureProof:
    """The result of comparing a batch's structures with the server's.

    - `misread`: captured tables that were decoded with a wrong structure, each with its error.
    - `parents`: tables that differ and are not captured, with their structure on the server.
    - `compared`: tables that could be compared. `unproven`: tables that could not be, for the
      reason `why`.
    """

    misread: Mapping[TableName, TableError] = field(default_factory=dict)
    parents: Mapping[TableName, TableSchema] = field(default_factory=dict)
    compared: frozenset[TableName] = frozenset()
    unproven: frozenset[TableName] = frozenset()
    why: str = ""


def prove_structures(
    capture: BatchCapture,
    rereads: Sequence[SourceReading] = (),
    *,
    left_open: UnprovenStructures | None = None,
) -> StructureProof:
    """Compare the structures by which a batch was decoded to those of the server.
    `rereads`: tables that were read from the source. `left_open`: tables that earlier
    runs could not compare.

    Raise `SourceMoving` if a table differs, and other sessions keep it locked, so that
    it cannot be read again.
    """
    segmenter = capture.segmenter
    affected, moved = _affected(segmenter, rereads, left_open), _moved(capture)
    if not affected and not moved:
        return StructureProof()
    later, server = _LaterStructures(capture), capture.basis.work.server
    names_of = {table: {table, segmenter.renamed.get(table, table)} for table in affected}
    current = server.current_schemas(sorted(moved.union(*names_of.values())))
    if (why := later.reach(current)) is not None:
        return StructureProof(unproven=frozenset(affected), why=why)
    # A captured table that the server does not show was dropped. A parent may only be
    # invisible to the account.
    captured = frozenset().union(
        *(names_of[table] for table in affected if table in affected[table])
    )
    differing = [
        name
        for name in sorted({*current.tables} | captured)
        if later.differences(name, current.tables.get(name))
    ]
    confirmed, unclear = later.confirmed(differing, current)
    misread: dict[TableName, TableError] = {}
    parents: dict[TableName, TableSchema] = {}
    for table in sorted(affected):
        for name in sorted(names_of[table] & confirmed.keys()):
            schema, differences = confirmed[name]
            for captured_table in affected[table] - misread.keys():
                misread[captured_table] = _error(captured_table, table, name, differences)
            if table not in affected[table] and schema is not None:
                parents[table] = replace(schema, name=table)
    for table in misread.keys() & segmenter.renamed.keys():
        to = segmenter.renamed[table]
        if to not in segmenter.renamed:
            # The error under the old name suffices: the next run reads the table by its
            # new name.
            misread.pop(to, None)
    for table in sorted(moved - misread.keys()):
        if table in current.tables and later.lacks(table) and later.stays(table):
            misread[table] = _not_renamed(table, segmenter.renamed[table])
    unproven = frozenset(table for table in affected if names_of[table] & unclear.keys())
    why = "; ".join(dict.fromkeys(unclear.values()))
    return StructureProof(misread, parents, frozenset(affected) - unproven, unproven, why)


def _affected(
    segmenter: Segmenter, rereads: Sequence[SourceReading], left_open: UnprovenStructures | None
) -> dict[TableName, frozenset[TableName]]:
    """Return the tables to be compared. The value is the set of captured tables that
    are wrong if the table differs: itself, if it is captured, and children that its
    cascades change."""
    dropped = {reread.table for reread in rereads if reread.schema is None}
    selected = {reread.table for reread in rereads if reread.error is None}
    earlier = frozenset() if left_open is None else left_open.tables
    captured = {
        *segmenter.tables_with_rows(),
        *filter(segmenter.wanted, selected | earlier),
    } - dropped
    parents = segmenter.parents(filter(segmenter.watches, earlier))
    tables = captured | {parent for parent, children in parents.items() if children}
    return {
        table: parents.get(table, frozenset()) | ({table} if table in captured else frozenset())
        for table in tables
    }


def _moved(capture: BatchCapture) -> frozenset[TableName]:
    """Return the captured tables that this batch renamed, if the server is a MariaDB:
    its log also has renames of temporary tables, which look the same. Return nothing
    for MySQL."""
    if capture.basis.run_start.facts.flavour != "mariadb":
        return frozenset()
    tables = (capture.basis.tables[name] for name in capture.segmenter.renamed)
    return frozenset(table.name for table in tables if table.wanted and table.is_known)


def _not_renamed(table: TableName, to: TableName) -> TableError:
    return TableError(
        f"the log says that it was renamed to {to}, and the source still has it: the statement "
        "moved a temporary table of this name",
        hint=f"`lockstep resume {table} --reason …` re-reads it from MySQL",
        need=Need.ROWS,
    )


def _error(
    table: TableName, subject: TableName, name: TableName, differences: tuple[str, ...]
) -> TableError:
    """Return the error of `table`. `subject`: the table that differs, which is `table`
    or one of its parents. `name`: the present name of `subject`."""
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
    work: Workplace, lease: Lease, proof: StructureProof, left_open: UnprovenStructures | None
) -> None:
    """Report the tables that could not be compared, and record them for the next run.
    This must happen before the batch is recorded: a crash in between then makes the
    next run compare a table needlessly, and no table is forgotten."""
    before = frozenset() if left_open is None else left_open.tables
    rule, sentence = (
        "structures-compared",
        f"{listed(sorted(before))}: the structures are the server's",
    )
    if proof.unproven:
        rule = "structures-not-compared"
        sentence = (
            f"the structures of {listed(sorted(proof.unproven))} could not be compared with the "
            f"server's: {proof.why}; their rows are recorded, and the next run that reads the log "
            "compares them"
        )

        work.progress.note(sentence)
    left = proof.unproven
    if others := before - proof.compared - left:
        states = work.ledger.table_states(work.source.name)
        # This run did not read a paused table: it is compared once it comes back.
        paused = {t for t, state in states.items() if state.stopped_by is StoppedBy.PERSON}
        left |= others & paused
    if left != before:
        decision = Decision(STRUCTURES_KIND, rule, sentence, structures=tuple(sorted(left)))
        work.ledger.decide(lease, decision)


_Confirmed = Mapping[TableName, tuple[TableSchema | None, tuple[str, ...]]]


class _LaterStructures:
    """The structures at a place after the batch's end. The statements between the two
    are applied, but not recorded: the next batch reads them again."""

    def __init__(self, capture: BatchCapture) -> None:
        self._basis = capture.basis
        self._filled = capture.segmenter.filled
        self._at = capture.reading.end.at
        self._most_bytes = max(FEW_BYTES, capture.reading.log_bytes)
        self._schema: ServerSchema | None = None

    def reach(self, current: CurrentSchemas) -> str | None:
        """Apply the statements of the log up to the place of the server's answer
        `current`. Return None, or the reason if that is not possible."""
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
            # The next run stops at the same place, with a hint.
            return f"the log cannot be followed from {begin} to {head}: {error.message}"
        # All statements are applied, also those after one that is not understood.
        unclear = [statement for statement in statements if not self._follow(statement)]
        return f"the statement at {unclear[0].begin} may change any table" if unclear else None

    def stays(self, table: TableName) -> bool:
        """Return whether the server, asked under a lock, still has a table that was
        renamed in the history."""
        locked = self._locked(table, is_shown=False)
        return (
            isinstance(locked, CurrentSchemas)
            and self.reach(locked) is None
            and table in locked.tables
            and self.lacks(table)
        )

    def confirmed(
        self, names: Iterable[TableName], current: CurrentSchemas
    ) -> tuple[_Confirmed, dict[TableName, str]]:
        """Compare tables again under a lock. Return the tables that differ, each with
        the server's structure and the differences, and the tables that could not be
        compared, each with the reason."""
        confirmed: dict[TableName, tuple[TableSchema | None, tuple[str, ...]]] = {}
        unclear: dict[TableName, str] = {}
        for name in names:
            locked = self._locked(name, is_shown=name in current.tables)
            if isinstance(locked, str):
                unclear[name] = locked
            elif locked is not None and (why := self.reach(locked)) is not None:
                unclear[name] = why
            elif locked is not None:
                schema = locked.tables.get(name)
                if differences := self.differences(name, schema):
                    confirmed[name] = schema, differences
        return confirmed, unclear

    def _locked(self, table: TableName, *, is_shown: bool) -> CurrentSchemas | str | None:
        """Return the table's structure, read under a lock. Return None if the account
        may not read all of it, and a reason if other sessions keep it locked.

        `is_shown`: the server showed the table without a lock. It differs, so it must
        be compared: raise `SourceMoving` if other sessions keep it locked."""
        try:
            return self._basis.work.server.locked_schema(table)
        except TableBusy as error:
            if not is_shown:
                return _BUSY
            raise SourceMoving(
                f"the structure of {table} is not the history's, and it is not known yet whether a "
                f"statement is about to be logged: {error.reason}",
                hint=f"run again; `show processlist` shows who keeps {table} locked",
            ) from error
        except TableError:
            return None

    def lacks(self, table: TableName) -> bool:
        """Return whether the table certainly does not exist at this place, by the
        history."""
        if (
            self._schema is not None
            and self._schema.fold_case(table) in self._schema.unknown_tables
        ):
            return False
        return self._structure(table) is None

    def differences(self, table: TableName, server: TableSchema | None) -> tuple[str, ...]:
        """Return the differences between the server's structure and the history's at
        this place. Return nothing if the history does not have the table there."""
        history = self._structure(table)
        if history is None:
            return ()
        if server is None:
            return _GONE
        defaults = table in self._filled
        changed = changed_meaning(history, server, defaults=defaults)
        if changed and self._basis.structures.is_from_table_map(table):
            changed = changed_meaning(history, server, told_by_log=True)
        return changed

    def _structure(self, table: TableName) -> TableSchema | None:
        if self._schema is not None:
            return self._schema.table(table)
        version = self._basis.structures.version(table)
        return None if version is None else version.schema

    def _whole(self) -> ServerSchema:

        return self._basis.structures.whole() if self._schema is None else self._schema

    def _follow(self, logged: LoggedStatement) -> bool:
        """Apply a statement. Return False if it may have changed any table."""
        statement = with_view_noted(logged, self._whole, self._basis.work.server)
        change = read_change(statement.text, statement.context)
        if isinstance(change, Irrelevant):
            if changes_code(statement.text, statement.context):
                self._schema = with_code(self._whole(), statement.text, statement.context)
            return True
        before = self._whole()
        if isinstance(change, NotUnderstood):
            self._schema = forget(before, change.possible_tables or ())
            return change.possible_tables is not None
        self._schema = evolve(before, change, statement.context).schema
        return True


def changed_meaning(
    history: TableSchema,
    server: TableSchema,
    *,
    told_by_log: bool = False,
    defaults: bool = False,
) -> tuple[str, ...]:
    """Return the differences that change how rows are decoded, each as "what: history,
    server".

    `told_by_log`: the history has only the attributes of a TABLE_MAP event. `defaults`:
    compare DEFAULT values too, because row images left out columns, which were filled
    with them.
    """
    return tuple(_changed(history, server, told_by_log, defaults))


def _changed(
    history: TableSchema, server: TableSchema, told_by_log: bool, defaults: bool
) -> Iterator[str]:
    ours, theirs = (
        comparable_table(history),
        with_unlogged_properties(comparable_table(server), history),
    )
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
        # information_schema does not show MariaDB's hash columns of UNIQUE keys.
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
    """Yield a difference if the server no longer has the key that identifies the rows
    of the mirror (the Delta table with the current rows)."""
    key = merge_key(history)
    if key and {*key} not in [{*candidate} for candidate in candidates]:
        theirs = " or ".join(f"({', '.join(other)})" for other in dict.fromkeys(candidates))
        yield f"key: ({', '.join(key)}), {theirs or 'none'}"
