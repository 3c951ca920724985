"""COM_BINLOG_DUMP over a PyMySQL connection: the stream of events, as bytes.

Belongs here: the command, the session variables a dump needs, and how packets become
events. Does not: what an event means (`pipeline.binlog`). Never reconnects: a second
stream would begin somewhere else.

Protocol: MySQL manual, "COM_BINLOG_DUMP" and "Binlog Network Stream". The command has
32 bits for the offset; a start beyond them is refused, never truncated.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator
from typing import Any

import pymysql
from pymysql.cursors import Cursor

from pipeline.errors import DamagedEvent, StartUnreachable
from pipeline.position import Coordinates
from resources.mysql.connection import ConnectionSettings, open_connection, translated

_COM_BINLOG_DUMP = 0x12
_NON_BLOCK = 0x01
_COMMAND = struct.Struct("<IHI")
_OK = 0x00
_EOF = 0xFE
_EOF_MAX_BYTES = 9
_MAX_OFFSET = 0xFFFFFFFF

_SESSION = (
    "set @source_binlog_checksum = 'CRC32', @master_binlog_checksum = 'CRC32', "
    "@replica_uuid = '{id}', @slave_uuid = '{id}', session net_write_timeout = 600"
)
"""Checksums as the log has them; an identity of our own, so that the server does not take
this dump for a reconnecting replica and end another one; and patience while a group of
events is decoded."""


class MySqlDump:
    """One dump: opened by iterating, ended by the server's end of log or `close`."""

    def __init__(self, settings: ConnectionSettings, start: Coordinates, server_id: int) -> None:
        if start.offset > _MAX_OFFSET:
            raise StartUnreachable(
                f"the start {start} lies beyond 4 GiB, where this version cannot begin a dump",
                hint="set max_binlog_size to 1 GiB (the default) on the source",
            )
        self._settings = settings
        self._start = start
        self._server_id = server_id
        self._connection: pymysql.Connection[Cursor] | None = None

    def __iter__(self) -> Iterator[bytes]:
        with translated(self._settings):
            connection = self._connection = open_connection(self._settings)
            with connection.cursor() as cursor:
                cursor.execute(_SESSION.format(id=uuid.uuid4()))
            # PyMySQL has no public call for a command of one's own.
            stream: Any = connection
            stream._execute_command(_COM_BINLOG_DUMP, self._command())
            while True:
                packet = stream._read_packet()
                data: bytes = packet.get_all_data()
                if data[0] == _EOF and len(data) < _EOF_MAX_BYTES:
                    return
                if data[0] != _OK:
                    raise DamagedEvent(
                        f"the server's stream holds a packet that begins with {data[0]:#x}",
                        hint="nothing was recorded; run again, and look at the server's error log",
                    )
                yield data[1:]

    def close(self) -> None:
        """Drop the connection; the server notices at its next write."""
        if self._connection is not None:
            stream: Any = self._connection
            stream._force_close()
            self._connection = None

    def _command(self) -> bytes:
        name = str(self._start.file).encode()
        return _COMMAND.pack(self._start.offset, _NON_BLOCK, self._server_id) + name
