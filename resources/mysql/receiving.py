"""A socket read ahead of its reader, into a few buffers that are used again.

The one thread of a dump, or of an answer that is read as it comes, lets the socket's copy run
beside the decoding, which holds no lock of Python's, and stops by itself when all buffers are full.
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

from pipeline.binlog.stream.intake import HEADROOM
from pipeline.errors import SourceUnavailable
from pipeline.ports.source import Received

BUFFER_BYTES: Final = 1 << 20
BUFFERS: Final = 6
_HALF: Final = BUFFER_BYTES // 2
_RESET: Final = struct.pack("ii", 1, 0)
"""Linger for no second: what was not sent or read is thrown away (socket(7))."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What is received: its name in messages; free bytes before each piece; how many
    milliseconds a piece that is not half full waits for more."""

    name: str
    headroom: int
    patience: int


DUMP: Final = Stream("log", HEADROOM, 0)
ANSWER: Final = Stream("answer", 0, 2)
"""A table's rows come as fast as the server makes them: in few large pieces, then."""


class _Stopped(Exception):
    """Nobody wants the rest."""


class Receiver:
    """Reads `sock` until it is closed; its timeout bounds every wait for a silent peer."""

    def __init__(self, sock: socket.socket, stream: Stream = DUMP) -> None:
        self._sock = sock
        self._stream = stream
        self._wake, self._waker = os.pipe()
        self._at_hand = select.poll()  # unlike `select`, for any number of open files
        self._at_hand.register(sock, select.POLLIN)
        self._at_hand.register(self._wake, select.POLLIN)
        self._free: queue.SimpleQueue[npt.NDArray[np.uint8] | None] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[Received | BaseException] = queue.SimpleQueue()
        for _ in range(BUFFERS):
            self._free.put(np.empty(stream.headroom + BUFFER_BYTES, np.uint8))
        self._thread = threading.Thread(
            target=self._read, name=f"lockstep-{stream.name}", daemon=True
        )

    def received(self) -> Iterator[Received]:
        """What comes, in order; what went wrong is raised behind what came before it."""
        self._thread.start()
        while True:
            got = self._full.get()
            if isinstance(got, BaseException):
                raise got
            yield got
            self._free.put(got.data)

    def close(self) -> None:
        """End the connection's reading; the thread is gone when this returns. Closing the
        socket resets the connection then, so that a server that waits to send the rest ends
        its dump at once. Otherwise it may wait for minutes, and keep its log files."""
        with suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._sock.shutdown(socket.SHUT_RDWR)
        self.stop()

    def stop(self) -> None:
        """End the reading, and leave the connection as it is: for whoever has read to the end of
        what the server sends unasked. The thread is gone when this returns."""
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
        except BaseException as error:  # noqa: BLE001 - raised where the bytes are wanted
            self._full.put(error)

    def _fill(self, data: npt.NDArray[np.uint8]) -> Received:
        """At least half a buffer, unless the socket has less at hand."""
        view, begin = data.data, self._stream.headroom
        self._require_bytes()
        at = begin
        while True:
            count = self._sock.recv_into(view[at:])
            if count == 0 and at > begin:
                # A server closes behind its last packet; whoever reads that one stops.
                return Received(data, begin, at)
            if count == 0:
                raise SourceUnavailable(
                    f"the server closed the connection in the middle of its {self._stream.name}",
                    hint="run again; if that fails, look at the server's error log",
                )
            at += count
            if at - begin >= _HALF or not self._comes(self._stream.patience):
                return Received(data, begin, at)

    def _require_bytes(self) -> None:
        """TimeoutError if none come in time."""
        seconds = self._sock.gettimeout()
        if not self._comes(None if seconds is None else int(seconds * 1000)):
            raise TimeoutError("timed out")

    def _comes(self, milliseconds: int | None) -> bool:
        """Whether something is at hand within that time, be it the end."""
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        found = self._at_hand.poll(milliseconds)
        if any(file == self._wake for file, _ in found):
            raise _Stopped
        return bool(found)
