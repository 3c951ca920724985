"""What an account without the secret of a Spark gets from the ports that its Java listens on.

Belongs here: finding the ports of a process, and one request of Spark's own protocol. Does not:
whose Java it is.

A request is a frame (8 bytes of length, that included), the type of the message (3: RpcRequest), 8
bytes of its number and 4 of its body's length (`TransportFrameDecoder` and `RpcRequest` in Spark's
common/network-common).
"""

from __future__ import annotations

import os
import pwd
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final

_UNKNOWN: Final = b"Expected SaslMessage, received something else"
_READ: Final = b"org.apache.spark.rpc.netty.RpcFailure"

_ASK = """
import socket, struct, sys
port, request = int(sys.argv[1]), bytes.fromhex(sys.argv[2])
with socket.create_connection(("127.0.0.1", port), 10) as asked:
    asked.settimeout(10)
    asked.sendall(request)
    answer = b""
    try:
        while len(answer) < 8 or len(answer) < struct.unpack(">q", answer[:8])[0]:
            part = asked.recv(65536)
            if not part:
                break
            answer += part
    except (TimeoutError, ConnectionError):
        pass
sys.stdout.buffer.write(answer)
"""

_JAVA_STRING = b"\xac\xed\x00\x05t\x00\x08stranger"
"""Serialized by Java: the text `stranger`."""


def listening(process: int) -> set[int]:
    """The TCP ports that a process of this machine listens on."""
    own = set()
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        try:
            name = str(descriptor.readlink())
        except FileNotFoundError:
            continue
        if name.startswith("socket:["):
            own.add(name[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and inode in own:
                found.add(int(local.rpartition(":")[2], 16))
    return found


def require_closed(process: int) -> None:
    """Spark's own two ports, of the driver's RPC and of its blocks, ask who is there; at no port is
    the object read that a stranger sent."""
    answers = [_answer(port) for port in listening(process)]
    assert sum(_UNKNOWN in answer for answer in answers) == 2
    assert [answer for answer in answers if _READ in answer] == []


def _answer(port: int) -> bytes:
    """What a stranger gets who asks for an object of Java's to be read; `nobody` asks where this is
    root. Spark that reads it answers with an object."""
    host = b"127.0.0.1"
    address = b"\x01" + struct.pack(">H", len(host)) + host + struct.pack(">i", port)
    name = b"endpoint-verifier"
    body = b"\x00" + address + struct.pack(">H", len(name)) + name + _JAVA_STRING
    message = b"\x03" + struct.pack(">qi", 7, len(body)) + body
    # Py4J reads a line, and would wait for its end.
    request = struct.pack(">q", len(message) + 8) + message + b"\n"
    # This process's own Python may lie in root's home, where nobody may not look.
    python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
    command = [python, "-I", "-S", "-c", _ASK, str(port), request.hex()]
    account = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
    done = subprocess.run(command, user=account, cwd="/", capture_output=True, check=True)
    return done.stdout
