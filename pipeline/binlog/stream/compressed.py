"""Decompression of compressed events.

A TRANSACTION_PAYLOAD has all events of a transaction, compressed or not
(`Transaction_payload_event` in `libs/mysql/binlog/event/control_events.h` of MySQL's
source): fields of type, length and value (all length-encoded integers), ended by type
0, then the payload.

MariaDB compresses single events (`binlog_buf_uncompress`, `query_event_uncompress` and
`row_log_event_uncompress` in `sql/log_event.cc` of its source): a byte of 0x80 |
algorithm << 4 | n, then the uncompressed length in n bytes, big-endian, then the data.
The only algorithm is 0, zlib.

A declared size is compared with the actual one, and never used to allocate memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lockstep.pipeline.binlog.arrays.array_access import Bytes
from lockstep.pipeline.binlog.stream.framing import (
    COMPRESSED_ROWS,
    HEADER,
    HEADER_BYTES,
    Event,
    EventType,
    Reader,
    damaged,
)
from lockstep.pipeline.values.errors import UnsupportedEvent

_END, _SIZE, _COMPRESSION, _UNCOMPRESSED = range(4)
"""Types of a TRANSACTION_PAYLOAD's fields."""

_ZSTD, _NONE = 0, 255
PIECE_BYTES: Final = 1 << 20
"""Most bytes of a payload that are decompressed at a time."""

_COMPRESSED_FLAG = 0x80
_MAX_CONTENT_BYTES = 1 << 30
"""Most bytes to which one event of MariaDB is decompressed."""

_V2_ROW_EVENTS = frozenset({EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS})
_UPDATE_EVENTS = frozenset({EventType.UPDATE_ROWS, EventType.UPDATE_ROWS_V1})


def payload_pieces(event: Event) -> Iterator[Bytes]:
    """Return the bytes of the events in a TRANSACTION_PAYLOAD, in pieces of at most
    `PIECE_BYTES`. DamagedEvent if their size is not the declared one; UnsupportedEvent
    for an unknown compression."""
    reader = Reader(event.body, "a TRANSACTION_PAYLOAD event")
    fields: dict[int, int] = {}
    while (field_type := reader.length_encoded()) != _END:
        fields[field_type] = Reader(
            reader.length_encoded_bytes(), "a TRANSACTION_PAYLOAD event"
        ).length_encoded()
    compression = fields.get(_COMPRESSION, _ZSTD)
    body = reader.rest()
    if len(body) != fields.get(_SIZE, len(body)):
        raise damaged(
            f"the payload of a compressed transaction has {len(body)} bytes, not {fields[_SIZE]}",
            event.at,
        )
    if compression not in (_ZSTD, _NONE):
        raise UnsupportedEvent(
            f"a transaction is compressed by algorithm {compression}, which this version does not "
            f"read, at {event.at}",
            hint="switch binlog_transaction_compression off, and start after this transaction, "
            "which was not recorded",
        )
    stream = pa.BufferReader(body)
    if compression == _ZSTD:
        stream = pa.CompressedInputStream(stream, "zstd")
    return _pieces(event, stream, fields.get(_UNCOMPRESSED))


def _pieces(event: Event, stream: Any, declared_bytes: int | None) -> Iterator[Bytes]:
    total = 0
    while True:
        try:
            piece = stream.read(PIECE_BYTES)
        except (OSError, pa.ArrowException) as error:
            raise damaged("a compressed transaction cannot be decompressed", event.at) from error
        if not piece:
            break
        total += len(piece)
        if declared_bytes is not None and total > declared_bytes:
            break
        yield np.frombuffer(piece, np.uint8)
    if declared_bytes is not None and total != declared_bytes:
        raise damaged(
            f"a compressed transaction does not have the {declared_bytes} bytes that it declares",
            event.at,
        )


def decompress_query(event: Event) -> Event:
    """Return a QUERY_COMPRESSED as a QUERY. Only the statement's text is compressed."""
    reader = Reader(event.body, "a compressed QUERY event")
    reader.take(8)
    database_length = reader.integer(1)
    reader.take(2)
    reader.take(reader.integer(2) + database_length + 1)
    body = event.body[: reader.bytes_read] + _decompress(event, reader.rest())
    return replace(event, type=EventType.QUERY, raw=_with_header(event, EventType.QUERY, body))


def decompress_rows(event: Event) -> Bytes:
    """Return a compressed row event as the bytes of an uncompressed one, without a
    checksum. Only its rows are compressed."""
    event_type = COMPRESSED_ROWS[event.type]
    reader = Reader(event.body, "a compressed row event")
    reader.take(8)
    if event_type in _V2_ROW_EVENTS:
        reader.take(max(reader.integer(2) - 2, 0))
    bitmap_bytes = (reader.length_encoded() + 7) // 8
    reader.take(bitmap_bytes * (2 if event_type in _UPDATE_EVENTS else 1))
    body = event.body[: reader.bytes_read] + _decompress(event, reader.rest())
    return np.frombuffer(_with_header(event, event_type, body), np.uint8)


def _decompress(event: Event, data: bytes) -> bytes:
    first_byte = data[0] if data else 0
    length_bytes = first_byte & 0x07
    if not first_byte & _COMPRESSED_FLAG or not 1 <= length_bytes <= 4:
        raise damaged("a compressed event does not name its algorithm", event.at)
    if algorithm := first_byte >> 4 & 7:
        raise UnsupportedEvent(
            f"an event is compressed by algorithm {algorithm}, which this version does not "
            f"read, at {event.at}",
            hint="switch log_bin_compress off, and start after the event's transaction, which was "
            "not recorded",
            event_place=str(event.at),
        )
    declared_bytes = int.from_bytes(data[1 : 1 + length_bytes], "big")
    decompressor = zlib.decompressobj()
    try:
        limit = min(declared_bytes, _MAX_CONTENT_BYTES) + 1
        content = decompressor.decompress(data[1 + length_bytes :], limit)
    except zlib.error as error:
        raise damaged("a compressed event cannot be decompressed", event.at) from error
    if len(content) != declared_bytes or not decompressor.eof:
        raise damaged(
            f"a compressed event does not have the {declared_bytes} bytes that it declares",
            event.at,
        )
    return content


def _with_header(event: Event, event_type: EventType, body: bytes) -> bytes:
    timestamp, _, server_id, _, log_pos, flags = HEADER.unpack_from(event.raw)
    size = HEADER_BYTES + len(body)
    return HEADER.pack(timestamp, event_type, server_id, size, log_pos, flags) + body
