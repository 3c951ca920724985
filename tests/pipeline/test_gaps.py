"""When the parts of a gap are history."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lockstep.pipeline.model.gaps import (
    ClosedTable,
    ClosingEvent,
    Gap,
    comparison_times,
    with_closed,
)
from lockstep.pipeline.model.table_state import TableEventKind
from lockstep.pipeline.proof.proven import ComparisonRecord, EqualityProof, ProofKind
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import LogFile, Position
from lockstep.pipeline.values.table import TableName
from tests.ledger.made import position

AT = datetime(2026, 11, 1, 6, 0, tzinfo=UTC)
GAP = Gap(1, 5, AT, "ann", "lost", ("shop.a", "shop.b", "shop.c"), "…:4", "…:9")
REREAD = TableEventKind.REREAD


def _read(table: str, batch: int) -> ClosingEvent:
    return ClosingEvent(table, batch, AT, REREAD)


def _taken(table: str, taker: str, batch: int) -> ClosingEvent:
    return ClosingEvent(table, batch, AT, None, taker)


def test_a_part_is_closed_once_by_what_comes_first_behind_the_gap() -> None:
    """What lies before it counts for nothing, nor what happens to others."""
    happened = [_read("shop.a", 4), _read("shop.x", 5), _read("shop.a", 5), _read("shop.a", 9)]
    gap = with_closed(GAP, happened)
    assert gap.closed == {"shop.a": ClosedTable(5, AT, REREAD, "shop.a")}
    assert gap.open_tables == ("shop.b", "shop.c")


def test_a_comparison_behind_the_gap_closes_a_part() -> None:
    """Of all rows, begun once the gap's batch was in the mirrors, at a place that the log or its
    GTIDs show to lie behind the gap; under a name that was another table's it tells nothing."""
    start = position(9)
    later = AT + timedelta(minutes=1)

    def closed(at: Position, when: datetime = later, *, whole: bool = True) -> tuple[str, ...]:
        proven = EqualityProof(ProofKind.EXACT, 7, at.at, str(at.gtid_set))
        proofs = [
            ComparisonRecord(TableName("shop", n), whole, when, 0, proven, when) for n in "ab"
        ]
        happened = [_taken("shop.b", "shop.x", 6)]
        gap = with_closed(GAP, happened, comparison_times(proofs, start, AT))
        return tuple(part for part, one in gap.closed.items() if one.kind is None)

    assert closed(start) == ("shop.a",)
    assert closed(start, AT) == closed(start, whole=False) == ()
    assert closed(position(8)) == ()
    elsewhere = replace(start.at, file=LogFile("other", 1))
    assert closed(replace(start, at=elsewhere)) == ("shop.a",)
    assert closed(replace(start, at=elsewhere, gtid_set=GtidSet())) == ()


def test_a_part_goes_with_the_mirror() -> None:
    """Two tables that changed places, in one batch, and a name that came to another later."""
    happened = [
        _taken("shop.a", "shop.b", 6),
        _taken("shop.b", "shop.a", 6),
        _read("shop.b", 7),
        _taken("shop.a", "shop.d", 8),
        _read("shop.a", 9),
        _read("shop.d", 10),
        _read("shop.c", 10),
    ]
    gap = with_closed(GAP, happened)
    assert not gap.is_open
    assert {part: (one.table, one.batch) for part, one in gap.closed.items()} == {
        "shop.a": ("shop.b", 7),
        "shop.b": ("shop.d", 10),
        "shop.c": ("shop.c", 10),
    }
