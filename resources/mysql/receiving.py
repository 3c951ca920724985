"""Receives streams of bytes from the server: a dump of its log, or the answer to a
statement.

A thread reads the socket ahead of its consumer, into a few buffers that are reused.
It runs in parallel to the decoder, which releases the GIL, and pauses while all buffers
are full (backpressure).

A server sends the values of a prepared statement in binary form, but those of any other
statement as text; so the statements are prepared. PyMySQL reads the definitions of the
columns, which are a few packets. After an answer's last packet the connection can be
used again; if the answer is not read to its end, the connection is closed. A dump never
reconnects, because a second stream would begin at another position.

Protocol: MySQL manual, "COM_STMT_PREPARE", "COM_STMT_EXECUTE", "COM_STMT_CLOSE",
"COM_BINLOG_DUMP", "COM_BINLOG_DUMP_GTID", "Binlog Network Stream".
"""

from __future__ import annotations

import os
import queue
import secrets
import select
import socket
import ssl
import struct
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pymysql
from pymysql.cursors import Cursor, SSCursor
from pymysql.protocol import FieldDescriptorPacket

from lockstep.pipeline.binlog.stream.control import encode_gtid_set
from lockstep.pipeline.binlog.stream.intake import HEADROOM
from lockstep.pipeline.ports.source import Received
from lockstep.pipeline.resultset.packets import ColumnDefinition
from lockstep.pipeline.values.errors import SourceUnavailable
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates
from lockstep.resources.mysql.connection import (
    ConnectionSettings,
    open_connection,
    translate_errors,
)

BUFFER_BYTES: Final = 1 << 20
BUFFER_COUNT: Final = 6
"""Number of buffers of a stream."""
_HALF_BUFFER: Final = BUFFER_BYTES // 2
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)
"""SO_LINGER of 0 seconds: closing the socket discards its data and resets the
connection (socket(7))."""


@dataclass(frozen=True, slots=True)
class StreamKind:
    """A kind of stream. `name`: its name in messages; `headroom_bytes`: free bytes
    before each piece; `patience_milliseconds`: time that the thread waits for more
    bytes while the buffer is less than half full."""

    name: str
    headroom_bytes: int
    patience_milliseconds: int


DUMP_STREAM: Final = StreamKind("log", HEADROOM, 0)
ANSWER_STREAM: Final = StreamKind("answer", 0, 2)
"""A server sends a table's rows as it reads them: a short wait makes the pieces fewer and
larger."""


class _Stopped(Exception):
    """The consumer has stopped reading."""


class Receiver:
    """Reads `sock` in a thread until the end of the stream. Each wait for data is
    limited by the timeout of the socket."""

    def __init__(self, sock: socket.socket, kind: StreamKind = DUMP_STREAM) -> None:
        self._sock = sock
        self._kind = kind
        self._stop_reader, self._stop_writer = os.pipe()
        self._poll = select.poll()  # `select` would fail with file descriptors above 1023
        self._poll.register(sock, select.POLLIN)
        self._poll.register(self._stop_reader, select.POLLIN)
        self._free_buffers: queue.SimpleQueue[npt.NDArray[np.uint8] | None] = queue.SimpleQueue()
        self._pieces: queue.SimpleQueue[Received | BaseException] = queue.SimpleQueue()
        for _ in range(BUFFER_COUNT):
            self._free_buffers.put(np.empty(kind.headroom_bytes + BUFFER_BYTES, np.uint8))
        self._thread = threading.Thread(
            target=self._fill_buffers, name=f"lockstep-{kind.name}", daemon=True
        )

    def pieces(self) -> Iterator[Received]:
        """Yield the pieces in order, then raise the thread's error if there is one. A
        piece is valid until the next one is requested."""
        self._thread.start()
        while True:
            piece = self._pieces.get()
            if isinstance(piece, BaseException):
                raise piece
            yield piece
            self._free_buffers.put(piece.data)

    def close(self) -> None:
        """End the thread, and let closing the socket reset the connection: a server
        that waits to send the rest then ends its dump at once. Otherwise it might wait
        for minutes, during which it cannot purge its log files."""
        with suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self._sock.shutdown(socket.SHUT_RDWR)
        self.stop()

    def stop(self) -> None:
        """End the thread, and leave the connection usable: for callers that have read
        the whole answer."""
        if self._stop_writer < 0:
            return
        self._free_buffers.put(None)
        os.write(self._stop_writer, b"\0")
        if self._thread.is_alive():
            self._thread.join()
        os.close(self._stop_reader)
        os.close(self._stop_writer)
        self._stop_writer = -1

    def _fill_buffers(self) -> None:
        try:
            while (buffer := self._free_buffers.get()) is not None:
                self._pieces.put(self._fill(buffer))
        except BaseException as error:  # noqa: BLE001 - raised in the consumer's thread
            self._pieces.put(error)

    def _fill(self, buffer: npt.NDArray[np.uint8]) -> Received:
        """Fill at least half of the buffer, or as much as arrives in time."""
        view, begin = buffer.data, self._kind.headroom_bytes
        self._await_bytes()
        at = begin
        while True:
            count = self._sock.recv_into(view[at:])
            if count == 0 and at > begin:
                # A server may close the connection after its last packet, where the
                # reader stops.
                return Received(buffer, begin, at)
            if count == 0:
                raise SourceUnavailable(
                    f"the server closed the connection in the middle of its {self._kind.name}",
                    hint="run again; if that fails, look at the server's error log",
                )
            at += count
            if at - begin >= _HALF_BUFFER or not self._wait(self._kind.patience_milliseconds):
                return Received(buffer, begin, at)

    def _await_bytes(self) -> None:
        """Wait for bytes. Raise TimeoutError if none arrive within the socket's
        timeout."""
        seconds = self._sock.gettimeout()
        if not self._wait(None if seconds is None else int(seconds * 1000)):
            raise TimeoutError("timed out")

    def _wait(self, milliseconds: int | None) -> bool:
        """Return whether bytes, or the end of the stream, arrive within that time. None
        waits without a limit."""
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        ready = self._poll.poll(milliseconds)
        if any(file == self._stop_reader for file, _ in ready):
            raise _Stopped
        return bool(ready)


_PREPARE, _EXECUTE, _CLOSE = 0x16, 0x17, 0x19
_PREPARE_ANSWER: Final = struct.Struct("<xIHH")
"""The answer to COM_STMT_PREPARE: a zero byte, the statement's id (4 bytes), the number
of its columns (2 bytes) and of its parameters (2 bytes)."""

_EXECUTE_CONTENT: Final = struct.Struct("<IBI")
"""The content of COM_STMT_EXECUTE: the statement's id (4 bytes), flags (1 byte; 0: no
cursor), and the iteration count (4 bytes; always 1)."""

_UNSIGNED: Final = 0x20


class ReadingCursor(SSCursor):
    """An unbuffered cursor that also returns answers in the binary protocol, one at a
    time."""

    answer: Answer | None = None

    def ask(self, statement: str) -> Answer:
        """Run a statement without parameters and return its answer. The columns'
        definitions have been read, the rows have not. Raise `pymysql.MySQLError` if the
        server refuses the statement."""
        connection: Any = self.connection
        self.answer = Answer(connection, statement)
        return self.answer


class Answer:
    """The answer to one statement. `definitions`: the types of its columns. `sequence`:
    the sequence number of the first row's packet. `is_abandoned`: `abandon` closed the
    connection before the answer's end."""

    def __init__(self, connection: pymysql.Connection[Cursor], statement: str) -> None:
        # PyMySQL has no public methods that send these commands or give access to its
        # socket.
        driver: Any = connection
        self._driver = driver
        self._driver._execute_command(_PREPARE, statement)
        prepared = self._driver._read_packet().get_all_data()
        self._statement_id, column_count, parameter_count = _PREPARE_ANSWER.unpack_from(prepared)
        if parameter_count:
            raise ValueError("the statement has parameters")
        self._read_definitions(column_count)  # skipped: the answer repeats them
        self._driver._execute_command(_EXECUTE, _EXECUTE_CONTENT.pack(self._statement_id, 0, 1))
        column_count = self._driver._read_packet().read_length_encoded_integer()
        self.definitions = self._read_definitions(column_count)
        self.sequence: int = self._driver._next_seq_id
        self.is_abandoned = False
        self._receiver: Receiver | None = Receiver(self._driver._sock, ANSWER_STREAM)

    def _read_definitions(self, count: int) -> list[ColumnDefinition]:
        packets = [self._driver._read_packet(FieldDescriptorPacket) for _ in range(count)]
        self._driver._read_packet()  # EOF
        return [
            ColumnDefinition(packet.type_code, bool(packet.flags & _UNSIGNED), packet.length)
            for packet in packets
        ]

    def pieces(self) -> Iterator[Received]:
        """Yield the packets' bytes in pieces that may end anywhere, also inside a
        packet. A piece is valid until the next one is requested. Raise TimeoutError if
        no bytes arrive within the connection's read timeout."""
        # PyMySQL's buffer may have bytes after the last packet that it returned.
        read_ahead = self._driver._rfile.peek()
        first = np.frombuffer(self._driver._rfile.read(len(read_ahead)), np.uint8).copy()
        yield Received(first, 0, len(first))
        if self._receiver is not None:
            yield from self._receiver.pieces()

    def finish(self) -> None:
        """Stop receiving after the last packet; the connection can be used again."""
        if self._receiver is not None:
            self._receiver.stop()
            self._receiver = None

    def close_statement(self) -> None:
        """Ask the server to drop the prepared statement; it does not answer this
        command. An error means that the session has ended, and the statement with
        it."""
        with suppress(pymysql.MySQLError, OSError):
            self._driver._execute_command(_CLOSE, struct.pack("<I", self._statement_id))

    def abandon(self) -> bool:
        """Close the connection if the answer was not read to its end; return whether
        this call closed it."""
        if self._receiver is None:
            return False
        self._receiver.close()
        self._receiver = None
        self._driver._force_close()
        self.is_abandoned = True
        return True


_COM_BINLOG_DUMP: Final = 0x12
_COM_BINLOG_DUMP_GTID: Final = 0x1E
_NON_BLOCK: Final = 0x01  # end the dump at the log's end, instead of waiting for more
_ANNOTATE_ROWS: Final = 0x02
"""Without this flag MariaDB omits events from the stream, and offsets could not be
computed from the sizes of events."""

_THROUGH_GTID: Final = 0x04  # use the GTID set that the command contains
_OFFSET_COMMAND = struct.Struct("<IHI")  # offset, flags, server id
_GTID_COMMAND = struct.Struct("<HII")  # flags, server id, length of the file's name
MAX_OFFSET: Final = 0xFFFFFFFF
"""Largest offset that COM_BINLOG_DUMP can carry, in 32 bits."""

SERVER_IDS: Final = range(1 << 31, (1 << 31) + (1 << 24))
"""The range from which each dump takes a random server id. People give smaller ids to
servers. MariaDB ends a dump when another with the same id begins. If the older dump was
just abandoned, the server may answer neither dump (measured on 10.11)."""

_DUMP_VARIABLES = (
    ", @source_binlog_checksum = 'CRC32', @master_binlog_checksum = 'CRC32', "
    "@source_heartbeat_period = {heartbeat}, @master_heartbeat_period = {heartbeat}, "
    "@replica_uuid = '{id}', @slave_uuid = '{id}', @mariadb_slave_capability = 4"
)
"""Session variables of a dump. They request checksums as in the log, heartbeats while
the server skips events, and MariaDB's own events unchanged. The UUID is random, so that
the server does not take this dump for a reconnecting replica and end another dump."""


class MySqlDump:
    """One dump of the log, which is opened when it is iterated over. `code`, `content`:
    those of the protocol's command; `begins`: the place where the log is read from,
    None for a dump after a GTID set."""

    def __init__(
        self,
        settings: ConnectionSettings,
        code: int,
        content: bytes,
        *,
        begins: Coordinates | None = None,
    ) -> None:
        self.begins = begins
        self._settings = settings
        self._code = code
        self._content = content
        self._connection: pymysql.Connection[Cursor] | None = None
        self._receiver: Receiver | None = None

    def __iter__(self) -> Iterator[Received]:
        with translate_errors(self._settings):
            heartbeat_nanoseconds = int(self._settings.read_timeout / 3 * 1_000_000_000)
            variables = _DUMP_VARIABLES.format(id=uuid.uuid4(), heartbeat=heartbeat_nanoseconds)
            connection = self._connection = open_connection(
                self._settings, extra_assignments=variables
            )
            # PyMySQL has no public call for other commands, nor for its socket. Its
            # buffer is empty here, because the answer to the last statement was read
            # completely.
            driver: Any = connection
            driver._execute_command(self._code, self._content)
            driver._sock.settimeout(self._settings.read_timeout)
            self._receiver = Receiver(driver._sock)
            yield from self._receiver.pieces()

    def close(self) -> None:
        """Close the connection; the server notices that at its next write."""
        if self._receiver is not None:
            self._receiver.close()
            self._receiver = None
        if self._connection is not None:
            driver: Any = self._connection
            driver._force_close()
            self._connection = None


def offset_command(start: Coordinates) -> tuple[int, bytes]:
    """Return the code and the content of COM_BINLOG_DUMP from a position, whose offset
    is at most `MAX_OFFSET`."""
    flags = _NON_BLOCK | _ANNOTATE_ROWS
    content = _OFFSET_COMMAND.pack(start.offset, flags, _random_server_id())
    return _COM_BINLOG_DUMP, content + str(start.file).encode()


def wide_offset_command(start: Coordinates) -> tuple[int, bytes]:
    """Return the code and the content of COM_BINLOG_DUMP_GTID with a file, a 64-bit
    offset and an empty GTID set, so that the server skips no transaction. Only MySQL
    accepts it, with gtid_mode=ON."""
    return _COM_BINLOG_DUMP_GTID, _gtid_command(str(start.file), start.offset, b"")


def gtid_set_command(executed: GtidSet) -> tuple[int, bytes]:
    """Return the code and the content of COM_BINLOG_DUMP_GTID for every transaction
    that is not in the set."""
    return _COM_BINLOG_DUMP_GTID, _gtid_command("", 4, encode_gtid_set(executed))


def _gtid_command(file: str, offset: int, encoded_set: bytes) -> bytes:
    """Return the content of COM_BINLOG_DUMP_GTID. Its fields, with their bytes: flags
    2, server id 4, length of the file name 4, file name, offset 8, length of the GTID
    set 4, GTID set."""
    name = file.encode()
    flags = _NON_BLOCK | (_THROUGH_GTID if encoded_set else 0)
    data = encoded_set or bytes(8)  # a set of no GTIDs
    header = _GTID_COMMAND.pack(flags, _random_server_id(), len(name))
    return header + name + struct.pack("<QI", offset, len(data)) + data


def _random_server_id() -> int:
    return SERVER_IDS[secrets.randbelow(len(SERVER_IDS))]
