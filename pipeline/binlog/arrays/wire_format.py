"""The bytes that the loop reads: how they lie, sizes of heads, flags, numbers of types.

Belongs here: what the formats fix, for compiled code. Does not: the allow-list of types
for Python (`framing`).

Formats: MySQL manual, "Protocol::Packet", "Binlog Network Stream", "Binary Log Event
Header"; MariaDB's numbers from `sql/log_event.h` of its source.
"""

from __future__ import annotations

from typing import Final

# How the input lies in memory.
WIRE, WHOLE, NESTED = range(3)
"""WIRE: MySQL packets; WHOLE: events of the log put together from several packets; NESTED:
events of a payload, which have neither a checksum nor a place of their own."""

HEADER: Final = 19
CHECKSUM_BYTES: Final = 4
PACKET_HEAD: Final = 5
"""Length 3, number 1, and the byte that says that an event follows."""

PACKET_LIMIT: Final = 0xFFFFFF
ARTIFICIAL: Final = 0x20
STATEMENT_END: Final = 0x1
DUMMY_TABLE: Final = 0xFFFFFF

QUERY, ROTATE, DESCRIPTION, XID, TABLE_MAP, HEARTBEAT = 2, 4, 15, 16, 19, 27
ROWS_QUERY, GTID, ANONYMOUS_GTID, PARTIAL_UPDATE, HEARTBEAT_V2 = 29, 33, 34, 39, 41
ANNOTATE, MARIADB_GTID, ENCRYPTION = 160, 162, 164
