"""mysql-replication as a second opinion: the same log, read by code that is not ours.

It dumps a stretch of a real server's log, splits the packets, and reads table maps and row images,
in tests and benchmarks alone; what it says is compared with what the engine says. All else is
ours: the dump that the product makes, events and their checksums, transactions, positions, sets of
GTIDs, every value. What it says in another form (a SET without order, BINARY without its last
zeros, JSON in bytes) `as_ours` puts into ours. Where it is known to be wrong or silent is a fault.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.constants.NONE_SOURCE import EMPTY_SET
from pymysqlreplication.row_event import (
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    RowsEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)

from lockstep.pipeline.schema.types import MAX_DECIMAL_DIGITS
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import Column, TableName, TableStructure
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import Logged, Rows

Image = tuple[TableName, str, dict[str, Any]]
"""Table, change type, values by column."""

_ROWS: Final = (WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent, PartialUpdateRowsEvent)
_SERVER_ID: Final = 4_000_000_003
_EPOCH: Final = datetime(1970, 1, 1)
_HAS_SPATIAL_REFERENCE: Final = 0x2000_0000
_SECOND: Final = 1_000_000


def stream(stand: MySqlStand, start: Coordinates, **options: Any) -> BinLogStreamReader:
    """Row events from there to the log's present end; the caller closes it."""
    chosen: dict[str, Any] = {
        "connection_settings": {
            "host": stand.host,
            "port": stand.port,
            "user": stand.account,
            "passwd": stand.password,
            "ssl_disabled": True,
        },
        "server_id": _SERVER_ID,
        "resume_stream": True,
        "blocking": False,
        "only_events": list(_ROWS),
        "log_file": str(start.file),
        "log_pos": start.offset,
        # It would print the password (julien-duponchelle/python-mysql-replication#640).
        "enable_logging": False,
    }
    return BinLogStreamReader(**{**chosen, **options})


def heard(stand: MySqlStand, start: Coordinates, **options: Any) -> Iterator[Image]:
    """Every row image it gives, in order, an update as two."""
    events = stream(stand, start, **options)
    try:
        for event in events:
            yield from images_of(event)
    finally:
        events.close()


def images_of(event: RowsEvent) -> Iterator[Image]:
    """One event's images. ValueError and others where it cannot read them."""
    table = TableName(event.schema, event.table)
    for row in event.rows:
        if isinstance(event, UpdateRowsEvent):
            yield table, "update_preimage", _image(row, "before_")
            yield table, "update_postimage", _image(row, "after_")
        else:
            kind = "insert" if isinstance(event, WriteRowsEvent) else "delete"
            yield table, kind, _image(row, "")


def _image(row: dict[str, dict[str, Any]], which: str) -> dict[str, Any]:
    """The values; the empty set, which it tells from NULL elsewhere, in its place."""
    reasons = row[f"{which}none_sources"]
    return {
        name: set() if reasons.get(name) == EMPTY_SET else value
        for name, value in row[f"{which}values"].items()
    }


def as_ours(structure: TableStructure, values: dict[str, Any]) -> dict[str, Any]:
    """An image of it, each value as the engine would say it."""
    return {column.name: _as_ours(column, values.get(column.name)) for column in structure.columns}


def comparable(structure: TableStructure, row: dict[str, Any]) -> dict[str, Any]:
    """An image of ours, equal to one of `as_ours` if and only if each value is the same."""
    return {column.name: _comparable(column, row[column.name]) for column in structure.columns}


def _as_ours(column: Column, value: Any) -> Any:
    known = _FORMS.get(column.type)
    return value if known is None or value is None else known(column, value)


def _comparable(column: Column, value: Any) -> Any:
    if value is None:
        return None
    match column.type:
        case "float" | "double":
            return value.hex()
        case "json":
            return _document(json.loads(value))
        case _:
            return value


def _document(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """A document's keys and strings are bytes."""
    match value:
        case bytes():
            return value.decode()
        case dict():
            return {_plain(key): _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case _:
            return value


def _decimal(column: Column, value: Decimal) -> Decimal | str:
    return f"{value:f}" if (column.precision or 0) > MAX_DECIMAL_DIGITS else value


def _bits(column: Column, value: str) -> int | bool:
    return value != "0" if column.length == 1 else int(value, 2)


def _duration(column: Column, value: timedelta) -> str:
    """-838:59:59.000000, with as many digits as the column has."""
    count = (value.days * 86_400 + value.seconds) * _SECOND + value.microseconds
    seconds, fraction = divmod(abs(count), _SECOND)
    minutes, second = divmod(seconds, 60)
    text = f"{'-' if count < 0 else ''}{minutes // 60:02}:{minutes % 60:02}:{second:02}"
    digits = column.length or 0
    return f"{text}.{fraction:06}"[: len(text) + 1 + digits] if digits else text


def _moment(_: Column, value: datetime) -> datetime | None:
    """It says 1970-01-01 for zero, which no other value is."""
    return None if value == _EPOCH else value.replace(tzinfo=UTC)


def _members(column: Column, value: set[str]) -> str:
    return ",".join(member for member in column.members if member in value)


def _bytes(column: Column, value: bytes | str) -> bytes:
    """It says '' for no bytes, and leaves out the zeros that end a BINARY."""
    whole = value.encode() if isinstance(value, str) else value
    return whole.ljust(column.length or 0, b"\0") if column.type == "binary" else whole


def _geometry(_: Column, value: bytes) -> bytes:
    """Stored: a spatial reference, then well-known binary; ours is EWKB."""
    reference, order, kind = value[:4], value[4:5], value[5:9]
    if reference == bytes(4):
        return value[4:]
    ends = "<" if order == b"\x01" else ">"
    (number,) = struct.unpack(f"{ends}I", kind)
    (spatial,) = struct.unpack("<I", reference)
    head = struct.pack(f"{ends}II", number | _HAS_SPATIAL_REFERENCE, spatial)
    return order + head + value[9:]


_FORMS: Final[dict[str, Callable[[Column, Any], Any]]] = {
    "decimal": _decimal,
    "float": lambda _, value: value.hex(),
    "double": lambda _, value: value.hex(),
    "bit": _bits,
    "time": _duration,
    "timestamp": _moment,
    "year": lambda _, value: 0 if value == 1900 else value,
    "set": _members,
    "binary": _bytes,
    "varbinary": _bytes,
    "blob": _bytes,
    "geometry": _geometry,
    "json": lambda _, value: _document(_plain(value)),
}


UNREAD_CHARSETS: Final = frozenset(
    (
        *("armscii8", "dec8", "eucjpms", "geostd8", "hp8"),
        *("keybcs2", "macce", "swe7", "ucs2", "utf16le"),
    )
)
"""It hands over their bytes."""

WRONG_ENDED_CHARSETS: Final = frozenset({"utf16", "utf32"})
"""It reads them as if they were little-endian: other characters, or UnicodeDecodeError."""

NO_PYTHON_LATIN1: Final = frozenset("\x81\x8d\x8f\x90\x9d")
"""Codes of MySQL's latin1 that Python's cp1252 has no characters for: UnicodeDecodeError."""


def unreadable(log: Logged) -> bool:
    """Whether it cannot read the table at all."""
    assert log.structure is not None
    columns = log.structure.columns
    if any(column.type == "vector" or column.charset in WRONG_ENDED_CHARSETS for column in columns):
        return True
    latin = [column.name for column in columns if column.charset == "latin1"]
    return any(
        NO_PYTHON_LATIN1 & set(row[name] or "") for row in log.rows("insert") for name in latin
    )


def differences(log: Logged, theirs: dict[str, Rows]) -> list[tuple[str, Any, Any]]:
    assert log.structure is not None
    structure = log.structure
    counts = {kind: (len(rows), len(theirs[kind])) for kind, rows in log.images.items()}
    found = [(kind, *both) for kind, both in counts.items() if both[0] != both[1]]
    for kind, rows in log.images.items():
        for row, said in zip(rows, theirs[kind], strict=False):
            found += _cells(structure, row, said)
    return found


def _cells(
    structure: TableStructure, row: dict[str, Any], said: dict[str, Any]
) -> list[tuple[str, Any, Any]]:
    masked = {column.name for column in structure.columns if _is_wrong(column, row[column.name])}
    ours, theirs = comparable(structure, row), _said(structure, said, masked)
    return [
        (name, value, theirs[name])
        for name, value in ours.items()
        if name not in masked and value != theirs[name]
    ]


def _said(structure: TableStructure, said: dict[str, Any], masked: set[str]) -> dict[str, Any]:
    return as_ours(structure, {k: None if k in masked else v for k, v in said.items()})


def _is_wrong(column: Column, value: Any) -> bool:
    """Whether what it says of such a value is known to be wrong."""
    match column.type:
        case "time":
            return (
                value is not None and value[0] == "-" and value.rpartition(".")[2].strip("0") != ""
            )
        case "enum" | "set":
            return any(not member.isascii() for member in column.members)
        case "json":
            return value == "null" or '"base64:' in (value or "")
        case _:
            return column.charset in UNREAD_CHARSETS
