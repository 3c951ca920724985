"""Who may write: the lock, its lease, and the token that fences writes; and what was done under the
leases of a span."""

from __future__ import annotations

import socket
import subprocess
from dataclasses import replace
from threading import Thread
from uuid import UUID

import pytest

from lockstep.pipeline.model.batch import RunsOutsideDagster
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Lease, LeaseView
from lockstep.pipeline.values.errors import LeaseLost, SourceBusy
from lockstep.pipeline.values.table import TableName
from tests.ledger.made import (
    DECISION,
    ORDERS,
    STOCK,
    first_captured,
    intended,
    merged,
    next_captured,
)
from tests.ledger.servers import Stand, run


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
        assert stand.ledger.newest_lease(source, before=first.token) is None
    with stand.other.lock(source, "killed", "run-2") as killed:
        before = stand.other.newest_lease(source, before=killed.token)
        stand.lose_lock(source)
    with stand.ledger.lock(source, "a command", None):
        pass
    with stand.ledger.lock(source, "third", "run-3") as third:
        then = stand.ledger.newest_lease(source, before=third.token)
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


# -- processes at a server of Spark ------------------------------------------------------------

ONE, OTHER = (UUID(int=number) for number in (1, 2))


def test_a_client_is_known_until_it_is_forgotten(ledger: Ledger, lease: Lease) -> None:
    """By whoever holds its source, however often it is noted."""
    for client in (OTHER, ONE, ONE):
        ledger.note_spark_client(lease, client)
    assert ledger.spark_clients(lease.source) == [ONE, OTHER]
    ledger.note_spark_client(lease, ONE, gone=True)
    ledger.note_spark_client(lease, ONE, gone=True)
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
