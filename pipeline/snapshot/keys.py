"""The columns by which a table is divided into chunks, and the SQL for their values.

A chunk is the part of a table that one statement reads. The chunk key is made of
columns of the types in `FORMS`; the first column of another type ends it. ENUM and SET
are not listed because servers order them by number but compare them as text. JSON, TEXT
and BLOB are not listed because an index has only a prefix of their values. Every listed
type is tested on each server with its extreme values, in a session in UTC with sql_mode
''.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from lockstep.pipeline.schema.model import ColumnSchema, KeyPart, KeySchema, TableSchema
from lockstep.pipeline.schema.rows import identifying_keys


@dataclass(frozen=True, slots=True)
class Form:
    """How values of one type are read by SQL, and written as literals.
    `select_template`: SQL template that reads a column. `literal_pattern`: regular
    expression that every literal must match. `from_answer`: converts the server's
    answer to a literal. `from_lake`: converts a value of the lake to a literal; None if
    that is impossible."""

    select_template: str
    literal_pattern: str
    from_answer: Callable[[ColumnSchema, str], str]
    from_lake: Callable[[Any], str] | None


def _unchanged(column: ColumnSchema, answer: str) -> str:
    return answer


def _without_zeros(column: ColumnSchema, digits: str) -> str:
    """Remove the leading zeros that ZEROFILL adds, up to 255."""
    sign = "-" if digits.startswith("-") else ""
    number = digits.removeprefix("-").lstrip("0")
    return f"{sign}{number if number and number[0] != '.' else f'0{number}'}"


def _scientific(column: ColumnSchema, answer: str) -> str:
    """Write a DOUBLE with an exponent, because without one the literal would be a
    DECIMAL. Seventeen digits distinguish all doubles."""
    digits, _, exponent = f"{float(answer):.16e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"


def _dated(word: str) -> Callable[[ColumnSchema, str], str]:
    """Return a function that writes a date or moment as a typed literal. If the month
    or day is zero, it writes a number, which no sql_mode refuses."""

    def literal(column: ColumnSchema, answer: str) -> str:
        if "-00" in answer.partition(" ")[0]:
            return re.sub(r"[-: ]", "", answer)
        return f"{word}'{answer}'"

    return literal


def _text(column: ColumnSchema, digits: str) -> str:
    """Write text as bytes of its character set. utf8mb3 is written as utf8mb4: the
    bytes are the same, but servers either do not know the name utf8mb3 or warn of
    it."""
    charset = "utf8mb4" if column.charset == "utf8mb3" else column.charset
    return f"_{charset} x'{digits}'"


def _digits(value: Any) -> str:
    """Write a number. In the lake, a DECIMAL with too many digits is text, and BIT(1)
    is boolean."""
    if isinstance(value, Decimal):
        return format(value, "f")
    return value if isinstance(value, str) else str(int(value))


_CHARACTERS: Final = "cast({} as char)"
_DAY: Final = r"\d{4}-\d\d-\d\d"
_MINUTES: Final = r"\d\d:\d\d(\.\d{1,6})?"
_BYTES: Final = r"x'([0-9A-F]{2})*'"

_EXACT: Final = Form(_CHARACTERS, r"-?\d{1,65}(\.\d{1,38})?", _without_zeros, _digits)
# A FLOAT prints only six digits; multiplied, it becomes a DOUBLE and prints all of
# them.
_FLOATING: Final = Form("{} * 1e0", r"-?\d(\.\d{1,17})?e-?\d{1,3}", _scientific, "{:.16e}".format)
_MOMENT: Final = Form(
    _CHARACTERS,
    rf"timestamp'{_DAY} \d\d:{_MINUTES}'|\d{{14}}(\.\d{{1,6}})?",
    _dated("timestamp"),
    # Not by strftime: its %Y writes the year 31 as 31, which servers read as 2031.
    lambda value: f"timestamp'{value.replace(tzinfo=None)}'",
)
# Bytes in the column's own character set, so that they are compared by the column's
# collation.
_TEXT: Final = Form(
    "hex({})",
    rf"_[a-z0-9]{{1,32}} {_BYTES}",
    _text,
    lambda value: f"_utf8mb4 x'{value.encode().hex()}'",
)
_BINARY: Final = Form(
    "hex({})", _BYTES, lambda _, digits: f"x'{digits}'", lambda value: f"x'{value.hex()}'"
)
# MariaDB's addresses and UUIDs: text, which the server converts.
_ADDRESS: Final = Form(_CHARACTERS, r"'[0-9a-f:.-]{2,45}'", lambda _, answer: f"'{answer}'", None)

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
    **dict.fromkeys(("inet4", "inet6", "uuid"), _ADDRESS),
}
"""Forms by type name, as the schema has it."""

ENGINES: Final = frozenset({"innodb", "myisam", "aria"})
"""Storage engines whose indexes are B-trees. MEMORY has hash indexes by default."""


def chunk_key(schema: TableSchema) -> tuple[str, ...]:
    """Return the first columns of `chunk_index` by which the table can be divided, as
    many as possible; empty if it has to be read in one piece.

    If they are fewer than the index has, several rows may have the same values. All of
    these are then in one chunk.
    """
    index = chunk_index(schema)
    if index is None:
        return ()
    names = []
    for part in index.parts:
        column = _dividing_column(schema, part)
        # All have one direction: if they descend, the index is read backwards.
        if column is None or part.descending != index.parts[0].descending:
            break
        names.append(column.name)
    return tuple(names)


def chunk_index(schema: TableSchema) -> KeySchema | None:
    """Return the index by which chunks are read, or None if no statement can use it.

    It is always the key by which the mirror's rows are merged. If a row's key changes
    while the table is read, the log has a deleted and an inserted row. So a row that is
    missed or read twice is corrected.
    """
    if schema.engine.lower() not in ENGINES or schema.system_versioned:
        return None
    index = next(identifying_keys(schema), None)
    return None if index is None or index.invisible or index.hashed else index


def _dividing_column(schema: TableSchema, part: KeyPart) -> ColumnSchema | None:
    """Return the column of this part of an index, or None if it cannot divide the
    table."""
    column = None if part.column is None else schema.column(part.column)
    if column is None or part.prefix is not None or column.type not in FORMS:
        return None
    return None if _is_ordered_with_padding(column) else column


def _is_ordered_with_padding(column: ColumnSchema) -> bool:
    """Return whether the column is a CHAR of MariaDB whose collation respects trailing
    spaces. An index orders its values with the padding, a comparison without it."""
    return column.type == "char" and "_nopad_" in f"{column.collation}_"


def only_on_mysql(schema: TableSchema) -> bool:
    """Return whether the chunk key can be used on MySQL only. MariaDB has MySQL's
    collations of 0900 since 11.4; an index on such a CHAR orders the padding, too."""
    columns = map(schema.column, chunk_key(schema))
    return any(
        column and column.type == "char" and "_0900_" in f"{column.collation}_"
        for column in columns
    )
