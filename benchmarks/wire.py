"""The limit of every reader of the log: the same dump, received from the socket and discarded.

Protocol: MySQL manual, "COM_BINLOG_DUMP" and "Protocol::EOF_Packet".
"""

from __future__ import annotations

import struct
from time import perf_counter
from typing import Any

from benchmarks.workloads import Written
from lockstep.resources.mysql.connection import ConnectionSettings, connect

_COM_BINLOG_DUMP = 0x12
_NON_BLOCK = 0x01
_COMMAND = struct.Struct("<IHI")
_SERVER_ID = 4_000_000_001
_CHUNK = 1 << 20
_EOF_PACKET_BYTES = 9
_EOF_LENGTH = b"\5\0\0"
_EOF_MARK = 0xFE


def receive(settings: ConnectionSettings, log: Written) -> float:
    """Return the seconds from connecting to the end of the server's log, which must be
    `log.end`."""
    clock = perf_counter()
    with connect(settings) as connection:
        with connection.cursor() as cursor:
            cursor.execute("set @source_binlog_checksum = 'CRC32'")
        # PyMySQL has no public call for a command of one's own, nor for its socket.
        stream: Any = connection
        name = str(log.start.file).encode()
        command = _COMMAND.pack(log.start.offset, _NON_BLOCK, _SERVER_ID)
        stream._execute_command(_COM_BINLOG_DUMP, command + name)
        _throw_away(stream._sock, log.size)
    return perf_counter() - clock


def _throw_away(socket: Any, size: int) -> None:
    """Receive until at least `size` bytes arrived and the last of them are an EOF packet."""
    buffer = bytearray(_CHUNK)
    received, tail = 0, b""
    while received < size or not _is_end(tail):
        count = socket.recv_into(buffer)
        if count == 0:
            raise SystemExit(f"the server closed the dump after {received} of {size} bytes")
        received += count
        tail = (tail + buffer[max(0, count - _EOF_PACKET_BYTES) : count])[-_EOF_PACKET_BYTES:]


def _is_end(tail: bytes) -> bool:
    return tail[:3] == _EOF_LENGTH and tail[4] == _EOF_MARK
