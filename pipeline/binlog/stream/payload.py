"""TRANSACTION_PAYLOAD: a whole transaction's events, compressed or just wrapped.

Belongs here: its header and the stream of the bytes inside. Does not: the events (`stream`).

Format: `Transaction_payload_event` in `libs/mysql/binlog/event/control_events.h`: fields of
type, length and value (length-encoded integers all), ended by type 0, then the payload. The
sizes declared are held against what comes out; memory is never taken on their word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.binlog.stream.event_reader import Reader
from pipeline.binlog.stream.framing import Event
from pipeline.errors import DamagedEvent, UnsupportedEvent

_END, _SIZE, _COMPRESSION, _UNCOMPRESSED = range(4)
_ZSTD, _NONE = 0, 255
PIECE_BYTES: Final = 1 << 20


def payload_pieces(event: Event) -> Iterator[npt.NDArray[np.uint8]]:
    """The bytes inside, a piece at a time, at most `PIECE_BYTES` each."""
    reader = Reader(event.body, "a TRANSACTION_PAYLOAD event")
    fields: dict[int, int] = {}
    while (kind := reader.packed()) != _END:
        fields[kind] = Reader(reader.packed_text(), "a TRANSACTION_PAYLOAD event").packed()
    compression = fields.get(_COMPRESSION, _ZSTD)
    body = reader.rest()
    if len(body) != fields.get(_SIZE, len(body)):
        raise _damaged(event, f"its payload has {len(body)} bytes, not {fields[_SIZE]}")
    if compression not in (_ZSTD, _NONE):
        raise UnsupportedEvent(
            f"a transaction is compressed by algorithm {compression}, at {event.at}",
            hint="it was not recorded; switch binlog_transaction_compression off, and start after "
            "it",
        )
    stream = pa.BufferReader(body)
    if compression == _ZSTD:
        stream = pa.CompressedInputStream(stream, "zstd")
    return _pieces(event, stream, fields.get(_UNCOMPRESSED))


def _pieces(event: Event, stream: Any, declared: int | None) -> Iterator[npt.NDArray[np.uint8]]:
    total = 0
    while True:
        try:
            piece = stream.read(PIECE_BYTES)
        except (OSError, pa.ArrowException) as error:
            raise _damaged(event, "its payload does not unpack") from error
        if not piece:
            break
        total += len(piece)
        if declared is not None and total > declared:
            break
        yield np.frombuffer(piece, np.uint8)
    if declared is not None and total != declared:
        raise _damaged(event, f"its payload does not unpack to the {declared} bytes it says")


def _damaged(event: Event, what: str) -> DamagedEvent:
    return DamagedEvent(
        f"a compressed transaction is damaged: {what}, at {event.at}",
        hint="it was not recorded; run again, and if that fails, look at that place with "
        "mysqlbinlog",
    )
