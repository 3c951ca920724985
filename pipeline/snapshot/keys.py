"""By which columns a table is cut into chunks, and how their values are asked for and written.

A type that is not listed ends the run of columns. ENUM and SET are ordered by number and compared
as text. JSON, TEXT and BLOB are in a key by a prefix, which orders only what it holds. Every type
that is listed is proven on each server with its extremes, in a session with sql_mode '' in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import takewhile
from typing import Any, Final

from pipeline.schema.model import ColumnSchema, KeyPart, KeySchema, TableSchema
from pipeline.schema.rows import merge_index


@dataclass(frozen=True, slots=True)
class Form:
    """How values of a type are asked for, and how a statement writes them again. `asked`: SQL for
    a column. `literal`: a regular expression for what a statement may have. `told`: the literal of
    what the server answers for a column; `shown`: that of a value as the lake has it, None if rows
    cannot be asked for by it."""

    asked: str
    literal: str
    told: Callable[[ColumnSchema, str], str]
    shown: Callable[[Any], str] | None


def _unchanged(column: ColumnSchema, answer: str) -> str:
    return answer


def _without_zeros(column: ColumnSchema, digits: str) -> str:
    """ZEROFILL puts them in front, up to 255."""
    sign = "-" if digits.startswith("-") else ""
    number = digits.removeprefix("-").lstrip("0")
    return f"{sign}{number if number and number[0] != '.' else f'0{number}'}"


def _scientific(column: ColumnSchema, answer: str) -> str:
    """A DOUBLE has an exponent; without one it would be a DECIMAL. Sixteen digits behind the
    first tell every double."""
    digits, _, exponent = f"{float(answer):.16e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"


def _dated(word: str) -> Callable[[ColumnSchema, str], str]:
    """A date or moment; one whose month or day is zero as a number, which no sql_mode refuses."""

    def literal(column: ColumnSchema, answer: str) -> str:
        if "-00" in answer.partition(" ")[0]:
            return re.sub(r"[-: ]", "", answer)
        return f"{word}'{answer}'"

    return literal


def _text(column: ColumnSchema, digits: str) -> str:
    """Servers warn of the name utf8mb3, and older ones have another; its bytes mean the same."""
    charset = "utf8mb4" if column.charset == "utf8mb3" else column.charset
    return f"_{charset} x'{digits}'"


def _digits(value: Any) -> str:
    """A DECIMAL of more digits than the lake's is text there, and a BIT(1) a truth."""
    if isinstance(value, Decimal):
        return format(value, "f")
    return value if isinstance(value, str) else str(int(value))


_CHARACTERS: Final = "cast({} as char)"
_DAY: Final = r"\d{4}-\d\d-\d\d"
_MINUTES: Final = r"\d\d:\d\d(\.\d{1,6})?"
_BYTES: Final = r"x'([0-9A-F]{2})*'"

_EXACT: Final = Form(_CHARACTERS, r"-?\d{1,65}(\.\d{1,38})?", _without_zeros, _digits)
# All digits of the double that it is: a FLOAT prints six of them.
_FLOATING: Final = Form("{} * 1e0", r"-?\d(\.\d{1,17})?e-?\d{1,3}", _scientific, "{:.16e}".format)
_MOMENT: Final = Form(
    _CHARACTERS,
    rf"timestamp'{_DAY} \d\d:{_MINUTES}'|\d{{14}}(\.\d{{1,6}})?",
    _dated("timestamp"),
    "timestamp'{:%Y-%m-%d %H:%M:%S.%f}'".format,
)
# The bytes in the column's own character set, so that the column's collation compares.
_TEXT: Final = Form(
    "hex({})",
    rf"_[a-z0-9]{{1,32}} {_BYTES}",
    _text,
    lambda value: f"_utf8mb4 x'{value.encode().hex()}'",
)
_BINARY: Final = Form(
    "hex({})", _BYTES, lambda _, digits: f"x'{digits}'", lambda value: f"x'{value.hex()}'"
)
# Text that the server converts: addresses and UUIDs of MariaDB.
_NAMED: Final = Form(_CHARACTERS, r"'[0-9a-f:.-]{2,45}'", lambda _, answer: f"'{answer}'", None)

FORMS: Final = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), _EXACT),
    "decimal": _EXACT,
    **dict.fromkeys(("float", "double"), _FLOATING),
    "bit": Form("cast({} + 0 as char)", r"\d{1,20}", _unchanged, _digits),
    "year": Form(_CHARACTERS, r"\d{4}", _unchanged, "{:04d}".format),
    "date": Form(_CHARACTERS, rf"date'{_DAY}'|\d{{8}}", _dated("date"), "date'{}'".format),
    **dict.fromkeys(("datetime", "timestamp"), _MOMENT),
    "time": Form(
        _CHARACTERS,
        rf"time'-?\d{{2,3}}:{_MINUTES}'",
        lambda _, answer: f"time'{answer}'",
        "time'{}'".format,
    ),
    **dict.fromkeys(("char", "varchar"), _TEXT),
    **dict.fromkeys(("binary", "varbinary"), _BINARY),
    **dict.fromkeys(("inet4", "inet6", "uuid"), _NAMED),
}
"""Types by their name in the schema."""

ENGINES: Final = frozenset({"innodb", "myisam", "aria"})
"""Engines whose keys are trees; MEMORY's are hashes."""


def chunk_key(schema: TableSchema) -> tuple[str, ...]:
    """The longest leading run of the columns of `chunk_index` that the table may be cut by, in
    their own spelling; empty: it is read in one piece.

    Several rows may have the same values where the run is shorter than the key: they come in
    one chunk then, however many there are.
    """
    index = chunk_index(schema)
    return () if index is None else tuple(column.name for column in _run(schema, index))


def chunk_index(schema: TableSchema) -> KeySchema | None:
    """The key that the rows of the mirror are told by, and no other: a row whose values in it
    change while the table is read is another row then, which the log tells of. None where no
    statement can be made to follow it."""
    if schema.engine.lower() not in ENGINES or schema.system_versioned:
        return None
    index = merge_index(schema)
    return None if index is None or index.invisible or index.hashed else index


def _run(schema: TableSchema, key: KeySchema) -> list[ColumnSchema]:
    """Its columns from the first on; all ascending or all descending, which is read backwards."""
    same = takewhile(lambda part: part.descending == key.parts[0].descending, key.parts)
    columns = (_whole(schema, part) for part in same)
    return [column for column in takewhile(lambda column: column is not None, columns) if column]


def _whole(schema: TableSchema, part: KeyPart) -> ColumnSchema | None:
    column = None if part.column is None else schema.column(part.column)
    if column is None or part.prefix is not None or column.type not in FORMS:
        return None
    return None if _padded_otherwise(column) else column


def _padded_otherwise(column: ColumnSchema) -> bool:
    """A CHAR of MariaDB whose collation heeds spaces at the end: an index orders it with the
    spaces that fill it, a comparison without."""
    return column.type == "char" and "_nopad_" in f"{column.collation}_"


def only_on_mysql(schema: TableSchema) -> bool:
    """Whether the table's server has to be MySQL to be cut by its chunk key: MariaDB since 11.4
    knows MySQL's collations of 0900, and pads a CHAR of them as above."""
    columns = map(schema.column, chunk_key(schema))
    return any(c and c.type == "char" and "_0900_" in f"{c.collation}_" for c in columns)
