"""Compilation of the decoders in advance, so that the first run does not wait for the
compiler.

A synthetic log and a synthetic answer to a SELECT are read once; each has a column of
every type. `lockstep setup` calls `compile_decoders`; without it the first run compiles
the code itself.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from typing import Final

import numpy as np

from lockstep.pipeline.binlog.rows.maps import split_by_map
from lockstep.pipeline.binlog.rows.rows import TableDecoder
from lockstep.pipeline.binlog.rows.table_map import read_layouts
from lockstep.pipeline.binlog.stream.framing import CHECKSUM_BYTES, FIRST_OFFSET, HEADER, EventType
from lockstep.pipeline.binlog.stream.intake import HEADROOM
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.binlog.transactions.spill import RefusingSpool
from lockstep.pipeline.ports.source import Received
from lockstep.pipeline.resultset.column_arrays import ResultBatches
from lockstep.pipeline.resultset.packets import ColumnDefinition
from lockstep.pipeline.schema.types import arrow_schema
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.table import Column, TableName, TableStructure

_TEXT = Column("", "varchar", charset="utf8mb4")
LOG_COLUMNS: Final[tuple[tuple[Column, int, bytes], ...]] = (
    (Column("", "tinyint"), 1, b""),
    (Column("", "smallint"), 2, b""),
    (Column("", "mediumint"), 9, b""),
    (Column("", "int"), 3, b""),
    (Column("", "bigint"), 8, b""),
    (Column("", "float"), 4, b"\x04"),
    (Column("", "double"), 5, b"\x08"),
    (Column("", "decimal", precision=10, scale=2), 246, b"\x0a\x02"),
    (Column("", "decimal", precision=30, scale=2), 246, b"\x1e\x02"),
    (Column("", "decimal", precision=50, scale=2), 246, b"\x32\x02"),
    (Column("", "bit", length=3), 16, b"\x03\x00"),
    (Column("", "year"), 13, b""),
    (Column("", "date"), 10, b""),
    (Column("", "time", length=0), 19, b"\x00"),
    (Column("", "datetime", length=0), 18, b"\x00"),
    (Column("", "datetime", length=0), 12, b""),
    (Column("", "timestamp", length=0), 17, b"\x00"),
    (_TEXT, 15, b"\x28\x00"),
    (replace(_TEXT, charset="latin1"), 15, b"\x28\x00"),
    (Column("", "binary", length=4), 254, b"\xfe\x04"),
    (Column("", "enum", members=("a",)), 254, b"\xf7\x01"),
    (Column("", "set", members=("a",)), 254, b"\xf8\x01"),
    (Column("", "geometry"), 255, b"\x04"),
    (Column("", "vector"), 242, b"\x04"),
    (Column("", "json"), 245, b"\x04"),
)
"""One column for each decoder of the log: column, type code and metadata."""

RESULT_COLUMNS: Final[tuple[tuple[Column, ColumnDefinition], ...]] = (
    (Column("", "tinyint"), ColumnDefinition(1, False, 4)),
    (Column("", "smallint"), ColumnDefinition(2, False, 6)),
    (Column("", "int"), ColumnDefinition(3, False, 11)),
    (Column("", "bigint"), ColumnDefinition(8, False, 20)),
    (Column("", "decimal", precision=10, scale=2), ColumnDefinition(246, False, 12)),
    (Column("", "decimal", precision=30, scale=2), ColumnDefinition(246, False, 32)),
    (Column("", "decimal", precision=50, scale=2), ColumnDefinition(246, False, 52)),
    (Column("", "year"), ColumnDefinition(13, True, 4)),
    (Column("", "date"), ColumnDefinition(10, False, 10)),
    (Column("", "time", length=0), ColumnDefinition(11, False, 10)),
    (Column("", "datetime", length=0), ColumnDefinition(12, False, 19)),
    (_TEXT, ColumnDefinition(253, False, 40)),
    (Column("", "geometry"), ColumnDefinition(255, False, 40)),
    (Column("", "vector"), ColumnDefinition(242, False, 40)),
)
"""One column for each decoder of results: the column, and its type code, whether it is
unsigned, and its display length in the result."""

_EMPTY_JSON_OBJECT: Final = b"\x05\x00\x00\x00" + b"\x00\x00\x00\x04\x00"
"""The length of the value, then its type, number of members and size."""

_END: Final = b"\xfe\x00\x00\x02\x00"
"""The content of an EOF packet: no warnings, and the status AUTOCOMMIT."""

_LOG_START: Final = Coordinates(LogFile("binlog", 1), FIRST_OFFSET)


def compile_decoders() -> None:
    """Read the synthetic log and answer, so that all decoders are compiled and cached."""
    _decode_log()
    _decode_result()


def _decode_log() -> None:
    buffer = TransactionBuffer(_LOG_START, is_captured=lambda _: True, spool=RefusingSpool())
    structure = TableStructure(
        TableName("synthetic", "every_type"),
        tuple(replace(column, name=f"c{n}") for n, (column, _, _) in enumerate(LOG_COLUMNS)),
        ("c0",),
    )
    data = _log_packets()
    array = np.empty(HEADROOM + len(data), np.uint8)
    array[HEADROOM:] = np.frombuffer(data, np.uint8)
    buffer.put(Received(array, HEADROOM, len(array)))
    while (group := buffer.get()) is not None:
        for block in group.blocks:
            for map_number, _, events in split_by_map(block):
                layouts = read_layouts(buffer.maps.table_maps[map_number])
                schema = arrow_schema(structure)
                decoder = TableDecoder(structure, layouts, schema, reports_updates=True)
                list(decoder.decode(events))
                decoder.first_changed_events(events, (0,))  # has a kernel of its own
        buffer.ack()


def _decode_result() -> None:
    """Decode an answer with one row, of NULLs."""
    nulls = b"\0" + b"\xff" * ((len(RESULT_COLUMNS) + 9) // 8)
    packets = _packet(0, nulls) + _packet(1, _END)
    piece = Received(np.frombuffer(packets, np.uint8).copy(), 0, len(packets))
    columns, definitions = zip(*RESULT_COLUMNS, strict=True)
    list(ResultBatches(columns, definitions, [piece], sequence=0))


def _log_packets() -> bytes:
    """Return the log's packets: a format description, a statement, a row."""
    count = len(LOG_COLUMNS)
    type_codes = bytes(code for _, code, _ in LOG_COLUMNS)
    metadata = b"".join(data for _, _, data in LOG_COLUMNS)
    names = b"\x09synthetic\x00\x0aevery_type\x00"
    all_columns = b"\xff" * ((count + 7) // 8)
    # All columns are NULL but the last, the JSON.
    nulls = ((1 << (count - 1)) - 1).to_bytes(len(all_columns), "little")
    table_id_and_flags = bytes(6) + b"\x01\x00"
    columns = bytes([count]) + type_codes + bytes([len(metadata)]) + metadata
    table_map = table_id_and_flags + names + columns + all_columns
    row = table_id_and_flags + b"\x02\x00" + bytes([count]) + all_columns + nulls
    # Fields that the decoders do not need are zero.
    events = (
        (EventType.FORMAT_DESCRIPTION, struct.pack("<H50sIB", 4, b"", 0, 19) + bytes(40) + b"\x01"),
        (EventType.ANONYMOUS_GTID, bytes(25)),
        (EventType.QUERY, bytes(14) + b"DO 1"),
        (EventType.ANONYMOUS_GTID, bytes(25)),
        (EventType.QUERY, bytes(14) + b"BEGIN"),
        (EventType.TABLE_MAP, table_map),
        (EventType.WRITE_ROWS, row + _EMPTY_JSON_OBJECT),
        (EventType.XID, bytes(8)),
    )
    packets, offset = [], FIRST_OFFSET
    for sequence, (event_type, body) in enumerate(events, start=1):
        size = HEADER.size + len(body) + CHECKSUM_BYTES
        offset += size
        event = HEADER.pack(0, event_type, 1, size, offset, 0) + body
        event += struct.pack("<I", zlib.crc32(event))
        packets.append(_packet(sequence, b"\0" + event))
    return b"".join([*packets, _packet(len(events) + 1, _END)])


def _packet(sequence: int, content: bytes) -> bytes:
    return struct.pack("<I", len(content))[:3] + bytes([sequence]) + content
