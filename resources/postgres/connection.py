"""Connections to the ledger's Postgres, and what its driver's errors mean.

Belongs here: opening a connection, one transaction at a time on it, psycopg2's
exceptions → `pipeline.errors`. Does not: what a transaction says.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

import psycopg2
from psycopg2.extensions import connection as Connection
from psycopg2.extensions import parse_dsn
from psycopg2.extras import RealDictCursor

from pipeline.errors import (
    AccessDenied,
    ConfigurationError,
    HostUnknown,
    LedgerRefused,
    LedgerUnavailable,
    LockstepError,
    PrivilegeMissing,
    TlsRefused,
)
from resources.ledger_rules import refusal

OLDEST_SERVER = 130000
_IDLE_TOO_LONG = "25P03"

F = TypeVar("F")
T = TypeVar("T")

# Times in UTC, a commit that is on disk when it returns, and a dead holder's lock
# released within a minute even when its machine vanished. A process that was stopped in
# the middle of a transaction keeps no row locked for longer than that.
_SETTINGS = """
set timezone = 'UTC';
set tcp_keepalives_idle = 30;
set tcp_keepalives_interval = 10;
set tcp_keepalives_count = 3;
set lock_timeout = '60s';
set idle_in_transaction_session_timeout = '30s';
select set_config('synchronous_commit', 'on', false)
where current_setting('synchronous_commit') = 'off'
"""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the ledger is: a libpq DSN or URL, never printed, and a name to print."""

    dsn: str
    shown: str

    @classmethod
    def parse(cls, dsn: str) -> Target:
        """A DSN as configured; `ConfigurationError` when it is none."""
        try:
            parts = parse_dsn(dsn)
        except psycopg2.ProgrammingError as error:
            raise ConfigurationError(
                "The ledger's dsn is neither a Postgres URL nor a list of key=value.",
                hint='Write it as "postgresql://user@host:5432/database" or use "embedded".',
            ) from error
        host = parts.get("host", parts.get("hostaddr", "the local socket"))
        return cls(dsn, f"database {parts.get('dbname', '(default)')!r} on {host}")


def connect(target: Target) -> Connection:
    """A new connection, in UTC, with keepalives; its errors say whose move it is."""
    try:
        connection = psycopg2.connect(
            target.dsn,
            connect_timeout=10,
            keepalives_idle=30,
            keepalives_interval=10,
            keepalives_count=3,
            fallback_application_name="lockstep",
        )
    except psycopg2.OperationalError as error:
        raise _not_connected(target, error) from error
    try:
        _prepare(target, connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(target: Target, connection: Connection) -> None:
    if connection.server_version < OLDEST_SERVER:
        raise ConfigurationError(
            f"The ledger needs Postgres 13 or newer; {target.shown} is older.",
            hint='Upgrade it, or set dsn = "embedded".',
        )
    with translated(target), connection.cursor() as cursor:
        cursor.execute(_SETTINGS)
        connection.commit()


def _not_connected(target: Target, error: psycopg2.OperationalError) -> LockstepError:
    """libpq gives no SQLSTATE for a refused connection, so its words must do."""
    text = str(error).strip()
    line = text.splitlines()[0] if text else "no answer"
    if "could not translate host name" in text:
        return HostUnknown(
            f"The ledger's host is unknown: {target.shown}.", hint="Correct [ledger] dsn."
        )
    if any(
        part in text
        for part in ("authentication failed", "no pg_hba.conf entry", "no password supplied")
    ) or ("role " in text and "does not exist" in text):
        return AccessDenied(
            f"The ledger's Postgres refuses the login to {target.shown}.",
            hint="Correct the user or the password that [ledger] dsn leads to.",
        )
    if "database " in text and "does not exist" in text:
        return ConfigurationError(
            f"The ledger's database does not exist: {target.shown}.",
            hint="Create it with createdb, or correct [ledger] dsn.",
        )
    if "SSL" in text or "certificate" in text:
        return TlsRefused(
            f"The ledger's connection could not be secured: {target.shown}.",
            hint="Correct sslmode and sslrootcert in [ledger] dsn.",
        )
    return LedgerUnavailable(
        f"The ledger cannot be reached, {target.shown}: {line}",
        hint="Start Postgres or wait for it, then run again.",
    )


@contextmanager
def translated(target: Target) -> Iterator[None]:
    """Raise the ledger's errors for psycopg2's."""
    try:
        yield
    except psycopg2.Error as error:
        raise _meaning(target, error) from error


def _meaning(target: Target, error: psycopg2.Error) -> LockstepError:
    state = error.pgcode or ""
    if state.startswith("23"):
        return refusal(error.diag.constraint_name or error.diag.column_name or state)
    if state == "42501":
        return PrivilegeMissing(
            f"The ledger's account lacks a privilege in {target.shown}.",
            hint="Let it own the schema lockstep: grant create on database … to …",
        )
    if state == "25006":
        return ConfigurationError(
            f"The ledger's Postgres is read-only: {target.shown}.",
            hint="Point [ledger] dsn at the primary server.",
        )
    if is_lost(error) or state.startswith(("40", "53", "55", "57", "58")):
        return LedgerUnavailable(
            f"The ledger could not finish a step, {target.shown}.",
            hint="Nothing was recorded unless it says so in `lockstep status`; run again.",
        )
    return LedgerRefused(
        f"The ledger's Postgres refused a statement (SQLSTATE {state or 'none'}).",
        hint="This is a defect of Lockstep: report it, with what `lockstep status --json` prints.",
    )


def is_lost(error: psycopg2.Error) -> bool:
    """Whether the connection went, rather than a statement failing."""
    state = error.pgcode or ""
    if state == _IDLE_TOO_LONG:
        return True
    if isinstance(error, psycopg2.OperationalError | psycopg2.InterfaceError):
        return not state or state.startswith(("08", "57P"))
    return False


class Session:
    """One connection, opened when needed, used by one thread at a time.

    A connection that was dropped while idle is opened again once, before anything was
    written on it; after that, losing it is `LedgerUnavailable`.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._connection: Connection | None = None
        self._turn = threading.RLock()

    def read(self, work: Callable[[RealDictCursor], T]) -> T:
        """Run `work` in a transaction that writes nothing."""
        return self.write(work, _nothing)

    def write(
        self, first: Callable[[RealDictCursor], F], work: Callable[[RealDictCursor, F], T]
    ) -> T:
        """Run `first`, which writes nothing, and `work` in one transaction; commit."""
        with self._turn, translated(self.target):
            cursor, found = self._begin(first)
            try:
                with cursor:
                    result = work(cursor, found)
                cursor.connection.commit()
            except BaseException as error:
                self._undo(error)
                raise
            return result

    def _begin(self, first: Callable[[RealDictCursor], F]) -> tuple[RealDictCursor, F]:
        reused = self._connection is not None
        try:
            return self._first(first)
        except psycopg2.Error as error:
            if not (reused and is_lost(error)):
                raise
        return self._first(first)

    def _first(self, first: Callable[[RealDictCursor], F]) -> tuple[RealDictCursor, F]:
        if self._connection is None:
            self._connection = connect(self.target)
        cursor = self._connection.cursor(cursor_factory=RealDictCursor)
        try:
            found = first(cursor)
        except BaseException as error:
            self._undo(error)
            raise
        return cursor, found

    def _undo(self, error: BaseException) -> None:
        if self._connection is None:
            return
        if isinstance(error, psycopg2.Error) and is_lost(error):
            self.close()
            return
        try:
            self._connection.rollback()
        except psycopg2.Error:
            self.close()

    def close(self) -> None:
        """Close the connection; the session opens a new one when it is used again."""
        with self._turn:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(psycopg2.Error):
                    connection.close()


def _nothing(_cursor: RealDictCursor, found: T) -> T:
    return found
