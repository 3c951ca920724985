"""Each rule of the start table, in its order."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.batch import Cursor
from pipeline.errors import Recovery
from pipeline.ports import BinlogSize, ServerFacts
from pipeline.position import Coordinates, GtidSet, LogFile, Position, Witness
from pipeline.start import (
    Refusal,
    Rule,
    Start,
    StartChoice,
    WitnessReading,
    compare_witness,
    decide_start,
    recorded,
)
from pipeline.tables import TablePatterns

SERVER, OTHER = "server-a", "server-b"
WITNESS = Witness(100, 31, 0xABCDEF, "x:1", 1_700_000_000)


def at(number: int, offset: int, base: str = "binlog") -> Coordinates:
    return Coordinates(LogFile(base, number), offset)


def facts(
    *, uuid: str = SERVER, first: int = 2, last: int = 4, size: int = 1000, base: str = "binlog"
) -> ServerFacts:
    logs = tuple(BinlogSize(LogFile(base, n), size) for n in range(first, last + 1))
    return ServerFacts(
        server_uuid=uuid,
        server_id=1,
        version="9.7.4",
        flavour="mysql",
        gtid_mode="ON",
        gtid_executed="",
        gtid_purged="",
        binlogs=logs,
        head=at(last, size, base),
        settings={},
        read_at=datetime(2026, 11, 1, tzinfo=UTC),
    )


def cursor(place: Coordinates, uuid: str = SERVER) -> Cursor:
    return Cursor(7, Position(place, GtidSet(), uuid), WITNESS)


SAME, DIFFERENT, NOT_READ = WitnessReading.SAME, WitnessReading.DIFFERENT, WitnessReading.NOT_READ

CURSOR_CASES = [
    ("the witness differs", at(3, 500), facts(), DIFFERENT, Rule.HISTORY_REWRITTEN),
    ("newest file is older", at(9, 500), facts(), NOT_READ, Rule.HISTORY_REWRITTEN),
    ("offset beyond the file", at(3, 5000), facts(), NOT_READ, Rule.HISTORY_REWRITTEN),
    ("other base name", at(3, 500), facts(base="mysql-bin"), NOT_READ, Rule.HISTORY_REWRITTEN),
    ("witness proven", at(3, 500), facts(), SAME, Rule.RESUME_SAME_SERVER),
    ("at the head", at(4, 1000), facts(), SAME, Rule.RESUME_SAME_SERVER),
    ("file gone", at(1, 500), facts(), NOT_READ, Rule.POSITION_PURGED),
    ("other server", at(3, 500), facts(uuid=OTHER), NOT_READ, Rule.SOURCE_CHANGED),
    ("witness not read", at(3, 500), facts(), NOT_READ, Rule.NO_RULE_APPLIES),
]


@pytest.mark.parametrize(
    ("place", "found", "witness", "rule"),
    [case[1:] for case in CURSOR_CASES],
    ids=[case[0] for case in CURSOR_CASES],
)
def test_with_a_cursor(
    place: Coordinates, found: ServerFacts, witness: WitnessReading, rule: Rule
) -> None:
    """A cursor comes before what is configured."""
    decision = decide_start(cursor(place), StartChoice("earliest"), found, witness)
    assert decision.rule is rule
    if isinstance(decision, Start):
        assert (decision.at, decision.predecessor) == (place, 7)
    else:
        assert decision.error.recovery in (Recovery.OPERATOR, Recovery.RESNAPSHOT)


CHOICE_CASES = [
    (None, Rule.START_NOT_CHOSEN, None),
    (StartChoice("earliest"), Rule.CONFIGURED_EARLIEST, at(2, 4)),
    (StartChoice("latest"), Rule.CONFIGURED_LATEST, at(4, 1000)),
    (StartChoice("coordinates", at(3, 77)), Rule.CONFIGURED_COORDINATES, at(3, 77)),
    (StartChoice("coordinates", at(1, 77)), Rule.START_UNREACHABLE, None),
    (StartChoice("coordinates", at(3, 1001)), Rule.START_UNREACHABLE, None),
    (StartChoice("coordinates", at(3, 3)), Rule.START_UNREACHABLE, None),
    (StartChoice("something else"), Rule.NO_RULE_APPLIES, None),
]


@pytest.mark.parametrize(
    ("choice", "rule", "place"), CHOICE_CASES, ids=[str(c[1]) + str(c[0]) for c in CHOICE_CASES]
)
def test_without_a_cursor(
    choice: StartChoice | None, rule: Rule, place: Coordinates | None
) -> None:
    """What is configured decides; nothing configured is refused, never guessed."""
    decision = decide_start(None, choice, facts(), NOT_READ)
    assert decision.rule is rule
    assert (decision.at if isinstance(decision, Start) else None) == place


@given(
    st.none()
    | st.builds(
        cursor,
        st.builds(at, st.integers(1, 6), st.integers(4, 2000)),
        st.sampled_from([SERVER, OTHER]),
    ),
    st.none() | st.sampled_from([c[0] for c in CHOICE_CASES if c[0]]),
    st.builds(facts, first=st.integers(1, 3), last=st.integers(3, 6)),
    st.sampled_from(WitnessReading),
)
def test_the_table_is_total(
    place: Cursor | None, choice: StartChoice | None, found: ServerFacts, witness: WitnessReading
) -> None:
    """Whatever the facts, the answer is a start with a reason or a refusal with a hint."""
    decision = decide_start(place, choice, found, witness)
    assert decision.reason
    assert isinstance(decision, Start) or decision.error.hint
    assert recorded(decision, found, TablePatterns(("shop.*",))).rule == decision.rule.value


def test_only_the_same_event_is_the_same_witness() -> None:
    """Offset, length, checksum and the file's creation all count; the GTID stands elsewhere."""
    found = Witness(100, 31, 0xABCDEF, "", 1_700_000_000)
    assert compare_witness(WITNESS, found) is SAME
    assert compare_witness(WITNESS, None) is DIFFERENT
    for other in (
        Witness(101, 31, 0xABCDEF, "", 1_700_000_000),
        Witness(100, 32, 0xABCDEF, "", 1_700_000_000),
        Witness(100, 31, 0xABCDEE, "", 1_700_000_000),
        Witness(100, 31, 0xABCDEF, "", 1_700_000_001),
    ):
        assert compare_witness(WITNESS, other) is DIFFERENT


def test_a_refusal_is_recorded_with_its_facts() -> None:
    """The ledger keeps what was known when a run did not begin."""
    decision = decide_start(None, None, facts(), NOT_READ)
    assert isinstance(decision, Refusal)
    kept = recorded(decision, facts(), TablePatterns(("shop.*",)))
    assert (kept.kind, kept.facts["head"]) == ("refusal", "binlog.000004:1000")
