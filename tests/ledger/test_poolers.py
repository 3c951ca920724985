"""A connection pooler before the ledger, and what administrators limit sessions to."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path

import psycopg2
import pytest
from psycopg2.extensions import make_dsn

from demo.mysql_search import cache_folder
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import ConfigurationError, LeaseLost, SetupIncomplete
from lockstep.resources.postgres import leases
from lockstep.resources.postgres.connection import LedgerAddress, connect
from lockstep.resources.postgres.ledger import open_ledger
from tests.ledger.made import DECISION
from tests.ledger.poolers import pgbouncer
from tests.ledger.servers import run

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
