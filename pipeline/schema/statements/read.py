"""The changes that a logged statement makes to structures.

A statement is passed over only if it is on the list in `passed`, never because it was not
recognised.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Final

from lockstep.pipeline.schema.context import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, StatementContext
from lockstep.pipeline.schema.statements.changes import (
    AlterDefault,
    AlterTable,
    CreateLike,
    CreateSelect,
    CreateTable,
    DefineColumn,
    Drop,
    DropDatabase,
    DropTables,
    Irrelevant,
    NotUnderstood,
    Part,
    RenameTables,
    RepairTables,
    SchemaChange,
    TruncateTable,
    named_by,
)
from lockstep.pipeline.schema.statements.passed import PASSED
from lockstep.pipeline.schema.statements.reader import CannotRead, StatementReader
from lockstep.pipeline.schema.statements.set_statement import read_settings
from lockstep.pipeline.schema.statements.table_statements import (
    read_alter_database,
    read_alter_table,
    read_create_database,
    read_create_index,
    read_create_table,
    skip_locks,
)
from lockstep.pipeline.values.table import TableName

Understood = tuple[SchemaChange, ...] | Irrelevant

_UNKNOWN_TABLE: Final = 1051
"""ER_BAD_TABLE_ERROR: DROP TABLE named tables that do not exist; all others were dropped."""


def read_change(text: str, context: StatementContext) -> Understood | NotUnderstood:
    """Return what a logged statement changes. It never raises.

    `text` is decoded with the client's character set. `NotUnderstood` contains the tables that the
    statement may touch; None, if they could not be read, means that it may touch any table.
    """
    reading = _read_text(text, context)
    grammar = context.other_grammar
    # A statement that defines no column means the same in every grammar, and so do its tables.
    if grammar is not None and (isinstance(reading, NotUnderstood) or _defines_columns(reading)):
        reading = NotUnderstood(f"it ran under sql_mode={grammar}", _may_touch(reading))
    if _may_set_mode(text, context):
        reading = _under_any_mode(text, context, reading)
    if isinstance(reading, Irrelevant | NotUnderstood):
        return reading
    if context.error not in (0, _UNKNOWN_TABLE):
        # A server logs a failed statement if it carried out a part of it. MySQL 5.7 does so for
        # DROP TABLE of several tables.
        reason = f"it failed with error {context.error} in the middle"
        return NotUnderstood(reason, named_by(reading))
    if context.thread_specific and any(map(_may_mean_temporary, reading)):
        return NotUnderstood("it may have meant a temporary table", named_by(reading))
    return reading


def _may_mean_temporary(change: SchemaChange) -> bool:
    """Return whether, in a thread-specific statement, a name may mean a temporary table of the
    session instead of a permanent one. Other statements are unambiguous: servers log whether a
    dropped table was temporary, and they log definitions in full. MariaDB also marks every CREATE
    OR REPLACE that replaced a table as thread-specific, so there the mark says nothing about the
    table after LIKE."""
    if isinstance(change, CreateLike):
        return not change.or_replace
    return isinstance(change, AlterTable | RenameTables | RepairTables | TruncateTable)


def _read_text(text: str, context: StatementContext) -> Understood | NotUnderstood:
    try:
        reader = StatementReader(text, context)
    except CannotRead as error:
        return NotUnderstood(str(error))
    try:
        engine, unknown = read_settings(reader)
        changes = _read(reader)
        if not isinstance(changes, Irrelevant) and not reader.over:
            raise reader.unexpected("the statement's end")
    except CannotRead as error:
        return NotUnderstood(str(error), _touched(reader))
    if isinstance(changes, Irrelevant):
        return changes
    if unknown:
        variables = ", ".join(unknown)
        return NotUnderstood(f"SET STATEMENT changes {variables} for it", named_by(changes))
    if engine is None:
        return changes
    return tuple(_with_engine(change, engine) for change in changes)


def _with_engine(change: SchemaChange, engine: str) -> SchemaChange:
    """Give a new table this engine if its definition names none."""
    if not isinstance(change, CreateTable) or change.options.engine is not None:
        return change
    return replace(change, options=replace(change.options, engine=engine))


# -- SET STATEMENT sql_mode ---------------------------------------------------------


def _may_set_mode(text: str, context: StatementContext) -> bool:
    """Return whether SET STATEMENT may set `sql_mode`. If it does, the server parsed the text under
    another mode than the one in the event."""
    if not context.facts.mariadb or "sql_mode" not in text.lower():
        return False
    try:
        return StatementReader(text, context).sees("SET", "STATEMENT")
    except CannotRead:
        return True


def _under_any_mode(
    text: str, context: StatementContext, reading: Understood | NotUnderstood
) -> Understood | NotUnderstood:
    """Return the reading if it is the same under every `sql_mode`, else `NotUnderstood`. A
    statement that defines a column is always `NotUnderstood`: the column's type and default depend
    on more modes than the two that govern quoting."""
    modes = (
        context.sql_mode & ~(ANSI_QUOTES | NO_BACKSLASH_ESCAPES) | quotes | escapes
        for quotes, escapes in product((0, ANSI_QUOTES), (0, NO_BACKSLASH_ESCAPES))
    )
    others = [_read_text(text, replace(context, sql_mode=mode)) for mode in modes]
    defines = not isinstance(reading, Irrelevant | NotUnderstood) and _defines_columns(reading)
    if not defines and all(other == reading for other in others):
        return reading
    touched = {_may_touch(other) for other in others}
    reason = "SET STATEMENT changes sql_mode, and the log does not tell the session's own"
    return NotUnderstood(reason, touched.pop() if len(touched) == 1 else None)


def _defines_columns(changes: Understood) -> bool:
    return not isinstance(changes, Irrelevant) and any(
        isinstance(change, CreateTable | CreateSelect)
        or (
            isinstance(change, AlterTable)
            and any(isinstance(c, DefineColumn | AlterDefault) for c in change.clauses)
        )
        for change in changes
    )


def _may_touch(reading: Understood | NotUnderstood) -> tuple[TableName, ...] | None:
    match reading:
        case Irrelevant():
            return ()
        case NotUnderstood():
            return reading.may_touch
    return named_by(reading)


# -- by the first words -------------------------------------------------------------


def _read(reader: StatementReader) -> Understood:
    if reader.over:
        return Irrelevant("nothing")
    first = reader.at
    change = _followed(reader)
    if change is not None:
        return (change,)
    reader.at = first
    return _passed(reader)


def _followed(reader: StatementReader) -> SchemaChange | None:
    """Read a statement that changes structures. Return None if its first words are those of another
    kind of statement."""
    match reader.next().keyword:
        case "CREATE":
            return _create(reader)
        case "ALTER":
            return _alter(reader)
        case "DROP":
            return _drop(reader)
        case "RENAME" if not reader.sees("USER"):
            return _rename(reader)
        case "TRUNCATE":
            reader.accept("TABLE")
            table = reader.table()
            skip_locks(reader)
            return TruncateTable(table)
        case "REPAIR" if not (reader.sees("VIEW") or reader.sees("VIEWS")):
            return _repair(reader)
    return None


def _create(reader: StatementReader) -> SchemaChange | None:
    or_replace = reader.accept("OR", "REPLACE")
    if reader.accept("TABLE"):
        return read_create_table(reader, or_replace=or_replace)
    if reader.accept_any("DATABASE", "SCHEMA"):
        return read_create_database(reader, or_replace=or_replace)
    if or_replace and reader.accept("SEQUENCE"):
        # MariaDB drops whatever has that name, even a table.
        replaced = DropTables((reader.table(),), if_exists=True)
        reader.skip_rest()
        return replaced
    reader.accept_any("ONLINE", "OFFLINE")
    kind = reader.accept_any("UNIQUE", "FULLTEXT", "SPATIAL").lower()
    if reader.accept("INDEX"):
        return read_create_index(kind or "index", reader, or_replace=or_replace)
    return None


def _alter(reader: StatementReader) -> SchemaChange | None:
    reader.accept_any("ONLINE", "OFFLINE")
    ignore = reader.accept("IGNORE")
    reader.accept_any("ONLINE", "OFFLINE")
    if reader.accept("TABLE"):
        return read_alter_table(reader, ignore=ignore)
    if reader.accept_any("DATABASE", "SCHEMA"):
        return read_alter_database(reader)
    return None


def _drop(reader: StatementReader) -> SchemaChange | None:
    if reader.accept_any("TABLE", "TABLES"):
        if_exists = reader.if_exists()
        tables = reader.tables()
        reader.accept_any("RESTRICT", "CASCADE")
        skip_locks(reader)
        return DropTables(tables, if_exists)
    if reader.accept_any("DATABASE", "SCHEMA"):
        if_exists = reader.if_exists()
        return DropDatabase(reader.name(), if_exists)
    reader.accept_any("ONLINE", "OFFLINE")
    if reader.accept("INDEX"):
        if_exists = reader.if_exists()
        name = reader.name()
        reader.expect("ON")
        table = reader.table()
        skip_locks(reader)
        return AlterTable(table, (Drop(Part.KEY, name, if_exists),))
    return None


def _rename(reader: StatementReader) -> SchemaChange:
    if not reader.accept_any("TABLE", "TABLES"):
        raise reader.unexpected("TABLE")
    if_exists = reader.if_exists()

    def pair() -> tuple[TableName, TableName]:
        old = reader.table()
        skip_locks(reader)
        reader.expect("TO")
        return old, reader.table()

    return RenameTables(reader.listed(pair), if_exists)


def _repair(reader: StatementReader) -> SchemaChange:
    reader.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
    reader.accept_any("TABLE", "TABLES")
    tables = reader.tables()
    while reader.accept_any("QUICK", "EXTENDED", "USE_FRM", "FORCE"):
        pass
    return RepairTables(tables)


def _passed(reader: StatementReader) -> Irrelevant:
    """Read a statement that is on the list in `passed`. Raise CannotRead if it is not on the list,
    or if another statement follows it."""
    first = reader.next()
    if first.keyword in ("CREATE", "ALTER", "DROP"):
        skip_attributes(reader)
    else:
        reader.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
    for passed in PASSED:
        for words in passed.beginnings:
            if first.keyword == words[0] and reader.accept(*words[1:]):
                if first.keyword == "SET" and reader.sees("STATEMENT"):
                    break
                if not passed.code and reader.skip_rest() > 0:
                    raise CannotRead(f"another statement follows {' '.join(words)}")
                return Irrelevant(" ".join(words))
    word = reader.peek().text[:40] if first.keyword in ("CREATE", "ALTER", "DROP") else ""
    beginning = f"{first.keyword or 'the statement'} {word}".strip()
    raise CannotRead(f"{beginning} is not on the list of statements to pass over")


def skip_attributes(reader: StatementReader) -> None:
    """Skip attributes such as DEFINER between CREATE, ALTER or DROP and the kind of object."""
    reader.accept("OR", "REPLACE")
    while True:
        if reader.accept("ALGORITHM"):
            reader.expect_symbol("=")
            reader.name()
        elif reader.accept("DEFINER"):
            reader.expect_symbol("=")
            _skip_account(reader)
        elif reader.accept("SQL", "SECURITY"):
            reader.name()
        elif not reader.accept("AGGREGATE"):
            return


def _skip_account(reader: StatementReader) -> None:
    reader.word_or_string()
    if reader.sees_symbol("("):
        reader.parenthesized()
    host = reader.peek()
    if host.kind == "variable" and reader.next().text == "@":
        reader.word_or_string()


def _touched(reader: StatementReader) -> tuple[TableName, ...] | None:
    """Return the tables that an unreadable statement may change. For CREATE TABLE and ALTER TABLE,
    this is the table, and each new name that ALTER TABLE gives it. Return None for other statements
    and if the names cannot be read: then any table may change."""
    reader.at = 0
    try:
        read_settings(reader)
        first = reader.accept_any("CREATE", "ALTER")
        reader.accept("OR", "REPLACE")
        reader.accept("IGNORE")
        if not first or not reader.accept("TABLE"):
            return None
        reader.if_not_exists()
        reader.if_exists()
        named = [reader.table()]
        while not reader.over:
            if reader.next().keyword in ("RENAME", "TABLE") and first == "ALTER":
                reader.accept_any("TO", "AS")
                reader.accept_symbol("=")
                named.append(reader.table())
    except CannotRead:
        return None
    return tuple(dict.fromkeys(named))
