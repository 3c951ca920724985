"""A socket read ahead of its reader, into a few buffers that are used again.

Belongs here: the one thread of a dump. It lets the socket's copy run beside the decoding,
which holds no lock of Python's, and stops by itself when all buffers are full.
"""

from __future__ import annotations

import queue
import select
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
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


class Receiver:
    """Reads `sock` until it is closed; its timeout bounds every wait for a silent peer."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._at_hand = select.poll()  # unlike `select`, for any number of open files
        self._at_hand.register(sock, select.POLLIN)
        self._free: queue.SimpleQueue[npt.NDArray[np.uint8] | None] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[Received | BaseException] = queue.SimpleQueue()
        for _ in range(BUFFERS):
            self._free.put(np.empty(HEADROOM + BUFFER_BYTES, np.uint8))
        self._thread = threading.Thread(target=self._read, name="lockstep-dump", daemon=True)

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
        self._free.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _read(self) -> None:
        try:
            while (data := self._free.get()) is not None:
                self._full.put(self._fill(data))
        except BaseException as error:  # noqa: BLE001 - raised where the bytes are wanted
            self._full.put(error)

    def _fill(self, data: npt.NDArray[np.uint8]) -> Received:
        """At least half a buffer, unless the socket has less at hand."""
        view = data.data
        at = HEADROOM
        while True:
            count = self._sock.recv_into(view[at:])
            if count == 0 and at > HEADROOM:
                # A server closes behind its last packet; whoever reads that one stops.
                return Received(data, HEADROOM, at)
            if count == 0:
                raise SourceUnavailable(
                    "the server closed the connection in the middle of its log",
                    hint="run again; if that fails, look at the server's error log",
                )
            at += count
            if at - HEADROOM >= _HALF or not self._more():
                return Received(data, HEADROOM, at)

    def _more(self) -> bool:
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        return bool(self._at_hand.poll(0))
