"""The ledger on Postgres: one class for each subject, such as leases or batches, all
over one session. Migrations bring its schema up to this version when it is opened.

Migrations are `migrations/NNNN_name.sql`, each applied once, in order, in one
transaction, and never changed afterwards: the ledger keeps each one's checksum.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from psycopg2.extensions import connection as Connection
from psycopg2.extensions import cursor as Cursor

from lockstep.pipeline.values.errors import LedgerNewer, LedgerRefused
from lockstep.resources.postgres.batches import PostgresBatches
from lockstep.resources.postgres.connection import (
    LOCK_NAMESPACE,
    LedgerAddress,
    connect,
    translate_errors,
)
from lockstep.resources.postgres.consumers import PostgresConsumers
from lockstep.resources.postgres.decisions import PostgresDecisions
from lockstep.resources.postgres.deletions import PostgresDeletions
from lockstep.resources.postgres.embedded import EmbeddedServer
from lockstep.resources.postgres.leases import PostgresLeases
from lockstep.resources.postgres.schemas import PostgresSchemas
from lockstep.resources.postgres.session import Session
from lockstep.resources.postgres.tables import PostgresTables
from lockstep.resources.postgres.writes import PostgresWrites


def open_ledger(dsn: str, folder: Path) -> PostgresLedger:
    """Open the ledger and bring its schema up to this version.

    `dsn` is a libpq DSN or URL including its secrets, or "embedded": a server with its
    data in `folder`/ledger, which is started unless it runs. Close the ledger, best
    with a `with` statement. Raise `ConfigurationError`, `LedgerUnavailable` or
    `LedgerNewer`.
    """
    if dsn != "embedded":
        return PostgresLedger(LedgerAddress.parse(dsn))
    server = EmbeddedServer(folder / "ledger")
    try:
        label = f"the embedded ledger in {folder / 'ledger'}"
        return PostgresLedger(LedgerAddress(server.dsn, label), server)
    except BaseException:
        server.close()
        raise


class PostgresLedger(
    PostgresLeases,
    PostgresDecisions,
    PostgresBatches,
    PostgresSchemas,
    PostgresTables,
    PostgresWrites,
    PostgresDeletions,
):
    """The port `Ledger` (`pipeline.ports.ledger`) on Postgres; safe to use from several
    threads.

    Reads and writes share one session. Each lock has a connection of its own, and is
    released when that connection ends. A run that has lost its lock cannot write: each
    write compares the token of the run's lease with the newest one.
    """

    def __init__(self, address: LedgerAddress, server: EmbeddedServer | None = None) -> None:
        connection = connect(address)
        try:
            migrate(address, connection)
        except BaseException:
            connection.close()
            raise
        super().__init__(Session(address, connection))
        self._server = server
        self.consumers = PostgresConsumers(self._session)

    def __enter__(self) -> PostgresLedger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the session, and release the embedded server if there is one."""
        self._session.close()
        if self._server is not None:
            self._server.close()


_LOCK_KEY = 0
"""Key of the advisory lock of migrations; the locks of sources have keys from 1 on."""

_MIGRATIONS_TABLE = """
create table if not exists lockstep.schema_migrations (
    number integer constraint schema_migrations_pk primary key,
    name text not null,
    sha256 text not null,
    applied_at timestamptz not null default now()
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration's file. `text`: its SQL statements."""

    number: int
    name: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def migrations() -> tuple[Migration, ...]:
    """Return all migrations of this version, ascending."""
    folder = files("lockstep.resources.postgres").joinpath("migrations")
    entries = [entry for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return tuple(
        Migration(int(entry.name[:4]), entry.name[5:-4], entry.read_text(encoding="utf-8"))
        for entry in sorted(entries, key=lambda entry: entry.name)
    )


def outstanding_migrations(
    applied: dict[int, str], available: tuple[Migration, ...]
) -> tuple[Migration, ...]:
    """Return the migrations of `available` that the ledger lacks. `applied`: number →
    checksum of the migrations that the ledger has.

    Raise `LedgerNewer` if the ledger has a migration that is not in `available`,
    `LedgerRefused` if a migration was changed after it was applied.
    """
    newer = sorted(applied.keys() - {migration.number for migration in available})
    if newer:
        raise LedgerNewer(
            f"The ledger was written by a newer Lockstep (migration {newer[-1]:04d}).",
            hint="Upgrade Lockstep, or point [ledger] dsn at another database.",
        )
    for migration in available:
        if applied.get(migration.number, migration.sha256) != migration.sha256:
            raise LedgerRefused(
                f"The ledger's migration {migration.number:04d} differs from this version's.",
                hint="Use the version of Lockstep that made this ledger.",
            )
    return tuple(migration for migration in available if migration.number not in applied)


def migrate(
    address: LedgerAddress, connection: Connection, available: tuple[Migration, ...] | None = None
) -> None:
    """Apply the outstanding migrations of `available`, by default all of this version.
    If several processes try at once, one applies them and the others wait. A ledger
    that is up to date is only read. After an error the caller has to close the
    connection, which rolls back."""
    wanted = migrations() if available is None else available
    with translate_errors(address), connection.cursor() as cursor:
        if outstanding_migrations(_applied_checksums(cursor), wanted):
            lock = "begin; select pg_advisory_xact_lock(%s, %s)"
            cursor.execute(lock, (LOCK_NAMESPACE, _LOCK_KEY))
            _apply(cursor, wanted)
            cursor.execute("commit")


def _applied_checksums(cursor: Cursor) -> dict[int, str]:
    cursor.execute("select to_regclass('lockstep.schema_migrations') is not null")
    [(exists,)] = cursor.fetchall()
    if not exists:
        return {}
    cursor.execute("select number, sha256 from lockstep.schema_migrations")
    return dict(cursor.fetchall())


def _apply(cursor: Cursor, available: tuple[Migration, ...]) -> None:
    # `create schema if not exists` would need the privilege to create schemas even if
    # an administrator created this one.
    cursor.execute("select to_regnamespace('lockstep') is not null")
    [(exists,)] = cursor.fetchall()
    if not exists:
        cursor.execute("create schema lockstep")
    cursor.execute(_MIGRATIONS_TABLE)
    # Another process may have migrated before this one got the lock.
    for migration in outstanding_migrations(_applied_checksums(cursor), available):
        cursor.execute(migration.text)
        cursor.execute(
            "insert into lockstep.schema_migrations (number, name, sha256) values (%s, %s, %s)",
            (migration.number, migration.name, migration.sha256),
        )
