"""The grammar of columns and keys that CREATE TABLE and ALTER TABLE share.

A length, character set or name that the statement omits is None here;
`pipeline.schema.evolving` fills it in.

Source: `field_def`, `column_attribute` and `type:` in `sql/sql_yacc.yy` of MySQL, and
MariaDB's `field_type`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from lockstep.pipeline.schema.collations import UTF8_CHARSETS
from lockstep.pipeline.schema.context import REAL_AS_FLOAT
from lockstep.pipeline.schema.model import BLOB_FAMILY, TEXT_FAMILY, KeyPart
from lockstep.pipeline.schema.statements.changes import (
    Computed,
    Constant,
    WrittenColumn,
    WrittenKey,
    WrittenReference,
    WrittenType,
)
from lockstep.pipeline.schema.statements.reader import CannotRead, StatementReader


def read_column(reader: StatementReader) -> WrittenColumn:
    """Read a column's name and definition, up to a comma, a closing parenthesis, FIRST
    or AFTER."""
    return read_definition(reader.name(), reader)


def read_definition(name: str, reader: StatementReader) -> WrittenColumn:
    """Read a data type and the attributes after it, which may come in any order."""
    column = WrittenColumn(name, _type(reader))
    if column.type.serial:
        column = replace(column, nullable=False, auto_increment=True, key="unique")
    while True:
        for read in _ATTRIBUTES:
            changed = read(column, reader)
            if changed is not None:
                column = changed
                break
        else:
            return column


def _nullability(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    if reader.accept("NOT", "NULL"):
        return replace(column, nullable=False)
    if reader.accept("NOT", "SECONDARY"):
        return column  # Only the secondary engine (HeatWave) leaves the column out.
    if not reader.accept("NULL"):
        return None
    facts = reader.context.facts
    if column.generated is not None and not (facts.is_mysql_8 or facts.is_mariadb):
        return column  # MySQL 5.7 ignores NULL after the expression of a generated column.
    return replace(column, nullable=True)


def _default_or_auto_increment(
    column: WrittenColumn, reader: StatementReader
) -> WrittenColumn | None:
    if reader.accept("SERIAL", "DEFAULT", "VALUE"):
        return _unique(replace(column, nullable=False, auto_increment=True))
    if reader.accept("DEFAULT"):
        return replace(column, default=read_default(reader))
    if reader.accept("ON", "UPDATE"):
        if _accept_now(reader) is None:
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
        return replace(column, reference=_reference((column.name,), reader))
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


def _check(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    if reader.sees("CONSTRAINT") or reader.sees("CHECK"):
        if reader.accept("CONSTRAINT") and not reader.sees("CHECK"):
            reader.name()
        reader.expect("CHECK")
        reader.skip_check()
        return column
    return None


def _visibility_or_charset(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    if word := reader.accept_any("VISIBLE", "INVISIBLE"):
        return replace(column, invisible=word == "INVISIBLE")
    if reader.accept("COLLATE"):
        return _with_charset(column, collation=reader.word_or_string())
    if reader.charset_word():
        return _with_charset(column, charset=reader.word_or_string())
    if reader.accept("SRID"):
        return replace(column, srid=reader.integer())
    if reader.accept("REF_SYSTEM_ID"):
        # MariaDB stores it with the column, and checks no value against it.
        reader.accept_symbol("=")
        reader.integer()
        return column
    if reader.context.facts.is_mariadb and reader.accept("COMPRESSED"):
        return replace(column, type=replace(column.type, compressed=True))
    return None


def _with_charset(
    column: WrittenColumn, *, charset: str | None = None, collation: str | None = None
) -> WrittenColumn:
    kind = column.type
    changed = replace(kind, charset=charset or kind.charset, collation=collation or kind.collation)
    return replace(column, type=changed)


def _ignored_attribute(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    """Skip an attribute that no `ColumnSchema` contains. MariaDB's SYSTEM VERSIONING is
    kept."""
    if reader.accept_any("COMMENT", "COLUMN_FORMAT", "STORAGE"):
        reader.next()
        return column
    if reader.accept_any("ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"):
        reader.given()
        return column
    if reader.context.facts.is_mariadb:
        if word := reader.accept_any("WITH", "WITHOUT"):
            reader.expect("SYSTEM", "VERSIONING")
            return replace(column, versioned=word == "WITH")
        if reader.peek().is_name and reader.sees_symbol("=", 1):
            reader.at += 3  # `name = value` is an attribute of the storage engine.
            return column
    return None


_Read = Callable[[WrittenColumn, StatementReader], WrittenColumn | None]
"""Reads one attribute and returns the changed column; None, if another attribute comes
next."""

_ATTRIBUTES: Final[tuple[_Read, ...]] = (
    _nullability,
    _default_or_auto_increment,
    _keys,
    _generated,
    _check,
    _visibility_or_charset,
    _ignored_attribute,
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
_TEMPORAL: Final = frozenset({"TIME", "DATETIME", "TIMESTAMP"})
_SPATIAL: Final = frozenset(
    {"GEOMETRY", "POINT", "LINESTRING", "POLYGON"}
    | {"MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON"}
)
_COLLECTIONS: Final = ("GEOMETRYCOLLECTION", "GEOMCOLLECTION")
_MARIADB: Final = frozenset({"INET4", "INET6", "UUID"})
_FLOAT_DIGITS: Final = 24
"""Largest p for which FLOAT(p) is a FLOAT (MySQL manual, "Floating-Point Types")."""

_LENGTH_WITH_POINT: Final = re.compile(r"(\d*)\.\d*")
_VECTOR_DIMENSIONS: Final = 2048
"""Dimensions of VECTOR without a number (MySQL manual, "The VECTOR Type")."""


def _type(reader: StatementReader) -> WrittenType:
    word = reader.peek().keyword
    if not word:
        raise reader.unexpected("a data type")
    reader.next()
    kind = _numeric(word, reader) or _string(word, reader) or _other(word, reader)
    if kind is None:
        raise CannotRead(f"the data type {word} is unknown")
    return kind


def _numeric(word: str, reader: StatementReader) -> WrittenType | None:
    if word in _INTEGERS:
        _length(reader)
        return _with_sign(WrittenType(_INTEGERS[word]), reader)
    if word in ("BOOL", "BOOLEAN"):
        return WrittenType("tinyint")
    if word == "SERIAL":
        return WrittenType("bigint", unsigned=True, serial=True)
    if word == "BIT":
        return WrittenType("bit", length=_length(reader) or 1)
    if word in _DECIMALS:
        precision, scale = _digits(reader)
        decimal = WrittenType("decimal", precision=precision or 10, scale=scale or 0)
        return _with_sign(decimal, reader)
    if word == "FLOAT" or word == "REAL" or word in _FLOATS:
        reader.accept("PRECISION")
        precision, scale = _digits(reader)
        return _with_sign(_float(word, precision, scale, reader), reader)
    return None


def _float(
    word: str, precision: int | None, scale: int | None, reader: StatementReader
) -> WrittenType:
    name = _FLOATS.get(word, "float")
    if word == "REAL" and not reader.context.has_mode(REAL_AS_FLOAT):
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
    if name in TEXT_FAMILY:
        length = _length(reader) if name == "text" else None
        text = WrittenType(name, length=length, sized=length is not None)
        return _attributes(_compressed(text, reader), reader)
    if name in BLOB_FAMILY:
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
        return _with_sign(WrittenType("year"), reader)
    if word in _SPATIAL:
        _length(reader)
        return WrittenType(word.lower())
    if word in _COLLECTIONS:
        mariadb = reader.context.facts.is_mariadb
        return WrittenType("geometrycollection" if mariadb else "geomcollection")
    if word == "JSON":
        if reader.context.facts.is_mariadb:
            return _attributes(WrittenType("longtext", check_json=True), reader)
        return WrittenType("json")
    if word == "VECTOR":
        return WrittenType("vector", length=_length(reader) or _VECTOR_DIMENSIONS)
    if word in _MARIADB and reader.context.facts.is_mariadb:
        return WrittenType(word.lower())
    return None


def _length(reader: StatementReader, default: int | None = None) -> int | None:
    """Read `(n)` if it comes next. Return `default` for `()` and if nothing is
    written."""
    if not reader.accept_symbol("(") or reader.accept_symbol(")"):
        return default
    length = _count(reader)
    reader.expect_symbol(")")
    return length


def _count(reader: StatementReader) -> int:
    """Read a length. Servers ignore a decimal point and the digits after it:
    decimal(19.5)."""
    token = reader.peek()
    if token.kind == "number" and (match := _LENGTH_WITH_POINT.fullmatch(token.text)):
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


def _with_sign(kind: WrittenType, reader: StatementReader) -> WrittenType:
    while word := reader.accept_any("UNSIGNED", "SIGNED", "ZEROFILL"):
        if word != "SIGNED":
            kind = replace(kind, unsigned=True)
        if word == "ZEROFILL":
            kind = replace(kind, zerofill=True)
    return kind


def _member(reader: StatementReader) -> Constant:
    token = reader.next()
    if token.kind in ("string", "hex", "bits"):
        client, charset = reader.context.client_charset, token.charset
        same = charset in (None, client) or {charset, client} <= UTF8_CHARSETS | {"utf8"}
        if not same and token.kind == "string" and not token.text.isascii():
            # The text was decoded by the client's character set, which garbles other
            # literals.
            raise CannotRead(f"a literal is in {charset}, but the client's set is {client}")
        return Constant(token.kind, token.text, charset)
    raise CannotRead("a member of an ENUM or SET is not a string")


def _characters(name: str, reader: StatementReader) -> WrittenType:
    length = _length(reader, default=1 if name == "char" else None)
    return _attributes(_compressed(WrittenType(name, length=length), reader), reader)


def _national(name: str, reader: StatementReader) -> WrittenType:
    length = _length(reader, default=1 if name == "char" else None)
    national = WrittenType(name, length=length, charset="utf8mb3")
    return replace(national, binary=reader.accept("BINARY"))


def _compressed(kind: WrittenType, reader: StatementReader) -> WrittenType:
    """Read MariaDB's COMPRESSED, which comes after the length, before or after a
    character set."""
    if not reader.context.facts.is_mariadb or not reader.accept("COMPRESSED"):
        return kind
    if reader.accept_symbol("="):
        reader.word_or_string()
    return replace(kind, compressed=True)


_CHARSETS: Final = {"ASCII": "latin1", "UNICODE": "ucs2", "BYTE": "binary"}


def _attributes(kind: WrittenType, reader: StatementReader) -> WrittenType:
    """Read CHARACTER SET, ASCII, UNICODE, BYTE and BINARY, in any order."""
    while True:
        if reader.charset_word():
            kind = replace(kind, charset=reader.word_or_string())
        elif word := reader.accept_any(*_CHARSETS):
            kind = replace(kind, charset=_CHARSETS[word])
        elif reader.accept("BINARY"):
            kind = replace(kind, binary=True)
        else:
            return _compressed(kind, reader)


_NOW: Final = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP")
_LITERALS: Final = frozenset({"string", "number", "hex", "bits"})
_END_EXPRESSION: Final = frozenset(
    {"NOT", "NULL", "ON", "AUTO_INCREMENT", "UNIQUE", "PRIMARY", "KEY", "COMMENT", "COLLATE"}
    | {"CHECK", "REFERENCES", "INVISIBLE", "FIRST", "AFTER", "GENERATED", "AS", "WITH"}
    | {"WITHOUT", "CONSTRAINT", "COMPRESSED", "REF_SYSTEM_ID"}
)
"""Words that end a DEFAULT expression without parentheses, which MariaDB allows."""

_TEMPORAL_LITERALS: Final = ("DATE", "TIME", "TIMESTAMP")


def read_default(reader: StatementReader) -> Constant | Computed:
    """Read the value after the word DEFAULT."""
    first = reader.at
    default = _plain_default(reader)
    if reader.context.facts.is_mariadb and (default is None or _operator_follows(reader)):
        return _expression(reader, first)
    if default is None:
        raise reader.unexpected("a default")
    return default


def _plain_default(reader: StatementReader) -> Constant | Computed | None:
    if reader.sees_symbol("("):
        return Computed(reader.parenthesized())
    if (now := _accept_now(reader)) is not None:
        return now
    if reader.accept("NULL"):
        return Constant("null")
    if word := reader.accept_any("TRUE", "FALSE"):
        return Constant("number", "1" if word == "TRUE" else "0")
    return _literal(reader)


def _literal(reader: StatementReader) -> Constant | None:
    token = reader.peek()
    if token.kind in _LITERALS:
        reader.next()
        return _joined(Constant(token.kind, token.text, token.charset), reader)
    if token.kind == "symbol" and token.text in "+-" and reader.peek(1).kind == "number":
        reader.next()
        sign = "-" if token.text == "-" else ""
        return Constant("number", sign + reader.next().text)
    if token.keyword in _TEMPORAL_LITERALS and reader.peek(1).kind == "string":
        reader.next()
        return Constant(token.keyword.lower(), reader.next().text)
    introducer = token.kind == "word" and token.text.startswith("_")
    if introducer and reader.peek(1).kind in ("string", "hex", "bits"):
        reader.next()
        literal = reader.next()
        return _joined(Constant(literal.kind, literal.text, token.text[1:].lower()), reader)
    return None


def _joined(constant: Constant, reader: StatementReader) -> Constant:
    """Join a string with those that follow it directly."""
    while constant.kind == "string" and reader.peek().kind == "string":
        constant = replace(constant, text=constant.text + reader.next().text)
    return constant


def _accept_now(reader: StatementReader) -> Computed | None:
    """Take CURRENT_TIMESTAMP or a synonym, with its precision; return None for anything
    else."""
    word = reader.peek().keyword
    called = reader.sees_symbol("(", 1)
    if word not in _NOW or (word == "NOW" and not called):
        return None
    reader.next()
    digits = 0
    if reader.accept_symbol("("):
        digits = 0 if reader.sees_symbol(")") else reader.integer()
        reader.expect_symbol(")")
    return Computed(f"CURRENT_TIMESTAMP({digits})" if digits else "CURRENT_TIMESTAMP", now=True)


def _operator_follows(reader: StatementReader) -> bool:
    """Return whether an operator follows, so that the literal is part of an
    expression."""
    token = reader.peek()
    return token.kind == "symbol" and token.text not in (",", ")")


def _expression(reader: StatementReader, first: int) -> Computed:
    reader.at = first
    while not _ends_expression(reader, first):
        if reader.sees_symbol("("):
            reader.parenthesized()
        else:
            reader.next()
    if reader.at == first:
        raise CannotRead("DEFAULT has no value")
    return Computed(reader.slice(first))


def _ends_expression(reader: StatementReader, first: int) -> bool:
    if reader.over or reader.sees_symbol(",") or reader.sees_symbol(")"):
        return True
    return reader.at > first and reader.peek().keyword in _END_EXPRESSION


_KEY_WORDS: Final = frozenset(
    {"CONSTRAINT", "PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"}
)
_ACTIONS: Final = ("RESTRICT", "CASCADE")
_KEY_OPTIONS: Final = (
    "KEY_BLOCK_SIZE",
    "COMMENT",
    "ENGINE_ATTRIBUTE",
    "SECONDARY_ENGINE_ATTRIBUTE",
    "CLUSTERING",
)


def sees_key(reader: StatementReader) -> bool:
    """Return whether a key or a constraint comes next, rather than a column."""
    return reader.peek().keyword in _KEY_WORDS


def read_key(reader: StatementReader) -> WrittenKey | WrittenReference | None:
    """Read a key or a foreign key; return None for a CHECK constraint."""
    name = _constraint(reader)
    if reader.accept("CHECK"):
        reader.skip_check()
        return None
    if reader.accept("FOREIGN"):
        reader.expect("KEY")
        if_not_exists = reader.if_not_exists()
        index = None if reader.sees_symbol("(") else reader.name()
        reference = _reference(reader.enclosed_names(), reader)
        return replace(reference, name=name, index=index, if_not_exists=if_not_exists)
    if reader.accept("PRIMARY"):
        reader.expect("KEY")
        if_not_exists = reader.if_not_exists()
        _name_and_hash(reader)
        return read_parts(WrittenKey("primary", (), "PRIMARY", if_not_exists=if_not_exists), reader)
    kind = reader.accept_any("UNIQUE", "FULLTEXT", "SPATIAL").lower()
    if not reader.accept_any("INDEX", "KEY") and not kind:
        raise reader.unexpected("INDEX")
    if_not_exists = reader.if_not_exists()
    index, hashed = _name_and_hash(reader)
    key = WrittenKey(kind or "index", (), index or name, if_not_exists=if_not_exists, hash=hashed)
    return read_parts(key, reader)


def _constraint(reader: StatementReader) -> str | None:
    if not reader.accept("CONSTRAINT"):
        return None
    if reader.peek().keyword in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        return None
    return reader.name()


def _name_and_hash(reader: StatementReader) -> tuple[str | None, bool]:
    """Read `[name] [USING type]`. Return the name, and whether the type is HASH."""
    name = None
    if reader.peek().is_name and not reader.sees("USING"):
        is_type = reader.sees("TYPE") and not reader.sees_symbol("(", 1)
        name = None if is_type else reader.name()
    return name, using_hash(reader)


def using_hash(reader: StatementReader) -> bool:
    """Take `USING type` if it comes next; return whether the type is HASH."""
    return bool(reader.accept_any("USING", "TYPE")) and reader.name().upper() == "HASH"


def read_parts(key: WrittenKey, reader: StatementReader) -> WrittenKey:
    """Read `(part, …)` and the options of a key; return the key with them."""
    parts = reader.enclosed(lambda: reader.listed(lambda: _part(reader)))
    return _with_options(replace(key, parts=parts), reader)


def _part(reader: StatementReader) -> KeyPart:
    if reader.sees_symbol("("):
        part = KeyPart(None, expression=reader.parenthesized())
    else:
        part = KeyPart(reader.name())
        if reader.accept_symbol("("):
            part = replace(part, prefix=reader.integer())
            reader.expect_symbol(")")
    order = reader.accept_any("ASC", "DESC")
    return replace(part, descending=order == "DESC")


def _with_options(key: WrittenKey, reader: StatementReader) -> WrittenKey:
    while True:
        if reader.accept_any("USING", "TYPE"):
            key = replace(key, hash=reader.name().upper() == "HASH")
        elif reader.accept_any(*_KEY_OPTIONS):
            reader.given()
        elif reader.accept("WITH", "PARSER"):
            reader.name()
        elif reader.accept("VISIBLE") or reader.accept("NOT", "IGNORED"):
            key = replace(key, invisible=False)
        elif reader.accept_any("INVISIBLE", "IGNORED"):
            key = replace(key, invisible=True)
        elif (
            reader.context.facts.is_mariadb and reader.peek().is_name and reader.sees_symbol("=", 1)
        ):
            reader.at += 3
        else:
            return key


def _reference(columns: tuple[str, ...], reader: StatementReader) -> WrittenReference:
    reader.expect("REFERENCES")
    table = reader.table(database="")
    referenced = reader.enclosed_names() if reader.sees_symbol("(") else ()
    reference = WrittenReference(columns, table, referenced)
    facts, ignored = reader.context.facts, False
    while True:
        if reader.accept("MATCH"):
            reader.next()
            # MATCH makes MySQL 5.7 ignore the actions (its manual, "FOREIGN KEY
            # Constraints").
            ignored = not (facts.is_mariadb or facts.is_mysql_8)
        elif reader.accept("ON", "DELETE"):
            reference = replace(reference, on_delete=_action(reader))
        # ON UPDATE CURRENT_TIMESTAMP is the column's next attribute.
        elif reader.sees("ON", "UPDATE") and reader.peek(2).keyword in (*_ACTIONS, "SET", "NO"):
            reader.at += 2
            reference = replace(reference, on_update=_action(reader))
        elif ignored:
            return replace(reference, on_delete=None, on_update=None)
        else:
            return reference


def _action(reader: StatementReader) -> str:
    if word := reader.accept_any(*_ACTIONS):
        return word
    for first, second in (("SET", "NULL"), ("SET", "DEFAULT"), ("NO", "ACTION")):
        if reader.accept(first, second):
            return f"{first} {second}"
    raise reader.unexpected("a referential action")
