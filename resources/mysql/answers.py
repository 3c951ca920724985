"""One statement's answer in MySQL's binary protocol, as a stream of bytes. After the last packet
the connection can be used again; if an answer is not read to its end, the connection is closed.

A server sends the values of a prepared statement in binary form, but those of any other statement
as text. PyMySQL reads the definitions of the columns, which are a few packets.

Protocol: MySQL manual, "COM_STMT_PREPARE", "COM_STMT_EXECUTE", "COM_STMT_CLOSE".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import numpy as np
import pymysql
from pymysql.cursors import Cursor, SSCursor
from pymysql.protocol import FieldDescriptorPacket

from lockstep.pipeline.ports.source import Received
from lockstep.pipeline.resultset.packets import Definition
from lockstep.resources.mysql.receiving import ANSWER, Receiver

_PREPARE, _EXECUTE, _CLOSE = 0x16, 0x17, 0x19
_PREPARED: Final = struct.Struct("<xIHH")
"""The answer to COM_STMT_PREPARE: a zero byte, the statement's id (4 bytes), the number of its
columns (2 bytes) and of its parameters (2 bytes)."""

_RUN: Final = struct.Struct("<IBI")
"""The content of COM_STMT_EXECUTE: the statement's id (4 bytes), flags (1 byte; 0: no cursor), and
the iteration count (4 bytes; always 1)."""

_UNSIGNED: Final = 0x20


class ReadingCursor(SSCursor):
    """An unbuffered cursor that also returns answers in the binary protocol, one at a time."""

    answer: Answer | None = None

    def ask(self, statement: str) -> Answer:
        """Run a statement without parameters and return its answer, of which the columns'
        definitions have been read. Raise `pymysql.MySQLError` if the server refuses the
        statement."""
        connection: Any = self.connection
        self.answer = Answer(connection, statement)
        return self.answer


class Answer:
    """The answer to one statement. `definitions`: the definitions of its columns. `sequence`: the
    sequence number of the first row's packet. `left`: `leave` closed the connection before the
    answer's end."""

    def __init__(self, connection: pymysql.Connection[Cursor], statement: str) -> None:
        # PyMySQL has no public methods that send these commands or give access to its socket.
        stream: Any = connection
        self._stream = stream
        self._stream._execute_command(_PREPARE, statement)
        prepared = self._stream._read_packet().get_all_data()
        self._number, columns, parameters = _PREPARED.unpack_from(prepared)
        if parameters:
            raise ValueError("the statement has parameters")
        self._definitions(columns)
        self._stream._execute_command(_EXECUTE, _RUN.pack(self._number, 0, 1))
        columns = self._stream._read_packet().read_length_encoded_integer()
        self.definitions = self._definitions(columns)
        self.sequence: int = self._stream._next_seq_id
        self.left = False
        self._receiver: Receiver | None = Receiver(self._stream._sock, ANSWER)

    def _definitions(self, count: int) -> list[Definition]:
        packets = [self._stream._read_packet(FieldDescriptorPacket) for _ in range(count)]
        self._stream._read_packet()  # EOF
        return [
            Definition(packet.type_code, bool(packet.flags & _UNSIGNED), packet.length)
            for packet in packets
        ]

    def pieces(self) -> Iterator[Received]:
        """Yield the packets' bytes in pieces that may end anywhere, also inside a packet. A piece
        is valid until the next one is requested. Raise TimeoutError if no bytes arrive within the
        connection's read timeout."""
        read_ahead = self._stream._rfile.peek()
        first = np.frombuffer(self._stream._rfile.read(len(read_ahead)), np.uint8).copy()
        yield Received(first, 0, len(first))
        if self._receiver is not None:
            yield from self._receiver.received()

    def finish(self) -> None:
        """Stop receiving after the last packet; the connection can be used again."""
        if self._receiver is not None:
            self._receiver.stop()
            self._receiver = None

    def forget(self) -> None:
        """Ask the server to drop the prepared statement; it does not answer this command. An error
        means that the session has ended, and the statement with it."""
        with suppress(pymysql.MySQLError, OSError):
            self._stream._execute_command(_CLOSE, struct.pack("<I", self._number))

    def leave(self) -> bool:
        """Close the connection if the answer was not read to its end; return whether this closed
        it."""
        if self._receiver is None:
            return False
        self._receiver.close()
        self._receiver = None
        self._stream._force_close()
        self.left = True
        return True
