"""The proof that a batch was decoded with the structures that the server has, made
before the batch is recorded.

An ALTER under `sql_log_bin=0` is not in the log. If it keeps the number and types of
the columns, the rows after it look like those before it. So after the batch was read,
its structures are compared with the server's:

1. The structures of all tables are read from the server, and then the place where its
   log ends. The statements of the log between the batch and this place are applied to a
   copy of the batch's structures. A table that is now equal is proven.
2. A table may differ because a statement is in progress: already carried out and not
   yet logged, or already logged and not yet carried out. So the table is read again
   under a lock, which the server grants only once an ALTER that began earlier has
   ended. If the table still differs, no statement in the log explains the difference.

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

from lockstep.pipeline.binlog.search.log_scan import log_bytes_between
from lockstep.pipeline.model.load import SourceReading
from lockstep.pipeline.ports.ledger import unproven_structures
from lockstep.pipeline.ports.source import CurrentSchemas
from lockstep.pipeline.run.dump.batch_capture import BatchCapture
from lockstep.pipeline.run.dump.logged_statements import statements_between, with_existing_view
from lockstep.pipeline.run.dump.segmenter import Segmenter
from lockstep.pipeline.run.stop_errors import resume_reads_hint
from lockstep.pipeline.schema.code import after_code_statement, changes_code
from lockstep.pipeline.schema.compare import comparable_table, differences, with_unlogged_properties
from lockstep.pipeline.schema.effects import LoggedStatement
from lockstep.pipeline.schema.evolve import evolve
from lockstep.pipeline.schema.model import ColumnSchema, ServerSchema, TableSchema
from lockstep.pipeline.schema.rows import key_candidates, merge_key, row_structure, schema_of
from lockstep.pipeline.schema.statements.changes import Irrelevant, NotUnderstood
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.values.decisions import STRUCTURES_KIND, Decision, Lease
from lockstep.pipeline.values.errors import (
    DamagedEvent,
    LogStops,
    Need,
    SourceMoving,
    TableBusy,
    TableError,
)
from lockstep.pipeline.values.shown import name_list
from lockstep.pipeline.values.table import TableName

LATER_LOG_BYTES: Final = 64 << 20
"""Largest part of the log after a batch, in bytes, that is read for this proof. If the
batch itself was larger, its size is the limit."""

_MISSING_AT_SOURCE: Final = ("the source does not have it",)


@dataclass(frozen=True, slots=True)
class StructureProof:
    """The result of comparing a batch's structures with the server's.

    - `errors`: captured tables that were decoded with a wrong structure, each with its
      error.
    - `parent_schemas`: tables that differ and are not captured, with their structure on
      the server.
    - `unproven_before`: tables that earlier runs could not compare.
    - `compared_tables`: tables that could be compared.
    - `unproven_tables`: tables that could not be compared, because of `reason`.
    """

    unproven_before: frozenset[TableName]
    errors: Mapping[TableName, TableError] = field(default_factory=dict)
    parent_schemas: Mapping[TableName, TableSchema] = field(default_factory=dict)
    compared_tables: frozenset[TableName] = frozenset()
    unproven_tables: frozenset[TableName] = frozenset()
    reason: str = ""


def prove_structures(
    capture: BatchCapture,
    source_readings: Sequence[SourceReading] = (),
) -> StructureProof:
    """Compare the structures by which a batch was decoded to those of the server.
    `source_readings`: tables that were read from the source.

    Raise `SourceMoving` if a table differs, and other sessions keep it locked, so that
    it cannot be read again.
    """
    segmenter, ports = capture.segmenter, capture.basis.ports
    earlier = unproven_structures(ports.ledger, ports.source.name)
    unproven_before = frozenset() if earlier is None else earlier.tables
    dependents = _tables_to_compare(segmenter, source_readings, unproven_before)
    renamed_tables = _renamed_tables(capture)
    if not dependents and not renamed_tables:
        return StructureProof(unproven_before)
    later, server = _LaterStructures(capture), ports.server
    names_of = {table: {table, segmenter.present_names.get(table, table)} for table in dependents}
    current = server.current_schemas(sorted(renamed_tables.union(*names_of.values())))
    if (reason := later.advance_to(current)) is not None:
        return StructureProof(unproven_before, unproven_tables=frozenset(dependents), reason=reason)
    # A captured table that the server does not show was dropped. A parent may only be
    # invisible to the account.
    captured_names = frozenset().union(
        *(names_of[table] for table in dependents if table in dependents[table])
    )
    differing = [
        name
        for name in sorted({*current.tables} | captured_names)
        if later.compare(name, current.tables.get(name))
    ]
    confirmed, unclear = later.compare_again(differing, current)
    errors: dict[TableName, TableError] = {}
    parent_schemas: dict[TableName, TableSchema] = {}
    for table in sorted(dependents):
        for name in sorted(names_of[table] & confirmed.keys()):
            schema, texts = confirmed[name]
            for captured_table in dependents[table] - errors.keys():
                errors[captured_table] = _structure_error(captured_table, table, name, texts)
            if table not in dependents[table] and schema is not None:
                parent_schemas[table] = replace(schema, name=table)
    for table in errors.keys() & segmenter.present_names.keys():
        # Of a renamed table, the error under the old name suffices: the next run reads
        # it by its new name.
        new_name = segmenter.present_names[table]
        if new_name not in segmenter.present_names:
            errors.pop(new_name, None)
    for table in sorted(renamed_tables - errors.keys()):
        if table in current.tables and later.is_missing(table) and later.still_exists(table):
            errors[table] = _wrong_rename_error(table, segmenter.present_names[table])
    unproven_tables = frozenset(table for table in dependents if names_of[table] & unclear.keys())
    reason = "; ".join(dict.fromkeys(unclear.values()))
    return StructureProof(
        unproven_before,
        errors=errors,
        parent_schemas=parent_schemas,
        compared_tables=frozenset(dependents) - unproven_tables,
        unproven_tables=unproven_tables,
        reason=reason,
    )


def _tables_to_compare(
    segmenter: Segmenter,
    source_readings: Sequence[SourceReading],
    unproven_before: frozenset[TableName],
) -> dict[TableName, frozenset[TableName]]:
    """Return the tables to be compared, each with the captured tables that are wrong if
    it differs: itself, if it is captured, and children that its cascades change."""
    dropped_tables = {reading.table for reading in source_readings if reading.schema is None}
    read_tables = {reading.table for reading in source_readings if reading.error is None}
    captured = {
        *segmenter.tables_with_rows(),
        *filter(segmenter.is_wanted, read_tables | unproven_before),
    } - dropped_tables
    parents = segmenter.parents_with_children(filter(segmenter.watch.watches, unproven_before))
    tables = captured | {parent for parent, children in parents.items() if children}
    return {
        table: parents.get(table, frozenset()) | ({table} if table in captured else frozenset())
        for table in tables
    }


def _renamed_tables(capture: BatchCapture) -> frozenset[TableName]:
    """Return the captured tables that this batch renamed, if the server is a MariaDB:
    its log also has renames of temporary tables, which look the same. Return nothing
    for MySQL."""
    if capture.basis.run_start.facts.flavour != "mariadb":
        return frozenset()
    tables = (capture.basis.tables[name] for name in capture.segmenter.present_names)
    return frozenset(table.name for table in tables if table.is_wanted and table.is_known)


def _wrong_rename_error(table: TableName, new_name: TableName) -> TableError:
    return TableError(
        f"the log says that it was renamed to {new_name}, and the source still has it: the "
        "statement moved a temporary table of this name",
        hint=resume_reads_hint(table),
        need=Need.ROWS,
    )


def _structure_error(
    table: TableName, differing: TableName, present_name: TableName, texts: tuple[str, ...]
) -> TableError:
    """Return the error of `table`. `differing`: the table that differs, which is
    `table` or one of its parents. `present_name`: the present name of `differing`.
    `texts`: the differences."""
    prefix = "" if differing == table else f"{differing}, which its foreign keys lead to: "
    hint = f"it was altered with sql_log_bin=0, or restored: {resume_reads_hint(table)}"
    if texts == _MISSING_AT_SOURCE:
        # MariaDB logs rows of sequences, too, which are no tables.
        hint = (
            "exclude it if it is a sequence, else it was dropped with sql_log_bin=0: "
            f"`lockstep resume {table.word} --reason …` goes on as after a DROP in the log"
        )
        reason = "the source does not have it any more, and no statement in the log dropped it"
    else:
        subject = (
            "its structure"
            if present_name == differing
            else f"the structure of {present_name}, as it is called now,"
        )
        reason = (
            f"{subject} is not the history's, and no statement in the log made the "
            f"difference (history, source): {name_list(texts, '; ')}"
        )
    return TableError(f"{prefix}{reason}", hint=hint, need=Need.ROWS)


def note_unproven(lease: Lease, capture: BatchCapture, proof: StructureProof) -> None:
    """Report the tables that could not be compared, and record them for the next run.
    This must happen before the batch is recorded. After a crash in between, the next
    run then compares a table needlessly, but forgets none."""
    ports = capture.basis.ports
    missed_tables = proof.unproven_before - proof.compared_tables
    if missed_tables and not capture.batch.catches_up:
        # This batch has no rows of a stopped table. Such a table is compared once it is
        # followed again, unless all of its rows are read again.
        states = ports.ledger.table_states(ports.source.name)
        missed_tables &= {
            table
            for table, state in states.items()
            if state.has_stopped and state.need is not Need.ROWS
        }
    if proof.unproven_tables:
        rule = "structures-not-compared"
        sentence = (
            f"the structures of {name_list(sorted(proof.unproven_tables))} could not be compared "
            f"with the server's: {proof.reason}; their rows are recorded, and the next run that "
            "reads the log compares them"
        )
        ports.progress.note(sentence)
    else:
        rule = "structures-compared"
        sentence = (
            f"the structures of {name_list(sorted(proof.unproven_before - missed_tables))} need no "
            "comparison any more: they are the server's, or the table was dropped or is read again"
        )
    still_unproven = proof.unproven_tables | missed_tables
    if still_unproven != proof.unproven_before:
        decision = Decision(
            STRUCTURES_KIND, rule, sentence, structures=tuple(sorted(still_unproven))
        )
        ports.ledger.decide(lease, decision)


class _LaterStructures:
    """The structures at a place after the batch's end. The statements between the end
    and this place are applied, but not recorded: the next batch reads them again."""

    def __init__(self, capture: BatchCapture) -> None:
        self._basis = capture.basis
        self._tables_with_defaults = capture.segmenter.tables_with_defaults
        self._place = capture.reading.end.at
        self._most_bytes = max(LATER_LOG_BYTES, capture.reading.log_bytes)
        self._schema: ServerSchema | None = None
        self._reason_unknown: str | None = None

    def advance_to(self, current: CurrentSchemas) -> str | None:
        """Apply the statements of the log up to the place of the server's answer
        `current`. Return None, or the reason why that is not possible. Once a statement
        could not be applied, each later call returns the same reason."""
        if self._reason_unknown is not None:
            return self._reason_unknown
        run_start, head = self._basis.run_start, current.head
        facts = run_start.facts
        if current.server_uuid != facts.server_uuid:
            return (
                f"another server ({current.server_uuid}) answered than the one whose log was read "
                f"({facts.server_uuid})"
            )
        if head < self._place:
            return f"the server's log ends at {head}, before {self._place}, up to where it was read"
        log_bytes = log_bytes_between(self._place, head, facts.binlogs)
        if log_bytes > self._most_bytes:
            return f"{log_bytes:,} bytes of log come after the run's end"
        begin, self._place = self._place, head
        try:
            statements = list(statements_between(self._basis.ports, run_start, begin, head))
        except (LogStops, DamagedEvent) as error:
            # The next run stops at the same place, with a hint.
            self._reason_unknown = (
                f"the log cannot be followed from {begin} to {head}: {error.message}"
            )
            return self._reason_unknown
        for statement in statements:
            if not self._apply(statement):
                self._reason_unknown = f"the statement at {statement.begin} may change any table"
                break
        return self._reason_unknown

    def still_exists(self, table: TableName) -> bool:
        """Return whether the server, asked under a lock, still has a table that was
        renamed in the history."""
        locked = self._read_locked(table, is_shown=False)
        return (
            isinstance(locked, CurrentSchemas)
            and self.advance_to(locked) is None
            and table in locked.tables
            and self.is_missing(table)
        )

    def compare_again(
        self, names: Iterable[TableName], current: CurrentSchemas
    ) -> tuple[dict[TableName, tuple[TableSchema | None, tuple[str, ...]]], dict[TableName, str]]:
        """Compare tables again under a lock. Return the tables that differ, each with
        the server's structure and the differences, and the tables that could not be
        compared, each with the reason."""
        confirmed: dict[TableName, tuple[TableSchema | None, tuple[str, ...]]] = {}
        unclear: dict[TableName, str] = {}
        for name in names:
            locked = self._read_locked(name, is_shown=name in current.tables)
            if isinstance(locked, str):
                unclear[name] = locked
            elif (reason := self.advance_to(locked)) is not None:
                unclear[name] = reason
            else:
                schema = locked.tables.get(name)
                if texts := self.compare(name, schema):
                    confirmed[name] = schema, texts
        return confirmed, unclear

    def _read_locked(self, table: TableName, *, is_shown: bool) -> CurrentSchemas | str:
        """Return the table's structure, read under a lock, or the reason if that is not
        possible: the account may not read all of it, or other sessions keep it locked.

        `is_shown`: the server showed the table without a lock. It differs, so it must
        be compared: raise `SourceMoving` if other sessions keep it locked."""
        try:
            return self._basis.ports.server.locked_schema(table)
        except TableBusy as error:
            if not is_shown:
                return "other sessions kept it locked"
            raise SourceMoving(
                f"the structure of {table} is not the history's, and it is not known yet whether a "
                f"statement is about to be logged: {error.reason}",
                hint=f"run again; `show processlist` shows who keeps {table} locked",
            ) from error
        except TableError as error:
            return error.reason

    def is_missing(self, table: TableName) -> bool:
        """Return whether the table certainly does not exist at this place, by the
        history."""
        if self._schema is not None and self._schema.is_unknown(table):
            return False
        return self._structure(table) is None

    def compare(self, table: TableName, server: TableSchema | None) -> tuple[str, ...]:
        """Return the differences between the server's structure and the history's at
        this place. Return nothing if the history does not have the table there."""
        history = self._structure(table)
        if history is None:
            return ()
        if server is None:
            return _MISSING_AT_SOURCE
        has_defaults = table in self._tables_with_defaults
        texts = decoding_differences(history, server, with_defaults=has_defaults)
        if texts and self._basis.structures.is_from_table_map(table):
            texts = decoding_differences(history, server, from_table_map=True)
        return texts

    def _structure(self, table: TableName) -> TableSchema | None:
        if self._schema is not None:
            return self._schema.table(table)
        version = self._basis.structures.version(table)
        return None if version is None else version.schema

    def _schema_now(self) -> ServerSchema:
        return self._basis.structures.server_schema() if self._schema is None else self._schema

    def _apply(self, logged: LoggedStatement) -> bool:
        """Apply a statement. Return False if it may have changed any table."""
        statement = with_existing_view(logged, self._schema_now, self._basis.ports.server)
        change = read_change(statement.text, statement.context)
        if isinstance(change, Irrelevant):
            if changes_code(statement.text, statement.context):
                self._schema = after_code_statement(
                    self._schema_now(), statement.text, statement.context
                )
            return True
        schema_before = self._schema_now()
        if isinstance(change, NotUnderstood):
            self._schema = schema_before.with_unknown_tables(*(change.possible_tables or ()))
            return change.possible_tables is not None
        self._schema = evolve(schema_before, change, statement.context).schema
        return True


def decoding_differences(
    history: TableSchema,
    server: TableSchema,
    *,
    from_table_map: bool = False,
    with_defaults: bool = False,
) -> tuple[str, ...]:
    """Return the differences that change how rows are decoded, each as "what: history,
    server".

    `from_table_map`: the history has only the attributes of a TABLE_MAP event.
    `with_defaults`: compare DEFAULT values too, because columns that row images left
    out were filled with them.
    """
    tables = [
        comparable_table(history),
        with_unlogged_properties(comparable_table(server), history),
    ]
    if from_table_map:
        tables = [schema_of(row_structure(table)) for table in tables]
    texts = list(differences(*(_table_for_decoding(table, with_defaults) for table in tables)))
    recorded_hashed, server_hashed = (sum(key.hashed for key in table.keys) for table in tables)
    if recorded_hashed != server_hashed:
        texts.append(f"UNIQUE keys that are hashed: {recorded_hashed}, {server_hashed}")
    texts += _key_difference(history, [*key_candidates(server), *key_candidates(tables[1])])
    return tuple(texts)


def _table_for_decoding(table: TableSchema, with_defaults: bool) -> TableSchema:
    columns = tuple(_column_for_decoding(column, with_defaults) for column in table.columns)
    return TableSchema(table.name, columns, system_versioned=table.system_versioned)


def _column_for_decoding(column: ColumnSchema, with_defaults: bool) -> ColumnSchema:
    return replace(
        column,
        # information_schema does not show MariaDB's hash columns of UNIQUE keys.
        nullable=column.nullable or column.name.startswith("DB_ROW_HASH_"),
        zerofill=False,
        collation=None,
        default=column.default if with_defaults else None,
        on_update=False,
        auto_increment=False,
        stored=False,
        invisible=False,
        srid=None,
    )


def _key_difference(history: TableSchema, candidates: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield a difference if the server no longer has the key that identifies the rows
    of the mirror (the Delta table with the current rows)."""
    history_key = merge_key(history)
    if history_key and {*history_key} not in [{*candidate} for candidate in candidates]:
        candidate_texts = " or ".join(
            f"({', '.join(candidate)})" for candidate in dict.fromkeys(candidates)
        )
        yield f"key: ({', '.join(history_key)}), {candidate_texts or 'none'}"
