"""CREATE TABLE, CREATE INDEX, CREATE and ALTER DATABASE.

Belongs here: their grammar. `read` decides which it is and has taken the first words.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.schema.statements.changes import (
    AddKey,
    AlterDatabase,
    AlterTable,
    CreateDatabase,
    CreateLike,
    CreateSelect,
    CreateTable,
    DropKey,
)
from pipeline.schema.statements.column_definitions import read_column
from pipeline.schema.statements.keys import read_key, read_parts, sees_key
from pipeline.schema.statements.lexer import CannotRead
from pipeline.schema.statements.options import read_option, read_options, skip_partitions
from pipeline.schema.statements.reader import StatementReader
from pipeline.schema.statements.written import Element, WrittenKey, WrittenOptions, WrittenPeriod

_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "AS", "IGNORE", "REPLACE")


def read_create_table(
    reader: StatementReader, *, or_replace: bool
) -> CreateTable | CreateLike | CreateSelect:
    """Behind CREATE TABLE."""
    if_not_exists = reader.if_not_exists()
    table = reader.table()
    if reader.accept("LIKE"):
        return CreateLike(table, reader.table(), if_not_exists, or_replace)
    if reader.sees_symbol("(") and reader.peek(1).keyword == "LIKE":
        reader.next()
        reader.expect("LIKE")
        like = CreateLike(table, reader.table(), if_not_exists, or_replace)
        reader.expect_symbol(")")
        return like
    elements: tuple[Element, ...] = ()
    if reader.sees_symbol("(") and reader.peek(1).keyword not in _QUERIES[:4]:
        elements = reader.enclosed(lambda: read_elements(reader))
    options = read_options(reader)
    if skip_partitions(reader):
        options = replace(options, partitioned=True)
    reader.accept("START", "TRANSACTION")
    if reader.peek().keyword in _QUERIES or reader.sees_symbol("("):
        while not reader.over:
            reader.next()
        return CreateSelect(table, if_not_exists, or_replace)
    if not elements:
        raise CannotRead("a table without columns")
    return CreateTable(table, elements, options, if_not_exists, or_replace)


def read_elements(reader: StatementReader) -> tuple[Element, ...]:
    """Columns, keys and foreign keys, with commas between; CHECK constraints are left out."""
    return tuple(one for one in reader.listed(lambda: _element(reader)) if one is not None)


def _element(reader: StatementReader) -> Element | None:
    if reader.context.facts.mariadb and reader.accept("PERIOD", "FOR"):
        return read_period(reader)
    if sees_key(reader):
        return read_key(reader)
    return read_column(reader)


def read_period(reader: StatementReader) -> WrittenPeriod | None:
    """Behind PERIOD FOR; None for SYSTEM_TIME, whose columns say it themselves."""
    name = reader.name()
    columns = reader.names()
    return None if name.upper() == "SYSTEM_TIME" else WrittenPeriod(columns)


def read_create_index(kind: str, reader: StatementReader, *, or_replace: bool) -> AlterTable:
    """Behind CREATE [UNIQUE | FULLTEXT | SPATIAL] INDEX: an ALTER TABLE ADD INDEX."""
    if_not_exists = reader.if_not_exists()
    name = reader.name()
    hashed = bool(reader.accept_any("USING", "TYPE")) and reader.name().upper() == "HASH"
    reader.expect("ON")
    table = reader.table()
    written = WrittenKey(kind, (), name, if_not_exists=if_not_exists, hash=hashed)
    key = read_parts(written, reader)
    skip_locks(reader)
    replaced = (DropKey(name, if_exists=True),) if or_replace else ()
    return AlterTable(table, (*replaced, AddKey(key)))


def skip_locks(reader: StatementReader) -> None:
    """ALGORITHM and LOCK, and MariaDB's WAIT and NOWAIT."""
    while word := reader.accept_any("ALGORITHM", "LOCK", "WAIT", "NOWAIT"):
        if word in ("ALGORITHM", "LOCK"):
            reader.accept_symbol("=")
        if word != "NOWAIT":
            reader.next()


def read_create_database(reader: StatementReader, *, or_replace: bool) -> CreateDatabase:
    """Behind CREATE DATABASE."""
    if_not_exists = reader.if_not_exists()
    name = reader.name()
    options = _database_options(reader)
    return CreateDatabase(name, options.charset, options.collation, if_not_exists, or_replace)


def read_alter_database(reader: StatementReader) -> AlterDatabase:
    """Behind ALTER DATABASE; the default database where none is named."""
    word = reader.peek().keyword
    options_begin = word in ("DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "ENCRYPTION", "COMMENT")
    named = reader.peek().kind == "name" or not (options_begin or reader.sees("READ", "ONLY"))
    name = reader.name() if named else reader.context.database
    options = _database_options(reader)
    return AlterDatabase(name, options.charset, options.collation)


def _database_options(reader: StatementReader) -> WrittenOptions:
    options = WrittenOptions()
    while not reader.over:
        if reader.accept("READ", "ONLY") or reader.accept("DEFAULT", "ENCRYPTION"):
            reader.accept_symbol("=")
            reader.next()
            continue
        found = read_option(options, reader)
        if found is None:
            raise reader.unexpected("a database's option")
        options = found
    return options
