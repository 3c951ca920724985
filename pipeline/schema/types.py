"""MySQL types → Arrow types (and so Delta types): the only place that decides.

The mapping follows the widths of the MySQL manual's chapter "Data Types"; Delta has no
unsigned integers and 38 decimal digits at most. A type that is not listed is never
guessed: `TableError` sets the table aside.
"""

from __future__ import annotations

import pyarrow as pa

from pipeline.errors import TableError
from pipeline.table import Column, TableStructure

_INTEGERS: dict[tuple[str, bool], pa.DataType] = {
    ("tinyint", False): pa.int8(),
    ("tinyint", True): pa.int16(),
    ("smallint", False): pa.int16(),
    ("smallint", True): pa.int32(),
    ("mediumint", False): pa.int32(),
    ("mediumint", True): pa.int32(),
    ("int", False): pa.int32(),
    ("int", True): pa.int64(),
    ("bigint", False): pa.int64(),
    ("bigint", True): pa.decimal128(20, 0),
}

_PLAIN: dict[str, pa.DataType] = {
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "enum": pa.string(),
    "binary": pa.binary(),
    "varbinary": pa.binary(),
    "blob": pa.binary(),
}

TEXT_TYPES = frozenset({"char", "varchar", "text"})
"""Types whose bytes are characters of the column's own character set."""

CHARACTER_SETS = frozenset({"utf8mb4", "utf8mb3", "latin1", "ascii"})
"""Character sets this version decodes."""

MAX_DECIMAL_DIGITS = 38
"""Spark's and Delta's limit; longer decimals become strings."""

SUPPORTED = "the types of this version are integers, DECIMAL, FLOAT, DOUBLE, CHAR, VARCHAR, \
TEXT, BINARY, VARBINARY, BLOB, DATE, DATETIME, TIMESTAMP and ENUM"


def arrow_type(column: Column) -> pa.DataType:
    """The Arrow type of a column's values; TableError for a type not listed."""
    integer = _INTEGERS.get((column.type, column.unsigned))
    if integer is not None:
        return integer
    if column.type == "decimal":
        return _decimal(column)
    if column.type in TEXT_TYPES or column.type == "enum":
        return _text(column)
    plain = _PLAIN.get(column.type)
    if plain is None:
        raise TableError(
            f"column {column.name!r} has the type {column.type.upper()}, "
            "which this version does not read",
            hint=f"exclude the table, or wait for a version that reads it: {SUPPORTED}",
        )
    return plain


def _decimal(column: Column) -> pa.DataType:
    if column.precision is None or column.scale is None:
        raise ValueError(f"{column} has no precision")
    if column.precision > MAX_DECIMAL_DIGITS:
        return pa.string()
    return pa.decimal128(column.precision, column.scale)


def _text(column: Column) -> pa.DataType:
    if column.charset not in CHARACTER_SETS:
        raise TableError(
            f"column {column.name!r} has the character set {column.charset}, "
            "which this version does not read",
            hint="exclude the table, or convert the column to utf8mb4",
        )
    return pa.string()


def arrow_schema(structure: TableStructure) -> pa.Schema:
    """The mirror's schema: the table's columns, all nullable, in their order.

    Nullability stays the source's business: a mirror that declared NOT NULL would have
    to be altered whenever the source relaxes it.
    """
    return pa.schema([pa.field(column.name, arrow_type(column)) for column in structure.columns])
