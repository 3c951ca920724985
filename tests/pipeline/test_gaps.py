"""When the parts of a gap are history."""

from __future__ import annotations

from datetime import UTC, datetime

from lockstep.pipeline.model.gaps import (
    Gap,
    GapEvent,
    with_closed,
)
from lockstep.pipeline.model.table_state import TableEventKind
from lockstep.pipeline.values.table import TableName

AT = datetime(2026, 11, 1, 6, 0, tzinfo=UTC)
GAP = Gap(1, 5, AT, "ann", "lost", ("shop.a", "shop.b", "shop.c"), "…:4", "…:9")
REREAD = TableEventKind.REREAD


def _read(table: str, batch: int) -> GapEvent:
    return GapEvent(table, batch, AT, REREAD)


def _taken(table: str, taker: str, batch: int) -> GapEvent:
    return GapEvent(table, batch, AT, None, taker)


def test_a_part_is_closed_once_by_what_comes_first_behind_the_gap() -> None:
    """What lies before it counts for nothing, nor what happens to others."""
    happened = [_read("shop.a", 4), _read("shop.x", 5), _read("shop.a", 5), _read("shop.a", 9)]
    gap = with_closed(GAP, happened)
    assert gap.closed == {"shop.a": GapEvent("shop.a", 5, AT, REREAD)}
    assert gap.open_tables == ("shop.b", "shop.c")


def test_a_comparison_closes_a_part_under_the_name_that_it_has_by_then() -> None:
    happened = [
        GapEvent("shop.a", 4, AT, None),
        GapEvent("shop.c", 6, AT, None),
        _taken("shop.b", "shop.x", 6),
        GapEvent("shop.b", 7, AT, None),
    ]
    gap = with_closed(GAP, happened)
    assert gap.closed == {"shop.c": GapEvent("shop.c", 6, AT, None)}
    names = [TableName("shop", name) for name in "xcba"]
    assert gap.open_among(names) == [names[3], names[0]]


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
