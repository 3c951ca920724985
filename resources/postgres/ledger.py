"""The ledger on Postgres: one class for each subject, such as leases or batches, all
over one session."""

from __future__ import annotations

from pathlib import Path

from lockstep.resources.postgres.batches import PostgresBatches
from lockstep.resources.postgres.connection import LedgerAddress, connect
from lockstep.resources.postgres.consumers import PostgresConsumers
from lockstep.resources.postgres.decisions import PostgresDecisions
from lockstep.resources.postgres.deletions import PostgresDeletions
from lockstep.resources.postgres.embedded import EmbeddedServer
from lockstep.resources.postgres.leases import PostgresLeases
from lockstep.resources.postgres.migrate import migrate
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
    write checks the token of its lease (the run's right to write for a source).
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
