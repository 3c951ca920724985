"""One text for one value, the same whether the server writes it or we do: a row for each type.

Belongs here: which text stands for a value of a type, as an expression of SQL and as a function of
our own, side by side. Does not: what is made of a row's texts (`hashes`), Arrow's types
(`schema.types`).

A row's text is the texts of its columns with commas between. Texts that can hold a comma have
their length in front, so that no two rows share a text; where a value may be long its SHA2 stands
for it. NULL is the empty text, which no value has. Character sets are not mixed: text is compared
as the lake has it, in UTF-8, as bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from pipeline.errors import TableError
from pipeline.proof import texts
from pipeline.schema.types import MAX_DECIMAL_DIGITS, TEXT_TYPES
from pipeline.table import Column

MARIADB: Final = "mariadb"

_UTF8: Final = frozenset({None, "utf8mb4", "utf8mb3", "ascii"})
"""Sets whose stored bytes are UTF-8."""

_LONG: Final = frozenset({"text", "blob", "json", "geometry", "vector"})
"""Types of values that may be long: beyond a server's max_allowed_packet, together."""


@dataclass(frozen=True, slots=True)
class Canonical:
    """How a type's values are written. `sql`: an expression with `{c}` for the column's quoted
    name and `{n}` for its length; `text`: from a column of the lake's Arrow type to its texts, a
    binary array with NULLs where values are NULL."""

    sql: str
    text: Callable[[pa.Array], pa.Array]


_NUMBER: Final = Canonical("{c}", texts.plain)
# ZEROFILL, which makes a column unsigned, prints zeros in front.
_UNSIGNED: Final = Canonical("cast({c} as unsigned)", texts.plain)
_DECIMAL: Final = Canonical("{c}", texts.decimals)
_UNSIGNED_DECIMAL: Final = Canonical("cast({c} as decimal({p},{s}))", texts.decimals)
# CONCAT of MySQL cuts a double's text off at 22 characters; JSON has all its digits.
_DOUBLE: Final = Canonical(
    "trim(trailing '.0' from cast(cast({c} * 1e0 as json) as char))", texts.doubles
)
_DOUBLE_OF_MARIADB: Final = Canonical("{c} * 1e0", texts.doubles)
_BITS: Final = Canonical("{c} + 0", texts.plain)
# MariaDB's YEAR(2) has two digits, of 1970 to 2069.
_YEAR: Final = Canonical(
    "if(length({c}) > 2, {c} + 0, {c} + if({c} + 0 < 70, 2000, 1900))", texts.plain
)
_DATE: Final = Canonical("if(year({c}) and month({c}) and dayofmonth({c}), {c}, null)", texts.plain)
_MOMENT: Final = Canonical(
    "if(year({c}) and month({c}) and dayofmonth({c}), cast({c} as datetime(6)), null)",
    texts.moments,
)


def _counted(value: str, length: str | None = None) -> Canonical:
    return Canonical(f"concat(length({length or value}), ':', {value})", texts.counted)


def _digested(value: str, text: Callable[[pa.Array], pa.Array] = texts.digested) -> Canonical:
    return Canonical(f"sha2({value}, 256)", text)


_IN_UTF8: Final = "convert({c} using utf8mb4)"
_TEXT: Final = _counted("cast({c} as binary)", "{c}")
_CONVERTED: Final = _counted(f"cast({_IN_UTF8} as binary)", _IN_UTF8)
_LONG_TEXT: Final = _digested("{c}")
_LONG_CONVERTED: Final = _digested(_IN_UTF8)

_CANONICAL: Final[dict[str, Canonical]] = {
    "tinyint": _NUMBER,
    "smallint": _NUMBER,
    "mediumint": _NUMBER,
    "int": _NUMBER,
    "bigint": _NUMBER,
    "bit": _BITS,
    "year": _YEAR,
    "date": _DATE,
    "datetime": _MOMENT,
    "timestamp": _MOMENT,
    "time": _counted("cast({c} as char)"),
    "enum": _CONVERTED,
    "set": _CONVERTED,
    # INET6 and UUID of MariaDB are BINARY to the log.
    "binary": _counted("cast({c} as binary({n}))"),
    "varbinary": _counted("{c}"),
    "blob": _LONG_TEXT,
    "json": _LONG_TEXT,
    "geometry": _digested("{c}", texts.digested_geometries),
    "vector": _digested("cast({c} as binary)", texts.digested_vectors),
}


def canonical(column: Column, flavour: str) -> Canonical:
    """How a column's values are written; TableError for a type that is not listed."""
    kind = column.type
    if kind.endswith("int"):
        return _UNSIGNED if column.unsigned else _NUMBER
    if kind == "decimal":
        return _of_decimal(column)
    if kind in ("float", "double"):
        return _DOUBLE_OF_MARIADB if flavour == MARIADB else _DOUBLE
    if kind in TEXT_TYPES:
        return _of_text(column)
    found = _CANONICAL.get(kind)
    if found is None:
        raise TableError(
            f"column {column.name!r} has the type {kind.upper()}, which this version does not "
            "compare",
            hint="exclude the table, or change the column's type",
        )
    return found


def _of_decimal(column: Column) -> Canonical:
    own = _UNSIGNED_DECIMAL if column.unsigned else _DECIMAL
    if (column.precision or 0) <= MAX_DECIMAL_DIGITS:
        return own
    return _counted(own.sql)


def _of_text(column: Column) -> Canonical:
    utf8 = column.charset in _UTF8
    if column.type in _LONG:
        return _LONG_TEXT if utf8 else _LONG_CONVERTED
    return _TEXT if utf8 else _CONVERTED


def expression(column: Column, quoted: str, flavour: str) -> str:
    """The SQL expression for the text of a column's value; '' for NULL. `quoted`: its name."""
    template = canonical(column, flavour).sql
    return f"ifnull({_filled(template, column, quoted)}, '')"


def _filled(template: str, column: Column, quoted: str) -> str:
    """Not `format`: a quoted name may hold braces."""
    for mark, value in (
        ("{n}", column.length),
        ("{p}", column.precision),
        ("{s}", column.scale),
        ("{c}", quoted),
    ):
        template = template.replace(mark, str(value))
    return template
