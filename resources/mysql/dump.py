"""COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID over a PyMySQL connection.

A dump never reconnects, because a second stream would begin at another position.

Protocol: MySQL manual, "COM_BINLOG_DUMP", "COM_BINLOG_DUMP_GTID", "Binlog Network
Stream".
"""

from __future__ import annotations

import secrets
import struct
import uuid
from collections.abc import Iterator
from typing import Any, Final

import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.binlog.stream.control import encode_gtid_set
from lockstep.pipeline.ports.source import Received
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates
from lockstep.resources.mysql.connection import ConnectionSettings, open_connection, translated
from lockstep.resources.mysql.receiving import Receiver

_COM_BINLOG_DUMP: Final = 0x12
_COM_BINLOG_DUMP_GTID: Final = 0x1E
_NON_BLOCK: Final = 0x01
_ANNOTATE_ROWS: Final = 0x02
"""Without this flag MariaDB omits events from the stream, and offsets could not be
computed from the sizes of events."""

_THROUGH_GTID: Final = 0x04
_COMMAND = struct.Struct("<IHI")
_GTID_COMMAND = struct.Struct("<HII")
MAX_OFFSET: Final = 0xFFFFFFFF
"""Largest offset that COM_BINLOG_DUMP can carry, in 32 bits."""

SERVER_IDS: Final = range(1 << 31, (1 << 31) + (1 << 24))
"""The range from which each dump takes a random server id; it lies above the ids that
people give to servers. MariaDB ends a dump when another with the same id begins; if the
older dump was just abandoned, it may answer neither (measured on 10.11)."""

_SESSION = (
    ", @source_binlog_checksum = 'CRC32', @master_binlog_checksum = 'CRC32', "
    "@source_heartbeat_period = {heartbeat}, @master_heartbeat_period = {heartbeat}, "
    "@replica_uuid = '{id}', @slave_uuid = '{id}', @mariadb_slave_capability = 4"
)
"""Session variables of a dump. They request checksums as in the log, heartbeats while
the server skips events, and MariaDB's own events unchanged. The UUID is random, so that
the server does not take this dump for a reconnecting replica and end another dump."""


class MySqlDump:
    """One dump. Iterating over it opens it; `close` ends it."""

    def __init__(
        self,
        settings: ConnectionSettings,
        code: int,
        command: bytes,
        *,
        begins: Coordinates | None = None,
    ) -> None:
        self.begins = begins
        self._settings = settings
        self._code = code
        self._command = command
        self._connection: pymysql.Connection[Cursor] | None = None
        self._receiver: Receiver | None = None

    def __iter__(self) -> Iterator[Received]:
        with translated(self._settings):
            beat = int(self._settings.read_timeout / 3 * 1_000_000_000)
            dumping = _SESSION.format(id=uuid.uuid4(), heartbeat=beat)
            connection = self._connection = open_connection(self._settings, extra=dumping)
            # PyMySQL has no public call for other commands, nor for its socket. Its buffer is
            # empty here, because the answer to the last statement was read completely.
            stream: Any = connection
            stream._execute_command(self._code, self._command)
            stream._sock.settimeout(self._settings.read_timeout)
            self._receiver = Receiver(stream._sock)
            yield from self._receiver.received()

    def close(self) -> None:
        """Close the connection; the server notices that at its next write."""
        if self._receiver is not None:
            self._receiver.close()
            self._receiver = None
        if self._connection is not None:
            stream: Any = self._connection
            stream._force_close()
            self._connection = None


def own_server_id() -> int:
    """Return one of `SERVER_IDS` at random."""
    return SERVER_IDS[secrets.randbelow(len(SERVER_IDS))]


def by_offset(start: Coordinates, server_id: int) -> tuple[int, bytes]:
    """Return the code and the content of COM_BINLOG_DUMP from a position. Raise
    `ValueError` if the offset needs more than 32 bits."""
    if start.offset > MAX_OFFSET:
        raise ValueError(f"{start} is beyond 4 GiB")
    name = str(start.file).encode()
    return _COM_BINLOG_DUMP, _COMMAND.pack(
        start.offset, _NON_BLOCK | _ANNOTATE_ROWS, server_id
    ) + name


def by_wide_offset(start: Coordinates, server_id: int) -> tuple[int, bytes]:
    """Return the code and the content of COM_BINLOG_DUMP_GTID with a file, a 64-bit
    offset and an empty GTID set, so that the server skips no transaction. Servers
    accept it only with gtid_mode=ON."""
    return _COM_BINLOG_DUMP_GTID, _gtid_command(str(start.file), start.offset, b"", server_id)


def after_set(executed: GtidSet, server_id: int) -> tuple[int, bytes]:
    """Return the code and the content of COM_BINLOG_DUMP_GTID for every transaction
    that is not in the set."""
    return _COM_BINLOG_DUMP_GTID, _gtid_command("", 4, encode_gtid_set(executed), server_id)


def _gtid_command(file: str, offset: int, data: bytes, server_id: int) -> bytes:
    """Return the content of COM_BINLOG_DUMP_GTID. Its fields, with their bytes: flags
    2, server id 4, length of the file name 4, file name, offset 8, length of the GTID
    set 4, GTID set."""
    name = file.encode()
    flags = _NON_BLOCK | (_THROUGH_GTID if data else 0)
    data = data or bytes(8)
    head = _GTID_COMMAND.pack(flags, server_id, len(name))
    return head + name + struct.pack("<QI", offset, len(data)) + data
