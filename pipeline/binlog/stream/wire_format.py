"""The bytes that the loop reads: how they lie, sizes of heads, flags, numbers of types.

Belongs here: what the formats fix, for compiled code, which knows numbers but no enums. Does
not: the types themselves, the allow-list in `framing`.

Formats: MySQL manual, "Protocol::Packet", "Binlog Network Stream", "Binary Log Event
Header"; MariaDB's numbers from `sql/log_event.h` of its source.
"""

from __future__ import annotations

from typing import Final

from pipeline.binlog.stream import framing
from pipeline.binlog.stream.framing import EventType

# How the input lies in memory.
WIRE, WHOLE, NESTED = range(3)
"""WIRE: MySQL packets; WHOLE: events of the log put together from several packets; NESTED:
events of a payload, which have neither a checksum nor a place of their own."""

HEADER: Final = framing.HEADER.size
CHECKSUM_BYTES: Final = framing.CHECKSUM_BYTES
PACKET_HEAD: Final = 5
"""Length 3, number 1, and the byte that says that an event follows."""

PACKET_LIMIT: Final = 0xFFFFFF
ARTIFICIAL: Final = framing.ARTIFICIAL_FLAG
STATEMENT_END: Final = 0x1
DUMMY_TABLE: Final = 0xFFFFFF

QUERY: Final = int(EventType.QUERY)
ROTATE: Final = int(EventType.ROTATE)
DESCRIPTION: Final = int(EventType.FORMAT_DESCRIPTION)
XID: Final = int(EventType.XID)
TABLE_MAP: Final = int(EventType.TABLE_MAP)
WRITE_ROWS_V1: Final = int(EventType.WRITE_ROWS_V1)
UPDATE_ROWS_V1: Final = int(EventType.UPDATE_ROWS_V1)
DELETE_ROWS_V1: Final = int(EventType.DELETE_ROWS_V1)
HEARTBEAT: Final = int(EventType.HEARTBEAT)
ROWS_QUERY: Final = int(EventType.ROWS_QUERY)
WRITE_ROWS: Final = int(EventType.WRITE_ROWS)
UPDATE_ROWS: Final = int(EventType.UPDATE_ROWS)
DELETE_ROWS: Final = int(EventType.DELETE_ROWS)
GTID: Final = int(EventType.GTID)
ANONYMOUS_GTID: Final = int(EventType.ANONYMOUS_GTID)
PARTIAL_UPDATE: Final = int(EventType.PARTIAL_UPDATE_ROWS)
HEARTBEAT_V2: Final = int(EventType.HEARTBEAT_V2)
ANNOTATE: Final = int(EventType.MARIADB_ANNOTATE_ROWS)
MARIADB_GTID: Final = int(EventType.MARIADB_GTID)
ENCRYPTION: Final = int(EventType.MARIADB_START_ENCRYPTION)

TAKEN, TOLD = 1, 2
"""What is done about a table's rows, if they are not passed over: they are taken, or Python is told
of each event."""
