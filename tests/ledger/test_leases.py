"""Who may write: the lock, its lease, the token that fences writes; what was done under the leases
of a span; holders without a sign of life, taken over, and fenced off when they wake up."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Thread
from uuid import UUID

import pytest

from lockstep.pipeline.model.batch import RunsOutsideDagster
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Lease, LeaseView
from lockstep.pipeline.values.errors import LeaseLost, LedgerRefused, SourceBusy
from lockstep.pipeline.values.table import TableName
from lockstep.resources.postgres import leases
from lockstep.resources.postgres.ledger import PostgresLedger, open_ledger
from tests.fix_ledger import LedgerOfTest
from tests.ledger.made import (
    DECISION,
    ORDERS,
    STOCK,
    begun,
    first_captured,
    intended,
    merged,
    next_captured,
    record,
)
from tests.ledger.servers import EACH_POSTGRES, Stand, run


def test_others_see_a_lease_and_whether_it_is_live(stand: Stand, source: str) -> None:
    """A lease is live exactly while its lock is held; it ended where it was given back, and not
    where the lock was lost. It says whether Dagster records the run."""
    with stand.ledger.lock(source, "the holder", "run-1", in_dagster=True):
        held = stand.other.newest_lease(source)
    left = stand.other.newest_lease(source)
    assert held is not None
    assert held.beat_at is not None
    expected = LeaseView(1, "the holder", "run-1", held.taken_at, True, held.beat_at, True)
    expected = replace(expected, recorded_at=held.taken_at)
    assert held == expected
    assert left == replace(expected, live=False, ended=True)


def test_what_a_run_recorded_last_is_known(stand: Stand, source: str) -> None:
    """A heartbeat is no result; a decision is one."""
    with stand.ledger.lock(source, "the holder", "run-1") as lease:
        stand.ledger.decide(lease, DECISION)
        held = stand.other.newest_lease(source)
    assert held is not None
    assert held.recorded_at is not None
    assert held.recorded_at > held.taken_at


def test_how_the_run_before_ended_is_known(stand: Stand, source: str) -> None:
    """Whether it gave its lease back, also once a command that is no run held the source."""
    with stand.ledger.lock(source, "first", "run-1") as first:
        assert stand.ledger.run_before(first) is None
    with stand.other.lock(source, "killed", "run-2") as killed:
        before = stand.other.run_before(killed)
        stand.lose_lock(source)
    with stand.ledger.lock(source, "a command", None):
        pass
    with stand.ledger.lock(source, "third", "run-3") as third:
        then = stand.ledger.run_before(third)
    assert before is not None
    assert then is not None
    assert [(one.run_id, one.ended, one.live) for one in (before, then)] == [
        ("run-1", True, False),
        ("run-2", False, False),
    ]


def test_a_held_source_is_busy_at_once(stand: Stand, source: str) -> None:
    """The refusal names who holds the source, its run, and since when."""
    with stand.ledger.lock(source, "the holder", "run-1"):
        lease = stand.other.newest_lease(source)
        with pytest.raises(SourceBusy) as refused, stand.other.lock(source, "another", None):
            pass
    assert lease is not None
    since = f"{lease.taken_at:%Y-%m-%d %H:%M:%S} UTC"
    assert refused.value.message == (
        f"The source '{source}' is busy: the holder, run run-1, since {since}."
    )


def test_a_session_that_outlives_a_killed_process_is_waited_for(stand: Stand, source: str) -> None:
    """Only on the host where the process was; the session ends once the first try has failed."""
    child = subprocess.Popen(["true"])
    child.wait()
    dead = f"{socket.gethostname()}, process {child.pid} (run)"
    tried = (
        "select count(*) from pg_stat_activity"
        " where query like 'select pg_try_advisory_lock%%' and pid <> any("
        "  select backend_pid from lockstep.leases where source = %s)"
    )

    def end() -> None:
        while run(stand.dsn, tried, source) == [(0,)]:
            pass
        stand.lose_lock(source)

    with stand.ledger.lock(source, dead, "run-1"):
        ending = Thread(target=end)
        ending.start()
        try:
            with stand.other.lock(source, "another", None) as lease:
                assert lease.token == 2
        finally:
            ending.join()


def test_the_same_process_is_refused_too(ledger: Ledger, lease: Lease) -> None:
    """A lock is not taken twice by one ledger either."""
    with pytest.raises(SourceBusy), ledger.lock(lease.source, "again", None):
        pass


def test_an_error_inside_releases_the_lock(ledger: Ledger, source: str) -> None:
    """Whatever ends the context, the next holder gets in."""
    with pytest.raises(ZeroDivisionError), ledger.lock(source, "one", None):
        raise ZeroDivisionError
    with ledger.lock(source, "two", None) as second:
        assert second.token == 2


def test_a_lease_that_nobody_took_writes_nothing(ledger: Ledger, source: str) -> None:
    """A token is compared, not believed."""
    with pytest.raises(LeaseLost):
        ledger.decide(Lease(source, 1, "nobody", None), DECISION)


@pytest.fixture
def no_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """No holder notices by itself that its lock is lost."""
    monkeypatch.setattr(leases, "BEAT_SECONDS", 600.0)


@pytest.mark.usefixtures("no_beats")
def test_a_token_that_was_given_twice_is_one_holders() -> None:
    """Postgres fails over to a standby that lacks the newest lease, before its holder notices."""
    ledger = LedgerOfTest()
    with ledger.lock("shop", "somebody", "run-1") as lease:
        ledger.decide(lease, DECISION)
    standby = ledger.content()
    with ledger.lock("shop", "the first", "run-2") as first:
        ledger.fail_over(standby)
        with pytest.raises(LeaseLost, match="no longer has this run's lease"):
            ledger.decide(first, DECISION)
        other = LedgerOfTest(ledger.database)
        with other.lock("shop", "the second", "run-3") as second:
            assert second.token == first.token
            with pytest.raises(LeaseLost, match="Another run"):
                ledger.decide(first, DECISION)
            with pytest.raises(LeaseLost, match="Another run"):
                ledger.require_held(first)
            other.decide(second, DECISION)
    assert len(other.decisions("shop")) == 2


@pytest.mark.usefixtures("no_beats")
def test_a_step_about_what_a_standby_lacks_says_so() -> None:
    """It has the lease, and not the batch that was begun under it."""
    ledger = LedgerOfTest()
    with ledger.lock("shop", "a run", "run-1") as lease:
        ledger.decide(lease, DECISION)
        standby = ledger.content()
        batch = begun(ledger, lease)
        ledger.fail_over(standby)
        with pytest.raises(LedgerRefused, match="it does not have the batch") as refused:
            ledger.record_capture(lease, batch.id, record(batch))
    assert "another server of Postgres took over" in refused.value.hint


# -- processes at a server of Spark ------------------------------------------------------------

ONE, OTHER = (UUID(int=number) for number in (1, 2))


def test_a_client_is_known_until_it_is_forgotten(ledger: Ledger, lease: Lease) -> None:
    """By whoever holds its source, however often it is noted."""
    for client in (OTHER, ONE, ONE):
        ledger.note_spark_client(lease, client)
    assert ledger.spark_clients(lease.source) == [ONE, OTHER]
    ledger.forget_spark_client(lease, ONE)
    ledger.forget_spark_client(lease, ONE)
    assert ledger.spark_clients(lease.source) == [OTHER]
    assert ledger.spark_clients(f"not {lease.source}") == []


# -- runs that Dagster does not record ---------------------------------------------------------


def test_what_others_did_is_told_by_the_leases_of_a_span(ledger: Ledger, source: str) -> None:
    """Runs, their batches, and each table once with its last write; nothing of what Dagster
    records, and commands are no runs, though they write. A write counts for the lease under which
    it was settled, whoever began it."""
    with ledger.lock(source, "a run", "run-1") as lease:
        one = first_captured(ledger, lease, ORDERS, STOCK).id
        merged(ledger, lease, STOCK, one, one, 0)
    with ledger.lock(source, "Dagster", "run-2", in_dagster=True) as lease:
        merged(ledger, lease, ORDERS, one, one, 0)
        two = next_captured(ledger, lease, ORDERS, STOCK).id
    with ledger.lock(source, "a command", None) as lease:
        merged(ledger, lease, STOCK, two, two, 1)
        left = intended(ledger, lease, ORDERS, two, two)
    with ledger.lock(source, "a run", "run-4") as lease:
        ledger.settle(lease, left, 1)

    def written(
        after: int, through: int, beyond: TableName | None = None, *, all_runs: bool = False
    ) -> list[tuple[TableName, int, int]]:
        found = ledger.writes_outside_dagster(source, after, through, beyond, 9, all_runs=all_runs)
        return [
            (
                one.newest_write.intent.table,
                min(one.batches_since(0)),
                one.newest_write.delta_version,
            )
            for one in found
        ]

    assert ledger.runs_outside_dagster(source, 0, 4) == RunsOutsideDagster(2, (one,))
    assert ledger.runs_outside_dagster(source, 1, 3) == RunsOutsideDagster(0, ())
    assert ledger.runs_outside_dagster(source, 0, 9).deleted_lease_count == 5
    everything = ledger.runs_outside_dagster(source, 0, 4, all_runs=True)
    assert everything == RunsOutsideDagster(3, (one, two))
    assert written(0, 4) == [(ORDERS, two, 1), (STOCK, one, 1)]
    assert written(0, 4, beyond=ORDERS) == [(STOCK, one, 1)]
    assert (written(1, 3), written(1, 2)) == ([(STOCK, two, 1)], [])
    assert written(1, 2, all_runs=True) == [(ORDERS, one, 0)]
    (first,) = ledger.writes_outside_dagster(source, 0, 4, None, 1)
    assert first.newest_write.intent.table == ORDERS


def test_a_run_that_lost_its_connection_is_one_run(stand: Stand, source: str) -> None:
    """It goes on under another lease, whose end is the run's."""
    for is_lost in (True, False):
        with stand.ledger.lock(source, "a run", "run-1"):
            if is_lost:
                stand.lose_lock(source)
    assert stand.ledger.runs_outside_dagster(source, 0, 2) == RunsOutsideDagster(1, ())
    with stand.ledger.lock(source, "another", "run-2"):
        stand.lose_lock(source)
    assert stand.ledger.runs_outside_dagster(source, 0, 3) == RunsOutsideDagster(2, (), 1)


# -- holders that are silent -------------------------------------------------------------


LONG = timedelta(hours=1)


@pytest.fixture(params=EACH_POSTGRES)
def dsn(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def postgres(dsn: str) -> Iterator[PostgresLedger]:
    with open_ledger(dsn, Path()) as opened:
        yield opened


def silence(dsn: str, source: str) -> None:
    """The holder's last sign of life was an hour ago."""
    run(dsn, "update lockstep.sources set beat_at = beat_at - %s where name = %s", LONG, source)


def test_a_holder_gives_signs_of_life(
    postgres: PostgresLedger, dsn: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a step of its own; whoever gives them is not taken over."""
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.01)
    with postgres.lock(source, "the holder", None):
        first = postgres.newest_lease(source)
        assert first is not None
        assert first.beat_at is not None
        silence(dsn, source)
        while not has_beaten(postgres, source, first.beat_at):
            continue
        with pytest.raises(SourceBusy), postgres.lock(source, "another", None):
            pass


def has_beaten(postgres: PostgresLedger, source: str, moment: datetime) -> bool:
    lease = postgres.newest_lease(source)
    return lease is not None and lease.beat_at is not None and lease.beat_at > moment


def test_a_holder_without_a_sign_of_life_is_taken_over(
    postgres: PostgresLedger, dsn: str, source: str
) -> None:
    """Once its last one is a minute old; what it writes then is refused, and nothing that it does
    on leaving touches the lock: its connection is gone."""
    silent = postgres.lock(source, "silent", None)
    lost = silent.__enter__()
    silence(dsn, source)
    with postgres.lock(source, "quick", None) as quick:
        assert quick.token == lost.token + 1
        with pytest.raises(LeaseLost):
            postgres.decide(lost, DECISION)
        silent.__exit__(None, None, None)
        lease = postgres.newest_lease(source)
        assert lease is not None
        assert (lease.holder, lease.live) == ("quick", True)
        postgres.decide(quick, DECISION)
    assert len(postgres.decisions(source)) == 1


HOLDER = """
import sys
from dataclasses import replace
from pathlib import Path
from lockstep.resources.postgres import connection, leases
from lockstep.resources.postgres.ledger import open_ledger
from lockstep.resources.postgres.session import Transaction
from tests.ledger.made import DECISION

leases.BEAT_SECONDS = 0.02
connection._SETTINGS["idle_in_transaction_session_timeout"] = "100ms"
dsn, source, inside = sys.argv[1:]

def wait():
    print("here", flush=True)
    sys.stdin.readline()

def only(transaction, name, /, only=Transaction.only, **values):
    if inside:
        wait()
    return only(transaction, name, **values)

Transaction.only = only
with open_ledger(dsn, Path()) as ledger, ledger.lock(source, "the holder", None) as lease:
    if not inside:
        wait()
    try:
        ledger.decide(lease, replace(DECISION, author="the holder"))
    except connection.LockstepError as error:
        print(type(error).__name__, flush=True)
"""


@contextmanager
def holder(dsn: str, source: str, inside: str = "") -> Iterator[subprocess.Popen[str]]:
    """A process that holds the source, stopped; `inside` a transaction or before it."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, dsn, source, inside],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        os.kill(process.pid, signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def taken_over(postgres: PostgresLedger, source: str) -> Iterator[Lease]:
    """The source's lock, tried again until its holder was silent for long enough."""
    with ExitStack() as taken:
        lease = None
        while lease is None:
            with suppress(SourceBusy):
                lease = taken.enter_context(postgres.lock(source, "quick", None))
        yield lease


@pytest.mark.parametrize(
    ("inside", "ended"),
    [
        ("", False),
        pytest.param("a transaction", False, marks=pytest.mark.soak),
        ("a transaction", True),
    ],
)
def test_a_stopped_holder_is_taken_over_and_records_nothing(
    postgres: PostgresLedger,
    dsn: str,
    source: str,
    inside: str,
    ended: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before a step or in the middle of one, which keeps a row locked; whether it wakes up
    while the other one holds the source or later, its step is refused."""
    monkeypatch.setattr(leases, "SILENT_SECONDS", 0.3)
    with holder(dsn, source, inside) as process:
        with taken_over(postgres, source) as lease:
            assert lease.token == 2
            kept = postgres.decide(lease, DECISION)
            if not ended:
                os.kill(process.pid, signal.SIGCONT)
                told, _ = process.communicate("go on\n")
        if ended:
            os.kill(process.pid, signal.SIGCONT)
            told, _ = process.communicate("go on\n")
        assert told.strip() in {"LeaseLost", "LedgerUnavailable"}
        assert process.returncode == 0
    assert postgres.decisions(source) == [kept]
