"""Each rule of the start table, by the cases in which it decides: where a run then begins, or why
it does not; what holds for every question and every rule; and what is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lockstep.pipeline.model.batch import Batch, Cursor
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.source_plan import SourcePlan, StandbyPlan
from lockstep.pipeline.start.question import (
    AnchorReading,
    ChosenPlace,
    Question,
    Refusal,
    SetReading,
    Since,
    Start,
    StartPlace,
    StartRule,
)
from lockstep.pipeline.start.rules import (
    TABLE,
    compare_anchor,
    compare_set,
    decide_start,
    decision_record,
)
from lockstep.pipeline.values import errors
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import Recovery, StartUnreachable
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.places import (
    AfterGtids,
    AtCoordinates,
    AtMoment,
    Earliest,
    InFile,
    Latest,
    OfRun,
    Place,
    Snapshot,
    parse_place,
    parse_start,
)
from lockstep.pipeline.values.policies import OnPositionLost, OnSourceChanged, StartPolicies
from lockstep.pipeline.values.position import Anchor, Coordinates, Position, SetAnchor
from lockstep.pipeline.values.table import TablePatterns
from tests.pipeline.start_made import (
    ANCHOR,
    BATCH,
    COMMITTED,
    DIFFERENT,
    MARIA,
    MARIA_STANDBY,
    NOT_READ,
    SAME,
    A,
    B,
    C,
    at,
    batch,
    chosen,
    cursor,
    facts,
    gtids,
    question_of,
    reached,
    refused,
    started,
)

READ = f"{A}:1-100"
LAST, GONE = cursor(read=READ), cursor(at(1), READ)
"""The last batch's end, and one whose file the server has no more."""

HERE, THERE = facts(executed=f"{A}:1-150"), facts(B, executed=f"{A}:1-150,{B}:1-9")
OFF, OFF_THERE = facts(mode="OFF"), facts(B, mode="OFF")
BY_TIME = StartPolicies(on_source_changed=OnSourceChanged.TIMESTAMP)
AGAIN = StartPolicies(on_position_lost=OnPositionLost.RESNAPSHOT)
CONTIGUOUS, OVERLAP, GAP = Continuity.CONTIGUOUS, Continuity.OVERLAP, Continuity.GAP
MOMENT = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)


def choice(
    found: ServerFacts,
    of: Cursor | None,
    where: ChosenPlace | errors.LockstepError,
    anchor: AnchorReading = NOT_READ,
) -> Question:
    return question_of(found, of, anchor, override=chosen(), chosen_place=where)


def configured(place: str | Place | None, found: ServerFacts | None = None) -> Question:
    start = parse_start(place) if isinstance(place, str) else place
    return question_of(found or facts(), configured_start=start)


def by_set(read: str, purged: str, executed: str, uuid: str = A) -> Question:
    """The set alone says where to go on: of another server, or as the cursor's file is gone."""
    maria = read.startswith("0-")
    of = cursor(at(1) if uuid in (A, MARIA) else at(3), read, uuid=MARIA if maria else A)
    return question_of(facts(uuid, executed=executed, purged=purged), of)


ONLY_BY_SET = {
    "another server": by_set(READ, f"{A}:1-40", READ, B),
    "this one, the file gone": by_set(READ, f"{A}:1-40", READ),
}
NO_SET: dict[str, Question] = {
    "GTIDs are off there": question_of(OFF_THERE, LAST),
    "anonymous transactions are possible there": question_of(
        facts(B, executed=READ, mode="ON_PERMISSIVE"), LAST
    ),
    "some were possible meanwhile": question_of(
        facts(B, executed=READ), cursor(read=READ, by_gtid=False)
    ),
    "nothing read had a GTID": question_of(facts(B, executed=f"{B}:1-5"), cursor()),
}
"""Of another server, and no set tells where to go on."""

STARTS: Mapping[StartRule, Mapping[str, tuple[Question, StartPlace, Continuity | None]]] = {
    # Where the file is there and the anchor is the same, GTIDs are not asked: a server skips
    # anonymous transactions in a resume by GTID.
    StartRule.RESUME_SAME_SERVER: {
        **{
            f"{place}, {mode}": (
                question_of(facts(executed=READ, mode=mode), cursor(place, READ), SAME),
                place,
                None,
            )
            for place in (at(2, 4), at(3, 500), at(3, 1000), at(4, 1000))
            for mode in ("ON", "OFF", "ON_PERMISSIVE", "OFF_PERMISSIVE")
        },
        "MariaDB's id stands for a UUID": (
            question_of(facts(MARIA, executed="0-1-90"), cursor(read="0-1-90", uuid=MARIA), SAME),
            at(3),
            None,
        ),
        "what is configured counts for the first run only": (
            question_of(HERE, LAST, SAME, configured_start=Earliest()),
            at(3),
            None,
        ),
    },
    # The cursor's file is gone, but nothing that was purged was unread.
    StartRule.RESUME_AFTER_PURGE: {
        case: (by_set(read, purged, executed, uuid), gtids(read), CONTIGUOUS)
        for case, (read, purged, executed, uuid) in {
            "everything purged was read": (READ, READ, f"{A}:1-120", A),
            "less was purged than read": (READ, f"{A}:1-40", f"{A}:1-120", A),
            "nothing was purged": (READ, "", f"{A}:1-120", A),
            "of several servers": (
                *(f"{A}:1-100,{B}:1-7", f"{A}:1-90,{B}:1-7", f"{A}:1-120,{B}:1-9", A),
            ),
            "with tags": (f"{A}:1-9:b:1-5", f"{A}:1-9:b:1-4", f"{A}:1-9:b:1-6", A),
            "with gaps": (f"{A}:1-4:6-100", f"{A}:1-4:6-50", f"{A}:1-120", A),
            "MariaDB": ("0-1-90,0-2-95", "0-1-80,0-2-95", "0-1-120,0-2-95", MARIA),
        }.items()
    },
    # File names do not count, though the cursor's is listed.
    StartRule.RESUME_OTHER_SERVER: {
        case: (by_set(read, purged, executed, uuid), gtids(read), CONTIGUOUS)
        for case, (read, purged, executed, uuid) in {
            "a replica that was promoted": (READ, "", READ, B),
            "with transactions of its own": (READ, "", f"{A}:1-100,{B}:1-5", B),
            "that purged all that was read": (READ, READ, f"{A}:1-100,{B}:1-5", B),
            "that purged less": (READ, f"{A}:1-40", f"{A}:1-130", B),
            "a third server's, read too": (
                *(f"{A}:1-100,{C}:4", f"{C}:4", f"{A}:1-100,{C}:1-4", B),
            ),
            "MariaDB": ("0-1-90", "0-1-10", "0-1-90,0-2-95", MARIA_STANDBY),
        }.items()
    },
    # `on_position_lost`: behind a gap, at the log's end.
    StartRule.TABLES_READ_AGAIN: {
        uuid: (
            replace(by_set(READ, f"{A}:1-110", f"{A}:1-120", uuid), policies=AGAIN),
            at(4, 1000),
            GAP,
        )
        for uuid in (A, B)
    },
    # A minute before the last commit that was read; what comes twice is an overlap.
    StartRule.SEARCH_BY_TIME: {
        **{
            case: (
                replace(asked, policies=BY_TIME),
                Since(COMMITTED - timedelta(seconds=60), read_until=COMMITTED),
                OVERLAP,
            )
            for case, asked in NO_SET.items()
        },
        "`fallback_interval` says how far": (
            question_of(
                OFF_THERE,
                cursor(),
                policies=replace(BY_TIME, fallback_interval=timedelta(minutes=10)),
            ),
            Since(COMMITTED - timedelta(minutes=10), read_until=COMMITTED),
            OVERLAP,
        ),
    },
    StartRule.CONFIGURED_SET: {
        case: (
            configured(
                f"gtid:{text}",
                facts(MARIA if text.startswith("0-") else A, purged=purged, executed=executed),
            ),
            gtids(text),
            None,
        )
        for case, (text, purged, executed) in {
            "between purged and executed": (f"{A}:1-50", f"{A}:1-40", f"{A}:1-100"),
            "just what was purged": (f"{A}:1-40", f"{A}:1-40", f"{A}:1-100"),
            "all that was executed": (f"{A}:1-100", f"{A}:1-40", f"{A}:1-100"),
            "nothing was purged": (f"{A}:5", "", f"{A}:1-100"),
            "of MariaDB": ("0-1-50", "0-1-40", "0-1-100,0-2-7"),
        }.items()
    },
    StartRule.CONFIGURED_COORDINATES: {
        str(place): (configured(str(place)), place, None)
        for place in (at(2, 4), at(3, 77), at(4, 1000))
    },
    StartRule.CONFIGURED_MOMENT_IN_FILE: {
        "searched in it": (
            *(configured("binlog.000003@2026-11-01T05:30:00Z"), Since(MOMENT, at(3).file), None),
        )
    },
    # Whether the moment is in range, only the search can tell.
    StartRule.CONFIGURED_MOMENT: {
        "in another zone": (configured("2026-11-01T07:30:00+02:00"), Since(MOMENT), None)
    },
    StartRule.CONFIGURED_SNAPSHOT: {
        case: (replace(configured("snapshot"), load_watermark=low), where, None)
        for case, low, where in (
            ("the log's end", None, at(4, 1000)),
            ("where a run that died had begun to read", at(3, 700), at(3, 700)),
            ("that is gone", at(1, 700), at(4, 1000)),
        )
    },
    StartRule.CONFIGURED_EARLIEST: {
        "whatever its number": (
            configured("earliest", facts(files=(999_999, 1_000_000))),
            at(999_999, 4),
            None,
        )
    },
    StartRule.CONFIGURED_LATEST: {"the log's end": (configured("latest"), at(4, 1000), None)},
    # Behind the cursor it tells what lies between: nothing, where that can be shown, else a gap.
    StartRule.CHOSEN_START: {
        case: (choice(found, of, where, anchor), where.where, between)
        for case, (found, of, where, anchor, between) in {
            "of a source without a cursor": (HERE, None, reached(at(4, 4)), NOT_READ, None),
            "forward": (HERE, LAST, reached(at(3, 501), READ), SAME, GAP),
            "forward into a later file": (HERE, LAST, reached(at(4, 4), READ), SAME, GAP),
            "at the cursor": (HERE, LAST, reached(at(3), READ), SAME, CONTIGUOUS),
            "at the cursor, GTIDs off": (OFF, cursor(), reached(at(3)), SAME, CONTIGUOUS),
            "forward by a set": (HERE, LAST, reached(gtids(f"{A}:1-140")), SAME, GAP),
            "the cursor's set": (HERE, LAST, reached(gtids(READ)), SAME, CONTIGUOUS),
            "the file is gone": (HERE, GONE, reached(at(2, 4), f"{A}:1-120"), NOT_READ, GAP),
            "it is gone, without sets": (OFF, cursor(at(1)), reached(at(2, 4)), NOT_READ, GAP),
            "it is gone, to just what was read": (
                *(HERE, GONE, reached(at(2, 4), READ), NOT_READ, CONTIGUOUS),
            ),
            "another server": (THERE, LAST, reached(at(2), f"{A}:1-101"), NOT_READ, GAP),
            "another server, just what was read": (
                *(THERE, LAST, reached(at(2), READ), NOT_READ, CONTIGUOUS),
            ),
            "another server, what was read and more in a third's name": (
                *(THERE, LAST, reached(at(2), f"{READ},{B}:1"), NOT_READ, GAP),
            ),
            "another server that lacks some of what was read, behind what it has of that": (
                facts(B, executed=f"{A}:1-95,{B}:1-9"),
                *(LAST, reached(at(2), f"{A}:1-95"), NOT_READ, GAP),
            ),
            "another server, without sets": (OFF_THERE, cursor(), reached(at(2)), NOT_READ, GAP),
            "another server, by a set that proves nothing": (
                *(THERE, cursor(read=READ, by_gtid=False)),
                *(reached(at(2), f"{A}:1-90"), NOT_READ, GAP),
            ),
            "the history was rewritten": (
                *(HERE, LAST, reached(at(2, 4), f"{A}:1-40"), DIFFERENT, GAP),
            ),
            "the server was rebuilt from a backup": (
                facts(executed=f"{A}:1-90"),
                *(LAST, reached(gtids(f"{A}:1-90")), NOT_READ, GAP),
            ),
            "files have another base name": (
                facts(executed=f"{A}:1-150", base="renamed"),
                *(LAST, reached(at(2, 4, "renamed"), f"{A}:1-120"), SAME, GAP),
            ),
            "MariaDB, forward by a set": (
                facts(MARIA, executed="0-1-120"),
                *(cursor(read="0-1-90", uuid=MARIA), reached(gtids("0-1-95")), SAME, GAP),
            ),
        }.items()
    },
}

LISTED = "files listed: binlog.000002 to binlog.000004"
ERRORS: Mapping[StartRule, tuple[type[errors.LockstepError], *tuple[str, ...]]] = {
    StartRule.HISTORY_REWRITTEN: (errors.HistoryRewritten, "lockstep start-at"),
    StartRule.SET_REUSED: (errors.HistoryRewritten, f"{A}:77"),
    StartRule.SET_UNPROVEN: (
        errors.HistoryUnproven,
        f"`lockstep start-at gtid:{READ} --source shop --reason ",
    ),
    StartRule.POSITION_PURGED: (
        errors.PositionPurged,
        "binlog.000001 is no longer on the server (oldest now: binlog.000002)",
    ),
    StartRule.PURGED_ON_OTHER_SERVER: (errors.PositionPurged,),
    StartRule.SOURCE_CHANGED: (errors.SourceChanged, f"belongs to server {A}, but {B} answers"),
    StartRule.CONFIGURED_SET_PURGED: (errors.PositionPurged,),
    StartRule.CONFIGURED_SET_DIVERGED: (errors.SourceDiverged,),
    StartRule.START_UNREACHABLE: (errors.StartUnreachable,),
    StartRule.NO_RULE_APPLIES: (errors.NoRuleApplies,),
    StartRule.CHOSEN_START_UNREACHABLE: (
        errors.StartUnreachable,
        "is not on the server: the log begins at noon",
        "choose a later moment; or choose another place",
    ),
    StartRule.SOURCE_DIVERGED: (
        errors.SourceDiverged,
        f"which {A} had executed at the place",
        "new source name",
    ),
    StartRule.CHOSEN_START_BEHIND: (
        errors.StartBehindCursor,
        "which ada chose, lies before binlog.00000",
        "`lockstep start-at ",
    ),
    StartRule.START_NOT_CHOSEN: (errors.StartNotChosen,),
}
"""Of each refusal, and words that its reason or its hint always has."""

REFUSALS: Mapping[StartRule, Mapping[str, tuple[Question, str]]] = {
    # The log of the server that was read is not the log that was read; by what that shows.
    StartRule.HISTORY_REWRITTEN: {
        case: (question_of(found, of, anchor), words)
        for case, (of, found, anchor, words) in {
            "the event there is another": (cursor(), facts(), DIFFERENT, "a different one"),
            "the newest file is older": (cursor(at(5)), facts(), NOT_READ, "binlog.000004"),
            "numbers began again": (
                *(cursor(at(999_999)), facts(files=(1,)), NOT_READ, "binlog.000001"),
            ),
            "the file is shorter": (cursor(at(3, 1001)), facts(), NOT_READ, "ends at 1000"),
            "another base name": (cursor(), facts(base="mysql-bin"), NOT_READ, "mysql-bin"),
            "the set lacks what was read": (
                *(cursor(read=f"{READ},{C}:1-3"), facts(executed=READ), SAME, f"{C}:1-3"),
            ),
            "the set lacks it, the file is gone": (
                GONE,
                facts(executed=f"{A}:1-99", purged=f"{A}:1-99"),
                *(NOT_READ, f"{A}:100"),
            ),
            "the set lacks it, by a cursor that is not resumed by it": (
                cursor(read=READ, by_gtid=False),
                facts(executed=f"{A}:1-5", mode="OFF"),
                *(SAME, f"{A}:6-100"),
            ),
            "MariaDB's state lacks what was read": (
                cursor(read="0-1-90,0-2-95", uuid=MARIA),
                *(facts(MARIA, executed="0-1-96"), SAME, "0-2-95"),
            ),
            "a server that was reset: nothing was purged, all is new": (
                cursor(at(1, 5000), READ),
                *(facts(executed=f"{A}:1-3", files=(1,)), NOT_READ, ""),
            ),
        }.items()
    },
    # A transaction under a GTID that was read is another one: nothing else matters.
    StartRule.SET_REUSED: {
        f"{case}, purged '{purged}'": (
            replace(
                asked,
                facts=replace(asked.facts, gtid_purged=purged),
                policies=BY_TIME,
                set_reading=SetReading.DIFFERENT,
                reused_gtid=f"{A}:77",
            ),
            "",
        )
        for case, asked in ONLY_BY_SET.items()
        for purged in ("", f"{A}:1-40", f"{B}:1-9")
    },
    # The set alone would do, and its last transaction is purged.
    StartRule.SET_UNPROVEN: {
        case: (replace(asked, policies=BY_TIME, set_reading=SetReading.PURGED), "")
        for case, asked in ONLY_BY_SET.items()
    },
    # The file is gone, and the set does not prove that nothing is missing: no jump.
    StartRule.POSITION_PURGED: {
        "one was not read": (by_set(READ, f"{A}:1-101", f"{A}:1-120"), f"{A}:101 was never"),
        "another server's was not read": (
            by_set(READ, f"{A}:1-40,{C}:1", f"{A}:1-120,{C}:1-2"),
            f"{C}:1 was never read",
        ),
        "MariaDB purged more": (by_set("0-1-90", "0-1-91", "0-1-120", MARIA), "0-1-91"),
        **{
            f"gtid_mode is {mode}": (
                question_of(facts(executed=READ, purged=READ, mode=mode), GONE),
                f"gtid_mode is {mode}",
            )
            for mode in ("OFF", "ON_PERMISSIVE")
        },
        "some were possible meanwhile": (
            question_of(facts(executed=READ, purged=READ), cursor(at(1), READ, by_gtid=False)),
            "without a GTID",
        ),
        "no set was read": (
            question_of(facts(executed=READ, purged=READ), cursor(at(1))),
            "had a GTID",
        ),
    },
    # What was read of what is missing the sets do not tell, so nobody claims it.
    StartRule.SOURCE_DIVERGED: {
        case: (
            replace(by_set(read, purged, executed, B), policies=BY_TIME),
            f"never executed {missing}, ",
        )
        for case, (read, executed, purged, missing) in {
            "the last ones were lost": (READ, f"{A}:1-98", "", f"{A}:99-100"),
            "a hole": (READ, f"{A}:1-49:51-100", "", f"{A}:50"),
            "a third server's": (f"{READ},{C}:1-2", f"{A}:1-200,{C}:1", "", f"{C}:2"),
            "purged more": (READ, f"{A}:1-98,{B}:1-9", f"{B}:1-9", f"{A}:99-100"),
            "a rebuilt server": (READ, "", "", READ),
        }.items()
    },
    # A server checks its own UUID's transactions only, so the check is made here.
    StartRule.PURGED_ON_OTHER_SERVER: {
        purged: (
            replace(by_set(READ, purged, f"{A}:1-120,{B}:1-5", B), policies=BY_TIME),
            str(gtids(purged).difference(gtids(READ))),
        )
        for purged in (f"{A}:1-101", f"{B}:1")
    },
    StartRule.SOURCE_CHANGED: {
        **{case: (asked, "on_source_changed = 'timestamp'") for case, asked in NO_SET.items()},
        "no moment to search from": (
            question_of(OFF_THERE, cursor(committed_at=None), policies=BY_TIME),
            "no commit",
        ),
    },
    StartRule.CONFIGURED_SET_PURGED: {
        f"{text}, purged {purged}": (
            configured(
                f"gtid:{text}",
                facts(MARIA if text.startswith("0-") else A, purged=purged, executed=purged),
            ),
            f"has purged {missing}, which",
        )
        for text, purged, missing in (
            (f"{A}:1-50", f"{A}:1-51", f"{A}:51"),
            (f"{A}:1-50", f"{B}:1", f"{B}:1"),
            (f"{A}:2-50", f"{A}:1-40", f"{A}:1"),
            ("0-1-50", "0-1-51", "0-1-51..51"),
        )
    },
    StartRule.CONFIGURED_SET_DIVERGED: {
        text: (
            configured(f"gtid:{text}", facts(purged=f"{A}:1-40", executed=READ)),
            str(gtids(text).difference(gtids(READ))),
        )
        for text in (f"{A}:1-101", f"{A}:1-50,{B}:1")
    },
    StartRule.START_UNREACHABLE: {
        **{
            text: (configured(text), f"start = '{text}' is not on the server ({words})")
            for text, words in {
                "binlog.000001:77": LISTED,
                "binlog.000005:4": LISTED,
                "mysql-bin.000003:77": LISTED,
                "binlog.000003:1001": "binlog.000003 ends at 1000",
                "binlog.000003:3": "binlog.000003 ends at 1000",
                "binlog.000001@2026-11-01T05:30:00Z": LISTED,
            }.items()
        },
        "no file at all": (configured("earliest", facts(files=())), "lists no log file"),
    },
    # The end of the log would lose data without a word.
    StartRule.START_NOT_CHOSEN: {"nothing": (configured(None), "")},
    # A listed file that was gone when it was looked at; lockstep.toml refuses a run as a start.
    StartRule.NO_RULE_APPLIES: {
        "a race": (question_of(facts(executed=READ), LAST, NOT_READ), "binlog.000003:500"),
        "a run as a start": (configured(OfRun("x")), ""),
    },
    StartRule.CHOSEN_START_UNREACHABLE: {
        str(of): (
            choice(
                HERE,
                of,
                errors.MomentOutOfRange("the log begins at noon", hint="choose a later moment"),
            ),
            "",
        )
        for of in (None, LAST)
    },
    # The place lies before the cursor. A file and an offset to go on at are the server's that was
    # read; another one is told the set: what was read, and what the place leaves out.
    StartRule.CHOSEN_START_BEHIND: {
        case: (choice(found, of, where, anchor), words)
        for case, (found, of, where, anchor, words) in {
            "back by a byte": (
                *(HERE, LAST, reached(at(3, 499), READ), SAME),
                "`lockstep start-at binlog.000003:500 --source shop --reason …`",
            ),
            "back a file": (HERE, LAST, reached(at(2, 900), READ), SAME, ""),
            "back by a set": (HERE, LAST, reached(gtids(f"{A}:1-99")), SAME, ""),
            "back by a set that holds others": (
                *(HERE, LAST, reached(gtids(f"{A}:2-140")), SAME, ""),
            ),
            "back to the beginning of another": (THERE, LAST, reached(at(2, 4)), NOT_READ, ""),
            "back without sets": (OFF, cursor(), reached(at(3, 499)), SAME, ""),
            "back, of a cursor whose file is gone": (
                *(HERE, GONE, reached(at(2, 4), f"{A}:1-99"), NOT_READ, ""),
            ),
            "back on another server": (
                *(THERE, LAST, reached(at(4), f"{A}:1-99"), NOT_READ),
                f"start-at gtid:{READ} --source",
            ),
            "another server, some of what was read and more in a third's name": (
                *(THERE, LAST, reached(at(2), f"{A}:1-90,{B}:1"), NOT_READ),
                f"start-at gtid:{READ},{B}:1 --source",
            ),
            "another server that lacks some of what was read": (
                facts(B, executed=f"{A}:1-95,{B}:1-9"),
                *(LAST, reached(at(2), f"{A}:1-90,{B}:1"), NOT_READ, ""),
            ),
            "back on MariaDB": (
                facts(MARIA, executed="0-1-120"),
                *(cursor(read="0-1-90", uuid=MARIA), reached(gtids("0-1-80")), SAME, ""),
            ),
        }.items()
    },
}


@pytest.mark.parametrize(
    ("rule", "asked", "where", "between"),
    [
        pytest.param(rule, *case, id=f"{rule}: {name}")
        for rule, cases in STARTS.items()
        for name, case in cases.items()
    ],
)
def test_where_a_run_begins(
    rule: StartRule, asked: Question, where: StartPlace, between: Continuity | None
) -> None:
    start = started(decide_start(asked))
    assert (start.rule, start.where, start.continuity) == (rule, where, between)


@pytest.mark.parametrize(
    ("rule", "asked", "words"),
    [
        pytest.param(rule, asked, words, id=f"{rule}: {name}")
        for rule, cases in REFUSALS.items()
        for name, (asked, words) in cases.items()
    ],
)
def test_why_a_run_does_not_begin(rule: StartRule, asked: Question, words: str) -> None:
    """By its name, with its reason and what to do about it."""
    kind, *always = ERRORS[rule]
    refusal = refused(decide_start(asked))
    assert (refusal.rule, type(refusal.error)) == (rule, kind)
    for word in (*always, words):
        assert word in f"{refusal.reason} | {refusal.error.hint}"


def test_every_rule_has_a_row_and_cases() -> None:
    assert [row.rule for row in TABLE] == [*StartRule]
    assert STARTS.keys() ^ REFUSALS.keys() == {*StartRule}
    assert REFUSALS.keys() == ERRORS.keys()


def test_reasons_and_hints_say_no_more_than_is_so() -> None:
    """A first start by a choice tells whose it is, a search how far it goes back; a policy that is
    set is not recommended."""
    first = started(decide_start(STARTS[StartRule.CHOSEN_START]["of a source without a cursor"][0]))
    assert first.reason == "ada chose binlog.000004:4: the disk was lost"
    search, *_ = STARTS[StartRule.SEARCH_BY_TIME]["`fallback_interval` says how far"]
    assert "600 s before the last commit" in decide_start(search).reason
    without, _ = REFUSALS[StartRule.SOURCE_CHANGED]["no moment to search from"]
    assert "on_source_changed" not in refused(decide_start(without)).error.hint


@pytest.mark.parametrize(
    ("found", "of", "place"),
    [
        (facts(files=(1,)), cursor(at(9), READ), at(1, 4)),
        (facts(executed=f"{A}:1-150", purged=f"{A}:1-140"), GONE, at(2, 4)),
        (facts(B, executed=f"{A}:1-50", purged=f"{A}:1-50"), LAST, at(2, 4)),
        (OFF_THERE, cursor(), at(2, 4)),
    ],
    ids=["history rewritten", "position purged", "diverged", "changed"],
)
def test_a_choice_gets_past_every_refusal(
    found: ServerFacts, of: Cursor, place: StartPlace
) -> None:
    refused(decide_start(question_of(found, of)))
    assert not isinstance(place, Since)
    start = started(decide_start(choice(found, of, reached(place, found.gtid_purged))))
    assert (start.rule, start.continuity) == (StartRule.CHOSEN_START, GAP)


@pytest.mark.parametrize("case", ONLY_BY_SET)
def test_a_person_may_vouch_for_a_set_that_is_not_proven(case: str) -> None:
    """It goes on behind that set; where a GTID was used again, behind a gap."""
    said = replace(
        ONLY_BY_SET[case],
        set_reading=SetReading.PURGED,
        override=chosen(f"gtid:{READ}"),
        chosen_place=reached(gtids(READ)),
    )
    reused = replace(said, set_reading=SetReading.DIFFERENT)
    assert [started(decide_start(one)).continuity for one in (said, reused)] == [CONTIGUOUS, GAP]


def _batch(number: int, run: str | None, read: str) -> Batch:
    end = Position(at(3, 100 * number), gtids(read), A)
    return batch(number, end, end, run_id=run, by_gtid=True)


FIRST, LOSSY = _batch(1, "a", f"{A}:1-50"), _batch(3, "b", f"{A}:1-99")
UNDONE: dict[str, tuple[tuple[Batch, ...], str, str | None]] = {
    "the oldest run that read one": ((FIRST, LOSSY, _batch(4, "c", READ)), "", "b"),
    "from its first batch on": ((FIRST, _batch(2, "b", f"{A}:1-60"), LOSSY), "", "b"),
    "the first run read one": ((_batch(2, "b", f"{A}:1-60"), LOSSY), "", None),
    "a recovery stands for it": ((FIRST, replace(LOSSY, run_id=None)), "", None),
    "the log after the batch before is purged": ((FIRST, LOSSY), f"{A}:1-51", None),
    "the batch before is no place by GTID": ((replace(FIRST, by_gtid=False), LOSSY), "", None),
    "all is pruned": ((), "", None),
}


@pytest.mark.parametrize("case", UNDONE)
def test_who_diverged_is_told_the_run_to_undo(case: str) -> None:
    """If the server has everything that was read before it, and all that comes after."""
    batches, purged, run = UNDONE[case]
    asked = replace(by_set(READ, purged, f"{A}:1-98", B), unpruned_batches=batches)
    hint = refused(decide_start(asked)).error.hint
    assert (f"`lockstep undo {run} --source shop`" in hint) == (run is not None)
    assert run is not None or "undo" not in hint


@pytest.mark.parametrize("anchor", AnchorReading)
def test_the_anchor_says_nothing_of_another_server(anchor: AnchorReading) -> None:
    asked = question_of(facts(B, executed=READ), LAST, anchor)
    assert decide_start(asked) == started(decide_start(replace(asked, anchor_reading=NOT_READ)))


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


KEPT = (SetAnchor(f"{A}:9", 50), SetAnchor(f"{B}:7", 40))


@pytest.mark.parametrize(
    ("found", "known", "reused"),
    [
        (KEPT, SetReading.SAME, ""),
        (KEPT[:1], SetReading.SAME, ""),
        (KEPT[1:], SetReading.PURGED, ""),
        ((), SetReading.PURGED, ""),
        ((replace(KEPT[0], committed_at=51), KEPT[1]), SetReading.DIFFERENT, f"{A}:9"),
        ((KEPT[0], replace(KEPT[1], committed_at=41)), SetReading.DIFFERENT, f"{B}:7"),
        ((KEPT[0], replace(KEPT[1], digest="x")), SetReading.DIFFERENT, f"{B}:7"),
    ],
)
def test_transactions_of_a_set_are_compared(
    found: tuple[SetAnchor, ...], known: SetReading, reused: str
) -> None:
    """The last one must be there; no other may differ."""
    shown = {one.gtid: one for one in found}
    assert compare_set(KEPT, shown) == (known, reused)
    assert compare_set((), shown) == (SetReading.NOT_COMPARED, "")


@pytest.mark.parametrize(
    ("known", "answers", "place"),
    [(None, facts(), "earliest"), (B, facts(B), "latest"), (B, facts(A), "earliest")],
)
def test_a_standbys_start_is_its_own(known: str | None, answers: ServerFacts, place: str) -> None:
    """Chosen by the UUID of the server that answers, not by its address."""
    standby = StandbyPlan(parse_place("latest"), known)
    plan = SourcePlan("shop", TablePatterns(("shop.*",)), parse_place("earliest"), standby=standby)
    assert plan.start_at(answers) == parse_place(place)


PATTERNS = TablePatterns(("shop.*",), ("shop.log",))

# -- every question ----------------------------------------------------------------------

mysql_sets = st.builds(
    lambda *parts: ",".join(part for part in parts if part),
    *(
        st.sampled_from(["", f"{u}:1-50", f"{u}:1-100", f"{u}:1-40:60-100", f"{u}:1-9:tag:1-5"])
        for u in (A, B, C)
    ),
)
mariadb_sets = st.sampled_from(["", "0-1-50", "0-1-100", "0-1-100,0-2-7", "1-1-3"])
sets = mysql_sets | mariadb_sets
bases = st.sampled_from(["binlog", "renamed"])
places = st.builds(at, st.integers(1, 6), st.sampled_from([4, 500, 999, 1000, 1001]), bases)
moments = st.datetimes(min_value=datetime(2020, 1, 1), timezones=st.just(UTC))
filled = sets.filter(bool).map(gtids)

configurations = st.one_of(
    st.none(),
    st.sampled_from([Earliest(), Latest(), Snapshot(), OfRun("x")]),
    places.map(AtCoordinates),
    moments.map(AtMoment),
    st.builds(lambda place, moment: InFile(place.file, moment), places, moments),
    filled.map(AfterGtids),
)
VARIED: dict[str, st.SearchStrategy[Any]] = {
    "source": st.just("shop"),
    "facts": st.builds(
        facts,
        st.sampled_from([A, B, MARIA]),
        executed=sets,
        purged=sets,
        mode=st.sampled_from(["ON", "OFF", "ON_PERMISSIVE", "OFF_PERMISSIVE"]),
        files=st.sampled_from([(), (1,), (2, 3, 4), (3, 4, 5, 6)]),
        base=bases,
    ),
    "cursor": st.none()
    | st.builds(
        cursor,
        places,
        sets,
        uuid=st.sampled_from([A, MARIA]),
        by_gtid=st.booleans(),
        committed_at=st.none() | moments,
    ),
    "anchor_reading": st.sampled_from(AnchorReading),
    "set_reading": st.sampled_from(SetReading),
    "configured_start": configurations,
    "policies": st.builds(
        StartPolicies,
        st.sampled_from(OnPositionLost),
        st.sampled_from(OnSourceChanged),
        st.timedeltas(timedelta(0), timedelta(days=2)),
    ),
    "load_watermark": st.none() | places,
}
questions = st.builds(Question, **VARIED)
choices = st.one_of(
    st.just(StartUnreachable("it is not there", hint="choose another")),
    st.builds(reached, places, sets),
    filled.map(reached),
)


@st.composite
def asked(draw: st.DrawFn) -> Question:
    """Any question, one in two with a choice."""
    question = draw(questions)
    if draw(st.booleans()):
        return replace(question, override=chosen(), chosen_place=draw(choices))
    return question


def test_every_fact_of_a_question_is_varied() -> None:
    """By `asked`, but for facts that only a sentence names."""
    only_named = {"reused_gtid", "unpruned_batches"}
    chosen_by_a_person = {"override", "chosen_place"}
    assert {field.name for field in fields(Question)} - VARIED.keys() == (
        only_named | chosen_by_a_person
    )


@given(asked())
def test_the_table_is_total(question: Question) -> None:
    """Whatever the facts, the answer is a start with a reason or a refusal with a hint, by
    the same rule each time."""
    answer = decide_start(question)
    assert answer.reason
    assert isinstance(answer, Start) or answer.error.hint
    assert decide_start(question).rule is answer.rule
    assert decision_record(answer, question, PATTERNS).rule == answer.rule.value


@given(asked())
@example(
    question_of(
        facts(files=()),
        cursor(at(1, 4)),
        AnchorReading.NOT_READ,
        policies=StartPolicies(OnPositionLost.RESNAPSHOT),
    )
)
def test_a_start_tells_how_it_goes_on(question: Question) -> None:
    """Behind a cursor it continues a batch, or names the previous one and what lies between; a
    first start has neither. A gap is only ever a person's choice, at once or by
    `on_position_lost`; after a gap that was not chosen at once, every table is read from
    the source (`find_tables_without_log`)."""
    answer = decide_start(question)
    if not isinstance(answer, Start):
        return
    origin = (answer.continued_batch, answer.previous_batch, answer.continuity)
    if question.cursor is None:
        assert origin == (None, None, None)
    elif answer.continued_batch is None:
        assert (answer.previous_batch, answer.continuity is None) == (BATCH, False)
    else:
        assert origin == (BATCH, None, None)
    if answer.continuity is Continuity.GAP:
        assert answer.rule in (StartRule.CHOSEN_START, StartRule.TABLES_READ_AGAIN)
        assert (answer.override is None) is (answer.rule is StartRule.TABLES_READ_AGAIN)
    assert answer.override == (question.override.id if question.override else None)


@given(asked())
def test_no_rule_applies_only_by_a_race_or_a_run_as_start(question: Question) -> None:
    """A server comes to it in one way: a listed file that was gone when it was looked at.
    `start = "run:…"` is refused by the configuration."""
    if decide_start(question).rule is not StartRule.NO_RULE_APPLIES:
        return
    assert question.override is None
    if question.cursor is None:
        assert isinstance(question.configured_start, OfRun)
    else:
        listed = [log.file for log in question.facts.binlogs]
        assert (question.is_same_server, question.anchor_reading) == (True, NOT_READ)
        assert question.cursor.position.at.file in listed


@given(asked())
def test_a_set_is_followed_only_where_it_proves_that_nothing_is_missing(question: Question) -> None:
    """Wherever a resume by GTID is decided, purged ⊆ read ⊆ executed and GTIDs are on."""
    answer = decide_start(question)
    by_set = (StartRule.RESUME_AFTER_PURGE, StartRule.RESUME_OTHER_SERVER)
    if isinstance(answer, Start) and answer.rule in by_set:
        assert isinstance(answer.where, GtidSet)
        assert answer.where.contains(question.purged_gtids)
        assert question.executed_gtids.contains(answer.where)
        assert question.can_resume_by_gtid
        assert question.set_reading in (SetReading.SAME, SetReading.NOT_COMPARED)


@given(asked())
def test_a_choice_never_leads_back_unnoticed(question: Question) -> None:
    """On the log that was read, a chosen file and offset before the cursor is refused."""
    answer, of = decide_start(question), question.cursor
    if (
        isinstance(answer, Start)
        and answer.rule is StartRule.CHOSEN_START
        and of is not None
        and question.is_same_server
        and question.anchor_reading is SAME
        and isinstance(answer.where, Coordinates)
        and answer.where.file.base == of.position.at.file.base
    ):
        assert answer.where >= of.position.at


# -- what is written down ----------------------------------------------------------------


def test_a_resume_is_recorded_with_its_facts() -> None:
    """The server's facts, the patterns, the cursor and the place it was found to be."""
    question = question_of(facts(executed=f"{A}:1-9"), cursor(read=f"{A}:1-9"), SAME)
    kept = decision_record(decide_start(question), question, PATTERNS, at=at(3))
    assert (kept.kind, kept.rule, kept.author) == ("start", "resume-same-server", "lockstep")
    assert (kept.previous_batch, kept.continuity, kept.gap_tables) == (None, None, ())
    shown = {
        name: kept.facts[name] for name in ("previous_batch", "cursor", "anchor", "place", "head")
    }
    assert shown == {
        "previous_batch": BATCH,
        "cursor": "binlog.000003:500",
        "anchor": "the same",
        "place": "binlog.000003:500",
        "head": "binlog.000004:1000",
    }
    assert kept.facts["tables"] == {"include": ["shop.*"], "exclude": ["shop.log"]}
    assert (kept.facts["gtid_mode"], kept.facts["gtid_executed"]) == ("ON", f"{A}:1-9")


def test_a_chosen_gap_is_recorded_with_its_author_and_tables() -> None:
    """The tables that may miss changes."""
    question = question_of(
        facts(), cursor(), SAME, override=chosen(number=5), chosen_place=reached(at(4, 4))
    )
    decision = decide_start(question)
    kept = decision_record(decision, question, PATTERNS, at=at(4, 4), tables=["shop.a", "shop.b"])
    assert (kept.author, kept.override, kept.previous_batch) == ("ada", 5, BATCH)
    assert (kept.continuity, kept.gap_tables) == (Continuity.GAP, ("shop.a", "shop.b"))


def test_no_tables_are_named_without_a_gap() -> None:
    """A resume after a set misses nothing."""
    question = question_of(facts(B, executed=f"{A}:1-9"), cursor(read=f"{A}:1-9"))
    kept = decision_record(decide_start(question), question, PATTERNS, at=at(3))
    assert (kept.continuity, kept.gap_tables) == (Continuity.CONTIGUOUS, ())


def test_a_refusal_is_recorded_with_its_error_and_hint() -> None:
    """What was known when a run did not begin, and what to type."""
    question = question_of(facts(B, mode="OFF"), cursor())
    decision = decide_start(question)
    assert isinstance(decision, Refusal)
    kept = decision_record(decision, question, PATTERNS)
    assert (kept.kind, kept.rule, kept.previous_batch) == ("refusal", "source-changed", None)
    assert (kept.facts["error"], kept.facts["hint"]) == ("SourceChanged", decision.error.hint)
    assert (kept.recovery, kept.hint) == (Recovery.OPERATOR, decision.error.hint)
    assert "at" not in kept.facts
