"""Column definitions: `name type attribute …`.

Belongs here: the attributes, and data types: every name that MySQL and MariaDB have for them, their
lengths and the attributes that belong to the type (UNSIGNED, CHARACTER SET, BINARY …). Does not:
defaults (`defaults`), what an attribute, an omitted length or character set comes to on a server
(`pipeline.schema.evolving.column_changes`).

Source: `field_def`, `column_attribute` and `type:` in `sql/sql_yacc.yy` of MySQL, and MariaDB's
`field_type`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pipeline.schema.statements.defaults import accept_now, read_default
from pipeline.schema.statements.keys import read_reference
from pipeline.schema.statements.lexer import CannotRead
from pipeline.schema.statements.reader import StatementReader
from pipeline.schema.statements.written import Constant, WrittenColumn, WrittenType


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

_INTEGERS: Final = {
    **dict.fromkeys(("TINYINT", "INT1"), "tinyint"),
    **dict.fromkeys(("SMALLINT", "INT2"), "smallint"),
    **dict.fromkeys(("MEDIUMINT", "INT3", "MIDDLEINT"), "mediumint"),
    **dict.fromkeys(("INT", "INTEGER", "INT4"), "int"),
    **dict.fromkeys(("BIGINT", "INT8"), "bigint"),
}
_DECIMALS: Final = frozenset({"DECIMAL", "DEC", "NUMERIC", "FIXED", "NUMBER"})
_FLOATS: Final = {"FLOAT4": "float", "FLOAT8": "double", "DOUBLE": "double"}
_TEXTS: Final = ("tinytext", "text", "mediumtext", "longtext")
_BLOBS: Final = ("tinyblob", "blob", "mediumblob", "longblob")
_TEMPORAL: Final = frozenset({"TIME", "DATETIME", "TIMESTAMP"})
_SPATIAL: Final = frozenset(
    {"GEOMETRY", "POINT", "LINESTRING", "POLYGON"}
    | {"MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON"}
)
_COLLECTIONS: Final = ("GEOMETRYCOLLECTION", "GEOMCOLLECTION")
_MARIADB: Final = frozenset({"INET4", "INET6", "UUID"})
_UTF8: Final = frozenset({"utf8", "utf8mb3", "utf8mb4"})
_FLOAT_DIGITS: Final = 24
"""FLOAT(p) is a FLOAT up to this p (MySQL manual, "Floating-Point Types")."""

_POINTED: Final = re.compile(r"(\d*)\.\d*")
_VECTOR_DIMENSIONS: Final = 2048
"""VECTOR without a number (MySQL manual, "The VECTOR Type")."""


def read_type(reader: StatementReader) -> WrittenType:
    """The type and its attributes; CannotRead for a type of neither server."""
    word = reader.peek().keyword
    if not word:
        raise reader.unexpected("a data type")
    reader.next()
    type_ = _numeric(word, reader) or _string(word, reader) or _other(word, reader)
    if type_ is None:
        raise CannotRead(f"the data type {word} is not known")
    return type_


def _numeric(word: str, reader: StatementReader) -> WrittenType | None:
    if word in _INTEGERS:
        _length(reader)
        return _signs(WrittenType(_INTEGERS[word]), reader)
    if word in ("BOOL", "BOOLEAN"):
        return WrittenType("tinyint")
    if word == "SERIAL":
        return WrittenType("bigint", unsigned=True, serial=True)
    if word == "BIT":
        return WrittenType("bit", length=_length(reader) or 1)
    if word in _DECIMALS:
        precision, scale = _digits(reader)
        return _signs(WrittenType("decimal", precision=precision or 10, scale=scale or 0), reader)
    if word == "FLOAT" or word == "REAL" or word in _FLOATS:
        reader.accept("PRECISION")
        precision, scale = _digits(reader)
        return _signs(_float(word, precision, scale, reader), reader)
    return None


def _float(
    word: str, precision: int | None, scale: int | None, reader: StatementReader
) -> WrittenType:
    name = _FLOATS.get(word, "float")
    if word == "REAL" and not reader.context.real_as_float:
        name = "double"
    if scale is None:
        if word == "FLOAT" and precision is not None and precision > _FLOAT_DIGITS:
            name = "double"
        return WrittenType(name)
    return WrittenType(name, precision=precision, scale=scale)


def _string(word: str, reader: StatementReader) -> WrittenType | None:
    match word:
        case "CHAR" | "CHARACTER":
            varying = reader.accept("VARYING")
            return _characters("varchar" if varying else "char", reader)
        case "VARCHAR" | "VARCHARACTER":
            return _characters("varchar", reader)
        case "NCHAR":
            varying = bool(reader.accept_any("VARYING", "VARCHAR"))
            return _national("varchar" if varying else "char", reader)
        case "NVARCHAR":
            return _national("varchar", reader)
        case "NATIONAL":
            kind = reader.accept_any("CHAR", "CHARACTER", "VARCHAR", "VARCHARACTER")
            if not kind:
                raise reader.unexpected("CHAR or VARCHAR")
            varying = reader.accept("VARYING") or kind.startswith("VAR")
            return _national("varchar" if varying else "char", reader)
        case "BINARY":
            return WrittenType("binary", length=_length(reader, default=1))
        case "VARBINARY":
            return _compressed(WrittenType("varbinary", length=_length(reader)), reader)
        case "LONG":
            if reader.accept("VARBINARY"):
                return WrittenType("mediumblob")
            if reader.accept_any("CHAR", "CHARACTER"):
                reader.expect("VARYING")
            else:
                reader.accept_any("VARCHAR", "VARCHARACTER")
            return _attributes(WrittenType("mediumtext"), reader)
        case "ENUM" | "SET":
            members = reader.enclosed(lambda: reader.listed(lambda: _member(reader)))
            return _attributes(WrittenType(word.lower(), members=members), reader)
    name = word.lower()
    if name in _TEXTS:
        length = _length(reader) if name == "text" else None
        type_ = WrittenType(name, length=length, sized=length is not None)
        return _attributes(_compressed(type_, reader), reader)
    if name in _BLOBS:
        length = _length(reader) if name == "blob" else None
        return _compressed(WrittenType(name, length=length, sized=length is not None), reader)
    return None


def _other(word: str, reader: StatementReader) -> WrittenType | None:
    if word in _TEMPORAL:
        return WrittenType(word.lower(), length=_length(reader) or 0)
    if word == "DATE":
        return WrittenType("date")
    if word == "YEAR":
        _length(reader)
        return _signs(WrittenType("year"), reader)
    if word in _SPATIAL:
        _length(reader)
        return WrittenType(word.lower())
    if word in _COLLECTIONS:
        maria = reader.context.facts.mariadb
        return WrittenType("geometrycollection" if maria else "geomcollection")
    if word == "JSON":
        if reader.context.facts.mariadb:
            json = WrittenType("longtext", check_json=True)
            return _attributes(json, reader)
        return WrittenType("json")
    if word == "VECTOR":
        return WrittenType("vector", length=_length(reader) or _VECTOR_DIMENSIONS)
    if word in _MARIADB and reader.context.facts.mariadb:
        return WrittenType(word.lower())
    return None


def _length(reader: StatementReader, default: int | None = None) -> int | None:
    """`(n)`, where it stands; BLOB() and the like have none."""
    if not reader.accept_symbol("("):
        return default
    if reader.accept_symbol(")"):
        return default
    found = _count(reader)
    reader.expect_symbol(")")
    return found


def _count(reader: StatementReader) -> int:
    """A length; what stands behind a point in it is passed, as servers do: decimal(19.5)."""
    token = reader.peek()
    if token.kind == "number" and (match := _POINTED.fullmatch(token.text)):
        reader.next()
        return int(match[1] or 0)
    return reader.integer()


def _digits(reader: StatementReader) -> tuple[int | None, int | None]:
    if not reader.accept_symbol("("):
        return None, None
    precision = _count(reader)
    scale = reader.integer() if reader.accept_symbol(",") else None
    reader.expect_symbol(")")
    return precision, scale


def _signs(type_: WrittenType, reader: StatementReader) -> WrittenType:
    while word := reader.accept_any("UNSIGNED", "SIGNED", "ZEROFILL"):
        if word != "SIGNED":
            type_ = replace(type_, unsigned=True)
        if word == "ZEROFILL":
            type_ = replace(type_, zerofill=True)
    return type_


def _member(reader: StatementReader) -> Constant:
    token = reader.next()
    if token.kind in ("string", "hex", "bits"):
        ours, charset = reader.context.client_charset, token.charset
        same = charset in (None, ours) or {charset, ours} <= _UTF8
        if not same and token.kind == "string" and not token.text.isascii():
            raise CannotRead(f"a literal of {charset} in a session of {ours}")
        return Constant(token.kind, token.text, charset)
    raise CannotRead("a member of an ENUM or SET is not a string")


def _characters(name: str, reader: StatementReader) -> WrittenType:
    length = _length(reader, default=1 if name == "char" else None)
    return _attributes(_compressed(WrittenType(name, length=length), reader), reader)


def _national(name: str, reader: StatementReader) -> WrittenType:
    length = _length(reader, default=1 if name == "char" else None)
    national = WrittenType(name, length=length, charset="utf8mb3")
    return replace(national, binary=reader.accept("BINARY"))


def _compressed(type_: WrittenType, reader: StatementReader) -> WrittenType:
    """MariaDB's COMPRESSED stands behind the length, before or after a character set."""
    if not reader.context.facts.mariadb or not reader.accept("COMPRESSED"):
        return type_
    if reader.accept_symbol("="):
        reader.word_or_string()
    return replace(type_, compressed=True)


def _attributes(type_: WrittenType, reader: StatementReader) -> WrittenType:
    """CHARACTER SET, ASCII, UNICODE, BYTE, BINARY, in MySQL's order or the other."""
    while True:
        if reader.charset_word():
            type_ = replace(type_, charset=reader.word_or_string())
        elif reader.accept("ASCII"):
            type_ = replace(type_, charset="latin1")
        elif reader.accept("UNICODE"):
            type_ = replace(type_, charset="ucs2")
        elif reader.accept("BYTE"):
            type_ = replace(type_, charset="binary")
        elif reader.accept("BINARY"):
            type_ = replace(type_, binary=True)
        else:
            return _compressed(type_, reader)
