"""A thread that reads a socket ahead of its consumer, into a few buffers that are used again.

Copying from the socket runs in parallel to decoding, which releases the GIL, and pauses when all
buffers are full (backpressure).
"""

from __future__ import annotations

import os
import queue
import select
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from lockstep.pipeline.binlog.stream.intake import HEADROOM
from lockstep.pipeline.ports.source import Received
from lockstep.pipeline.values.errors import SourceUnavailable

BUFFER_BYTES: Final = 1 << 20
BUFFERS: Final = 6
_HALF: Final = BUFFER_BYTES // 2
_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER of 0 seconds: closing the socket discards its data and resets the connection
(socket(7))."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A kind of stream: its name in messages; free bytes before each piece; milliseconds for which
    a piece that is not half full waits for more."""

    name: str
    headroom: int
    patience: int


DUMP: Final = Stream("log", HEADROOM, 0)
ANSWER: Final = Stream("answer", 0, 2)
"""A server sends a table's rows as it reads them; waiting a little gives fewer, larger pieces."""


class _Stopped(Exception):
    """The consumer has stopped reading."""


class Receiver:
    """Reads `sock` until it is closed; the socket's timeout bounds every wait for data."""

    def __init__(self, sock: socket.socket, stream: Stream = DUMP) -> None:
        self._sock = sock
        self._stream = stream
        self._wake, self._waker = os.pipe()
        self._readable = select.poll()  # `select` would fail with file descriptors above 1023
        self._readable.register(sock, select.POLLIN)
        self._readable.register(self._wake, select.POLLIN)
        self._free: queue.SimpleQueue[npt.NDArray[np.uint8] | None] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[Received | BaseException] = queue.SimpleQueue()
        for _ in range(BUFFERS):
            self._free.put(np.empty(stream.headroom + BUFFER_BYTES, np.uint8))
        self._thread = threading.Thread(
            target=self._read, name=f"lockstep-{stream.name}", daemon=True
        )

    def received(self) -> Iterator[Received]:
        """Yield the pieces in order; an error is raised after the pieces before it."""
        self._thread.start()
        while True:
            piece = self._full.get()
            if isinstance(piece, BaseException):
                raise piece
            yield piece
            self._free.put(piece.data)

    def close(self) -> None:
        """End the thread, and let closing the socket reset the connection: a server that waits to
        send the rest then ends its dump at once. Otherwise it might wait for minutes, during which
        it cannot purge its log files."""
        with suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._sock.shutdown(socket.SHUT_RDWR)
        self.stop()

    def stop(self) -> None:
        """End the thread, and leave the connection usable: for callers that have read the whole
        answer."""
        if self._waker < 0:
            return
        self._free.put(None)
        os.write(self._waker, b"\0")
        if self._thread.is_alive():
            self._thread.join()
        os.close(self._wake)
        os.close(self._waker)
        self._waker = -1

    def _read(self) -> None:
        try:
            while (data := self._free.get()) is not None:
                self._full.put(self._fill(data))
        except BaseException as error:  # noqa: BLE001 - raised in the consumer's thread
            self._full.put(error)

    def _fill(self, data: npt.NDArray[np.uint8]) -> Received:
        """Fill at least half of the buffer, or as much as arrives in time."""
        view, begin = data.data, self._stream.headroom
        self._require_bytes()
        at = begin
        while True:
            count = self._sock.recv_into(view[at:])
            if count == 0 and at > begin:
                # A server may close the connection after its last packet, where the reader stops.
                return Received(data, begin, at)
            if count == 0:
                raise SourceUnavailable(
                    f"the server closed the connection in the middle of its {self._stream.name}",
                    hint="run again; if that fails, look at the server's error log",
                )
            at += count
            if at - begin >= _HALF or not self._wait(self._stream.patience):
                return Received(data, begin, at)

    def _require_bytes(self) -> None:
        """Wait for bytes; TimeoutError if none arrive in time."""
        seconds = self._sock.gettimeout()
        if not self._wait(None if seconds is None else int(seconds * 1000)):
            raise TimeoutError("timed out")

    def _wait(self, milliseconds: int | None) -> bool:
        """Return whether bytes, or the end of the stream, arrive within that time."""
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        ready = self._readable.poll(milliseconds)
        if any(file == self._wake for file, _ in ready):
            raise _Stopped
        return bool(ready)
