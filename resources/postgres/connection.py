"""Connections to the ledger's Postgres, and the translation of the driver's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final

import psycopg2
from psycopg2.extensions import connection as Connection
from psycopg2.extensions import make_dsn, parse_dsn

from lockstep.pipeline.values.errors import (
    AccessDenied,
    ConfigurationError,
    HostUnknown,
    LedgerRefused,
    LedgerUnavailable,
    LockstepError,
    PrivilegeMissing,
    TlsRefused,
)
from lockstep.resources.postgres.refusals import refusal

LOCK_NAMESPACE = 0x4C4B5354  # "LKST": the first half of each advisory lock that Lockstep takes
OLDEST_SERVER = 130000  # Postgres 13, as libpq numbers versions
_IDLE_TIMEOUT_STATE = "25P03"  # the SQLSTATE after idle_in_transaction_session_timeout
_REFUSED_STATE = "23000"
"""The SQLSTATE of `lockstep.refuse`, which Postgres itself never raises."""


_REFUSED_LOGIN: Final = re.compile(
    r"failed: \w+:  (?!too many connections|.* is not currently accepting connections)"
    r"""[^"«»„“”「」\n]*["«»„“”「」]\s?(?!pg_)"""
)
"""Matches the server's refusal of a user, a password or a database, in each language of
`lc_messages`: it quotes a name, unlike the messages of a server that starts, stops or
has no connection left. The two of these that do quote a name are excluded by their
English texts."""


_TIMEOUTS: Final = {
    "connect_timeout": 10,
    # A server that vanished is noticed within a minute, whether this side waits for an
    # answer (the keepalives) or the server has not confirmed a question, in
    # milliseconds. Without the last, TCP itself would try for a quarter of an hour.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""Parameters of each connection that the DSN does not set itself."""

_SETTINGS: Final = {
    "timezone": "UTC",
    # The lock of a dead holder is released within a minute even if its machine
    # vanished, and a live holder does not lose it if the network fails for a second.
    "tcp_keepalives_idle": "30s",
    "tcp_keepalives_interval": "10s",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "60s",
    # A process that was suspended inside a transaction loses its locks after 30 s,
    # before another process gives up waiting for them.
    "lock_timeout": "60s",
    "idle_in_transaction_session_timeout": "30s",
    # An administrator's limits for other sessions would end these, too, and release
    # their locks.
    "idle_session_timeout": "0",
    "statement_timeout": "0",
    "transaction_timeout": "0",
    # Each statement sees everything that any session committed before it.
    "default_transaction_isolation": "read committed",
}
"""Settings of each session; those of the account or the database do not apply."""

_FIRST_VERSION: Final = {"idle_session_timeout": 140000, "transaction_timeout": 170000}
"""Settings that the oldest supported Postgres lacks, with the first version that has
them."""

# A commit must be on disk when it returns. A stricter level than `on` is kept.
_LAST_STATEMENTS: Final = """
select set_config('synchronous_commit', 'on', false)
where current_setting('synchronous_commit') = 'off';
select pg_backend_pid(), current_setting('server_encoding')
"""

_POOLER_ROUNDS: Final = 3
"""Number of checks that a connection pooler has to pass. A pooler that reserves no
backends may pass a single check, because its other clients take backends, too."""


@dataclass(frozen=True, slots=True)
class LedgerAddress:
    """The ledger's address. `dsn`: a libpq DSN or URL, which is never printed; `label`:
    its name in messages, without secrets."""

    dsn: str
    label: str

    @classmethod
    def parse(cls, dsn: str) -> LedgerAddress:
        """Parse a configured DSN. Raise `ConfigurationError` if it is not valid."""
        try:
            parts = parse_dsn(dsn)
        except psycopg2.ProgrammingError as error:
            raise ConfigurationError(
                "The ledger's dsn is neither a Postgres URL nor a list of key=value.",
                hint='Write it as "postgresql://user@host:5432/database" or use "embedded".',
            ) from error
        host = parts.get("host", parts.get("hostaddr", "the local socket"))
        return cls(dsn, f"database {parts.get('dbname', '(default)')!r} on {host}")


def connect(address: LedgerAddress) -> Connection:
    """Return a new connection whose session has `_SETTINGS`. Raise `ConfigurationError`
    if its database cannot hold the ledger, or if a connection pooler in between gives
    the session's statements to several backends."""
    connection = _open(address)
    try:
        _prepare(address, connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _open(address: LedgerAddress) -> Connection:
    try:
        return psycopg2.connect(
            make_dsn("", **_TIMEOUTS | parse_dsn(address.dsn)),
            fallback_application_name="lockstep",
            client_encoding="UTF8",
        )
    except psycopg2.OperationalError as error:
        raise _connection_error(address, error) from error


def _prepare(address: LedgerAddress, connection: Connection) -> None:
    if connection.server_version < OLDEST_SERVER:
        raise ConfigurationError(
            f"The ledger needs Postgres 13 or newer; {address.label} is older.",
            hint='Upgrade it, or set dsn = "embedded".',
        )
    # With autocommit a statement without BEGIN is its own transaction. Even a pooler
    # that refuses transactions of several statements answers it.
    connection.autocommit = True
    with translate_errors(address), connection.cursor() as cursor:
        settings = [
            f"set {name} = '{value}';"
            for name, value in _SETTINGS.items()
            if _FIRST_VERSION.get(name, 0) <= connection.server_version
        ]
        cursor.execute("\n".join([*settings, _LAST_STATEMENTS]))
        [(backend_pid, encoding)] = cursor.fetchall()
    if encoding != "UTF8":
        raise ConfigurationError(
            f"The ledger's database has the encoding {encoding}, which lacks characters that names "
            f"may have: {address.label}.",
            hint="Create it with createdb --encoding=UTF8 --template=template0, or set dsn = "
            '"embedded".',
        )
    # Postgres reports its backend's pid when it accepts the connection. A pooler, which
    # sends statements to backends of its choice, makes up a number.
    if backend_pid != connection.info.backend_pid:
        _require_session(address, connection)


def _require_session(address: LedgerAddress, connection: Connection) -> None:
    """Raise `ConfigurationError` unless the pooler reserves one backend for this
    connection: locks and settings belong to a backend. The test holds a transaction
    open on a second connection. A pooler that reserves no backends then shows itself:
    either the second connection has the first one's backend, or the first connection is
    given a new backend for its next statement."""
    with translate_errors(address), closing(_open(address)) as other:
        for _ in range(_POOLER_ROUNDS):
            pid_before = _backend_pid(connection)
            try:
                other_pid = _backend_pid(other)
            except psycopg2.Error as error:
                # In statement mode a pooler closes a connection that begins a
                # transaction. The first connection still answers, or this raises the
                # real error.
                _backend_pid(connection)
                raise _pooler_error(address) from error
            pid_after = _backend_pid(connection)
            other.commit()
            if pid_before != pid_after or other_pid in (pid_before, pid_after):
                raise _pooler_error(address)


def _backend_pid(connection: Connection) -> int:
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        [(backend_pid,)] = cursor.fetchall()
        return int(backend_pid)


def _pooler_error(address: LedgerAddress) -> ConfigurationError:
    return ConfigurationError(
        f"A connection pooler (pgbouncer, or one like it) lies before the ledger, {address.label}, "
        "and gives the statements of one session to several backends, so locks do not hold.",
        hint="Give [ledger] dsn the port of Postgres itself, or set pool_mode = session for this "
        "database in pgbouncer.",
    )


def _connection_error(address: LedgerAddress, error: psycopg2.OperationalError) -> LockstepError:
    """Return the error of a failed connection. libpq gives no SQLSTATE for it, only its
    text."""
    text = str(error).strip()
    first_line = text.splitlines()[0] if text else "no answer"
    if "could not translate host name" in text:
        return HostUnknown(
            f"The ledger's host is unknown: {address.label}.", hint="Correct [ledger] dsn."
        )
    if "database " in text and "does not exist" in text:
        return ConfigurationError(
            f"The ledger's database does not exist: {address.label}.",
            hint="Correct [ledger] dsn, or create it with the encoding UTF8; if it was lost, "
            "`lockstep recover` then makes the ledger again from the lake.",
        )
    if _REFUSED_LOGIN.search(text) or any(
        words in text for words in ("authentication failed", "no password supplied")
    ):
        return AccessDenied(
            f"The ledger's Postgres refuses the login to {address.label}.",
            hint="Correct the user, the password or the database that [ledger] dsn leads to.",
        )
    # A server that stops in the middle of the handshake causes an "SSL SYSCALL error".
    if "SSL SYSCALL" not in text and ("SSL" in text or "certificate" in text):
        return TlsRefused(
            f"The ledger's connection could not be secured: {address.label}.",
            hint="Correct sslmode and sslrootcert in [ledger] dsn.",
        )
    return LedgerUnavailable(
        f"The ledger cannot be reached, {address.label}: {first_line}",
        hint="Start Postgres or wait for it, then run again.",
    )


@contextmanager
def translate_errors(address: LedgerAddress) -> Iterator[None]:
    """Raise psycopg2's errors as `pipeline.values.errors`, with the original as cause."""
    try:
        yield
    except psycopg2.Error as error:
        raise _translate(address, error) from error


def _translate(address: LedgerAddress, error: psycopg2.Error) -> LockstepError:
    sqlstate = error.pgcode or ""
    if sqlstate == _REFUSED_STATE:  # raised by a trigger; its message shows no values of rows
        return refusal(error.diag.constraint_name or sqlstate, error.diag.message_primary)
    if sqlstate.startswith("23"):
        return refusal(error.diag.constraint_name or error.diag.column_name or sqlstate)
    if sqlstate == "42501":
        return PrivilegeMissing(
            f"The ledger's account lacks a privilege in {address.label}.",
            hint="Let the account create its schema: grant create on database … to …",
        )
    if sqlstate == "25006":
        return ConfigurationError(
            f"The ledger's Postgres is read-only: {address.label}.",
            hint="Point [ledger] dsn at the primary server.",
        )
    if sqlstate == "53100":
        return LedgerUnavailable(
            f"The ledger has no space left on its disk: {address.label}.",
            hint="Free some space there, then run again.",
        )
    if is_lost(error) or sqlstate.startswith(("40", "53", "55", "57", "58")):
        return LedgerUnavailable(
            f"The ledger could not finish a step, {address.label}.",
            hint="`lockstep status` shows whether the step was recorded; run again.",
        )
    return LedgerRefused(
        f"The ledger's Postgres refused a statement (SQLSTATE {sqlstate or 'none'}).",
        hint="This is a defect of Lockstep: report it, with what `lockstep status --json` prints.",
    )


def is_lost(error: psycopg2.Error) -> bool:
    """Return whether the error ended the connection. Otherwise only the statement
    failed."""
    sqlstate = error.pgcode or ""
    if sqlstate == _IDLE_TIMEOUT_STATE:
        return True
    if isinstance(error, psycopg2.OperationalError | psycopg2.InterfaceError):
        return not sqlstate or sqlstate.startswith(("08", "57P"))
    return False
