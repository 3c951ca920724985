"""A Postgres that cannot be reached, and connections that are lost."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace
from pathlib import Path

import psycopg2
import pytest
from psycopg2.extensions import make_dsn

from lockstep.pipeline.values.errors import (
    AccessDenied,
    ConfigurationError,
    HostUnknown,
    LedgerUnavailable,
    LockstepError,
    PrivilegeMissing,
    TlsRefused,
)
from lockstep.resources.postgres.ledger import open_ledger
from tests.ledger.made import DECISION, begun
from tests.ledger.servers import PASSWORD, run

WRONG = "a wrong canary"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"password": WRONG}, AccessDenied),
        ({"user": "nobody_known", "password": WRONG}, AccessDenied),
        ({"dbname": "nowhere"}, ConfigurationError),
        ({"host": "nowhere.invalid"}, HostUnknown),
        ({"sslmode": "require"}, TlsRefused),
    ],
    ids=lambda value: "".join(value) if isinstance(value, dict) else value.__name__,
)
def test_a_wrong_dsn_is_a_mistake_of_configuration(
    server_dsn: str, change: dict[str, str], expected: type[LockstepError]
) -> None:
    """Each names what is wrong, says what to do, and keeps the password to itself."""
    with pytest.raises(ConfigurationError) as refused:
        open_ledger(make_dsn(server_dsn, **change), Path())
    assert type(refused.value) is expected
    assert PASSWORD not in f"{refused.value}{refused.value.hint}"
    assert WRONG not in f"{refused.value}{refused.value.hint}"


def test_what_is_no_dsn_is_not_repeated() -> None:
    """It may hold a password."""
    with pytest.raises(ConfigurationError) as refused:
        open_ledger(f"postgres:/{WRONG}", Path())
    assert WRONG not in str(refused.value)


def test_nobody_listening_is_tried_again() -> None:
    """The server may be about to start."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        with pytest.raises(LedgerUnavailable):
            open_ledger(f"host=127.0.0.1 port={port} user=x dbname=x", Path())


def test_a_server_that_stops_in_the_handshake_is_tried_again() -> None:
    """Its certificate is not to blame."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def stop() -> None:
            client, _ = listening.accept()
            with client:
                client.recv(8)
                client.sendall(b"S")
                client.recv(4096)  # the handshake's first message

        thread = threading.Thread(target=stop)
        thread.start()
        port = listening.getsockname()[1]
        with pytest.raises(LedgerUnavailable):
            open_ledger(f"host=127.0.0.1 port={port} user=x dbname=x sslmode=require", Path())
        thread.join()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (("FATAL", "Passwort-Authentifizierung für Benutzer »x« fehlgeschlagen"), AccessDenied),
        (("FATAL", "la base de données « x » n'existe pas"), AccessDenied),
        (("ВАЖНО", 'роль "x" не существует'), AccessDenied),
        (("FATAL", 'no pg_hba.conf entry for host "h", user "x", database "x"'), AccessDenied),
        (("FATAL", 'permission denied for database "x"'), AccessDenied),
        (("FATAL", "le système de bases de données s'arrête"), LedgerUnavailable),
        (("FATAL", "das Datenbanksystem startet"), LedgerUnavailable),
        (("FATAL", 'too many connections for role "x"'), LedgerUnavailable),
        (
            (
                "FATAL",
                "remaining connection slots are reserved for roles with privileges of the "
                '"pg_use_reserved_connections" role',
            ),
            LedgerUnavailable,
        ),
    ],
)
def test_a_refused_login_is_known_in_any_language(
    answer: tuple[str, str], expected: type[LockstepError]
) -> None:
    """libpq gives no SQLSTATE of it, and the server's text has the language of lc_messages. Each
    address of a host that answers has its line, as each try with and without TLS has."""
    severity, sentence = answer
    fields = f"S{severity}\0VFATAL\0C57P03\0M{sentence}\0\0".encode()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def refuse() -> None:
            for _ in range(2):
                client, _ = listening.accept()
                with client:
                    client.recv(4096)
                    client.sendall(b"E" + (len(fields) + 4).to_bytes(4) + fields)

        thread = threading.Thread(target=refuse)
        thread.start()
        port, address = listening.getsockname()[1], "127.0.0.1"
        dsn = f"host={address},{address} port={port},{port} user=x dbname=x sslmode=disable"
        with pytest.raises(LockstepError) as refused:
            open_ledger(dsn, Path())
        thread.join()
    assert type(refused.value) is expected


def test_an_account_without_rights_is_told_so(server_dsn: str) -> None:
    """Making the schema needs a grant."""
    run(server_dsn, "create role guest login password 'guest'")
    run(server_dsn, "create database guarded")
    with pytest.raises(PrivilegeMissing):
        open_ledger(make_dsn(server_dsn, user="guest", password="guest", dbname="guarded"), Path())


def test_names_in_any_script_are_recorded(embedded_dsn: str) -> None:
    """Whatever the database sets for other clients."""
    run(embedded_dsn, "create database latin")
    run(embedded_dsn, "alter database latin set client_encoding = 'LATIN1'")
    with open_ledger(make_dsn(embedded_dsn, dbname="latin"), Path()) as ledger:
        with ledger.lock("магазин", "a test", None) as lease:
            ledger.decide(lease, replace(DECISION, reason="漢字…"))
        assert ledger.decisions("магазин")[0].decision.reason == "漢字…"


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_have_every_name_is_refused(
    embedded_dsn: str, encoding: str
) -> None:
    """initdb chooses SQL_ASCII where the locale is C."""
    run(embedded_dsn, f"create database {encoding} encoding '{encoding}' template template0")
    with pytest.raises(ConfigurationError, match=f"has the encoding {encoding}"):
        open_ledger(make_dsn(embedded_dsn, dbname=encoding.lower()), Path())


def _cut(dsn: str) -> None:
    """End every other connection to the database and wait until each is gone."""
    run(
        dsn,
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
        " and backend_type = 'client backend' and application_name = 'to be cut'",
    )


def test_an_idle_connection_that_was_dropped_is_opened_again(embedded_dsn: str) -> None:
    """For reads and for writes: nothing was on its way."""
    dsn = make_dsn(embedded_dsn, application_name="to be cut")
    with open_ledger(dsn, Path()) as ledger, ledger.lock("dropped", "a test", None) as lease:
        batch = begun(ledger, lease)
        _cut(embedded_dsn)
        assert ledger.unfinished_batches("dropped") == [batch]
        _cut(embedded_dsn)
        ledger.decide(lease, DECISION)
        assert len(ledger.decisions("dropped")) == 2


def test_a_server_that_is_gone_is_unavailable(embedded_dsn: str) -> None:
    """The driver's own error is the cause."""
    run(embedded_dsn, "create database gone")
    with open_ledger(make_dsn(embedded_dsn, dbname="gone"), Path()) as ledger:
        connection = psycopg2.connect(embedded_dsn)
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("alter database gone allow_connections false")
            cursor.execute(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
                " where datname = 'gone'"
            )
            with pytest.raises(LedgerUnavailable) as lost:
                ledger.batches("any")
            cursor.execute("drop database gone")
        connection.close()
    assert isinstance(lost.value.__cause__, psycopg2.OperationalError)
