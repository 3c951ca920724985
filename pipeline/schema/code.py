"""Triggers and views, and the captured tables that a statement changes through them.

A session with binlog_format=STATEMENT logs statements instead of rows. `reached_tables`
finds the captured tables that such a statement changes, also through triggers, views
and foreign keys. `resources.mysql` asks the server for all triggers and views once;
after that, `after_code_statement` follows the statements of the log that change them.
`statements.row_changes` reads the bodies of triggers and views.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.effects import Dropped, Effect, Renamed
from lockstep.pipeline.schema.model import (
    ROW_CHANGING_ACTIONS,
    DatabaseCode,
    ExpressionDefault,
    RowChange,
    ServerSchema,
    TableAccess,
    TableSchema,
    Trigger,
    View,
)
from lockstep.pipeline.schema.statements.read import read_settings, skip_attributes
from lockstep.pipeline.schema.statements.reader import CannotRead, StatementReader
from lockstep.pipeline.schema.statements.row_changes import (
    DELETE,
    INSERT,
    UPDATE,
    read_body,
    read_or_reason,
)
from lockstep.pipeline.values.engines import can_be_merged, is_merge
from lockstep.pipeline.values.table import TableName

_EVENTS: Final[tuple[RowChange, ...]] = (INSERT, UPDATE, DELETE)


def read_code(text: str, context: StatementContext, *, is_view_query: bool) -> TableAccess:
    """Return the tables that a trigger's body changes and reads; with `is_view_query`,
    those that a view's query reads."""
    return read_or_reason(
        text, context, lambda reader: read_body(reader, is_view_query=is_view_query)
    )


def read_view(text: str, context: StatementContext) -> TableAccess:
    """Return the tables from which a view selects. `text`: its CREATE VIEW."""

    def read(reader: StatementReader) -> TableAccess:
        reader.expect("CREATE")
        skip_attributes(reader)
        reader.expect("VIEW")
        return _read_view_statement(reader)[1].code

    return read_or_reason(text, context, read)


def _read_view_statement(reader: StatementReader) -> tuple[TableName, View]:
    name = reader.read_table()
    if reader.sees_symbol("("):
        reader.read_enclosed_names()
    reader.expect("AS")
    return name, View(name.name, read_body(reader, is_view_query=True))


# -- statements of the log -------------------------------------------------------------


def may_change_code(text: str) -> bool:
    """Return whether a text contains TRIGGER or VIEW, so that it may change triggers or
    views."""
    upper = text.upper()
    return "TRIGGER" in upper or "VIEW" in upper


def changes_code(text: str, context: StatementContext) -> bool:
    """Return whether a statement changes triggers or views; True if it cannot be
    read."""
    if not may_change_code(text):
        return False
    try:
        return bool(_read_code_words(StatementReader(text, context))[1])
    except CannotRead:
        return True


def _read_code_words(reader: StatementReader) -> tuple[str, str]:
    """Read CREATE, ALTER or DROP, then TRIGGER or VIEW. Return both words, "" in place
    of a word that is none of these."""
    read_settings(reader)
    word = reader.accept_any("CREATE", "ALTER", "DROP")
    if not word:
        return "", ""
    skip_attributes(reader)
    if reader.accept("JSON"):
        reader.accept("RELATIONAL")
        reader.accept("DUALITY")
    return word, reader.accept_any("TRIGGER", "VIEW")


def after_code_statement(
    schema: ServerSchema, text: str, context: StatementContext
) -> ServerSchema:
    """Return the schema after a statement that may change triggers or views. If its
    text cannot be read, the triggers and views of all databases are unknown from there
    on."""
    try:
        return _after_read_statement(schema, StatementReader(text, context))
    except CannotRead:
        databases = {
            name: replace(database, code=None) for name, database in schema.databases.items()
        }
        return replace(schema, databases=databases)


def _after_read_statement(schema: ServerSchema, reader: StatementReader) -> ServerSchema:
    verb, kind = _read_code_words(reader)
    if not kind:
        return schema
    if_not_exists = reader.accept_if_not_exists()
    reader.accept_if_exists()
    if verb == "DROP":
        for name in reader.read_tables():
            schema = _with_trigger_or_view(schema, name, kind, None)
        return schema
    read = _read_view_statement if kind == "VIEW" else _read_trigger_statement
    name, new = read(reader)
    return _with_trigger_or_view(schema, name, kind, new, keeps_existing=if_not_exists)


def _read_trigger_statement(reader: StatementReader) -> tuple[TableName, Trigger]:
    name = reader.read_table()
    reader.accept_any("BEFORE", "AFTER")
    events: list[RowChange] = []
    while not reader.accept("ON"):
        if reader.is_over:
            raise reader.unexpected("ON")
        # MariaDB: `UPDATE OF column, … OR INSERT`.
        word = reader.next().keyword
        events += [event for event in _EVENTS if event == word]
    table = reader.read_table()
    reader.expect("FOR", "EACH", "ROW")
    if reader.accept_any("FOLLOWS", "PRECEDES"):
        reader.read_name()
    context = replace(reader.context, database=name.database)
    code = read_code(reader.remaining_text(), context, is_view_query=False)
    return name, Trigger(name.name, table, tuple(events), code)


def _with_trigger_or_view(
    schema: ServerSchema,
    name: TableName,
    kind: str,
    new: Trigger | View | None,
    *,
    keeps_existing: bool = False,
) -> ServerSchema:
    """Return the schema with a new trigger or view under this name. `kind`: TRIGGER or
    VIEW; `new`: None if it was dropped; `keeps_existing`: an existing one stays,
    because servers log CREATE … IF NOT EXISTS even if it created nothing."""
    database = schema.database(name.database)
    code = None if database is None else database.code
    if database is None or code is None:
        return schema
    field_name = f"{kind.lower()}s"
    existing: tuple[Any, ...] | None = getattr(code, field_name)
    if existing is None:
        return schema
    others = [item for item in existing if item.name.lower() != name.name.lower()]
    exists = len(others) < len(existing)
    if exists and keeps_existing:
        return schema
    after = tuple(others) if new is None else (*others, new)
    return schema.with_database(replace(database, code=replace(code, **{field_name: after})))


def with_moved_triggers(schema: ServerSchema, effects: Iterable[Effect]) -> ServerSchema:
    """Return the schema in which the triggers of dropped tables are dropped, and the
    triggers of renamed tables belong to the new name."""
    for effect in effects:
        if isinstance(effect, Dropped | Renamed):
            schema = _change_triggers(schema, partial(_triggers_after, schema, effect))
    return schema


def _triggers_after(
    schema: ServerSchema, effect: Dropped | Renamed, triggers: Iterable[Trigger]
) -> Iterator[Trigger]:
    for trigger in triggers:
        if schema.fold_case(trigger.table) != schema.fold_case(effect.table):
            yield trigger
        elif isinstance(effect, Renamed):
            yield replace(trigger, table=effect.to)


def after_unknown_statement(schema: ServerSchema, tables: Collection[TableName]) -> ServerSchema:
    """Return the schema after a statement that was not understood. It may have
    exchanged the names of these tables, so each trigger of one is assumed to be a
    trigger of every other as well."""
    folded = {schema.fold_case(table) for table in tables}

    def with_assumed(triggers: Sequence[Trigger]) -> Iterator[Trigger]:
        yield from triggers
        for trigger in triggers:
            if schema.fold_case(trigger.table) in folded:
                for table in tables:
                    if schema.fold_case(table) != schema.fold_case(trigger.table):
                        yield replace(trigger, table=table)

    return _change_triggers(schema, with_assumed)


def _change_triggers(
    schema: ServerSchema, change: Callable[[Sequence[Trigger]], Iterable[Trigger]]
) -> ServerSchema:
    for database in list(schema.databases.values()):
        code = database.code
        if code is not None and code.triggers:
            code = replace(code, triggers=tuple(change(code.triggers)))
            schema = schema.with_database(replace(database, code=code))
    return schema


def with_renamed_views(
    schema: ServerSchema, pairs: Iterable[tuple[TableName, TableName]]
) -> ServerSchema:
    """Return the schema with views renamed by RENAME TABLE. A view stays in its
    database."""
    for old, new in pairs:
        database = schema.database(old.database)
        code = None if database is None else database.code
        view = None if code is None else code.view(old.name)
        if view is not None:
            schema = _with_trigger_or_view(schema, old, "VIEW", replace(view, name=new.name))
    return schema


# -- the tables that a statement changes -----------------------------------------------

# The search begins with the names in the statement (`statements.row_changes`) and
# follows views, triggers, foreign keys and MERGE tables. A table that the history does
# not know makes the answer `Undetermined`. Some servers run triggers for rows that a
# foreign key changes, so the search follows these triggers as well.

_VIRTUAL_DATABASES: Final = frozenset({"information_schema", "performance_schema"})


@dataclass(frozen=True, slots=True)
class ReachedTables:
    """The captured tables that the statement may change, each with the reason. The
    statement certainly changes no other captured table."""

    tables: dict[TableName, str]


@dataclass(frozen=True, slots=True)
class Undetermined:
    """It is unknown which tables the statement changes. `target`: the first table that
    the statement itself changes; None if it could not be read."""

    reason: str
    target: TableName | None = None


Verdict = ReachedTables | Undetermined


class _UndeterminedError(Exception):
    """Carries the reason of an `Undetermined`."""


def reached_tables(
    access: TableAccess,
    schema: ServerSchema,
    is_captured: Callable[[TableName], bool],
    is_trusted: Callable[[TableName], bool],
) -> Verdict:
    """Return the captured tables that a statement changes. `access`: the tables in its
    text; `schema`: the server's structures where it ran. `is_trusted`: returns whether
    the configuration promises that a statement on a table changes no other table."""
    if access.reason is not None:
        return Undetermined(access.reason)
    if access.writes and all(is_trusted(table) for table, _ in access.writes):
        return ReachedTables({})
    search = _TableSearch(schema, is_captured, is_trusted)
    try:
        search.follow(access, "the statement changes it")
    except _UndeterminedError as error:
        return Undetermined(str(error), access.writes[0][0] if access.writes else None)
    return ReachedTables(search.reasons)


@dataclass(slots=True)
class _TableSearch:
    """The search from table to table. `reasons`: captured tables, each with the reason.
    `_followed_changes` and `_followed_reads`: tables that were followed already, so
    that a cycle ends."""

    schema: ServerSchema
    is_captured: Callable[[TableName], bool]
    is_trusted: Callable[[TableName], bool]
    reasons: dict[TableName, str] = field(default_factory=dict)
    _followed_changes: set[tuple[TableName, RowChange]] = field(default_factory=set)
    _followed_reads: set[TableName] = field(default_factory=set)

    def follow(self, access: TableAccess, reason: str) -> None:
        """Follow the tables of a statement or a trigger. `reason`: why it changes its
        tables, for `reasons`."""
        for table in access.reads:
            self._follow_read(table, is_named_by_with=table in access.with_names)
        for table, changes in access.writes:
            self._follow_write(table, changes, reason)

    def _database_code(self, table: TableName) -> DatabaseCode | None:
        database = self.schema.database(table.database)
        return None if database is None else database.code

    def _is_base_table(self, table: TableName) -> bool:
        folded = self.schema.fold_case(table)
        code = self._database_code(table)
        is_system_table = code is not None and table.name in code.tables
        return (
            is_system_table or folded in self.schema.tables or folded in self.schema.unknown_tables
        )

    def _view_access(self, table: TableName) -> TableAccess | None:
        code = self._database_code(table)
        view = None if code is None else code.view(table.name)
        return None if view is None else view.code

    def _follow_read(self, table: TableName, *, is_named_by_with: bool) -> None:
        """Follow a table that is read. `is_named_by_with`: a WITH clause defines the
        name. Raise if no known table, view or WITH clause has the name."""
        if (
            table in self._followed_reads
            or self.is_trusted(table)
            or table.database.lower() in _VIRTUAL_DATABASES
        ):
            return
        self._followed_reads.add(table)
        view = self._view_access(table)
        if view is not None:
            self._require_readable(view, f"the view {table}")
            for name in view.reads:
                self._follow_read(name, is_named_by_with=name in view.with_names)
        elif not self._is_base_table(table) and not is_named_by_with:
            raise _UndeterminedError(f"the schema history has no table {table}")

    def _require_readable(self, code: TableAccess, name: str) -> None:
        if code.reason is not None:
            raise _UndeterminedError(f"Lockstep cannot tell what {name} does: {code.reason}")

    def _follow_write(self, table: TableName, changes: Iterable[RowChange], reason: str) -> None:
        """Follow a table that is changed, and the tables that change with it."""
        if self.is_trusted(table):
            return
        folded = self.schema.fold_case(table)
        new_changes = {(folded, change) for change in changes} - self._followed_changes
        if not new_changes:
            return
        self._followed_changes |= new_changes
        changes = frozenset(change for _, change in new_changes)
        view = self._view_access(table)
        if view is not None:
            self._require_readable(view, f"the view {table}")
            for selected in view.reads:
                if selected not in view.with_names:
                    self._follow_write(selected, changes, f"the view {table} selects from it")
                self._follow_read(selected, is_named_by_with=selected in view.with_names)
            return
        if not self._is_base_table(table):
            raise _UndeterminedError(f"the schema history has no table {table}")
        structure = self.schema.table(table)
        name = table if structure is None else structure.name
        if self.is_captured(name):
            self.reasons.setdefault(name, reason)
        if structure is not None and INSERT in changes:
            self._require_no_sequence(structure)
        self._follow_triggers(table, changes)
        for child, child_changes in self._children(table, changes):
            self._follow_write(child, child_changes, f"its foreign key refers to {table}")
        if structure is not None and is_merge(structure.engine):
            for part in self._parts_of_merge_table(structure):
                self._follow_write(part, changes, f"it may be a part of {table}")

    def _require_no_sequence(self, table: TableSchema) -> None:
        """Raise if a default draws from a sequence: an INSERT then changes the
        sequence, which is a table in MariaDB."""
        for column in table.columns:
            default = column.default
            text = default.text.lower() if isinstance(default, ExpressionDefault) else ""
            if "nextval" in text or "next value" in text or "setval" in text:
                raise _UndeterminedError(
                    f"the default of {table.name}.{column.name} uses a sequence"
                )

    def _follow_triggers(self, table: TableName, changes: frozenset[RowChange]) -> None:
        code = self._database_code(table)
        if code is None or code.triggers is None:
            raise _UndeterminedError(
                f"the triggers of {table} are not known: the account lacks TRIGGER on it, or "
                "lacked it when the history began"
            )
        for trigger in code.triggers:
            is_own = self.schema.fold_case(trigger.table) == self.schema.fold_case(table)
            if is_own and changes.intersection(trigger.events):
                name = f"the trigger {trigger.name} of {table}"
                self._require_readable(trigger.code, name)
                self.follow(trigger.code, f"{name} changes it")

    def _children(
        self, table: TableName, changes: frozenset[RowChange]
    ) -> Iterator[tuple[TableName, set[RowChange]]]:
        """Yield the child tables whose rows the actions of foreign keys change, each
        with the kinds of change."""
        folded = self.schema.fold_case(table)
        for child in self.schema.tables.values():
            for key in child.foreign_keys:
                if self.schema.fold_case(key.references) != folded:
                    continue
                child_changes = set[RowChange]()
                if DELETE in changes and key.on_delete in ROW_CHANGING_ACTIONS:
                    child_changes.add(DELETE if key.on_delete == "CASCADE" else UPDATE)
                if UPDATE in changes and key.on_update in ROW_CHANGING_ACTIONS:
                    child_changes.add(UPDATE)
                if child_changes:
                    yield child.name, child_changes

    def _parts_of_merge_table(self, merge_table: TableSchema) -> Iterator[TableName]:
        """Yield the tables that may be parts of a MERGE table. The history does not
        have the list of its parts; all of them are MyISAM tables with the same types of
        columns."""
        types = [column.type for column in merge_table.columns]
        for table in self.schema.tables.values():
            if can_be_merged(table.engine) and [column.type for column in table.columns] == types:
                yield table.name
