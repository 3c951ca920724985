"""Data types in column definitions: every name MySQL and MariaDB have for them.

Belongs here: names, lengths and the attributes that belong to the type (UNSIGNED,
CHARACTER SET, BINARY …). Does not: what an omitted length or character set comes to
where that depends on the table (`pipeline.schema.evolving.column_changes`).

Source: `type:` in `sql/sql_yacc.yy` of MySQL; MariaDB's `field_type`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from pipeline.schema.statements.lexer import CannotRead
from pipeline.schema.statements.reader import StatementReader
from pipeline.schema.statements.written import Constant, WrittenType

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
