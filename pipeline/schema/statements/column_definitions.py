"""Column definitions: `name type attribute …`.

Belongs here: the attributes. Does not: types (`types`), defaults (`defaults`), what an
attribute comes to on a server.

Source: `field_def` and `column_attribute` in `sql/sql_yacc.yy` of MySQL, and MariaDB's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pipeline.schema.statements.defaults import accept_now, read_default
from pipeline.schema.statements.keys import read_reference
from pipeline.schema.statements.reader import StatementReader
from pipeline.schema.statements.types import read_type
from pipeline.schema.statements.written import WrittenColumn


def read_column(reader: StatementReader) -> WrittenColumn:
    """A definition up to the comma, the parenthesis or the FIRST or AFTER behind it."""
    return read_definition(reader.name(), reader)


def read_definition(name: str, reader: StatementReader) -> WrittenColumn:
    """What stands behind a column's name."""
    column = WrittenColumn(name, read_type(reader))
    if column.type.serial:
        column = replace(column, nullable=False, auto_increment=True, key="unique")
    while True:
        for read in _ATTRIBUTES:
            found = read(column, reader)
            if found is not None:
                column = found
                break
        else:
            return column


def _nullability(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    if reader.accept("NOT", "NULL"):
        return replace(column, nullable=False)
    if reader.accept("NOT", "SECONDARY"):
        return column
    if not reader.accept("NULL"):
        return None
    facts = reader.context.facts
    if column.generated is not None and not (facts.mysql_8 or facts.mariadb):
        return column  # MySQL 5.7 holds on to the NOT NULL of a generated column.
    return replace(column, nullable=True)


def _values(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    if reader.accept("SERIAL", "DEFAULT", "VALUE"):
        return _unique(replace(column, nullable=False, auto_increment=True))
    if reader.accept("DEFAULT"):
        return replace(column, default=read_default(reader))
    if reader.accept("ON", "UPDATE"):
        if accept_now(reader) is None:
            raise reader.unexpected("CURRENT_TIMESTAMP")
        return replace(column, on_update=True)
    if reader.accept("AUTO_INCREMENT"):
        return replace(column, auto_increment=True)
    return None


def _keys(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    if reader.accept("PRIMARY", "KEY") or reader.accept("PRIMARY") or reader.accept("KEY"):
        return replace(column, key="primary", unique_too=column.key == "unique")
    if reader.accept("UNIQUE"):
        reader.accept("KEY")
        return _unique(column)
    if reader.sees("REFERENCES"):
        return replace(column, reference=read_reference((column.name,), reader))
    return None


def _unique(column: WrittenColumn) -> WrittenColumn:
    if column.key == "primary":
        return replace(column, unique_too=True)
    return replace(column, key="unique")


def _generated(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    if reader.accept("GENERATED", "ALWAYS", "AS") or reader.accept("AS"):
        if reader.accept("ROW"):
            word = reader.accept_any("START", "END")
            return replace(column, system_period=word.lower(), nullable=False)
        column = replace(column, generated=reader.parenthesized())
        kind = reader.accept_any("VIRTUAL", "STORED", "PERSISTENT")
        return replace(column, stored=kind in ("STORED", "PERSISTENT"))
    return None


def _checks(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    if reader.sees("CONSTRAINT") or reader.sees("CHECK"):
        if reader.accept("CONSTRAINT") and not reader.sees("CHECK"):
            reader.name()
        reader.expect("CHECK")
        reader.skip_check()
        return column
    return None


def _looks(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    if word := reader.accept_any("VISIBLE", "INVISIBLE"):
        return replace(column, invisible=word == "INVISIBLE")
    if reader.accept("COLLATE"):
        return _with_type(column, collation=reader.word_or_string())
    if reader.charset_word():
        return _with_type(column, charset=reader.word_or_string())
    if reader.accept("SRID"):
        return replace(column, srid=reader.integer())
    if reader.accept("REF_SYSTEM_ID"):
        # MariaDB keeps it beside the column, and checks no value against it.
        reader.accept_symbol("=")
        reader.integer()
        return column
    if reader.context.facts.mariadb and reader.accept("COMPRESSED"):
        return replace(column, type=replace(column.type, compressed=True))
    return None


def _with_type(
    column: WrittenColumn, *, charset: str | None = None, collation: str | None = None
) -> WrittenColumn:
    kind = column.type
    changed = replace(kind, charset=charset or kind.charset, collation=collation or kind.collation)
    return replace(column, type=changed)


def _neutral(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    """Attributes that are no part of a column; MariaDB's engines bring their own."""
    if reader.accept_any("COMMENT", "COLUMN_FORMAT", "STORAGE"):
        reader.next()
        return column
    if reader.accept_any("ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"):
        reader.accept_symbol("=")
        reader.next()
        return column
    if reader.context.facts.mariadb:
        if word := reader.accept_any("WITH", "WITHOUT"):
            reader.expect("SYSTEM", "VERSIONING")
            return replace(column, versioned=word == "WITH")
        if reader.peek().is_name and reader.sees_symbol("=", 1):
            reader.at += 3
            return column
    return None


_Read = Callable[[WrittenColumn, StatementReader], WrittenColumn | None]
_ATTRIBUTES: Final[tuple[_Read, ...]] = (
    _nullability,
    _values,
    _keys,
    _generated,
    _checks,
    _looks,
    _neutral,
)
