"""A row of information_schema.columns → a column of the schema.

Belongs here: the dialects in which MySQL and MariaDB print types and defaults, read into
the model's words. Does not: asking (`schemas`).

Source: the MySQL manual, "The INFORMATION_SCHEMA COLUMNS Table"; MariaDB documentation,
"Information Schema COLUMNS Table": it prints every default as an expression.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from pipeline.schema.model import ColumnSchema, Default, ExpressionDefault, LiteralDefault
from pipeline.schema.plain import believed

_LENGTHS: Final = frozenset({"char", "varchar", "binary", "varbinary"})
_TEMPORAL: Final = frozenset({"datetime", "timestamp", "time"})
_MOMENTS: Final = frozenset({"datetime", "timestamp"})
_MEMBERS: Final = frozenset({"enum", "set"})
_NUMBERS: Final = re.compile(r"(tiny|small|medium|big)?int|decimal|float|double")
_ROUNDED: Final = re.compile(r"(?:float|double)\((\d+),(\d+)\)")
_DIMENSIONS: Final = re.compile(r"vector\((\d+)\)")
_COMPRESSED: Final = re.compile(r"/\*M?!\d+ COMPRESSED")
_OLD: Final = re.compile(r"/\* mariadb-5\.3 \*/")
_GENERATED: Final = re.compile(r"\b(VIRTUAL|STORED|PERSISTENT)\b")
_PERIOD: Final = re.compile(r"ROW (START|END)", re.IGNORECASE)
_NOW: Final = re.compile(r"(?:current_timestamp|now|localtime(?:stamp)?)(?:\((\d*)\))?", re.I)
_QUOTED: Final = re.compile(r"(x?)'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_STRING: Final = re.compile(r"(?:_[a-z0-9]+)?'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_NUMBER: Final = re.compile(r"-?[0-9][0-9.]*(e[+-]?[0-9]+)?", re.IGNORECASE)
_CODED: Final = re.compile(r"0x[0-9a-f]*|x'[0-9a-f]*'|b'[01]*'", re.IGNORECASE)
_BACKSLASHED: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = re.compile(r"''|\\(.)", re.DOTALL)
_CONTROLS: Final = {"0": "\0", "n": "\n", "r": "\r"}
_TEXTS: Final = re.compile(r"(text|blob)$", re.IGNORECASE)
_NOT_PRINTED: Final = ExpressionDefault("…")
"""MySQL 8.0.15 does not print the expression that a TEXT or BLOB has for its default."""


@dataclass(frozen=True, slots=True)
class ListedColumn:
    """A row of information_schema.columns; `srid` is None on MariaDB and before MySQL 8.0.3."""

    name: str
    data_type: str
    nullable: str
    column_type: Any
    characters: int | None
    precision: int | None
    scale: int | None
    fraction: int | None
    charset: str | None
    collation: str | None
    default: Any
    extra: str | None
    expression: Any
    srid: int | None


def read_column(listed: ListedColumn, *, mariadb: bool) -> ColumnSchema:
    """The column in the model's words. On MariaDB, columns whose form in the log does not tell
    their width have another type: times and dates as they were kept before 10.1.2 are "old …".
    MySQL's log tells the old form from the new one."""
    kind, full, extra = listed.data_type.lower(), _text(listed.column_type), listed.extra or ""
    if kind == "geometrycollection" and not mariadb:
        kind = "geomcollection"  # its name before MySQL 8.0.11
    plain = kind not in _MEMBERS
    number = _NUMBERS.fullmatch(kind) is not None
    rounded = _ROUNDED.match(full) if number else None
    decimal = kind == "decimal"
    expression = _text(listed.expression or "")
    if not mariadb:
        expression = unescaped(expression)
    period = _PERIOD.fullmatch(expression)
    generated = None if period else _GENERATED.search(extra.upper())
    members = () if plain else read_members(full)
    column = ColumnSchema(
        listed.name,
        f"old {kind}" if mariadb and plain and _OLD.search(full) else kind,
        listed.nullable == "YES",
        _length(listed, kind, full),
        int(rounded[1]) if rounded else listed.precision if decimal else None,
        int(rounded[2]) if rounded else listed.scale if decimal else None,
        unsigned=number and " unsigned" in full,
        zerofill=number and " zerofill" in full,
        # Of ENUM and SET the set `binary` is not shown.
        charset=utf8(listed.charset) or ("binary" if members else None),
        collation=utf8(listed.collation) or ("binary" if members else None),
        members=members,
        on_update="ON UPDATE" in extra.upper(),
        auto_increment="AUTO_INCREMENT" in extra.upper(),
        generated=expression if generated else None,
        stored=generated is not None and generated[1] != "VIRTUAL",
        invisible="INVISIBLE" in extra.upper(),
        srid=listed.srid,
        compressed=plain and _COMPRESSED.search(full) is not None,
        system_period=period[1].lower() if period else None,
    )
    if generated or period:
        return column
    return believed(replace(column, default=_default(listed, mariadb=mariadb)))


def utf8(name: str | None) -> str | None:
    """`utf8` is what servers before 8.0.30 call utf8mb3."""
    return None if name is None else re.sub(r"^utf8(?=_|$)", "utf8mb3", name)


def read_members(column_type: str) -> tuple[str, ...]:
    """The members in `enum('a','it''s')`, escaped as `append_unescaped` (`sql/unireg.cc`)
    does: quotes doubled, backslash before NUL, newline, carriage return and itself. MySQL
    prints x'…' for bytes that are no text: U+FFFD stands for those."""
    return tuple(
        bytes.fromhex(text).decode("utf-8", "replace") if hexed else _ESCAPED.sub(_plain, text)
        for hexed, text in _QUOTED.findall(column_type)
    )


def _plain(match: re.Match[str]) -> str:
    letter = match.group(1)
    return "'" if letter is None else _CONTROLS.get(letter, letter)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def unescaped(expression: str) -> str:
    """MySQL prints expressions as a client would have to escape them in a string."""
    return _BACKSLASHED.sub(lambda found: _CONTROLS.get(found[1], found[1]), expression)


def _length(listed: ListedColumn, kind: str, full: str) -> int | None:
    """See `ColumnSchema.length`."""
    if kind == "bit":
        return listed.precision
    if kind in _TEMPORAL:
        return listed.fraction
    if match := _DIMENSIONS.match(full):
        return int(match[1])
    return listed.characters if kind in _LENGTHS else None


def _default(listed: ListedColumn, *, mariadb: bool) -> Default | None:
    marked = "DEFAULT_GENERATED" in (listed.extra or "").upper()
    if listed.default is None:
        return _NOT_PRINTED if marked and _TEXTS.search(listed.data_type) else None
    text = _text(listed.default)
    if not mariadb:
        # MySQL 5.7 does not mark the one expression that it has, in columns of moments alone.
        moment = listed.data_type.lower() in _MOMENTS and _NOW.fullmatch(text) is not None
        return _expression(unescaped(text)) if marked or moment else LiteralDefault(text)
    if text.upper() == "NULL":
        return None
    constant = _constant(text)
    return _expression(text) if constant is None else LiteralDefault(constant)


def _constant(text: str) -> str | None:
    """The literal that an expression of MariaDB is, as text; None for any other."""
    if match := _STRING.fullmatch(text):
        return _ESCAPED.sub(_plain, match[1])
    return text if _NUMBER.fullmatch(text) or _CODED.fullmatch(text) else None


def _expression(text: str) -> ExpressionDefault:
    """CURRENT_TIMESTAMP in one form, every other expression as the server prints it."""
    match = _NOW.fullmatch(text.strip())
    if match is None:
        return ExpressionDefault(text)
    digits = int(match[1] or 0)
    return ExpressionDefault(f"CURRENT_TIMESTAMP({digits})" if digits else "CURRENT_TIMESTAMP")
