"""The start rules of a source without a cursor, by the rule's name."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.source_plan import SourcePlan, StandbyPlan
from lockstep.pipeline.start.question import Since, StartPlace, StartRule
from lockstep.pipeline.start.rules import decide_start
from lockstep.pipeline.values.errors import (
    PositionPurged,
    SourceDiverged,
    StartNotChosen,
    StartUnreachable,
)
from lockstep.pipeline.values.places import InFile, Latest, OfRun, Place, Snapshot, parse_place
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TablePatterns
from tests.pipeline.start_made import MARIA, A, B, at, facts, gtids, question_of, refused, started

MOMENT = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)


def decided(
    place: Place | Snapshot | None, found: ServerFacts | None = None
) -> tuple[StartRule, StartPlace]:
    start = started(decide_start(question_of(found or facts(), configured_start=place)))
    assert (start.continued_batch, start.previous_batch, start.continuity) == (None, None, None)
    return start.rule, start.where


def refusal_of(place: Place | None, found: ServerFacts) -> tuple[StartRule, type[Exception], str]:
    refusal = refused(decide_start(question_of(found, configured_start=place)))
    return refusal.rule, type(refusal.error), refusal.reason


SETS = {
    "between purged and executed": (f"{A}:1-50", f"{A}:1-40", f"{A}:1-100"),
    "just what was purged": (f"{A}:1-40", f"{A}:1-40", f"{A}:1-100"),
    "all that was executed": (f"{A}:1-100", f"{A}:1-40", f"{A}:1-100"),
    "nothing was purged": (f"{A}:5", "", f"{A}:1-100"),
    "of MariaDB": ("0-1-50", "0-1-40", "0-1-100,0-2-7"),
}


@pytest.mark.parametrize("case", SETS)
def test_configured_set(case: str) -> None:
    """Everything after it is read, where purged ⊆ set ⊆ executed."""
    text, purged, executed = SETS[case]
    uuid = MARIA if text.startswith("0-") else A
    found = facts(uuid, purged=purged, executed=executed)
    assert decided(parse_place(f"gtid:{text}"), found) == (StartRule.CONFIGURED_SET, gtids(text))


@pytest.mark.parametrize(
    ("text", "purged", "missing"),
    [
        (f"{A}:1-50", f"{A}:1-51", f"{A}:51"),
        (f"{A}:1-50", f"{B}:1", f"{B}:1"),
        (f"{A}:2-50", f"{A}:1-40", f"{A}:1"),
        ("0-1-50", "0-1-51", "0-1-51..51"),
    ],
)
def test_configured_set_purged(text: str, purged: str, missing: str) -> None:
    """What the server purged is not in the set: it could not be read."""
    found = facts(MARIA if text.startswith("0-") else A, purged=purged, executed=purged)
    rule, error, reason = refusal_of(parse_place(f"gtid:{text}"), found)
    assert (rule, error) == (StartRule.CONFIGURED_SET_PURGED, PositionPurged)
    assert f"has purged {missing}, which" in reason


@pytest.mark.parametrize("text", [f"{A}:1-101", f"{A}:1-50,{B}:1"])
def test_configured_set_diverged(text: str) -> None:
    """The set holds what the server never executed: the place is another server's."""
    found = facts(purged=f"{A}:1-40", executed=f"{A}:1-100")
    rule, error, reason = refusal_of(parse_place(f"gtid:{text}"), found)
    assert (rule, error) == (StartRule.CONFIGURED_SET_DIVERGED, SourceDiverged)
    assert str(gtids(text).difference(gtids(f"{A}:1-100"))) in reason


@pytest.mark.parametrize("place", [at(2, 4), at(3, 77), at(4, 1000)], ids=str)
def test_configured_coordinates(place: Coordinates) -> None:
    """From the first byte behind a file's magic number to its end."""
    assert decided(parse_place(str(place))) == (StartRule.CONFIGURED_COORDINATES, place)


UNREACHABLE = {
    "binlog.000001:77": "files listed: binlog.000002 to binlog.000004",
    "binlog.000005:4": "files listed: binlog.000002 to binlog.000004",
    "mysql-bin.000003:77": "files listed: binlog.000002 to binlog.000004",
    "binlog.000003:1001": "binlog.000003 ends at 1000",
    "binlog.000003:3": "binlog.000003 ends at 1000",
    "binlog.000001@2026-11-01T05:30:00Z": "files listed: binlog.000002 to binlog.000004",
}


@pytest.mark.parametrize("text", UNREACHABLE)
def test_start_unreachable(text: str) -> None:
    """A place of another server, a purged one, an offset that is in no file."""
    rule, error, reason = refusal_of(parse_place(text), facts())
    assert (rule, error) == (StartRule.START_UNREACHABLE, StartUnreachable)
    assert text in reason
    assert UNREACHABLE[text] in reason


def test_start_unreachable_without_any_file() -> None:
    """Nothing is the oldest of none."""
    rule, error, reason = refusal_of(parse_place("earliest"), facts(files=()))
    assert (rule, error) == (StartRule.START_UNREACHABLE, StartUnreachable)
    assert "lists no log file" in reason


def test_configured_moment_in_file() -> None:
    """The search is inside that file alone."""
    place = InFile(at(3).file, MOMENT)
    assert decided(place) == (StartRule.CONFIGURED_MOMENT_IN_FILE, Since(MOMENT, at(3).file))


def test_configured_moment() -> None:
    """The search is in all files; whether the moment is in range, only that can tell."""
    place = parse_place("2026-11-01T07:30:00+02:00")
    assert decided(place) == (StartRule.CONFIGURED_MOMENT, Since(MOMENT))


def test_configured_snapshot() -> None:
    """At the log's end; or where a run that died had begun to read tables, while that is there."""
    assert decided(Snapshot()) == (StartRule.CONFIGURED_SNAPSHOT, at(4, 1000))
    for low, where in ((at(3, 700), at(3, 700)), (at(1, 700), at(4, 1000))):
        asked = question_of(facts(), configured_start=Snapshot(), load_watermark=low)
        assert started(decide_start(asked)).where == where


def test_configured_earliest() -> None:
    """The oldest file that the server has, whatever its number."""
    found = facts(files=(999_999, 1_000_000))
    assert decided(parse_place("earliest"), found) == (
        StartRule.CONFIGURED_EARLIEST,
        at(999_999, 4),
    )


def test_configured_latest() -> None:
    """The end of the log: never taken unless it is written down."""
    assert decided(Latest()) == (StartRule.CONFIGURED_LATEST, at(4, 1000))


def test_start_not_chosen() -> None:
    """Nothing is configured: the end of the log would lose data without a word."""
    rule, error, _ = refusal_of(None, facts())
    assert (rule, error) == (StartRule.START_NOT_CHOSEN, StartNotChosen)


def test_no_rule_applies_to_a_run_as_start() -> None:
    """lockstep.toml refuses it: a source without a cursor has no run to name."""
    assert (
        decide_start(question_of(facts(), configured_start=OfRun("x"))).rule
        is StartRule.NO_RULE_APPLIES
    )


@pytest.mark.parametrize(
    ("known", "answers", "place"),
    [
        (None, facts(), "earliest"),
        (B, facts(B), "latest"),
        (B, facts(A), "earliest"),
    ],
)
def test_a_standbys_start_is_its_own(known: str | None, answers: ServerFacts, place: str) -> None:
    """Chosen by the UUID of the server that answers, not by its address."""
    standby = StandbyPlan(parse_place("latest"), known)
    plan = SourcePlan("shop", TablePatterns(("shop.*",)), parse_place("earliest"), standby=standby)
    assert plan.start_at(answers) == parse_place(place)
