"""MariaDB's own: compressed events → the same events without compression, and ALTERs that
are logged in two phases.

Compression: `binlog_buf_uncompress`, `query_event_uncompress` and `row_log_event_uncompress` in
`sql/log_event.cc` of MariaDB's source: a byte of 0x80 | algorithm << 4 | n, then the length
uncompressed in n bytes, big-endian, then the data; algorithm 0 is zlib, the only one. The
length declared is held against what comes out. Status variables of a QUERY: `Q_…` in
`sql/log_event.h`, `Query_log_event::write` in `sql/log_event_server.cc`.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from pipeline.binlog.stream.damage import damaged
from pipeline.binlog.stream.event_reader import Reader
from pipeline.binlog.stream.framing import COMPRESSED_ROWS, HEADER, Event, EventType
from pipeline.errors import UnsupportedEvent

_FLAG = 0x80
_MAX_BYTES = 1 << 30
_V2 = frozenset({EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS})
_UPDATES = frozenset({EventType.UPDATE_ROWS, EventType.UPDATE_ROWS_V1})

_GTID_FLAGS, _COLLATIONS = 0x82, 0x83
_START_ALTER, _ROLLBACK_ALTER = 0x02, 0x08
_SIZES: Final = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 0x80: 3, 0x81: 8}
_STRINGS: Final = {5: 1, 6: 1, 11: 2}
"""Status variables of a QUERY: bytes of those that are numbers, and how many strings, each
behind one byte of length, the others are."""


def plain_query(event: Event) -> Event:
    """QUERY_COMPRESSED → QUERY: only the statement's text is compressed."""
    reader = Reader(event.body, "a compressed QUERY event")
    reader.take(8)
    database = reader.integer(1)
    reader.take(2)
    reader.take(reader.integer(2) + database + 1)
    body = event.body[: reader.at] + _plain(event, reader.rest())
    return replace(event, type=EventType.QUERY, raw=_with_header(event, EventType.QUERY, body))


def plain_rows(event: Event) -> npt.NDArray[np.uint8]:
    """A compressed row event → the bytes of the plain one, without a checksum."""
    kind = COMPRESSED_ROWS[event.type]
    reader = Reader(event.body, "a compressed row event")
    reader.take(8)
    if kind in _V2:
        reader.take(max(reader.integer(2) - 2, 0))
    bitmap = (reader.packed() + 7) // 8
    reader.take(bitmap * (2 if kind in _UPDATES else 1))
    body = event.body[: reader.at] + _plain(event, reader.rest())
    return np.frombuffer(_with_header(event, kind, body), np.uint8)


def changes_nothing_yet(event: Event) -> bool:
    """Whether a QUERY is the first or the failed end of an ALTER in two phases (START ALTER,
    ROLLBACK ALTER): the same text as COMMIT ALTER's, which alone changes the table."""
    reader = Reader(event.body, "a QUERY event")
    reader.take(11)
    variables = Reader(reader.take(reader.integer(2)), "the status of a QUERY event")
    while variables.left and (code := variables.integer(1)) != _GTID_FLAGS:
        if not _skip(variables, code):
            return False
    return bool(variables.left and variables.integer(1) & (_START_ALTER | _ROLLBACK_ALTER))


def _skip(variables: Reader, code: int) -> bool:
    """Step over a status variable's value; False for one that this version does not know,
    behind which nobody can read on."""
    if code in _SIZES:
        variables.take(_SIZES[code])
    elif code in _STRINGS:
        for _ in range(_STRINGS[code]):
            variables.take(variables.integer(1))
    elif code == _COLLATIONS:
        variables.take(4 * variables.integer(1))
    else:
        return False
    return True


def _plain(event: Event, data: bytes) -> bytes:
    head = data[0] if data else 0
    count = head & 0x07
    if not head & _FLAG or not 1 <= count <= 4:
        raise damaged("a compressed event does not say how", event.at)
    if head & 0x70:
        raise UnsupportedEvent(
            f"an event is compressed by algorithm {head >> 4 & 7}, at {event.at}",
            hint="it was not recorded; switch log_bin_compress off",
            at=str(event.at),
        )
    declared = int.from_bytes(data[1 : 1 + count], "big")
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(data[1 + count :], min(declared, _MAX_BYTES) + 1)
    except zlib.error as error:
        raise damaged("a compressed event does not unpack", event.at) from error
    if len(plain) != declared or not unpacker.eof:
        raise damaged(f"a compressed event does not unpack to {declared} bytes", event.at)
    return plain


def _with_header(event: Event, kind: EventType, body: bytes) -> bytes:
    timestamp, _, server_id, _, log_pos, flags = HEADER.unpack_from(event.raw)
    size = HEADER.size + len(body)
    return HEADER.pack(timestamp, kind, server_id, size, log_pos, flags) + body
