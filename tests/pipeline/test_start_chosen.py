"""The rules of an operator's choice (`lockstep start-at`), by the rule's name."""

from __future__ import annotations

import pytest

from lockstep.pipeline.model.batch import Cursor
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.start.question import AnchorReading, ChosenPlace, Question, Start, StartRule
from lockstep.pipeline.start.rules import decide_start
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import MomentOutOfRange, StartBehindCursor, StartUnreachable
from lockstep.pipeline.values.position import Coordinates
from tests.pipeline.start_made import (
    BATCH,
    DIFFERENT,
    MARIA,
    NOT_READ,
    SAME,
    A,
    B,
    at,
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
HERE = facts(executed=f"{A}:1-150")
THERE = facts(B, executed=f"{A}:1-150,{B}:1-9")


def ask(
    found: ServerFacts,
    of: Cursor | None,
    where: ChosenPlace | None,
    anchor: AnchorReading = SAME,
) -> Question:
    return question_of(found, of, anchor, override=chosen(), chosen_place=where)


def test_chosen_start_of_a_source_without_a_cursor() -> None:
    """It is a first start: it follows nothing, and the choice is named."""
    start = started(decide_start(ask(HERE, None, reached(at(4, 4)), NOT_READ)))
    assert start == Start(
        StartRule.CHOSEN_START,
        "ada chose binlog.000004:4: the disk was lost",
        at(4, 4),
        override=3,
    )


CONTIGUOUS, GAP = Continuity.CONTIGUOUS, Continuity.GAP
FORWARD = {
    "forward": (HERE, cursor(read=READ), reached(at(3, 501), READ), SAME, GAP),
    "forward into a later file": (HERE, cursor(read=READ), reached(at(4, 4), READ), SAME, GAP),
    "at the cursor": (HERE, cursor(read=READ), reached(at(3), READ), SAME, CONTIGUOUS),
    "at the cursor, GTIDs off": (
        facts(mode="OFF"),
        cursor(),
        reached(at(3)),
        SAME,
        CONTIGUOUS,
    ),
    "forward by a set": (
        HERE,
        cursor(read=READ),
        reached(gtids(f"{A}:1-140")),
        SAME,
        GAP,
    ),
    "the cursor's set": (HERE, cursor(read=READ), reached(gtids(READ)), SAME, CONTIGUOUS),
    "the file is gone, forward": (
        HERE,
        cursor(at(1), READ),
        reached(at(2, 4), f"{A}:1-120"),
        NOT_READ,
        GAP,
    ),
    "the file is gone, without sets": (
        facts(mode="OFF"),
        cursor(at(1)),
        reached(at(2, 4)),
        NOT_READ,
        GAP,
    ),
    "the file is gone, to just what was read": (
        HERE,
        cursor(at(1), READ),
        reached(at(2, 4), READ),
        NOT_READ,
        CONTIGUOUS,
    ),
    "another server, forward": (
        THERE,
        cursor(read=READ),
        reached(at(2), f"{A}:1-101"),
        NOT_READ,
        GAP,
    ),
    "another server, just what was read": (
        THERE,
        cursor(read=READ),
        reached(at(2), READ),
        NOT_READ,
        CONTIGUOUS,
    ),
    "another server, what was read and more in a third's name": (
        THERE,
        cursor(read=READ),
        reached(at(2), f"{READ},{B}:1"),
        NOT_READ,
        GAP,
    ),
    "another server that lacks some of what was read, behind what it has of that": (
        facts(B, executed=f"{A}:1-95,{B}:1-9"),
        cursor(read=READ),
        reached(at(2), f"{A}:1-95"),
        NOT_READ,
        GAP,
    ),
    "another server, without sets": (
        facts(B, mode="OFF"),
        cursor(),
        reached(at(2)),
        NOT_READ,
        GAP,
    ),
    "another server, by a set that proves nothing": (
        THERE,
        cursor(read=READ, by_gtid=False),
        reached(at(2), f"{A}:1-90"),
        NOT_READ,
        GAP,
    ),
    "the history was rewritten": (
        HERE,
        cursor(read=READ),
        reached(at(2, 4), f"{A}:1-40"),
        DIFFERENT,
        GAP,
    ),
    "the server was rebuilt from a backup": (
        facts(executed=f"{A}:1-90"),
        cursor(read=READ),
        reached(gtids(f"{A}:1-90")),
        NOT_READ,
        GAP,
    ),
    "files have another base name": (
        facts(executed=f"{A}:1-150", base="renamed"),
        cursor(read=READ),
        reached(at(2, 4, "renamed"), f"{A}:1-120"),
        SAME,
        GAP,
    ),
    "MariaDB, forward by a set": (
        facts(MARIA, executed="0-1-120"),
        cursor(read="0-1-90", uuid=MARIA),
        reached(gtids("0-1-95")),
        SAME,
        GAP,
    ),
}


@pytest.mark.parametrize("case", FORWARD)
def test_chosen_start_behind_the_cursor_tells_what_lies_between(case: str) -> None:
    """Nothing, where that can be shown; else a gap. It follows the batch that was last."""
    found, of, where, anchor, between = FORWARD[case]
    start = started(decide_start(ask(found, of, where, anchor)))
    assert (start.rule, start.where, start.override) == (StartRule.CHOSEN_START, where.where, 3)
    assert (start.continued_batch, start.previous_batch, start.continuity) == (None, BATCH, between)


BEHIND = {
    "back by a byte": (HERE, cursor(read=READ), reached(at(3, 499), READ), SAME),
    "back a file": (HERE, cursor(read=READ), reached(at(2, 900), READ), SAME),
    "back by a set": (HERE, cursor(read=READ), reached(gtids(f"{A}:1-99")), SAME),
    "back by a set that holds others": (
        HERE,
        cursor(read=READ),
        reached(gtids(f"{A}:2-140")),
        SAME,
    ),
    "back to the beginning of another server": (
        THERE,
        cursor(read=READ),
        reached(at(2, 4)),
        NOT_READ,
    ),
    "back without sets": (facts(mode="OFF"), cursor(), reached(at(3, 499)), SAME),
    "back, of a cursor whose file is gone": (
        HERE,
        cursor(at(1), READ),
        reached(at(2, 4), f"{A}:1-99"),
        NOT_READ,
    ),
    "back on another server": (THERE, cursor(read=READ), reached(at(4), f"{A}:1-99"), NOT_READ),
    "another server, some of what was read and more in a third's name": (
        THERE,
        cursor(read=READ),
        reached(at(2), f"{A}:1-90,{B}:1"),
        NOT_READ,
    ),
    "another server that lacks some of what was read": (
        facts(B, executed=f"{A}:1-95,{B}:1-9"),
        cursor(read=READ),
        reached(at(2), f"{A}:1-90,{B}:1"),
        NOT_READ,
    ),
    "back on MariaDB": (
        facts(MARIA, executed="0-1-120"),
        cursor(read="0-1-90", uuid=MARIA),
        reached(gtids("0-1-80")),
        SAME,
    ),
}


@pytest.mark.parametrize("case", BEHIND)
def test_chosen_start_behind_is_refused_when(case: str) -> None:
    """The place lies before the cursor: repeating is what `replay` will do."""
    found, of, where, anchor = BEHIND[case]
    refusal = refused(decide_start(ask(found, of, where, anchor)))
    assert (refusal.rule, type(refusal.error)) == (StartRule.CHOSEN_START_BEHIND, StartBehindCursor)
    assert "which ada chose, lies before binlog.00000" in refusal.reason
    assert "`lockstep start-at" in refusal.error.hint


@pytest.mark.parametrize(
    ("found", "before", "place"),
    [
        (HERE, f"{A}:1-99", "binlog.000003:500"),
        (THERE, f"{A}:1-99", f"gtid:{READ}"),
        (THERE, f"{A}:1-99,{B}:1", f"gtid:{READ},{B}:1"),
    ],
)
def test_chosen_start_behind_says_what_goes_on(found: ServerFacts, before: str, place: str) -> None:
    """A file and an offset are the server's that was read; another one is told the set: what was
    read, and what the place leaves out."""
    where = reached(at(2, 900), before)
    refusal = refused(decide_start(ask(found, cursor(read=READ), where)))
    assert f"`lockstep start-at {place} --source shop --reason …`" in refusal.error.hint


@pytest.mark.parametrize("of", [None, cursor(read=READ)])
def test_chosen_start_unreachable_says_why(of: Cursor | None) -> None:
    """With the hint of what was tried, and how to choose again."""
    why = MomentOutOfRange("the log begins at noon", hint="choose a later moment")
    asked = question_of(HERE, of, SAME, override=chosen(), chosen_place=why)
    refusal = refused(decide_start(asked))
    assert (refusal.rule, type(refusal.error)) == (
        StartRule.CHOSEN_START_UNREACHABLE,
        StartUnreachable,
    )
    assert refusal.reason.endswith("is not on the server: the log begins at noon")
    assert refusal.error.hint.startswith("choose a later moment; or choose another place")


RULED_OUT: list[tuple[ServerFacts, Cursor, Coordinates]] = [
    (facts(files=(1,)), cursor(at(9), READ), at(1, 4)),
    (facts(executed=f"{A}:1-150", purged=f"{A}:1-140"), cursor(at(1), READ), at(2, 4)),
    (facts(B, executed=f"{A}:1-50", purged=f"{A}:1-50"), cursor(read=READ), at(2, 4)),
    (facts(B, mode="OFF"), cursor(), at(2, 4)),
]


@pytest.mark.parametrize(("found", "of", "place"), RULED_OUT)
def test_chosen_start_comes_before_every_refusal(
    found: ServerFacts, of: Cursor, place: Coordinates
) -> None:
    """History rewritten, position purged, diverged, changed: each is got past by a choice."""
    without = question_of(found, of, NOT_READ)
    refused(decide_start(without))
    where = reached(place, found.gtid_purged)
    start = started(decide_start(ask(found, of, where, NOT_READ)))
    assert (start.rule, start.continuity) == (StartRule.CHOSEN_START, Continuity.GAP)
