"""Connections to MySQL, and what its errors mean.

Belongs here: TLS modes, timeouts, opening a session, and the table from MySQL's error numbers to
ours. Does not: the variables that a session begins with (`session`), which statements are sent.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import pymysql
from pymysql.cursors import Cursor

from pipeline.binlog.stream.dump_refusals import DUMP_REFUSED, refusal
from pipeline.errors import (
    AccessDenied,
    HostUnknown,
    LockstepError,
    PrivilegeMissing,
    ServerSettings,
    SourceRefused,
    SourceUnavailable,
    TlsRefused,
)
from pipeline.server_errors import Meaning, meaning_of, told
from resources.mysql.session import SessionStart

_NO_BINLOG = 1381
_TLS_REQUIRED = 3159

_OLD_TLS: Final = (
    "the server speaks TLS 1.1 at most, which OpenSSL refuses on this machine",
    "upgrade the server (MySQL speaks TLS 1.2 in all of 8.0, and since 5.7.28), or lay an "
    "encrypted tunnel to it and set tls = 'off' with tls_force = true",
)
_TLS_SIGNS: Final = (
    ("UNSAFE_LEGACY_RENEGOTIATION", *_OLD_TLS),
    ("UNSUPPORTED_PROTOCOL", *_OLD_TLS),
    ("ALERT_PROTOCOL_VERSION", *_OLD_TLS),
    ("WRONG_VERSION_NUMBER", *_OLD_TLS),
    (
        "server doesn't support it",
        "the server has no certificate and speaks no TLS",
        "give the server a certificate (ssl_cert, ssl_key), or lay an encrypted tunnel to it and "
        "set tls = 'off' with tls_force = true",
    ),
)
"""What an error of the driver's or of OpenSSL's contains, what it means, and a hint."""

_KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""Seconds of silence until the system asks, and between its questions; how many."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How to reach one server. `tls`: "verify" (certificate and name are checked),
    "required" (encrypted, unchecked) or "off". Times in seconds."""

    host: str
    port: int
    user: str
    password: str
    tls: str = "verify"
    tls_ca: str | None = None
    connect_timeout: float = 10.0
    read_timeout: float = 60.0

    def __repr__(self) -> str:
        return f"ConnectionSettings({self.user}@{self.host}:{self.port}, tls={self.tls})"


@contextmanager
def connect(settings: ConnectionSettings, **options: Any) -> Iterator[pymysql.Connection[Cursor]]:
    """A connection, closed at the end; failures inside come out as `pipeline.errors`."""
    with translated(settings):
        connection = open_connection(settings, **options)
        try:
            yield connection
        finally:
            if connection.open:
                connection.close()


def open_connection(
    settings: ConnectionSettings, *, also: str = "", **options: Any
) -> pymysql.Connection[Cursor]:
    """A connection whose session has the variables of `session`: UTC, autocommit, utf8mb4, no
    limits. `also`: more assignments, each after a comma. The caller closes it and translates."""
    connection: pymysql.Connection[Cursor] = _Connection(
        host=settings.host,
        port=settings.port,
        user=settings.user,
        password=settings.password,
        charset="utf8mb4",
        autocommit=None,
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        write_timeout=settings.read_timeout,
        **_tls(settings),
        **options,
    )
    greeting: Any = connection  # a call without types
    try:
        _start(settings, greeting.get_server_info()).begin(connection, also)
    except BaseException:
        if connection.open:
            connection.close()
        raise
    return connection


class _Connection(pymysql.Connection):
    """PyMySQL sets the character set by a statement of its own, which `session` does with the
    other variables."""

    def set_character_set(self, charset: str, collation: str | None = None) -> None:
        return


@cache
def _start(_settings: ConnectionSettings, _version: str) -> SessionStart:
    """One in a process for each account at each server, as long as that says it is the same."""
    return SessionStart()


def wait_long(connection: pymysql.Connection[Cursor]) -> None:
    """From here on the server may be silent as long as it likes, as it is while it adds up a table
    or looks for rows without an index; the system asks whether it is there at all."""
    stream: Any = connection  # no public call for either
    stream._read_timeout = None
    stream._sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if (option := getattr(socket, name, None)) is not None:
            stream._sock.setsockopt(socket.IPPROTO_TCP, option, value)


def cut(connection: pymysql.Connection[Cursor]) -> None:
    """Whoever waits for its answer, in another thread, has lost the connection."""
    stream: Any = connection
    with suppress(OSError, AttributeError):  # it is closed
        stream._sock.shutdown(socket.SHUT_RDWR)


def _tls(settings: ConnectionSettings) -> dict[str, Any]:
    if settings.tls == "off":
        return {"ssl_disabled": True}
    checked = settings.tls != "required"
    authorities = settings.tls_ca or (ssl.get_default_verify_paths().cafile if checked else None)
    changed = Path(authorities).stat().st_mtime_ns if authorities else 0
    return {"ssl": _context(settings.tls_ca, changed, checked=checked)}


@cache
def _context(authorities: str | None, _changed: int, *, checked: bool) -> ssl.SSLContext:
    """Made once a process for each file of certificates as it is: to read the system's takes much
    longer than to connect. None of them are read where nothing is checked."""
    if checked or authorities:
        context = ssl.create_default_context(cafile=authorities)
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not checked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


@contextmanager
def translated(settings: ConnectionSettings) -> Iterator[None]:
    """Driver and socket errors → `pipeline.errors`, the original as the cause."""
    try:
        yield
    except LockstepError:
        raise
    except pymysql.MySQLError as error:
        raise _meaning(settings, error) from error
    except (ssl.SSLError, FileNotFoundError) as error:
        raise _tls_refused(settings, error) from error
    except OSError as error:
        raise _unavailable(settings, str(error)) from error


def number_of(error: pymysql.MySQLError) -> int:
    """An error's number; 0 where the driver gave none."""
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


def text_of(error: pymysql.MySQLError) -> str:
    return str(error.args[1]) if len(error.args) > 1 else str(error)


def _meaning(settings: ConnectionSettings, error: pymysql.MySQLError) -> LockstepError:
    number, text = number_of(error), text_of(error)
    account = f"{settings.user}@{settings.host}:{settings.port}"
    if number == _NO_BINLOG:
        return ServerSettings(
            f"{settings.host}:{settings.port} writes no binary log",
            hint="set log_bin in the server's configuration and restart it",
        )
    if number == _TLS_REQUIRED:
        return _tls_refused(settings, error)
    if number == DUMP_REFUSED:
        return refusal(text)
    match meaning_of(number):
        case Meaning.ACCESS:
            return AccessDenied(
                f"MySQL refuses {account}: {text}",
                hint="check user and password of the source in lockstep.toml",
            )
        case Meaning.PRIVILEGE:
            return PrivilegeMissing(
                f"the account {account} lacks a privilege: {text}",
                hint=f"grant replication slave, replication client on *.* to {settings.user!r}; "
                "and SELECT on the captured tables",
            )
        case Meaning.NOT_NOW | Meaning.BUSY:
            return SourceUnavailable(
                f"MySQL at {settings.host}:{settings.port} cannot answer now: {told(number, text)}",
                hint="run again; if it happens every time, look at the server's error log",
            )
        case Meaning.LOST:
            return _lost(settings, error, text)
        case Meaning.REFUSED:
            return SourceRefused(
                f"MySQL at {settings.host}:{settings.port} refuses a query: {told(number, text)}",
                hint="fix what the server complains of, then run again",
            )


def _lost(settings: ConnectionSettings, error: pymysql.MySQLError, text: str) -> LockstepError:
    cause = error.__cause__ or error.__context__ or getattr(error, "original_exception", None)
    if isinstance(cause, ssl.SSLError) or "SSL" in text or "certificate" in text:
        return _tls_refused(settings, error)
    if isinstance(cause, socket.gaierror):
        return HostUnknown(
            f"the host name {settings.host!r} does not resolve",
            hint="check host of the source in lockstep.toml",
        )
    return _unavailable(settings, text)


def _tls_refused(settings: ConnectionSettings, error: BaseException) -> TlsRefused:
    text = str(error)
    why, hint = next(
        ((why, hint) for sign, why, hint in _TLS_SIGNS if sign in text),
        (
            text,
            "give the server's CA as tls_ca, or set tls = 'required' (encrypted, unchecked), or "
            "'off' on the loopback",
        ),
    )
    return TlsRefused(
        f"no secured connection to {settings.host}:{settings.port} with tls = {settings.tls!r}: "
        f"{why}",
        hint=hint,
    )


def _unavailable(settings: ConnectionSettings, text: str) -> SourceUnavailable:
    return SourceUnavailable(
        f"MySQL at {settings.host}:{settings.port} cannot be reached: {text}",
        hint="check that the server runs and that host and port are right, then run again",
    )
