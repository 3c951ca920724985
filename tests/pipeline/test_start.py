"""Each rule of the start table for a cursor of the server that answers, by its name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.start.question import StartRule
from lockstep.pipeline.start.rules import compare_anchor, decide_start
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import (
    HistoryRewritten,
    NoRuleApplies,
    PositionPurged,
    Recovery,
)
from lockstep.pipeline.values.places import Earliest
from lockstep.pipeline.values.policies import OnPositionLost, StartPolicies
from lockstep.pipeline.values.position import Anchor, Coordinates
from tests.pipeline.start_made import (
    ANCHOR,
    BATCH,
    DIFFERENT,
    MARIA,
    NOT_READ,
    SAME,
    A,
    B,
    C,
    at,
    cursor,
    facts,
    gtids,
    question_of,
    refused,
    started,
)

READ = f"{A}:1-100"


@pytest.mark.parametrize("mode", ["ON", "OFF", "ON_PERMISSIVE", "OFF_PERMISSIVE"])
@pytest.mark.parametrize("place", [at(2, 4), at(3, 500), at(3, 1000), at(4, 1000)], ids=str)
def test_resume_same_server_at_file_and_offset(mode: str, place: Coordinates) -> None:
    """Where the file is there and the anchor is the same, GTIDs are not asked: a server
    skips anonymous transactions in a resume by GTID."""
    asked = question_of(facts(executed=READ, mode=mode), cursor(place, READ), SAME)
    start = started(decide_start(asked))
    assert (start.rule, start.where) == (StartRule.RESUME_SAME_SERVER, place)
    assert (start.continued_batch, start.previous_batch, start.continuity) == (BATCH, None, None)


def test_resume_same_server_comes_before_what_is_configured() -> None:
    """`start` in lockstep.toml counts for the first run only."""
    asked = question_of(facts(executed=READ), cursor(read=READ), SAME, configured_start=Earliest())
    assert decide_start(asked).rule is StartRule.RESUME_SAME_SERVER


def test_resume_same_server_of_mariadb() -> None:
    """Its id stands for the UUID that it has not."""
    asked = question_of(facts(MARIA, executed="0-1-90"), cursor(read="0-1-90", uuid=MARIA), SAME)
    assert decide_start(asked).rule is StartRule.RESUME_SAME_SERVER


REWRITTEN = {
    "the event there is another": (cursor(), facts(), DIFFERENT, "a different one"),
    "the newest file is older": (cursor(at(5)), facts(), NOT_READ, "binlog.000004"),
    "numbers began again": (cursor(at(999_999)), facts(files=(1,)), NOT_READ, "binlog.000001"),
    "the file is shorter": (cursor(at(3, 1001)), facts(), NOT_READ, "ends at 1000"),
    "files have another base name": (cursor(), facts(base="mysql-bin"), NOT_READ, "mysql-bin"),
    "the set lacks what was read": (
        cursor(read=f"{A}:1-100,{C}:1-3"),
        facts(executed=READ),
        SAME,
        f"{C}:1-3",
    ),
    "the set lacks it, the file is gone": (
        cursor(at(1), READ),
        facts(executed=f"{A}:1-99", purged=f"{A}:1-99"),
        NOT_READ,
        f"{A}:100",
    ),
    "the set lacks it, by a cursor that is not resumed by it": (
        cursor(read=READ, by_gtid=False),
        facts(executed=f"{A}:1-5", mode="OFF"),
        SAME,
        f"{A}:6-100",
    ),
    "MariaDB's state lacks what was read": (
        cursor(read="0-1-90,0-2-95", uuid=MARIA),
        facts(MARIA, executed="0-1-96"),
        SAME,
        "0-2-95",
    ),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_history_rewritten_when(case: str) -> None:
    """The log of the server that was read is not the log that was read; the refusal says
    by what that shows, and `start-at` gets past it."""
    of, found, anchor, words = REWRITTEN[case]
    refusal = refused(decide_start(question_of(found, of, anchor)))
    assert (refusal.rule, type(refusal.error)) == (StartRule.HISTORY_REWRITTEN, HistoryRewritten)
    assert words in refusal.reason
    assert "lockstep start-at" in refusal.error.hint


def test_history_rewritten_comes_before_position_purged() -> None:
    """A server that was reset lists neither file nor set: nothing was purged, all is new."""
    asked = question_of(facts(executed=f"{A}:1-3", files=(1,)), cursor(at(1, 5000), READ), NOT_READ)
    assert decide_start(asked).rule is StartRule.HISTORY_REWRITTEN


GONE = {
    "everything purged was read": (READ, f"{A}:1-100", f"{A}:1-120"),
    "less was purged than read": (READ, f"{A}:1-40", f"{A}:1-120"),
    "nothing was purged": (READ, "", f"{A}:1-120"),
    "of several servers": (f"{A}:1-100,{B}:1-7", f"{A}:1-90,{B}:1-7", f"{A}:1-120,{B}:1-9"),
    "with tags": (f"{A}:1-9:billing:1-5", f"{A}:1-9:billing:1-4", f"{A}:1-9:billing:1-6"),
    "with gaps": (f"{A}:1-4:6-100", f"{A}:1-4:6-50", f"{A}:1-120"),
}


@pytest.mark.parametrize("case", GONE)
def test_resume_after_purge_by_the_set(case: str) -> None:
    """The cursor's file is gone, but nothing that was purged was unread."""
    read, purged, executed = GONE[case]
    asked = question_of(facts(executed=executed, purged=purged), cursor(at(1), read), NOT_READ)
    start = started(decide_start(asked))
    assert (start.rule, start.where) == (StartRule.RESUME_AFTER_PURGE, gtids(read))
    assert (start.continued_batch, start.previous_batch) == (None, BATCH)
    assert start.continuity is Continuity.CONTIGUOUS


def test_resume_after_purge_of_mariadb() -> None:
    """What its oldest file's list names is what it purged."""
    found = facts(MARIA, executed="0-1-120,0-2-95", purged="0-1-80,0-2-95")
    of = cursor(at(1), "0-1-90,0-2-95", uuid=MARIA)
    assert decide_start(question_of(found, of)).rule is StartRule.RESUME_AFTER_PURGE


LOST = {
    "one transaction was not read": (
        cursor(at(1), READ),
        facts(executed=f"{A}:1-120", purged=f"{A}:1-101"),
        f"{A}:101 was never read",
    ),
    "another server's was not read": (
        cursor(at(1), READ),
        facts(executed=f"{A}:1-120,{C}:1-2", purged=f"{A}:1-40,{C}:1"),
        f"{C}:1 was never read",
    ),
    "GTIDs are off": (
        cursor(at(1), READ),
        facts(executed=READ, purged=READ, mode="OFF"),
        "gtid_mode is OFF",
    ),
    "anonymous transactions are possible": (
        cursor(at(1), READ),
        facts(executed=READ, purged=READ, mode="ON_PERMISSIVE"),
        "gtid_mode is ON_PERMISSIVE",
    ),
    "some were possible meanwhile": (
        cursor(at(1), READ, by_gtid=False),
        facts(executed=READ, purged=READ),
        "without a GTID",
    ),
    "no set was read": (cursor(at(1)), facts(executed=READ, purged=READ), "had a GTID"),
    "MariaDB purged more": (
        cursor(at(1), "0-1-90", uuid=MARIA),
        facts(MARIA, executed="0-1-120", purged="0-1-91"),
        "0-1-91",
    ),
}


@pytest.mark.parametrize("case", LOST)
def test_position_purged_when(case: str) -> None:
    """The file is gone, and the set does not prove that nothing is missing: no jump."""
    of, found, words = LOST[case]
    refusal = refused(decide_start(question_of(found, of)))
    assert (refusal.rule, type(refusal.error)) == (StartRule.POSITION_PURGED, PositionPurged)
    assert words in refusal.reason
    assert "binlog.000001 is no longer on the server (oldest now: binlog.000002)" in refusal.reason
    assert refusal.error.recovery is Recovery.OPERATOR


@pytest.mark.parametrize("uuid", [A, B])
def test_tables_read_again_where_the_position_is_purged(uuid: str) -> None:
    """`on_position_lost = "resnapshot"`, on either server: behind a gap, at the log's end."""
    found = facts(uuid, executed=f"{A}:1-120", purged=f"{A}:1-110")
    policies = StartPolicies(on_position_lost=OnPositionLost.RESNAPSHOT)
    of = cursor(at(1), READ)
    start = started(decide_start(question_of(found, of, policies=policies)))
    assert (start.rule, start.where) == (StartRule.TABLES_READ_AGAIN, found.head)
    assert (start.previous_batch, start.continuity) == (of.batch, Continuity.GAP)


def test_no_rule_applies_where_a_listed_file_was_not_read() -> None:
    """The one way there: the file was purged between its listing and the look at it."""
    refusal = refused(decide_start(question_of(facts(executed=READ), cursor(read=READ), NOT_READ)))
    assert (refusal.rule, type(refusal.error)) == (StartRule.NO_RULE_APPLIES, NoRuleApplies)
    assert "binlog.000003:500" in refusal.reason


# -- the anchor -------------------------------------------------------------------------


def test_only_the_same_event_is_the_same_anchor() -> None:
    """Offset, length, checksum and the file's creation all count; the GTID stands elsewhere."""
    assert compare_anchor(ANCHOR, replace(ANCHOR, gtid="")) is SAME
    others: list[Anchor | None] = [
        None,
        replace(ANCHOR, offset=101),
        replace(ANCHOR, length=32),
        replace(ANCHOR, crc32=0xABCDEE),
        replace(ANCHOR, file_created=1_700_000_001),
    ]
    assert {compare_anchor(ANCHOR, other) for other in others} == {DIFFERENT}
