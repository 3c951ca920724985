"""Rows of a SELECT by the text protocol and PyMySQL's tuples: an opinion on how they are read.

With `conv={}` PyMySQL hands over text, and bytes for whatever is binary. FLOAT prints six digits
and FLOAT(7,2) two of them; as a double each prints all it has.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pymysql.cursors import Cursor

from lockstep.pipeline.schema.types import MAX_DECIMAL_DIGITS, arrow_schema
from lockstep.pipeline.values.table import Column, TableStructure
from lockstep.resources.mysql.connection import connect
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import settings

Converter = Callable[[Any], Any]


@contextmanager
def text_session(stand: MySqlStand) -> Iterator[Cursor]:
    """For `rows_by_text` of one table after the other."""
    with connect(settings(stand), conv={}) as connection, connection.cursor() as cursor:
        yield cursor


def rows_by_text(cursor: Cursor, structure: TableStructure) -> list[dict[str, Any]]:
    """Every row of the table, values as `pyarrow` gives them to Python."""
    columns = structure.columns
    listed = ", ".join(_selected(column) for column in columns)
    table = f"`{structure.name.database}`.`{structure.name.name}`"
    cursor.execute(f"select {listed} from {table}")
    rows = list(cursor)
    schema = arrow_schema(structure)
    read = [
        pa.array([None if row[n] is None else converter(column)(row[n]) for row in rows], kind)
        for n, (column, kind) in enumerate(zip(columns, schema.types, strict=True))
    ]
    return list(pa.RecordBatch.from_arrays(read, schema=schema).to_pylist())


def _selected(column: Column) -> str:
    name = "`" + column.name.replace("`", "``") + "`"
    match column.type:
        case "float" | "double":
            return f"{name} * 1e0"
        case "bit":
            return f"{name} + 0"
        case "vector":
            return f"cast({name} as binary)"
        case "binary":
            return f"cast({name} as binary({column.length}))"
        case _:
            return name


def converter(column: Column) -> Converter:
    """From what the driver gives for `selected` to what Arrow takes; never called for NULL.

    ValueError for an answer that is no value of the type.
    """
    if column.type.endswith("int"):
        return int
    if column.type == "decimal":
        return _digits if (column.precision or 0) > MAX_DECIMAL_DIGITS else Decimal
    if column.type == "bit":
        return _truth if column.length == 1 else int
    return _CONVERTERS[column.type]


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _bytes(value: str | bytes) -> bytes:
    return value.encode("latin-1") if isinstance(value, str) else value


def _digits(value: str) -> str:
    """A decimal's text without the zeros that ZEROFILL puts in front."""
    digits = value.lstrip("0")
    return digits if digits and digits[0] != "." else f"0{digits}"


def _truth(value: str) -> bool:
    return value != "0"


def _year(value: str) -> int:
    """MariaDB's YEAR(2) prints two digits of 1970 to 2069."""
    year = int(value)
    if len(value) > 2:
        return year
    return year + (2000 if year < 70 else 1900)


def _date(value: str) -> date | None:
    """Zero and partial dates are NULL, as in the log's path; year 0 makes a date partial."""
    year, month, day = (int(part) for part in value.split("-"))
    return date(year, month, day) if year and month and day else None


def _moment(value: str) -> datetime | None:
    return datetime.fromisoformat(value) if _date(value[:10]) else None


_SPATIAL_REFERENCE: Final = 4
_BYTE_ORDER_AND_TYPE: Final = 5
_HAS_SPATIAL_REFERENCE: Final = 0x2000_0000


def _geometry(value: bytes) -> bytes:
    """A stored geometry as EWKB.

    Stored is a spatial reference of 4 bytes, little-endian, then well-known binary (MySQL
    manual, "Supported Spatial Data Formats"). EWKB is well-known binary that, where there
    is a spatial reference, says so in the outer type word and puts it behind. MariaDB
    stores the empty value where a NOT NULL column was added: it stays empty.
    """
    if not value:
        return b""
    reference, known = value[:_SPATIAL_REFERENCE], value[_SPATIAL_REFERENCE:]
    if len(known) < _BYTE_ORDER_AND_TYPE or known[0] > 1:
        raise ValueError("not well-known binary")
    if reference == b"\0\0\0\0":
        return known
    order = "<" if known[0] else ">"
    (kind,) = struct.unpack(f"{order}I", known[1:_BYTE_ORDER_AND_TYPE])
    (number,) = struct.unpack("<I", reference)
    head = struct.pack(f"{order}II", kind | _HAS_SPATIAL_REFERENCE, number)
    return known[:1] + head + known[_BYTE_ORDER_AND_TYPE:]


def _vector(value: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(value) // 4}f", value)


_CONVERTERS: Final[dict[str, Converter]] = {
    "float": float,
    "double": float,
    "date": _date,
    "datetime": _moment,
    "timestamp": _moment,
    "time": _text,
    "year": _year,
    "char": _text,
    "varchar": _text,
    "text": _text,
    "enum": _text,
    "set": _text,
    "json": _text,
    "binary": _bytes,
    "varbinary": _bytes,
    "blob": _bytes,
    "geometry": _geometry,
    "vector": _vector,
}
