"""A statement → what it changes: the room's face.

Belongs here: telling statements apart by their first words, and the list of those that
change nothing here. Nothing is passed because it was not recognised.
"""

from __future__ import annotations

from typing import Final

from pipeline.schema.context import StatementContext
from pipeline.schema.statements.alter import drop_index_clause, read_alter_table
from pipeline.schema.statements.changes import (
    AlterTable,
    DropDatabase,
    DropTables,
    Irrelevant,
    NotUnderstood,
    RenameTables,
    RepairTables,
    SchemaChange,
    TruncateTable,
)
from pipeline.schema.statements.create import (
    read_alter_database,
    read_create_database,
    read_create_index,
    read_create_table,
    skip_locks,
)
from pipeline.schema.statements.lexer import CannotRead
from pipeline.schema.statements.reader import StatementReader
from pipeline.table import TableName

Understood = tuple[SchemaChange, ...] | Irrelevant

_PASSED: Final = frozenset(
    {"ANALYZE", "BEGIN", "CHECK", "CHECKSUM", "COMMIT", "FLUSH", "GRANT", "INSTALL", "OPTIMIZE"}
    | {"RELEASE", "REVOKE", "ROLLBACK", "SAVEPOINT", "SET", "UNINSTALL", "XA", "CLONE", "KILL"}
    | {"RESET", "PURGE", "LOCK", "UNLOCK", "CACHE", "SHUTDOWN"}
)
_OBJECTS: Final = frozenset(
    {"AGGREGATE", "EVENT", "FUNCTION", "INSTANCE", "LIBRARY", "LOGFILE", "PACKAGE", "PROCEDURE"}
    | {"RESOURCE", "ROLE", "SEQUENCE", "SERVER", "TABLESPACE", "TRIGGER", "UNDO", "USER", "VIEW"}
    | {"MASKING", "JSON"}
)
_BEFORE: Final = frozenset({"OR", "REPLACE", "DEFINER", "ALGORITHM", "SQL", "SECURITY"})
_SEARCH: Final = 40
"""How far an object's word may stand behind CREATE, ALTER or DROP: DEFINER=… comes first."""


def read_change(text: str, context: StatementContext) -> Understood | NotUnderstood:
    """What a logged statement changes; never an exception.

    `text` is decoded with the client's character set. `NotUnderstood` names the tables it
    may touch where that much could be read, None for any table.
    """
    if context.other_grammar is not None:
        return NotUnderstood(f"it ran under sql_mode={context.other_grammar}")
    try:
        reader = StatementReader(text, context)
    except CannotRead as error:
        return NotUnderstood(str(error))
    try:
        found = _read(reader)
        if not isinstance(found, Irrelevant) and not reader.over:
            raise reader.unexpected("the statement's end")
    except CannotRead as error:
        return NotUnderstood(str(error), _touched(text, context))
    return found


def _read(reader: StatementReader) -> Understood:
    word = reader.peek().keyword
    if word in _PASSED:
        return Irrelevant(word)
    if reader.over:
        return Irrelevant("nothing")
    reader.next()
    match word:
        case "CREATE":
            return _create(reader)
        case "ALTER":
            return _alter(reader)
        case "DROP":
            return _drop(reader)
        case "RENAME":
            return _rename(reader)
        case "TRUNCATE":
            reader.accept("TABLE")
            table = reader.table()
            skip_locks(reader)
            return (TruncateTable(table),)
        case "REPAIR":
            reader.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
            reader.accept_any("TABLE", "TABLES")
            tables = reader.tables()
            while reader.accept_any("QUICK", "EXTENDED", "USE_FRM", "FORCE"):
                pass
            return (RepairTables(tables),)
    raise CannotRead(f"{word or 'the statement'} is on no list")


def _create(reader: StatementReader) -> Understood:
    or_replace = reader.accept("OR", "REPLACE")
    if reader.accept("TEMPORARY"):
        return Irrelevant("CREATE TEMPORARY TABLE")
    if reader.accept("TABLE"):
        return (read_create_table(reader, or_replace=or_replace),)
    if reader.accept_any("DATABASE", "SCHEMA"):
        return (read_create_database(reader, or_replace=or_replace),)
    if reader.sees("SPATIAL", "REFERENCE"):
        return Irrelevant("CREATE SPATIAL REFERENCE SYSTEM")
    reader.accept_any("ONLINE", "OFFLINE")
    kind = reader.accept_any("UNIQUE", "FULLTEXT", "SPATIAL").lower()
    if reader.accept("INDEX"):
        return (read_create_index(kind or "index", reader, or_replace=or_replace),)
    return _object("CREATE", reader)


def _alter(reader: StatementReader) -> Understood:
    reader.accept_any("ONLINE", "OFFLINE")
    ignore = reader.accept("IGNORE")
    reader.accept_any("ONLINE", "OFFLINE")
    if reader.accept("TABLE"):
        return (read_alter_table(reader, ignore=ignore),)
    if reader.accept_any("DATABASE", "SCHEMA"):
        return (read_alter_database(reader),)
    return _object("ALTER", reader)


def _drop(reader: StatementReader) -> Understood:
    if reader.accept("TEMPORARY"):
        return Irrelevant("DROP TEMPORARY TABLE")
    if reader.accept_any("TABLE", "TABLES"):
        if_exists = reader.if_exists()
        tables = reader.tables()
        reader.accept_any("RESTRICT", "CASCADE")
        skip_locks(reader)
        return (DropTables(tables, if_exists),)
    if reader.accept_any("DATABASE", "SCHEMA"):
        if_exists = reader.if_exists()
        return (DropDatabase(reader.name(), if_exists),)
    if reader.sees("SPATIAL", "REFERENCE"):
        return Irrelevant("DROP SPATIAL REFERENCE SYSTEM")
    reader.accept_any("ONLINE", "OFFLINE")
    if reader.accept("INDEX"):
        if_exists = reader.if_exists()
        name = reader.name()
        reader.expect("ON")
        table = reader.table()
        skip_locks(reader)
        return (AlterTable(table, (drop_index_clause(name, if_exists=if_exists),)),)
    if reader.sees("PREPARE"):
        return Irrelevant("DROP PREPARE")
    return _object("DROP", reader)


def _rename(reader: StatementReader) -> Understood:
    if reader.accept("USER"):
        return Irrelevant("RENAME USER")
    if not reader.accept_any("TABLE", "TABLES"):
        raise reader.unexpected("TABLE")
    if_exists = reader.if_exists()

    def pair() -> tuple[TableName, TableName]:
        old = reader.table()
        skip_locks(reader)
        reader.expect("TO")
        return old, reader.table()

    return (RenameTables(reader.listed(pair), if_exists),)


def _object(first: str, reader: StatementReader) -> Irrelevant:
    """The word that says what is created, altered or dropped; what may stand before it is
    known too, so that no table hides behind a word."""
    for ahead in range(_SEARCH):
        token = reader.peek(ahead)
        if token.keyword in _OBJECTS:
            return Irrelevant(f"{first} {token.keyword}")
        if token.keyword in ("TABLE", "TABLES", "DATABASE", "SCHEMA", "INDEX"):
            break
        if ahead == 0 and token.keyword not in _BEFORE:
            break
    raise CannotRead(f"{first} {reader.peek().text[:40]} is on no list")


def _touched(text: str, context: StatementContext) -> tuple[TableName, ...] | None:
    """The table a statement that could not be read begins with, if it changes no other."""
    reader = StatementReader(text, context)
    first = reader.accept_any("CREATE", "ALTER")
    reader.accept("OR", "REPLACE")
    reader.accept("IGNORE")
    if not first or not reader.accept("TABLE"):
        return None
    reader.if_not_exists()
    reader.if_exists()
    try:
        named = [reader.table()]
        while not reader.over:
            if reader.next().keyword in ("RENAME", "TABLE") and first == "ALTER":
                reader.accept_any("TO", "AS")
                reader.accept_symbol("=")
                named.append(reader.table())
    except CannotRead:
        return None
    return tuple(dict.fromkeys(named))
