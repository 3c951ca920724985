"""What an operator is told first of a source and of each table, and the figures behind it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.commands.status import exit_code, proof_lines, proof_values, status_lines
from lockstep.pipeline.model.batch import Batch, BatchState
from lockstep.pipeline.model.gaps import Gap, GapEvent
from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.model.table_state import (
    Extent,
    StoppedTable,
    TableCondition,
    TableEventKind,
    TableState,
)
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.proof.proven import (
    ComparisonRecord,
    EqualityProof,
    ProofKind,
    open_differences,
)
from lockstep.pipeline.snapshot.progress import LoadProgress
from lockstep.pipeline.start.rules import decide_start
from lockstep.pipeline.status.accounting import accounts
from lockstep.pipeline.status.facts import (
    Failures,
    Headroom,
    Lag,
    Standing,
    WaitingBatch,
    failures,
    headroom,
    lag,
    log_distance,
    log_end_reached_at,
    overlaps,
    reason_not_by_gtid,
)
from lockstep.pipeline.status.tables import TableHealth, table_standings
from lockstep.pipeline.status.verdict import State, verdict
from lockstep.pipeline.upkeep.clearing import Tightening, UnclearedValues
from lockstep.pipeline.values.decisions import Attempt, AttemptOutcome, Continuity, LeaseView
from lockstep.pipeline.values.errors import (
    ForeignCommit,
    Need,
    Recovery,
    SecretMissing,
    SourceUnavailable,
    StoppedBy,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, Position
from lockstep.pipeline.values.table import TableName, TablePatterns
from tests.pipeline.start_made import (
    DIFFERENT,
    MARIA,
    READ_AT,
    SAME,
    A,
    B,
    at,
    batch,
    chosen,
    cursor,
    facts,
    gtids,
    question_of,
)

NOW = READ_AT + timedelta(minutes=1)
READ = f"{A}:1-100"
ORDERS = TableName("shop", "orders")
SEVERAL = [TableName("shop", f"t{number}") for number in range(6)]
AWAY = SourceUnavailable("MySQL cannot be reached", hint="start it")


def position(number: int = 3, offset: int = 500, *, read: str = "", uuid: str = A) -> Position:
    return Position(at(number, offset), gtids(read), uuid, READ_AT - timedelta(minutes=5))


def keeping(**settings: str) -> ServerFacts:
    return replace(facts(), settings=settings)


def failed(minute: int = 0, recovery: Recovery = Recovery.RETRY, hint: str = "") -> Attempt:
    moment = READ_AT + timedelta(minutes=minute)
    return Attempt(AttemptOutcome.FAILED, moment, "it failed", recovery, hint)


def refused(minute: int = 0) -> Attempt:
    return replace(failed(minute, Recovery.OPERATOR, "restore"), outcome=AttemptOutcome.REFUSED)


def idle(minute: int = 0, head: Coordinates | None = None) -> Attempt:
    moment = READ_AT + timedelta(minutes=minute)
    return Attempt(AttemptOutcome.IDLE, moment, "nothing to do", head=head)


def captured(number: int = 8, **more: Any) -> Batch:
    return batch(number, position(), **{"state": BatchState.CAPTURED, **more})


def standing(**changes: Any) -> Standing:
    """A source in step with its server."""
    there = cursor(read=READ)
    server = facts(executed=READ)
    known: dict[str, Any] = {
        "captured": there,
        "acknowledged": there,
        "facts": server,
        "start": decide_start(question_of(server, there, SAME)),
        "lag": Lag(0.0, 0, 0),
        "headroom": Headroom(False, timedelta(days=7), timedelta(days=6)),
    }
    return Standing("shop", **{**known, **changes})


REWRITTEN = decide_start(question_of(facts(executed=READ), cursor(read=READ), DIFFERENT))
LEASE = LeaseView(5, "host-1, process 9", None, READ_AT, live=True, beat_at=NOW)
RUN_LEASE = replace(LEASE, run_id="run-1")
FAILED = failures([failed(hint="make room")], [], has_waiting_batches=True)
STOPPED = failures([failed(0, Recovery.OPERATOR, "exclude")], [], has_waiting_batches=False)
UNSET_UP = failures([failed(0, Recovery.CONFIGURATION, "set it up")], [], has_waiting_batches=False)
REFUSED = failures([refused()], [], has_waiting_batches=False)
QUARANTINED = StoppedTable(
    ORDERS, "its images are incomplete", "set it to FULL", "binlog.000003:400"
)


WRONG = ComparisonRecord(TableName("shop", "orders"), True, NOW, 3, None, None)
GAP = Gap(1, 8, READ_AT, "ann", "lost", ("shop.orders",), "binlog.000003:500", "…")
UNSET = SecretMissing("SHOP_PASSWORD is not set", hint="set it")


LOST_LAKE = ForeignCommit("the lake is behind its ledger", hint="restore it")
WITHOUT_HINT = failures([failed()], [], has_waiting_batches=False)
WRONG_PASSWORD = replace(failed(0, Recovery.CONFIGURATION, "check password"), rule="AccessDenied")
DENIED = failures([WRONG_PASSWORD], [], has_waiting_batches=False)
NOT_THERE: dict[str, Any] = {"facts": None, "start": None, "server_error": AWAY}
HOUR = timedelta(hours=1)


def decided_at(second: int) -> dict[str, Any]:
    """A choice, so long after the last attempt."""
    choice = replace(chosen("latest"), chosen_at=READ_AT + timedelta(seconds=second))
    return {"override": choice, "start": None}


@pytest.mark.parametrize(
    "changes",
    [{"failures": FAILED}, {"facts": None, "server_error": AWAY, "failures": FAILED}],
    ids=["failing", "unreachable"],
)
def test_a_person_is_needed_once_no_run_went_through_for_an_hour(changes: dict[str, Any]) -> None:
    """It is one trouble, whether the server answers in between or not."""
    earlier, later = (
        verdict(standing(**changes), READ_AT + timedelta(minutes=minutes), None)
        for minutes in (59, 60)
    )
    assert (earlier.needs_a_person, earlier.is_undecided) == (False, True)
    assert (later.needs_a_person, later.is_undecided) == (True, False)
    assert later.trouble_key == "no run goes through"


@pytest.mark.parametrize(
    ("changes", "state", "code", "words"),
    [
        ({}, State.FINE, 0, ("binlog.000003:500",)),
        (
            {"captured": None, "acknowledged": None, "start": None},
            State.NEVER_RAN,
            3,
            ("lockstep check", "lockstep run --source shop"),
        ),
        (
            {"lease": LEASE},
            State.BUSY,
            0,
            ("host-1, process 9", "wait for it, or end that process: `kill -9` is safe"),
        ),
        ({"lease": replace(LEASE, in_dagster=True)}, State.BUSY, 0, ("wait", "Dagster's page")),
        (
            {"lease": replace(LEASE, beat_at=NOW - timedelta(minutes=9))},
            State.BUSY,
            3,
            ("9 minutes", "end that process"),
        ),
        ({"start": REWRITTEN}, State.REFUSED, 5, ("is not the log that was read", "reset")),
        ({"failures": STOPPED}, State.REFUSED, 5, ("1 attempt failed", "exclude")),
        ({"failures": FAILED}, State.FAILED, 3, ("it failed", "make room")),
        ({"failures": UNSET_UP}, State.REFUSED, 2, ("it failed", "set it up")),
        (
            {"failures": REFUSED},
            State.FAILED,
            3,
            ("but the next one would begin", "`lockstep run --source shop`"),
        ),
        ({"failures": REFUSED, "start": None}, State.REFUSED, 5, ("it failed", "restore")),
        (NOT_THERE, State.UNREACHABLE, 3, ("start it",)),
        ({**NOT_THERE, "failures": STOPPED}, State.REFUSED, 5, ("it failed", "exclude")),
        (
            {"headroom": Headroom(True, timedelta(days=7), timedelta())},
            State.AT_RISK,
            5,
            ("already gone", "lockstep run --source shop"),
        ),
        (
            {"headroom": Headroom(False, timedelta(days=7), timedelta(hours=5))},
            State.AT_RISK,
            5,
            ("in 5 hours", "binlog_expire_logs_seconds"),
        ),
        (
            {"headroom": Headroom(False, timedelta(days=7), timedelta())},
            State.AT_RISK,
            5,
            ("at the next rotation",),
        ),
        (
            {"stopped_tables": (QUARANTINED,)},
            State.QUARANTINED,
            6,
            ("shop.orders", "incomplete", "FULL"),
        ),
        (
            {"stopped_tables": (replace(QUARANTINED, by=StoppedBy.PERSON),)},
            State.PAUSED,
            6,
            ("shop.orders is paused", "everything else goes on", "FULL"),
        ),
        (
            {"stopped_tables": (replace(QUARANTINED, by=StoppedBy.RUN),)},
            State.BEHIND,
            3,
            ("shop.orders comes back", "lockstep run"),
        ),
        (
            {"stopped_tables": (QUARANTINED,), "tables_to_resume": frozenset({QUARANTINED.table})},
            State.BEHIND,
            3,
            ("shop.orders comes back", "lockstep run"),
        ),
        (
            {"waiting_batches": (WaitingBatch(captured(), (ORDERS,)),)},
            State.BEHIND,
            3,
            ("batch 8", "waits for shop.orders", "lockstep run --source shop"),
        ),
        ({"lag": Lag(7200.0, 10, 1)}, State.BEHIND, 3, ("2 hours behind", "lockstep run")),
        (
            {"proofs": (WRONG,), "gaps": (GAP,)},
            State.DIFFERS,
            6,
            ("rows of shop.orders differed", "`lockstep verify shop.orders`", "--repair"),
        ),
        (
            {"proofs": tuple(replace(WRONG, table=table) for table in SEVERAL[:2])},
            State.DIFFERS,
            6,
            ("rows of shop.t0, shop.t1 differed", "`lockstep verify shop.t0 shop.t1`"),
        ),
        (
            {"proofs": tuple(replace(WRONG, table=table) for table in SEVERAL)},
            State.DIFFERS,
            6,
            ("shop.t4 and 1 more differed", "`lockstep verify --source shop` compares"),
        ),
        (
            {"invisible_tables": (replace(QUARANTINED, hint="grant it"),), "gaps": (GAP,)},
            State.INVISIBLE,
            6,
            ("shop.orders: its images are incomplete", "grant it"),
        ),
        ({"gaps": (GAP,)}, State.GAP, 6, ("a gap", "rows of shop.orders may be wrong", "verify")),
        (
            {
                "extents": (Extent(ORDERS, at(3, 400)),),
                "rewritten_changelogs": (replace(QUARANTINED, hint="restore it"),),
            },
            State.DIFFERS,
            6,
            ("the changelog of shop.orders: its images are incomplete", "restore it"),
        ),
        (
            {"waiting_batches": (WaitingBatch(captured(), tuple(SEVERAL)),)},
            State.BEHIND,
            3,
            ("waits for shop.t0, shop.t1, shop.t2, shop.t3, shop.t4 and 1 more", "lockstep run"),
        ),
        (
            {"extents": (Extent(ORDERS, at(3, 400)),)},
            State.PARTIAL,
            6,
            ("shop.orders is partial: begins at binlog.000003:400", "verify shop.orders"),
        ),
        (
            {"facts": None, "start": None, "server_error": UNSET},
            State.CONFIGURATION,
            2,
            ("SHOP_PASSWORD", "set it"),
        ),
        (
            {"failures": DENIED},
            State.FAILED,
            3,
            ("(it failed), but the next one would", "`lockstep run"),
        ),
        (
            {**NOT_THERE, "failures": DENIED},
            State.UNREACHABLE,
            3,
            ("(1 attempt failed since", "start it"),
        ),
        (
            {"start": REWRITTEN, "failures": DENIED},
            State.REFUSED,
            5,
            ("not the log that was read",),
        ),
        ({"failures": WITHOUT_HINT}, State.FAILED, 3, ("`lockstep run --source shop`",)),
        ({"failures": STOPPED, **decided_at(1)}, State.BEHIND, 3, ("starts at latest",)),
        ({"failures": STOPPED, **decided_at(-1)}, State.REFUSED, 5, ("exclude",)),
        ({"lag": Lag(1200.0, 1, 1)}, State.FINE, 0, ()),
        ({"lag": Lag(1501.0, 1, 1)}, State.BEHIND, 3, ("25 minutes behind",)),
        ({"headroom": Headroom(False, 4 * HOUR, 4 * HOUR)}, State.FINE, 0, ()),
        (
            {"lake_error": LOST_LAKE},
            State.REFUSED,
            5,
            ("the lake is behind its ledger", "restore it"),
        ),
        (
            {"override": chosen("latest"), "start": None},
            State.BEHIND,
            3,
            ("starts at latest", "the disk was lost", "lockstep plan"),
        ),
    ],
)
def test_the_first_sentence_is_what_matters_and_what_to_type(
    changes: dict[str, Any], state: State, code: int, words: tuple[str, ...]
) -> None:
    """One state for each kind of trouble, the gravest first; what was tried before counts less than
    what the server says now, and than what a person decided since. A cron job hears of all that
    waits; while a run goes on, of what waits for a person, and of a run that is silent."""
    pause, there = timedelta(minutes=10), standing(**changes)
    told = verdict(there, NOW, pause)
    assert told.state is state
    for word in words:
        assert word in f"{told.sentence} | {told.hint}"
    assert exit_code(there, NOW, pause) == code
    assert exit_code(replace(there, lease=LEASE), NOW, pause) == (0 if code == 3 else code)
    silent = replace(LEASE, beat_at=NOW - timedelta(minutes=9))
    assert exit_code(replace(there, lease=silent), NOW, pause) == 3


def test_a_login_that_only_runs_are_refused_needs_a_person_after_an_hour() -> None:
    """Theirs is to a replica, too, or from another machine: they fail, though status is let in."""
    told = [
        verdict(standing(failures=DENIED), READ_AT + timedelta(minutes=minute), None).needs_a_person
        for minute in (1, 61)
    ]
    assert told == [False, True]


def test_without_a_schedule_nobody_is_late() -> None:
    """Lag is shown, and no fault."""
    assert verdict(standing(lag=Lag(86_400.0, 10, 1)), NOW, None).state is State.FINE


@pytest.mark.parametrize(
    ("pause", "earlier", "later"),
    [(timedelta(minutes=10), 25, 26), (None, 60, 61), (timedelta(hours=4), 300, 301)],
)
def test_a_run_that_records_nothing_is_not_only_busy(
    pause: timedelta | None, earlier: int, later: int
) -> None:
    """Its heartbeats go on for as long as its process lives, whatever it waits for."""
    waiting = (WaitingBatch(captured(), (ORDERS,)),)
    early, late = (
        standing(
            waiting_batches=waiting,
            lease=replace(RUN_LEASE, recorded_at=NOW - timedelta(minutes=minutes)),
        )
        for minutes in (earlier, later)
    )
    assert exit_code(early, NOW, pause) == 0
    assert exit_code(late, NOW, pause) == 3
    found = verdict(late, NOW, pause)
    assert (found.state, found.needs_a_person) == (State.BUSY, later > 60)
    assert "recorded nothing for" in found.sentence
    assert "host-1, process 9" in found.sentence
    assert "batch 8 is captured and waits for shop.orders" in found.sentence
    assert "`kill -9` is safe" in found.hint


def test_a_run_that_reads_a_table_in_one_piece_is_not_judged_by_what_it_records() -> None:
    """A chunk is a record; a table without a key is read as one. A merge after it is judged. Nor
    is a replay."""
    load = LoadProgress(ORDERS, 10, 100, 1.0)
    in_chunks = standing(
        lease=replace(RUN_LEASE, recorded_at=NOW - timedelta(hours=9)), loads=(load,)
    )
    assert exit_code(in_chunks, NOW, None) == 3
    reading = replace(in_chunks, loads=(replace(load, is_undivided=True),))
    assert reading.lease is not None
    merging = replace(reading, waiting_batches=(WaitingBatch(captured(), (ORDERS,)),))
    assert exit_code(reading, NOW, None) == 0
    assert exit_code(merging, NOW, None) == 3
    replaying = replace(merging, lease=replace(reading.lease, run_id=None))
    assert exit_code(replaying, NOW, None) == 0


def test_a_gap_is_part_of_the_sentence() -> None:
    """Fine is not the same as whole; what is whole again is history."""
    closed = GapEvent("shop.orders", 9, NOW, TableEventKind.REREAD)
    history = replace(GAP, closed={"shop.orders": closed})
    assert verdict(standing(gaps=(history,)), NOW, None) == verdict(standing(), NOW, None)
    told = "\n".join(
        status_lines(standing(gaps=(GAP, history)), verdict(standing(), NOW, None), NOW)
    )
    assert told.count("was never read") == 1


def test_all_rows_outweigh_a_sample() -> None:
    """A table is equal once all of it was compared and found so, whatever a sample found before;
    a sample that is equal refutes nothing, and each table is told once, with its larger count."""
    rows = replace(WRONG, is_whole=True, differing_count=3)
    before, behind = (
        replace(
            WRONG,
            is_whole=False,
            differing_count=1,
            compared_at=rows.compared_at + timedelta(hours=n),
        )
        for n in (-1, 1)
    )
    for sample in (before, behind, replace(behind, differing_count=0)):
        for order in ((rows, sample), (sample, rows)):
            assert open_differences(order) == {rows.table: rows}
    equal = replace(rows, differing_count=0)
    assert open_differences((equal, before)) == {}
    assert open_differences((equal, behind)) == {rows.table: behind}
    assert verdict(standing(proofs=(equal, before)), NOW, None).state == State.FINE


def test_proofs_are_told_with_their_age() -> None:
    """Which tables differ, and how long ago the others were proven; a sample proves no table."""
    at = NOW - timedelta(hours=3)
    proven = EqualityProof(ProofKind.PREFIX, 7, position(4, 1000).at, "")
    proofs = (
        replace(WRONG, proof=proven, proven_at=at),
        ComparisonRecord(TableName("shop", "stock"), True, at, 0, proven, at),
        ComparisonRecord(TableName("shop", "stock"), False, NOW, 0, proven, NOW),
    )
    told = list(proof_lines(proofs, (), NOW))
    assert "shop.orders differs from MySQL: 3 rows" in told[0]
    assert "proven equal to MySQL: 1 table, the oldest proof 3 hours ago" in told[-1]
    told = list(proof_lines(proofs, [TableName("shop", "stock")], NOW))
    assert told[2:] == ["  not proven: 1 table that stopped"]
    json = to_json(proof_values(proofs, NOW))
    assert [one["age_seconds"] for one in json] == [10800.0, 10800.0, 0.0]
    assert [one["differing"] for one in json] == [3, 0, 0]


# -- figures --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "there", "expected"),
    [
        (facts(executed=READ), position(4, 1000, read=READ), Lag(0.0, 0, 0)),
        (facts(executed=READ), position(4, 900, read=READ), Lag(0.0, 100, 0)),
        (
            facts(executed=READ, mode="ON_PERMISSIVE"),
            position(4, 900, read=READ),
            Lag(360.0, 100, 0),
        ),
        (None, position(), Lag(360.0)),
        (facts(), position(9, 4), Lag()),
        (facts(), position(4, 2000), Lag()),
        (facts(executed=f"{A}:1-9"), position(4, 900, read=READ), Lag()),
    ],
    ids=[
        "an idle source is in step, however long ago it was written to",
        "log without transactions",
        "log in which numbers count no transactions",
        "without the server the ledger knows how old the newest commit is",
        "another log: a newer file",
        "another log: a longer file",
        "another log: more transactions",
    ],
)
def test_the_lag(server: ServerFacts | None, there: Position, expected: Lag) -> None:
    """Unknown behind a log that lacks what was read: after RESET BINARY LOGS, or a restored
    backup."""
    assert lag(server, there, NOW) == expected


@pytest.mark.parametrize(
    ("executed", "read", "uuid", "count"),
    [
        (f"{A}:1-120,{B}:1-5", READ, A, 25),
        (f"{A}:1-120", READ, B, 20),
        ("", READ, A, None),
        (READ, "", A, None),
        ("0-1-9,1-1-3", "0-1-5,1-1-3", MARIA, 4),
        ("0-1-5,0-2-9", "0-1-5", MARIA, None),
    ],
)
def test_transactions_behind(executed: str, read: str, uuid: str, count: int | None) -> None:
    """By GTIDs, whichever server answers; unknown where numbers do not count them."""
    assert lag(facts(A, executed=executed), position(read=read, uuid=uuid), NOW).transactions == (
        count
    )


def test_what_came_after_a_look_is_no_older_than_that() -> None:
    """A quiet source that is written to again is not as late as its last commit is old."""
    attempts = [failed(4), idle(-1), idle(-2, position().at), idle(-9, position().at)]
    since = log_end_reached_at(attempts, position())
    assert since == READ_AT - timedelta(minutes=2)
    assert lag(None, position(), NOW, since).seconds == 180.0
    assert log_end_reached_at([idle(-2, at(3, 900))], position()) is None
    assert log_end_reached_at([idle(-2)], None) is None
    assert lag(None, replace(position(), committed_at=None), NOW).seconds is None
    assert lag(None, replace(position(), committed_at=None), NOW, since).seconds == 180.0


@pytest.mark.parametrize(
    ("there", "behind"),
    [
        (position(4, 1000), 0),
        (position(4, 100), 900),
        (position(2, 400), 2600),
        (position(1, 4), None),
        (position(3, 4, uuid=B), None),
    ],
)
def test_bytes_behind(there: Position, behind: int | None) -> None:
    """Over files; unknown for a purged file and another server's."""
    assert log_distance(facts(), there) == behind


def test_a_file_lasts_from_its_last_write_on() -> None:
    """That is when the next file was made; the newest is not purged at all."""
    server = keeping(binlog_expire_logs_seconds="86400")
    oldest = READ_AT - timedelta(days=3)
    room = headroom(
        server, position(3), next_file_at=READ_AT - timedelta(hours=4), oldest_file_at=oldest
    )
    assert room == Headroom(False, timedelta(days=1), timedelta(hours=20), 1000.0)
    room = headroom(
        server, position(3), next_file_at=READ_AT - timedelta(days=2), oldest_file_at=None
    )
    assert room.remaining == timedelta()
    newest = headroom(server, position(4), next_file_at=None, oldest_file_at=None)
    assert newest.remaining == timedelta(days=1)


def test_a_file_that_is_not_listed_is_gone() -> None:
    assert headroom(keeping(), position(1), next_file_at=None, oldest_file_at=None).is_purged


def test_why_a_failover_would_be_refused() -> None:
    """Nothing to go by, or not to be trusted, or switched off now."""
    assert reason_not_by_gtid(cursor(read=READ), facts()) is None
    assert "had a GTID" in str(reason_not_by_gtid(cursor(), facts()))
    lapsed = replace(cursor(read=READ, by_gtid=False), was_by_gtid=True)
    assert "since GTIDs were first seen" in str(reason_not_by_gtid(lapsed, None))
    assert "gtid_mode" in str(reason_not_by_gtid(cursor(read=READ, by_gtid=False), None))
    assert "gtid_mode is OFF" in str(reason_not_by_gtid(cursor(read=READ), facts(mode="OFF")))


def test_failures_are_counted_since_a_run_went_through() -> None:
    """An acknowledged batch went through, and an idle run behind which nothing waits."""
    newest = [failed(9), refused(7), failed(2)]
    done = [captured(acknowledged_at=READ_AT + timedelta(minutes=6))]
    found = failures(newest, done, has_waiting_batches=False)
    assert found == Failures(2, READ_AT + timedelta(minutes=7), newest[0])
    quiet = [*newest[:1], idle(8), *newest[1:]]
    assert failures(quiet, done, has_waiting_batches=False) == Failures(
        1, newest[0].ended_at, newest[0]
    )
    assert failures(quiet, done, has_waiting_batches=True) == found
    assert failures(newest[2:], done, has_waiting_batches=False) is None
    assert failures([], [], has_waiting_batches=False) is None


def test_an_overlap_names_the_batch_that_has_rows_again() -> None:
    """Batches that were abandoned or not captured have none."""
    again = captured(continuity=Continuity.OVERLAP, previous_batch=7, end=position(4))
    (found,) = overlaps([again, replace(again, end=None), captured(9)])
    assert (found.batch, found.previous_batch, found.begin) == (8, 7, "binlog.000003:500")
    assert overlaps([replace(again, state=BatchState.ABANDONED)]) == ()


MOMENT = datetime(2026, 11, 1, tzinfo=UTC)
TABLE = TableName("shop", "orders")
STATE = TableState(TABLE, TableCondition.FOLLOWING, 1, "m", "c", "a reason", "a hint", "a place")
STOPPED_STATE = replace(STATE, condition=TableCondition.STOPPED)
PROOF = ComparisonRecord(TABLE, True, MOMENT, 3, None, None)
EXTENT = Extent(TABLE, Coordinates.parse("binlog.000007:4"))
TABLE_GAP = Gap(1, 1, MOMENT, "ann", "why", (str(TABLE),), "binlog.000007:4", "binlog.000009:4")
CLEAR = UnclearedValues(1, Tightening(TABLE, 3, ("note",)), MOMENT)

STATES = {
    TableHealth.STOPPED_BY_SYSTEM: replace(STOPPED_STATE, stopped_by=StoppedBy.SYSTEM),
    TableHealth.STOPPED_BY_PERSON: replace(STOPPED_STATE, stopped_by=StoppedBy.PERSON),
    TableHealth.STOPPED_BY_RUN: replace(STOPPED_STATE, stopped_by=StoppedBy.RUN),
    TableHealth.DROPPED: replace(STATE, condition=TableCondition.DROPPED),
    TableHealth.READING: replace(STATE, need=Need.ROWS),
    TableHealth.FOLLOWING: STATE,
}


@given(st.sampled_from(list(STATES)), *[st.booleans()] * 4)
def test_the_worst_is_told(
    health: TableHealth, differs: bool, gap: bool, part: bool, clear: bool
) -> None:
    """Of all that holds at once, the first in the order of `TableHealth`; it follows its source
    only where nothing does; and whatever is the matter has a cure."""
    found = table_standings(
        {TABLE: STATES[health]},
        TablePatterns(("*.*",)),
        extents=[EXTENT] if part else [],
        gaps=[TABLE_GAP] if gap else [],
        proofs=[PROOF] if differs else [],
        uncleared_values=[CLEAR] if clear else [],
    )[TABLE]
    holds = {health}
    holds |= {TableHealth.DIFFERS} if differs else set()
    holds |= {TableHealth.GAP} if gap else set()
    holds |= {TableHealth.PARTIAL} if part else set()
    holds |= {TableHealth.IN_PLAINTEXT} if clear else set()
    assert found.health is min(holds, key=list(TableHealth).index)
    assert found.follows == (holds == {TableHealth.FOLLOWING}) == (not found.hint)


def test_of_a_table_that_is_left_out_nothing_is_wanted() -> None:
    """Whatever happened to it: a cure would be refused."""
    for state in STATES.values():
        found = table_standings(
            {TABLE: state}, TablePatterns(("*.*",), (str(TABLE),)), proofs=[PROOF]
        )
        assert (found[TABLE].health, found[TABLE].hint) == (TableHealth.LEFT_OUT, "")
        assert not found[TABLE].follows


def test_people_read_these_words() -> None:
    """On a table's page in Dagster; the list's digests begin with them."""
    assert [health.value for health in TableHealth] == [
        "left out",
        "stopped by Lockstep",
        "differs",
        "stopped by a person",
        "stopped by the last run",
        "dropped",
        "following, reading rows",
        "gap",
        "partial",
        "in plaintext",
        "unseen",
        "following",
    ]


@pytest.mark.parametrize(
    ("tightening", "sentence"),
    [
        (Tightening(TABLE, 3, ("a",)), "a is in plaintext"),
        (Tightening(TABLE, 3, ("a", "b")), "a, b are in plaintext"),
        (Tightening(TABLE, 3, is_rehashed=True), "hashes made with another key are"),
        (
            Tightening(TABLE, 3, ("a",), is_rehashed=True),
            "a in plaintext and hashes made with another key are",
        ),
    ],
)
def test_former_hashes_are_not_called_plaintext(tightening: Tightening, sentence: str) -> None:
    note = UnclearedValues(1, tightening, MOMENT)
    assert note.sentence == f"{sentence} in what was captured up to batch 3"


PLACE = Position(at(4), GtidSet(), "uuid")
MADE = batch(15, PLACE, PLACE, changes=64_754)


def test_a_batch_that_stands_for_the_lake_read_nothing() -> None:
    """It counts the images of all batches before it. One that read a part of the log and wrote
    none of its images has lost them."""
    end = replace(PLACE, at=at(4, 900))
    lost = replace(MADE, id=16, end=end, continued_batch=15, sequence_before=64_754, changes=3)
    first, second = accounts([MADE, lost], [], [], [], [])
    assert (first.read_images, first.has_all_images, first.is_merged) == (0, True, True)
    assert (second.read_images, second.has_all_images) == (3, False)
