"""mysql-replication as the decoder of row events: the one file that uses it.

Belongs here: handing it one row event at a time with columns described by us, and
turning its values into Arrow. It is given no TABLE_MAP, no character sets and no enum
members, because that is where it guesses: strings come back as bytes, ENUMs as numbers,
and both are read here. What it must not be asked for is checked before it runs
(incomplete row images, unlisted types).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from pymysqlreplication.column import Column as LibraryColumn
from pymysqlreplication.constants import FIELD_TYPE, NONE_SOURCE
from pymysqlreplication.packet import BinLogPacketWrapper
from pymysqlreplication.row_event import (
    DeleteRowsEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)
from pymysqlreplication.row_event import (
    RowsEvent as LibraryRows,
)
from pymysqlreplication.table import Table

from pipeline.batch import ChangeType
from pipeline.binlog.framing import HEADER
from pipeline.binlog.table_map import text_decoder
from pipeline.errors import DamagedEvent, TableError
from pipeline.ports import CHANGE_TYPES, RowImages, RowsEvent
from pipeline.schema.types import MAX_DECIMAL_DIGITS, TEXT_TYPES, arrow_schema
from pipeline.table import Column, TableStructure

_EVENTS = {30: WriteRowsEvent, 31: UpdateRowsEvent, 32: DeleteRowsEvent}
_CODES = {
    "tinyint": FIELD_TYPE.TINY,
    "smallint": FIELD_TYPE.SHORT,
    "mediumint": FIELD_TYPE.INT24,
    "int": FIELD_TYPE.LONG,
    "bigint": FIELD_TYPE.LONGLONG,
    "decimal": FIELD_TYPE.NEWDECIMAL,
    "float": FIELD_TYPE.FLOAT,
    "double": FIELD_TYPE.DOUBLE,
    "char": FIELD_TYPE.STRING,
    "binary": FIELD_TYPE.STRING,
    "varchar": FIELD_TYPE.VARCHAR,
    "varbinary": FIELD_TYPE.VARCHAR,
    "text": FIELD_TYPE.BLOB,
    "blob": FIELD_TYPE.BLOB,
    "date": FIELD_TYPE.DATE,
    "datetime": FIELD_TYPE.DATETIME2,
    "timestamp": FIELD_TYPE.TIMESTAMP2,
    "enum": FIELD_TYPE.ENUM,
}
_RAW = "raw"
"""A character set Python does not know: the library then leaves bytes alone."""

_ZERO_TIMESTAMP = datetime(1970, 1, 1)
_ZERO_DATE = object()
"""A zero or partial date, which no Arrow type holds."""

_MALFORMED = (struct.error, IndexError, TypeError, KeyError, OverflowError)


_INSERT, _BEFORE, _AFTER, _DELETE = (
    CHANGE_TYPES.index(kind)
    for kind in (
        ChangeType.INSERT,
        ChangeType.UPDATE_PREIMAGE,
        ChangeType.UPDATE_POSTIMAGE,
        ChangeType.DELETE,
    )
)


class LibraryRowDecoder:
    """`pipeline.ports.RowDecoder` over mysql-replication."""

    def decode(
        self, structure: TableStructure, table_map: bytes, events: Sequence[RowsEvent]
    ) -> RowImages:
        described = [_described(index, c) for index, c in enumerate(structure.columns)]
        places: list[tuple[int, int, int]] = []
        images: list[dict[str, Any]] = []
        for number, event in enumerate(events):
            for row, change, values in _images(structure, described, event):
                places.append((number, row, change))
                images.append(values)
        event_of, row_of, change_of = zip(*places, strict=True) if places else ((), (), ())
        columns, softened = _arrow(structure, images)
        return RowImages(
            columns=columns,
            event=pa.array(event_of, pa.int32()),
            row=pa.array(row_of, pa.int32()),
            change_type=pa.array(change_of, pa.int8()),
            softened=softened,
        )


def _described(index: int, column: Column) -> LibraryColumn:
    """A column as the library wants it, named by its index: names may repeat or be odd."""
    fsp = column.length or 0
    return LibraryColumn(
        type=_CODES[column.type],
        name=str(index),
        unsigned=column.unsigned,
        is_primary=False,
        max_length=column.length,
        length_size=column.length,
        size=column.length,
        precision=column.precision,
        decimals=column.scale,
        fsp=fsp,
        character_set_name=_RAW,
        enum_values=_Index(),
        set_values=None,
        visibility=True,
    )


class _Index:
    """Stands in for a list of members and answers with the number asked for."""

    def __getitem__(self, index: int) -> int:
        return index


def _images(
    structure: TableStructure, described: list[LibraryColumn], event: RowsEvent
) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """(row in event, index into CHANGE_TYPES, values by column index) per image."""
    try:
        rows = _parsed(structure, described, event)
        for row, values in enumerate(rows.rows):
            if isinstance(rows, UpdateRowsEvent):
                yield row, _BEFORE, _told_apart(values, "before_")
                yield row, _AFTER, _told_apart(values, "after_")
            else:
                change = _INSERT if isinstance(rows, WriteRowsEvent) else _DELETE
                yield row, change, _told_apart(values, "")
    except ValueError as error:
        raise TableError(
            "a row holds a date that no calendar has",
            hint="the source allows invalid dates; correct them, or exclude the table",
        ) from error
    except _MALFORMED as error:
        raise DamagedEvent(
            f"a row event of {structure.name} does not fit its table, at offset {event.offset}",
            hint="nothing was recorded; look at that place with mysqlbinlog -vv",
        ) from error


def _told_apart(row: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The image's values, with NULL told apart from what the library made None."""
    values: dict[str, Any] = row[f"{prefix}values"]
    for name, source in row[f"{prefix}none_sources"].items():
        if source != NONE_SOURCE.NULL:
            values[name] = _ZERO_DATE
    return values


def _parsed(
    structure: TableStructure, described: list[LibraryColumn], event: RowsEvent
) -> LibraryRows:
    code, size = event.raw[4], HEADER.unpack_from(event.raw)[3]
    kind = _EVENTS[code]
    table_id = int.from_bytes(event.raw[19:25], "little")
    name = structure.name
    table = Table(table_id, name.database, name.name, described, primary_key="")
    wrapper = BinLogPacketWrapper(
        _Packet(b"\0" + event.raw),
        {table_id: table},
        _NoConnection(),
        (8, 0, 0),
        size != len(event.raw),
        [kind],
        None,
        None,
        None,
        None,
        True,
        False,
        False,
        False,
        False,
    )
    rows: LibraryRows = wrapper.event
    _require_complete(structure, rows)
    return rows


def _require_complete(structure: TableStructure, rows: LibraryRows) -> None:
    count = len(structure.columns)
    if rows.number_of_columns != count:
        raise TableError(
            f"a row event has {rows.number_of_columns} columns, its table {count}",
            hint="the log and the table's structure disagree; report this log to us",
        )
    complete = (1 << count) - 1
    bitmaps = [rows.columns_present_bitmap, getattr(rows, "columns_present_bitmap2", None)]
    for bitmap in bitmaps:
        if bitmap is not None and int.from_bytes(bitmap, "little") & complete != complete:
            raise TableError(
                "its row images are incomplete (binlog_row_image is not FULL in some session)",
                hint="set binlog_row_image=FULL for every session that writes this table; "
                "this version cannot follow partial images",
            )


class _Packet:
    """The bytes of one event as the library reads a packet; never beyond their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise IndexError("the event ends here")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def advance(self, count: int) -> None:
        self.read(count)


class _NoConnection:
    """The library asks its connection two things; nothing else is there to be asked."""

    charset = "utf8mb4"

    def _get_dbms(self) -> str:
        return "mysql"


def _arrow(
    structure: TableStructure, images: list[dict[str, Any]]
) -> tuple[pa.RecordBatch, dict[str, int]]:
    """Values by column → Arrow, and the count of non-NULL values that became NULL."""
    schema = arrow_schema(structure)
    arrays, softened = [], {}
    for index, (column, field) in enumerate(zip(structure.columns, schema, strict=True)):
        name = str(index)
        convert = _converter(column)
        values = [image[name] for image in images]
        if convert is not None:
            values = _converted(column, convert, values)
        if zeros := values.count(_ZERO_DATE):
            if column.name in structure.primary_key:
                raise TableError(
                    f"key column {column.name!r} holds a zero or partial date",
                    hint="give those rows real dates in the source, or exclude the table",
                )
            softened[column.name] = zeros
            values = [None if value is _ZERO_DATE else value for value in values]
        arrays.append(_array(column, values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema), softened


def _array(column: Column, values: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise TableError(
            f"column {column.name!r} holds a value that does not fit {kind}",
            hint="report this log to us; exclude the table meanwhile",
        ) from error


def _converted(column: Column, convert: Callable[[Any], Any], values: list[Any]) -> list[Any]:
    try:
        return [None if value is None else convert(value) for value in values]
    except UnicodeDecodeError as error:
        raise TableError(
            f"column {column.name!r} holds bytes that are no {column.charset} text",
            hint="correct those rows in the source, or exclude the table",
        ) from error
    except IndexError as error:
        raise TableError(
            f"column {column.name!r} holds a member that its ENUM does not have",
            hint="the log and the table's structure disagree; report this log to us",
        ) from error


def _converter(column: Column) -> Callable[[Any], Any] | None:
    """What the library's value still needs to become the Arrow value.

    Byte strings come as bytes, but the empty one as an empty `str`.
    """
    if column.type in TEXT_TYPES:
        decode = text_decoder(column.charset or "utf8mb4")
        return lambda data: decode(data) if data else ""
    if column.type == "enum":
        members = ("", *column.members)
        return lambda index: members[index]
    if column.type == "binary":
        width = column.length or 0
        return lambda data: (data or b"").ljust(width, b"\0")
    if column.type in ("varbinary", "blob"):
        return lambda data: data or b""
    if column.type == "timestamp":
        return lambda moment: _ZERO_DATE if moment == _ZERO_TIMESTAMP else moment
    if column.type == "decimal" and (column.precision or 0) > MAX_DECIMAL_DIGITS:
        return lambda number: format(number, "f")
    return None
