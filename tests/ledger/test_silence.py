"""A holder that gives no sign of life: taken over, and fenced off when it wakes up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import LeaseLost, SourceBusy
from lockstep.resources.postgres import leases
from lockstep.resources.postgres.ledger import PostgresLedger, open_ledger
from tests.ledger.made import DECISION
from tests.ledger.servers import EACH_POSTGRES, run

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
    """Once its last one is a minute old; what it writes then is refused."""
    with postgres.lock(source, "silent", None) as silent:
        silence(dsn, source)
        with postgres.lock(source, "quick", None) as quick:
            assert quick.token == silent.token + 1
            with pytest.raises(LeaseLost):
                postgres.decide(silent, DECISION)
            postgres.decide(quick, DECISION)
    assert len(postgres.decisions(source)) == 1


def test_the_end_of_a_silent_holder_leaves_the_new_one_alone(
    postgres: PostgresLedger, dsn: str, source: str
) -> None:
    """Its connection is gone, so nothing it does on leaving touches the lock."""
    silent = postgres.lock(source, "silent", None)
    silent.__enter__()
    silence(dsn, source)
    with postgres.lock(source, "quick", None):
        silent.__exit__(None, None, None)
        lease = postgres.newest_lease(source)
        assert lease is not None
        assert (lease.holder, lease.live) == ("quick", True)


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
