"""The grammar of columns and keys that CREATE TABLE and ALTER TABLE share.

A length, character set or name that the statement omits is None here;
`pipeline.schema.evolving` fills it in.

Source: `field_def`, `column_attribute` and `type:` in `sql/sql_yacc.yy` of MySQL, and
MariaDB's `field_type`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, get_args

from lockstep.pipeline.schema.collations import UTF8_CHARSETS
from lockstep.pipeline.schema.context import REAL_AS_FLOAT
from lockstep.pipeline.schema.model import (
    BLOB_FAMILY,
    GEOMETRY_TYPES,
    TEXT_FAMILY,
    KeyKind,
    KeyPart,
    ReferentialAction,
    now_expression,
)
from lockstep.pipeline.schema.statements.changes import (
    Constant,
    WrittenColumn,
    WrittenExpression,
    WrittenKey,
    WrittenReference,
    WrittenType,
)
from lockstep.pipeline.schema.statements.reader import CannotRead, StatementReader


def read_column(reader: StatementReader) -> WrittenColumn:
    """Read a column's name and definition, up to a comma, a closing parenthesis, FIRST
    or AFTER."""
    return read_definition(reader.read_name(), reader)


def read_definition(name: str, reader: StatementReader) -> WrittenColumn:
    """Read a data type and the attributes after it, which may come in any order."""
    column = WrittenColumn(name, _read_type(reader))
    if column.type.serial:
        column = replace(column, nullable=False, auto_increment=True, key="unique")
    while (new_column := _read_attribute(column, reader)) is not None:
        column = new_column
    return column


def _read_attribute(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    """Read one attribute, and return the column with it; None if no attribute comes
    next."""
    columns = (read(column, reader) for read in _ATTRIBUTES)
    return next((new_column for new_column in columns if new_column is not None), None)


def _read_nullability(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    if reader.accept("NOT", "NULL"):
        return replace(column, nullable=False)
    if reader.accept("NOT", "SECONDARY"):
        return column  # Only the secondary engine (HeatWave) leaves the column out.
    if not reader.accept("NULL"):
        return None
    facts = reader.context.facts
    if column.generated is not None and facts.is_mysql_57:
        return column  # MySQL 5.7 ignores NULL after the expression of a generated column.
    return replace(column, nullable=True)


def _read_value_source(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    """Read DEFAULT, ON UPDATE or AUTO_INCREMENT."""
    if reader.accept("SERIAL", "DEFAULT", "VALUE"):
        return _with_unique(replace(column, nullable=False, auto_increment=True))
    if reader.accept("DEFAULT"):
        return replace(column, default=read_default(reader))
    if reader.accept("ON", "UPDATE"):
        if _accept_now(reader) is None:
            raise reader.unexpected("CURRENT_TIMESTAMP")
        return replace(column, on_update=True)
    if reader.accept("AUTO_INCREMENT"):
        return replace(column, auto_increment=True)
    return None


def _read_key_attribute(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    if reader.accept("PRIMARY", "KEY") or reader.accept("PRIMARY") or reader.accept("KEY"):
        return replace(column, key="primary", is_also_unique=column.key == "unique")
    if reader.accept("UNIQUE"):
        reader.accept("KEY")
        return _with_unique(column)
    if reader.sees("REFERENCES"):
        return replace(column, reference=_read_reference((column.name,), reader))
    return None


def _with_unique(column: WrittenColumn) -> WrittenColumn:
    if column.key == "primary":
        return replace(column, is_also_unique=True)
    return replace(column, key="unique")


def _read_generated(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    if reader.accept("GENERATED", "ALWAYS", "AS") or reader.accept("AS"):
        if reader.accept("ROW"):
            word = reader.accept_any("START", "END")
            return replace(column, system_period=word.lower(), nullable=False)
        column = replace(column, generated=reader.read_parenthesized())
        kind = reader.accept_any("VIRTUAL", "STORED", "PERSISTENT")
        return replace(column, stored=kind in ("STORED", "PERSISTENT"))
    return None


def _read_check(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    if reader.sees("CONSTRAINT") or reader.sees("CHECK"):
        if reader.accept("CONSTRAINT") and not reader.sees("CHECK"):
            reader.read_name()
        reader.expect("CHECK")
        reader.skip_check()
        return column
    return None


def _read_other_attribute(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    if word := reader.accept_any("VISIBLE", "INVISIBLE"):
        return replace(column, invisible=word == "INVISIBLE")
    if reader.accept("COLLATE"):
        return _with_charset(column, collation=reader.read_word_or_string())
    if reader.accept_charset_word():
        return _with_charset(column, charset=reader.read_word_or_string())
    if reader.accept("SRID"):
        return replace(column, srid=reader.read_integer())
    if reader.context.facts.is_mariadb:
        if reader.accept("COMPRESSED"):
            return replace(column, type=replace(column.type, compressed=True))
        if word := reader.accept_any("WITH", "WITHOUT"):
            reader.expect("SYSTEM", "VERSIONING")
            return replace(column, system_versioned=word == "WITH")
    return None


def _with_charset(
    column: WrittenColumn, *, charset: str | None = None, collation: str | None = None
) -> WrittenColumn:
    written_type = column.type
    new_type = replace(
        written_type,
        charset=charset or written_type.charset,
        collation=collation or written_type.collation,
    )
    return replace(column, type=new_type)


def _read_ignored_attribute(column: WrittenColumn, reader: StatementReader) -> WrittenColumn | None:
    """Skip an attribute that no `ColumnSchema` contains. MariaDB checks no value
    against REF_SYSTEM_ID."""
    if reader.accept_any("COMMENT", "COLUMN_FORMAT", "STORAGE"):
        reader.next()
    elif reader.accept_any("ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "REF_SYSTEM_ID"):
        reader.read_value()
    elif not _accept_engine_option(reader):
        return None
    return column


def _accept_engine_option(reader: StatementReader) -> bool:
    """Take `name = value`, an option of MariaDB's storage engine, if it comes next."""
    is_option = reader.peek().is_name and reader.sees_symbol("=", 1)
    if is_option and reader.context.facts.is_mariadb:
        reader.at += 3
        return True
    return False


_ReadAttribute = Callable[[WrittenColumn, StatementReader], WrittenColumn | None]
"""Reads an attribute of one kind, and returns the column with it; None if something
else comes next."""

_ATTRIBUTES: Final[tuple[_ReadAttribute, ...]] = (
    _read_nullability,
    _read_value_source,
    _read_key_attribute,
    _read_generated,
    _read_check,
    _read_other_attribute,
    _read_ignored_attribute,
)

_INTEGER_TYPES: Final = {
    **dict.fromkeys(("TINYINT", "INT1"), "tinyint"),
    **dict.fromkeys(("SMALLINT", "INT2"), "smallint"),
    **dict.fromkeys(("MEDIUMINT", "INT3", "MIDDLEINT"), "mediumint"),
    **dict.fromkeys(("INT", "INTEGER", "INT4"), "int"),
    **dict.fromkeys(("BIGINT", "INT8"), "bigint"),
}
_DECIMAL_TYPES: Final = frozenset({"DECIMAL", "DEC", "NUMERIC", "FIXED", "NUMBER"})
_FLOAT_TYPES: Final = {"FLOAT4": "float", "FLOAT8": "double", "DOUBLE": "double"}
_TEMPORAL_TYPES: Final = frozenset({"TIME", "DATETIME", "TIMESTAMP"})
_MARIADB_TYPES: Final = frozenset({"INET4", "INET6", "UUID"})
_FLOAT_DIGITS: Final = 24
"""Largest p for which FLOAT(p) is a FLOAT (MySQL manual, "Floating-Point Types")."""

_LENGTH_WITH_POINT: Final = re.compile(r"(\d*)\.\d*")
_VECTOR_DIMENSIONS: Final = 2048
"""Dimensions of VECTOR without a number (MySQL manual, "The VECTOR Type")."""


def _read_type(reader: StatementReader) -> WrittenType:
    word = reader.peek().keyword
    if not word:
        raise reader.unexpected("a data type")
    reader.next()
    written_type = (
        _read_numeric_type(word, reader)
        or _read_string_type(word, reader)
        or _read_other_type(word, reader)
    )
    if written_type is None:
        raise CannotRead(f"the data type {word} is unknown")
    return written_type


def _read_numeric_type(word: str, reader: StatementReader) -> WrittenType | None:
    if word in _INTEGER_TYPES:
        _read_length(reader)
        return _read_sign(WrittenType(_INTEGER_TYPES[word]), reader)
    if word in ("BOOL", "BOOLEAN"):
        return WrittenType("tinyint")
    if word == "SERIAL":
        return WrittenType("bigint", unsigned=True, serial=True)
    if word == "BIT":
        return WrittenType("bit", length=_read_length(reader) or 1)
    if word in _DECIMAL_TYPES:
        precision, scale = _read_digits(reader)
        decimal = WrittenType("decimal", precision=precision or 10, scale=scale or 0)
        return _read_sign(decimal, reader)
    if word == "FLOAT" or word == "REAL" or word in _FLOAT_TYPES:
        reader.accept("PRECISION")
        precision, scale = _read_digits(reader)
        return _read_sign(_float_type(word, precision, scale, reader), reader)
    return None


def _float_type(
    word: str, precision: int | None, scale: int | None, reader: StatementReader
) -> WrittenType:
    name = _FLOAT_TYPES.get(word, "float")
    if word == "REAL" and not reader.context.has_mode(REAL_AS_FLOAT):
        name = "double"
    if scale is None:
        if word == "FLOAT" and precision is not None and precision > _FLOAT_DIGITS:
            name = "double"
        return WrittenType(name)
    return WrittenType(name, precision=precision, scale=scale)


def _read_string_type(word: str, reader: StatementReader) -> WrittenType | None:
    charset = "utf8mb3" if word in ("NATIONAL", "NCHAR", "NVARCHAR") else None
    if word == "NATIONAL":
        word = reader.accept_any("CHAR", "CHARACTER", "VARCHAR", "VARCHARACTER")
        if not word:
            raise reader.unexpected("CHAR or VARCHAR")
    match word:
        case "CHAR" | "CHARACTER" | "NCHAR" if not reader.accept_any("VARYING", "VARCHAR"):
            char = WrittenType("char", length=_read_length(reader, default=1), charset=charset)
            return _read_charset_attributes(char, reader)
        case "CHAR" | "CHARACTER" | "NCHAR" | "VARCHAR" | "VARCHARACTER" | "NVARCHAR":
            varchar = WrittenType("varchar", length=_read_length(reader), charset=charset)
            return _read_charset_attributes(varchar, reader)
        case "BINARY":
            return WrittenType("binary", length=_read_length(reader, default=1))
        case "VARBINARY":
            return _read_compressed(WrittenType("varbinary", length=_read_length(reader)), reader)
        case "LONG":
            if reader.accept("VARBINARY"):
                return WrittenType("mediumblob")
            if reader.accept_any("CHAR", "CHARACTER"):
                reader.expect("VARYING")
            else:
                reader.accept_any("VARCHAR", "VARCHARACTER")
            return _read_charset_attributes(WrittenType("mediumtext"), reader)
        case "ENUM" | "SET":
            members = reader.read_enclosed(lambda: reader.read_list(lambda: _read_member(reader)))
            return _read_charset_attributes(WrittenType(word.lower(), members=members), reader)
    name = word.lower()
    if name in TEXT_FAMILY:
        length = _read_length(reader) if name == "text" else None
        return _read_charset_attributes(WrittenType(name, length=length), reader)
    if name in BLOB_FAMILY:
        length = _read_length(reader) if name == "blob" else None
        return _read_compressed(WrittenType(name, length=length), reader)
    return None


def _read_other_type(word: str, reader: StatementReader) -> WrittenType | None:
    if word in _TEMPORAL_TYPES:
        return WrittenType(word.lower(), length=_read_length(reader) or 0)
    if word == "DATE":
        return WrittenType("date")
    if word == "YEAR":
        _read_length(reader)
        _read_sign(WrittenType("year"), reader)  # has no effect
        return WrittenType("year")
    if word.lower() in GEOMETRY_TYPES:
        _read_length(reader)
        collection = "geometrycollection" if reader.context.facts.is_mariadb else "geomcollection"
        is_collection = word in ("GEOMETRYCOLLECTION", "GEOMCOLLECTION")
        return WrittenType(collection if is_collection else word.lower())
    if word == "JSON":
        if reader.context.facts.is_mariadb:
            return _read_charset_attributes(WrittenType("longtext", check_json=True), reader)
        return WrittenType("json")
    if word == "VECTOR":
        return WrittenType("vector", length=_read_length(reader) or _VECTOR_DIMENSIONS)
    if word in _MARIADB_TYPES and reader.context.facts.is_mariadb:
        return WrittenType(word.lower())
    return None


def _read_length(reader: StatementReader, default: int | None = None) -> int | None:
    """Read `(n)` if it comes next. Return `default` for `()` and if nothing is
    written."""
    if not reader.accept_symbol("(") or reader.accept_symbol(")"):
        return default
    length = _read_count(reader)
    reader.expect_symbol(")")
    return length


def _read_count(reader: StatementReader) -> int:
    """Read a length. Servers ignore a decimal point and the digits after it:
    decimal(19.5)."""
    token = reader.peek()
    if token.kind == "number" and (match := _LENGTH_WITH_POINT.fullmatch(token.text)):
        reader.next()
        return int(match[1] or 0)
    return reader.read_integer()


def _read_digits(reader: StatementReader) -> tuple[int | None, int | None]:
    if not reader.accept_symbol("("):
        return None, None
    precision = _read_count(reader)
    scale = reader.read_integer() if reader.accept_symbol(",") else None
    reader.expect_symbol(")")
    return precision, scale


def _read_sign(written_type: WrittenType, reader: StatementReader) -> WrittenType:
    while word := reader.accept_any("UNSIGNED", "SIGNED", "ZEROFILL"):
        if word != "SIGNED":
            written_type = replace(written_type, unsigned=True)
        if word == "ZEROFILL":
            written_type = replace(written_type, zerofill=True)
    return written_type


def _read_member(reader: StatementReader) -> Constant:
    token = reader.next()
    if token.kind in ("string", "hex", "bits"):
        client, charset = reader.context.client_charset, token.charset
        is_decodable = charset in (None, client) or {charset, client} <= UTF8_CHARSETS | {"utf8"}
        if not is_decodable and token.kind == "string" and not token.text.isascii():
            # The text was decoded by the client's character set, and so wrongly.
            raise CannotRead(f"a literal is in {charset}, but the client's set is {client}")
        return Constant(token.kind, token.text, charset)
    raise CannotRead("a member of an ENUM or SET is not a string")


def _read_compressed(written_type: WrittenType, reader: StatementReader) -> WrittenType:
    """Read MariaDB's COMPRESSED [= method], if it comes next."""
    if not reader.context.facts.is_mariadb or not reader.accept("COMPRESSED"):
        return written_type
    if reader.accept_symbol("="):
        reader.read_word_or_string()
    return replace(written_type, compressed=True)


_CHARSET_WORDS: Final = {"ASCII": "latin1", "UNICODE": "ucs2", "BYTE": "binary"}


def _read_charset_attributes(written_type: WrittenType, reader: StatementReader) -> WrittenType:
    """Read CHARACTER SET, ASCII, UNICODE, BYTE, BINARY and COMPRESSED, in any order."""
    while True:
        if reader.accept_charset_word():
            written_type = replace(written_type, charset=reader.read_word_or_string())
        elif word := reader.accept_any(*_CHARSET_WORDS):
            written_type = replace(written_type, charset=_CHARSET_WORDS[word])
        elif reader.accept("BINARY"):
            written_type = replace(written_type, binary=True)
        elif (compressed := _read_compressed(written_type, reader)) is not written_type:
            written_type = compressed
        else:
            return written_type


_NOW_WORDS: Final = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP")
_EXPRESSION_ENDS: Final = frozenset(
    {"NOT", "NULL", "ON", "AUTO_INCREMENT", "UNIQUE", "PRIMARY", "KEY", "COMMENT", "COLLATE"}
    | {"CHECK", "REFERENCES", "INVISIBLE", "FIRST", "AFTER", "GENERATED", "AS", "WITH"}
    | {"WITHOUT", "CONSTRAINT", "COMPRESSED", "REF_SYSTEM_ID"}
)
"""Words that end a DEFAULT expression without parentheses, which MariaDB allows."""

_TEMPORAL_LITERALS: Final = ("DATE", "TIME", "TIMESTAMP")


def read_default(reader: StatementReader) -> Constant | WrittenExpression:
    """Read the value after the word DEFAULT."""
    first = reader.at
    default = _read_plain_default(reader)
    if reader.context.facts.is_mariadb and (default is None or _operator_follows(reader)):
        return _read_expression(reader, first)
    if default is None:
        raise reader.unexpected("a default")
    return default


def _read_plain_default(reader: StatementReader) -> Constant | WrittenExpression | None:
    if reader.sees_symbol("("):
        return WrittenExpression(reader.read_parenthesized())
    if (now := _accept_now(reader)) is not None:
        return now
    if reader.accept("NULL"):
        return Constant("null")
    if word := reader.accept_any("TRUE", "FALSE"):
        return Constant("number", "1" if word == "TRUE" else "0")
    return _read_literal(reader)


def _read_literal(reader: StatementReader) -> Constant | None:
    token = reader.peek()
    if token.is_literal:
        reader.next()
        return _join_strings(Constant(token.kind, token.text, token.charset), reader)
    if token.kind == "symbol" and token.text in "+-" and reader.peek(1).kind == "number":
        reader.next()
        sign = "-" if token.text == "-" else ""
        return Constant("number", sign + reader.next().text)
    if token.keyword in _TEMPORAL_LITERALS and reader.peek(1).kind == "string":
        reader.next()
        return Constant(token.keyword.lower(), reader.next().text)
    is_introducer = token.kind == "word" and token.text.startswith("_")
    if is_introducer and reader.peek(1).kind in ("string", "hex", "bits"):
        reader.next()
        literal = reader.next()
        return _join_strings(Constant(literal.kind, literal.text, token.text[1:].lower()), reader)
    return None


def _join_strings(constant: Constant, reader: StatementReader) -> Constant:
    """Join a string with those that follow it directly."""
    while constant.kind == "string" and reader.peek().kind == "string":
        constant = replace(constant, text=constant.text + reader.next().text)
    return constant


def _accept_now(reader: StatementReader) -> WrittenExpression | None:
    """Take CURRENT_TIMESTAMP or a synonym, with its precision; return None for anything
    else."""
    word = reader.peek().keyword
    is_call = reader.sees_symbol("(", 1)
    if word not in _NOW_WORDS or (word == "NOW" and not is_call):
        return None
    reader.next()
    digits = 0
    if reader.accept_symbol("("):
        digits = 0 if reader.sees_symbol(")") else reader.read_integer()
        reader.expect_symbol(")")
    return WrittenExpression(now_expression(digits))


def _operator_follows(reader: StatementReader) -> bool:
    """Return whether an operator follows, so that the literal is part of an
    expression."""
    token = reader.peek()
    return token.kind == "symbol" and token.text not in (",", ")")


def _read_expression(reader: StatementReader, first: int) -> WrittenExpression:
    reader.at = first
    while not _ends_expression(reader, first):
        if reader.sees_symbol("("):
            reader.read_parenthesized()
        else:
            reader.next()
    if reader.at == first:
        raise CannotRead("DEFAULT has no value")
    return WrittenExpression(reader.text_from(first))


def _ends_expression(reader: StatementReader, first: int) -> bool:
    if reader.is_over or reader.sees_symbol(",") or reader.sees_symbol(")"):
        return True
    return reader.at > first and reader.peek().keyword in _EXPRESSION_ENDS


_KEY_WORDS: Final = frozenset(
    {"CONSTRAINT", "PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"}
)
_ACTIONS: Final[tuple[ReferentialAction, ...]] = get_args(ReferentialAction)
_FIRST_WORDS_OF_ACTIONS: Final = frozenset(action.split()[0] for action in _ACTIONS)
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
    name = _read_constraint_name(reader)
    if reader.accept("CHECK"):
        reader.skip_check()
        return None
    if reader.accept("FOREIGN"):
        reader.expect("KEY")
        if_not_exists = reader.accept_if_not_exists()
        index = None if reader.sees_symbol("(") else reader.read_name()
        reference = _read_reference(reader.read_enclosed_names(), reader)
        return replace(reference, name=name, index_name=index, if_not_exists=if_not_exists)
    kind: KeyKind | None = "primary" if reader.accept("PRIMARY") else accept_key_kind(reader)
    if not reader.accept_any("INDEX", "KEY") and kind is None:
        raise reader.unexpected("INDEX")
    if_not_exists = reader.accept_if_not_exists()
    index = None
    if reader.peek().is_name and not reader.sees("USING"):
        is_type = reader.sees("TYPE") and not reader.sees_symbol("(", 1)
        index = None if is_type else reader.read_name()
    uses_hash = accept_using_hash(reader)
    name = "PRIMARY" if kind == "primary" else index or name
    key = WrittenKey(kind or "index", (), name, if_not_exists=if_not_exists, uses_hash=uses_hash)
    return read_key_parts(key, reader)


_KEY_KINDS: Final[Mapping[str, KeyKind]] = {
    "UNIQUE": "unique",
    "FULLTEXT": "fulltext",
    "SPATIAL": "spatial",
}


def _read_constraint_name(reader: StatementReader) -> str | None:
    if not reader.accept("CONSTRAINT"):
        return None
    if reader.peek().keyword in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        return None
    return reader.read_name()


def accept_using_hash(reader: StatementReader) -> bool:
    """Take `USING type` if it comes next; return whether the type is HASH."""
    return bool(reader.accept_any("USING", "TYPE")) and reader.read_name().upper() == "HASH"


def accept_key_kind(reader: StatementReader) -> KeyKind | None:
    """Take UNIQUE, FULLTEXT or SPATIAL, if one of them comes next."""
    return _KEY_KINDS.get(reader.accept_any(*_KEY_KINDS))


def read_key_parts(key: WrittenKey, reader: StatementReader) -> WrittenKey:
    """Read `(part, …)` and the options of a key; return the key with them."""
    parts = reader.read_enclosed(lambda: reader.read_list(lambda: _read_part(reader)))
    return _read_key_options(replace(key, parts=parts), reader)


def _read_part(reader: StatementReader) -> KeyPart:
    if reader.sees_symbol("("):
        part = KeyPart(None, expression=reader.read_parenthesized())
    else:
        part = KeyPart(reader.read_name())
        if reader.accept_symbol("("):
            part = replace(part, prefix=reader.read_integer())
            reader.expect_symbol(")")
    order = reader.accept_any("ASC", "DESC")
    return replace(part, descending=order == "DESC")


def _read_key_options(key: WrittenKey, reader: StatementReader) -> WrittenKey:
    while True:
        if reader.sees("USING") or reader.sees("TYPE"):
            key = replace(key, uses_hash=accept_using_hash(reader))
        elif reader.accept_any(*_KEY_OPTIONS):
            reader.read_value()
        elif reader.accept("WITH", "PARSER"):
            reader.read_name()
        elif reader.accept("VISIBLE") or reader.accept("NOT", "IGNORED"):
            key = replace(key, invisible=False)
        elif reader.accept_any("INVISIBLE", "IGNORED"):
            key = replace(key, invisible=True)
        elif not _accept_engine_option(reader):
            return key


def _read_reference(columns: tuple[str, ...], reader: StatementReader) -> WrittenReference:
    reader.expect("REFERENCES")
    table = reader.read_table(database="")
    referenced = reader.read_enclosed_names() if reader.sees_symbol("(") else ()
    reference = WrittenReference(columns, table, referenced)
    ignores_actions = False
    while True:
        if reader.accept("MATCH"):
            reader.next()
            # MATCH makes MySQL 5.7 ignore the actions (its manual, "FOREIGN KEY
            # Constraints").
            ignores_actions = reader.context.facts.is_mysql_57
        elif reader.accept("ON", "DELETE"):
            reference = replace(reference, on_delete=_read_action(reader))
        elif reader.sees("ON", "UPDATE") and reader.peek(2).keyword in _FIRST_WORDS_OF_ACTIONS:
            # ON UPDATE CURRENT_TIMESTAMP would be the column's next attribute.
            reader.at += 2
            reference = replace(reference, on_update=_read_action(reader))
        elif ignores_actions:
            return replace(reference, on_delete=None, on_update=None)
        else:
            return reference


def _read_action(reader: StatementReader) -> ReferentialAction:
    for action in _ACTIONS:
        if reader.accept(*action.split()):
            return action
    raise reader.unexpected("a referential action")
