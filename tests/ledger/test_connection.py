"""A Postgres that cannot be reached, connections that are lost, poolers before it, and what
administrators limit sessions to."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path

import psycopg2
import pytest
from psycopg2.extensions import make_dsn

from demo.mysql_search import cache_folder
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import (
    AccessDenied,
    ConfigurationError,
    HostUnknown,
    LeaseLost,
    LedgerUnavailable,
    LockstepError,
    PrivilegeMissing,
    SetupIncomplete,
    TlsRefused,
)
from lockstep.resources.postgres import leases
from lockstep.resources.postgres.connection import LedgerAddress, connect
from lockstep.resources.postgres.ledger import open_ledger
from tests.ledger.made import DECISION, begun
from tests.ledger.poolers import pgbouncer
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


# -- a pooler before it, and limits of sessions ------------------------------------------


_NUMBERS = count(1)


@pytest.fixture
def pooled(request: pytest.FixtureRequest, tcp_dsn: str) -> Iterator[str]:
    """A ledger's DSN by way of a real pgbouncer."""
    mode, round_robin = request.param
    server = database(tcp_dsn)
    try:
        with pgbouncer(cache_folder(os.environ), server, mode, round_robin=round_robin) as dsn:
            yield dsn
    except SetupIncomplete as missing:
        pytest.skip(f"{missing.message}; {missing.hint}")


def database(dsn: str, *settings: str) -> str:
    """A new one, whose sessions begin with these settings."""
    name = f"ledger_{next(_NUMBERS)}"
    run(dsn, f"create database {name}")
    for setting in settings:
        run(dsn, f"alter database {name} set {setting}")
    return make_dsn(dsn, dbname=name)


SHARED = [("transaction", False), ("transaction", True), ("statement", False)]


@pytest.mark.thin
@pytest.mark.parametrize("pooled", SHARED, indirect=True, ids=str)
@pytest.mark.parametrize("others", [0, 3])
def test_a_pooler_that_shares_sessions_is_refused(pooled: str, others: int) -> None:
    """Whatever it hands out first, and however many connections it has open already: before
    anything is made or locked, by name and with the cure."""
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda _: run(pooled, "select pg_sleep(0.1)"), range(others)):
            continue
    with pytest.raises(ConfigurationError, match="pgbouncer") as refused:
        open_ledger(pooled, Path())
    assert "pool_mode = session" in refused.value.hint


@pytest.mark.parametrize("pooled", [("session", False)], indirect=True, ids=str)
def test_a_pooler_that_keeps_sessions_is_as_good_as_none(pooled: str) -> None:
    """The lock holds while its connection does, and is free for the next one then."""
    with open_ledger(pooled, Path()) as ledger:
        with ledger.lock("shop", "one", None) as lease:
            ledger.decide(lease, DECISION)
        with ledger.lock("shop", "two", None) as second:
            assert second.token == 2


LIMITS = (
    "idle_session_timeout = '50ms'",
    "statement_timeout = '50ms'",
    "transaction_timeout = '50ms'",
    "idle_in_transaction_session_timeout = '50ms'",
    "tcp_keepalives_idle = 1",
    "tcp_keepalives_interval = 1",
    "tcp_keepalives_count = 1",
    "tcp_user_timeout = 50",
    "default_transaction_isolation = 'serializable'",
)


def test_limits_of_sessions_are_not_for_ours(tcp_dsn: str) -> None:
    """Neither the lock's session nor a step ends by what a database limits: each of our settings
    holds, and a session is idle, in a statement and in a transaction for longer than allowed."""
    limited = database(tcp_dsn, *LIMITS)
    with (
        closing(connect(LedgerAddress.parse(limited))) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("begin; select pg_sleep(0.2)")
        threading.Event().wait(0.1)
        cursor.execute("select pg_sleep(0)")
        cursor.execute("commit")
        threading.Event().wait(0.1)
        for name in re.findall(r"^\w+", "\n".join(LIMITS), re.MULTILINE):
            cursor.execute("select setting = reset_val from pg_settings where name = %s", [name])
            assert cursor.fetchall() == [(False,)], name


def test_a_server_that_vanished_is_noticed_within_a_minute(tcp_dsn: str) -> None:
    """Also one that does not confirm what is sent to it, which TCP alone tries for longer. What
    the DSN itself says holds."""

    def limits(dsn: str) -> tuple[str, int]:
        with (
            closing(connect(LedgerAddress.parse(dsn))) as connection,
            socket.socket(fileno=os.dup(connection.fileno())) as one,
        ):
            unconfirmed = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            return connection.info.dsn_parameters["connect_timeout"], unconfirmed

    assert limits(tcp_dsn) == ("10", 60_000)
    own = make_dsn(tcp_dsn, connect_timeout=3, tcp_user_timeout=5_000)
    assert limits(own) == ("3", 5_000)


def test_a_read_only_ledger_is_refused_before_a_run(tcp_dsn: str) -> None:
    """`check` asks for it; what only looks is not kept from it."""
    name = database(tcp_dsn)
    open_ledger(name, Path()).close()
    read_only = make_dsn(name, options="-c default_transaction_read_only=on")
    with open_ledger(read_only, Path()) as ledger:
        assert ledger.batches("shop") == []
        with pytest.raises(ConfigurationError, match="read-only"):
            ledger.require_writable()


@pytest.fixture
def quick_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.01)


def test_a_lock_that_is_lost_ends_what_it_was_for(
    embedded_dsn: str, source: str, quick_beats: None
) -> None:
    """Without another holder: as soon as the lock's connection is gone, nothing is written under
    it, and whoever works without a step is told."""
    with open_ledger(embedded_dsn, Path()) as ledger, pytest.raises(LeaseLost, match="was lost"):
        with ledger.lock(source, "one", None) as lease:
            end_lock(embedded_dsn, source)
            while True:
                ledger.require_not_lost(lease)
        pytest.fail("the loss was not told")
    with open_ledger(embedded_dsn, Path()) as ledger:
        with ledger.lock(source, "one", None) as lease:
            end_lock(embedded_dsn, source)
            lost(ledger.require_not_lost, lease)
            with pytest.raises(LeaseLost, match="was lost"):
                ledger.decide(lease, DECISION)
        assert ledger.decisions(source) == []


def lost(asked: object, lease: Lease) -> None:
    """Wait until a lease is known to be lost."""
    assert callable(asked)
    while True:
        try:
            asked(lease)
        except LeaseLost:
            return


def end_lock(dsn: str, source: str) -> None:
    run(
        dsn,
        "select pg_terminate_backend(backend_pid, 5000) from lockstep.leases"
        " where source = %s order by token desc limit 1",
        source,
    )


def test_a_step_that_takes_long_does_not_end_the_signs_of_life(
    embedded_dsn: str, source: str, quick_beats: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A beat that waits for a row in vain is no loss: the next one is given."""
    from lockstep.resources.postgres import connection

    monkeypatch.setitem(connection._SETTINGS, "lock_timeout", "10ms")
    with (
        open_ledger(embedded_dsn, Path()) as ledger,
        ledger.lock(source, "one", None) as lease,
        closing(psycopg2.connect(embedded_dsn)) as other,
    ):
        with other.cursor() as cursor:
            cursor.execute("select from lockstep.sources where name = %s for update", [source])
            threading.Event().wait(0.1)
            other.rollback()
        before = ledger.newest_lease(source)
        assert before is not None
        assert before.beat_at is not None
        while True:
            now = ledger.newest_lease(source)
            assert now is not None
            if now.beat_at is not None and now.beat_at > before.beat_at:
                break
        ledger.decide(lease, DECISION)
