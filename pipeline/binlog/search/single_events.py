"""Single events of a dump: the witness before a cursor, and when a file was made.

Belongs here: looking at the few events a dump begins with. Does not: deciding what to do
about them (`pipeline.start`), looking for places in a log (`search`).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from pipeline.binlog.stream.framing import HEADER, EventType, is_artificial
from pipeline.errors import DamagedEvent
from pipeline.position import Witness


def read_witness(packets: Iterable[bytes], offset: int, created: int) -> Witness | None:
    """The event that a dump from `offset` begins with, as a witness; None if it begins
    with none. `created` is the file's creation time, from `read_created`."""
    checksum = True
    for packet in packets:
        _, code, _, size, log_pos, flags = HEADER.unpack_from(packet)
        if code == EventType.FORMAT_DESCRIPTION:
            checksum = packet[-5] == 1
        if is_artificial(code, log_pos, flags):
            continue
        crc32 = int.from_bytes(packet[-4:], "little") if checksum else zlib.crc32(packet)
        return Witness(offset, size, crc32, "", created)
    return None


def read_created(packets: Iterable[bytes]) -> int:
    """When a log file was created (seconds since the epoch): the moment its format
    description was written. A dump from the file's beginning shows it."""
    for packet in packets:
        timestamp, code, *_ = HEADER.unpack_from(packet)
        if code == EventType.FORMAT_DESCRIPTION:
            return int(timestamp)
    raise DamagedEvent(
        "a log file begins without a format description",
        hint="look at the file with mysqlbinlog",
    )
