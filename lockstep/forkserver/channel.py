"""The socket between a command and the process that forks runs, and what goes over it.

Belongs here: where it is, and the messages, each a JSON object in one packet. Does not: what
follows from them (`server`, `client`).

    command                         server
    {"surroundings": {…}, …}  →
                              ←     {"ready": true}, or {"declined": "why"}
    {"arguments": […], …},    →
      four descriptors
    a byte for each signal    →
                              ←     {"code": 0}, or {"signal": 9}

Up to its second message the command may still begin by itself; behind that it never does, so that
no run is begun twice. If it closes the socket, its run is killed.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

SOCKET: Final = "runs"
"""Its name in `.lockstep/spark`, a folder that this account alone may look into."""

LONGEST: Final = 1 << 20
"""Bytes of a message. The system takes about 200,000, most of which are the environment's."""

DESCRIPTORS: Final = 4
"""Standard input, output and error, and the folder to work in."""


@contextmanager
def address(folder: Path) -> Iterator[str]:
    """Of the socket in the folder, however long the folder's name: the system's own for an address
    is 107 bytes."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)


def new_socket() -> socket.socket:
    """One that keeps messages apart."""
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(channel: socket.socket, message: dict[str, Any], *descriptors: int) -> None:
    """`OSError` where the other side is gone, or the message is too long for the system."""
    socket.send_fds(channel, [json.dumps(message).encode()], descriptors)


def receive(channel: socket.socket) -> dict[str, Any] | None:
    """The next message; None where the other side closed."""
    data = channel.recv(LONGEST)
    return json.loads(data) if data else None
