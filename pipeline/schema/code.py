"""Triggers and views of a database, as far as they say which tables a statement changes.

Belongs here: the values, their JSON, and how statements of the log change them. Does not: reading a
trigger's body (`statements.row_changes`), asking the server for them (`resources.mysql`), what a
statement reaches through them (`reach`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pipeline.schema.context import StatementContext
from pipeline.schema.evolving.effects import Dropped, Effect, Renamed
from pipeline.schema.model import DatabaseCode, RowCode, ServerSchema, Trigger, View
from pipeline.schema.statements.lexer import CannotRead
from pipeline.schema.statements.read import skip_attributes
from pipeline.schema.statements.reader import StatementReader
from pipeline.schema.statements.row_changes import (
    DELETE,
    INSERT,
    UPDATE,
    RowChange,
    WrittenTable,
    read_body,
)
from pipeline.table import TableName

_EVENTS = (INSERT, UPDATE, DELETE)


def code_of(read: RowChange | str) -> RowCode:
    """What was read of a body, as the history keeps it."""
    if isinstance(read, str):
        return RowCode(reason=read)
    writes = tuple((one.table, tuple(sorted(one.events))) for one in read.writes)
    return RowCode(writes, read.reads, tuple(sorted(read.own)))


def change_of(code: RowCode) -> RowChange:
    """What a body that could be read does."""
    writes = tuple(WrittenTable(table, frozenset(events)) for table, events in code.writes)
    return RowChange(writes, code.reads, frozenset(code.own))


def read_code(text: str, context: StatementContext, *, selects: bool) -> RowCode:
    """A trigger's body, or the query of a view."""
    try:
        return code_of(read_body(StatementReader(text, context), selects=selects))
    except CannotRead as error:
        return RowCode(reason=str(error))


def read_view(text: str, context: StatementContext) -> RowCode:
    """A view, from its CREATE VIEW."""
    try:
        reader = StatementReader(text, context)
        reader.expect("CREATE")
        skip_attributes(reader)
        reader.expect("VIEW")
        return _view(reader)[1]
    except CannotRead as error:
        return RowCode(reason=str(error))


def _view(reader: StatementReader) -> tuple[TableName, RowCode]:
    name = reader.table()
    if reader.sees_symbol("("):
        reader.names()
    reader.expect("AS")
    return name, code_of(read_body(reader, selects=True))


# -- statements of the log ----------------------------------------------------------------


def may_change_code(text: str) -> bool:
    """Whether a statement that changes no structure may change triggers or views."""
    upper = text.upper()
    return "TRIGGER" in upper or "VIEW" in upper


def changes_code(text: str, context: StatementContext) -> bool:
    """Whether a statement changes triggers or views, or may."""
    if not may_change_code(text):
        return False
    try:
        reader = StatementReader(text, context)
        return bool(reader.accept_any("CREATE", "ALTER", "DROP")) and bool(_kind(reader))
    except CannotRead:
        return True


def _kind(reader: StatementReader) -> str:
    """TRIGGER or VIEW behind CREATE, ALTER or DROP; "" for anything else."""
    skip_attributes(reader)
    if reader.accept("JSON"):
        reader.accept("RELATIONAL")
        reader.accept("DUALITY")
    return reader.accept_any("TRIGGER", "VIEW")


def with_code(schema: ServerSchema, text: str, context: StatementContext) -> ServerSchema:
    """The schema after a statement that changes triggers or views, if it is one. Where its text
    cannot be read, what its database has is unknown from there on."""
    try:
        reader = StatementReader(text, context)
        return _with_statement(schema, reader)
    except CannotRead:
        return schema.with_all_code(None)


def _with_statement(schema: ServerSchema, reader: StatementReader) -> ServerSchema:
    word = reader.accept_any("CREATE", "ALTER", "DROP")
    if not word:
        return schema
    kind = _kind(reader)
    if not kind:
        return schema
    reader.if_not_exists()
    reader.if_exists()
    if word == "DROP":
        for name in reader.tables():
            schema = _without(schema, kind, name)
        return schema
    return _with_trigger(schema, reader) if kind == "TRIGGER" else _with_view(schema, reader)


def _with_trigger(schema: ServerSchema, reader: StatementReader) -> ServerSchema:
    name = reader.table()
    reader.accept_any("BEFORE", "AFTER")
    events = []
    while not reader.accept("ON"):
        if not reader.accept("OR"):
            events.append(reader.next().keyword)
            if events[-1] not in _EVENTS:
                reader.accept("OF")
    table = reader.table()
    reader.expect("FOR", "EACH", "ROW")
    if reader.accept_any("FOLLOWS", "PRECEDES"):
        reader.name()
    body = replace(reader.context, database=name.database)
    code = read_code(reader.rest(), body, selects=False)
    schema = _without(schema, "TRIGGER", name)
    trigger = Trigger(name.name, table, tuple(events), code)
    return _put(schema, name.database, lambda code: code.with_trigger(trigger))


def _with_view(schema: ServerSchema, reader: StatementReader) -> ServerSchema:
    name, code = _view(reader)
    view = View(name.name, code)
    schema = _without(schema, "VIEW", name)
    return _put(schema, name.database, lambda code: code.with_view(view))


def _without(schema: ServerSchema, kind: str, name: TableName) -> ServerSchema:
    def without(code: DatabaseCode) -> DatabaseCode:
        if kind == "VIEW":
            return code.without_view(name.name)
        return code.without_trigger(name.name)

    return _put(schema, name.database, without)


def _put(
    schema: ServerSchema, database: str, change: Callable[[DatabaseCode], DatabaseCode]
) -> ServerSchema:
    known = schema.database(database)
    if known is None or known.code is None:
        return schema
    return schema.with_database(replace(known, code=change(known.code)))


def after_effects(schema: ServerSchema, effects: Iterable[Effect]) -> ServerSchema:
    """Triggers go with their tables, where these are dropped or get another name."""
    for effect in effects:
        if not isinstance(effect, Dropped | Renamed):
            continue
        for database in list(schema.databases.values()):
            if database.code is None or not database.code.triggers:
                continue
            kept = []
            for trigger in database.code.triggers:
                if schema.fold(trigger.table) != schema.fold(effect.table):
                    kept.append(trigger)
                elif isinstance(effect, Renamed):
                    kept.append(replace(trigger, table=effect.to))
            if tuple(kept) != database.code.triggers:
                code = replace(database.code, triggers=tuple(kept))
                schema = schema.with_database(replace(database, code=code))
    return schema


def after_unknown(schema: ServerSchema, tables: Collection[TableName]) -> ServerSchema:
    """Triggers after a statement that may have given one of these tables another's name."""
    folded = {schema.fold(table) for table in tables}
    for database in list(schema.databases.values()):
        code = database.code
        if code is None or not code.triggers:
            continue
        moved = [
            replace(trigger, table=table)
            for trigger in code.triggers
            if schema.fold(trigger.table) in folded
            for table in tables
            if schema.fold(table) != schema.fold(trigger.table)
        ]
        if moved:
            code = replace(code, triggers=(*code.triggers, *moved))
            schema = schema.with_database(replace(database, code=code))
    return schema


def renamed_views(
    schema: ServerSchema, pairs: Iterable[tuple[TableName, TableName]]
) -> ServerSchema:
    """RENAME TABLE of views, which keep their database."""
    for old, new in pairs:
        known = schema.database(old.database)
        view = None if known is None or known.code is None else known.code.view(old.name)
        if known is not None and known.code is not None and view is not None:
            code = known.code.without_view(old.name).with_view(replace(view, name=new.name))
            schema = schema.with_database(replace(known, code=code))
    return schema


# -- JSON -------------------------------------------------------------------------------


def code_to_json(code: DatabaseCode) -> dict[str, Any]:
    """Plain values."""
    triggers = code.triggers
    return {
        "triggers": None
        if triggers is None
        else [
            {"name": one.name, "table": _pair(one.table), "events": one.events, **_json(one.code)}
            for one in triggers
        ],
        "views": [{"name": one.name, **_json(one.code)} for one in code.views],
        "tables": list(code.tables),
    }


def code_from_json(data: Mapping[str, Any]) -> DatabaseCode:
    triggers = data["triggers"]
    return DatabaseCode(
        None
        if triggers is None
        else tuple(
            Trigger(one["name"], TableName(*one["table"]), tuple(one["events"]), _code(one))
            for one in triggers
        ),
        tuple(View(one["name"], _code(one)) for one in data["views"]),
        tuple(data["tables"]),
    )


def _json(code: RowCode) -> dict[str, Any]:
    return {
        "writes": [[*_pair(table), *events] for table, events in code.writes],
        "reads": list(map(_pair, code.reads)),
        "own": list(map(_pair, code.own)),
        "reason": code.reason,
    }


def _code(data: Mapping[str, Any]) -> RowCode:
    return RowCode(
        tuple((TableName(a, b), tuple(events)) for a, b, *events in data["writes"]),
        tuple(TableName(*pair) for pair in data["reads"]),
        tuple(TableName(*pair) for pair in data["own"]),
        data["reason"],
    )


def _pair(table: TableName) -> list[str]:
    return [table.database, table.name]
