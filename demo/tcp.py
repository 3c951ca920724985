"""TCP ports of this host: finds a free one, and checks whether a MySQL server answers on one."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a TCP port on 127.0.0.1 that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_mysql_greeting(host: str, port: int) -> bool:
    """Return whether a MySQL server sends its greeting there (protocol version 10).

    https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_handshake_v10.html
    """
    try:
        with socket.create_connection((host, port), timeout=2) as connection:
            return connection.recv(5)[4:] == b"\x0a"
    except OSError:
        return False
