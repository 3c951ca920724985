"""What is missing of a table: parts of a gap, time outside of the patterns, and what is called
whole."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.model.gaps import Gap, GapEvent, with_closed
from lockstep.pipeline.model.table_state import Extent, TableEventKind
from lockstep.pipeline.run.dump.table_extents import PartialTables
from lockstep.pipeline.schema.effects import Created, Dropped, Effect, Renamed, Truncated
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.table import (
    CapturedRange,
    CaptureScope,
    TableName,
    TablePatterns,
    end_of_hole,
    ranges_before,
)
from tests.positions.fake import SCHEMA

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


A, B = TableName("shop", "a"), TableName("shop", "b")
ALL, WITHOUT_A = TablePatterns(("shop.*",)), TablePatterns(("shop.*",), ("shop.a",))


def past(*changes: tuple[int, TablePatterns], batch: int) -> list[CapturedRange]:
    """Ranges before a batch, where the patterns changed in these; batch n begins at n00."""
    scopes = [CaptureScope(since, f"binlog.000001:{since}00", told) for since, told in changes]
    return ranges_before(scopes, batch, f"binlog.000001:{batch}00")


@given(st.lists(st.booleans(), max_size=6), st.none() | st.integers(1, 7))
def test_a_time_outside_of_the_patterns_is_a_hole(captured: list[bool], seen: int | None) -> None:
    """Up to where the run began that took the table in again, the last time; unless the table was
    first seen later. One that was never seen may have had rows."""
    batch = len(captured) + 1
    scopes = [(n, ALL if inside else WITHOUT_A) for n, inside in enumerate(captured, 1)]
    changed = [now for before, now in pairwise(scopes) if before[1] != now[1]]
    ranges = past(*scopes[:1], *changed, batch=batch)
    left_out = [n for n, inside in enumerate(captured, 1) if not inside and n >= (seen or 0)]
    hole = f"binlog.000001:{left_out[-1] + 1}00" if left_out else None
    assert (end_of_hole(A, seen, ranges), end_of_hole(B, seen, ranges)) == (hole, None)


def test_ranges_go_from_one_change_of_the_patterns_to_the_next() -> None:
    assert past((1, ALL), (2, WITHOUT_A), batch=4) == [
        CapturedRange(1, "binlog.000001:200", ALL),
        CapturedRange(3, "binlog.000001:400", WITHOUT_A),
    ]


NAMES = [TableName("shop", name) for name in "abcd"]
ROWS = st.integers(0, 3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(NAMES), ROWS),
        st.tuples(st.just("delete"), st.sampled_from(NAMES), ROWS),
        st.tuples(st.sampled_from(["create", "drop", "truncate", "read"]), st.sampled_from(NAMES)),
        st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
        st.tuples(st.just("run ends")),
    ),
    max_size=30,
)


def at(offset: int) -> Coordinates:
    return Coordinates(LogFile("binlog", 1), offset)


@given(st.dictionaries(st.sampled_from(NAMES), st.frozensets(ROWS)), STEPS, st.integers(0, 31))
def test_what_is_whole_is_equal(
    there: dict[TableName, frozenset[int]], steps: list[tuple[object, ...]], looked: int
) -> None:
    """The mirrors begin empty and get what the log says. Which tables are empty is asked
    somewhere on the way, and counts from there on; what the ledger keeps of one run is where the
    next one begins."""
    source = {table: set(rows) for table, rows in there.items()}
    mirrors: dict[TableName, set[int]] = {table: set() for table in there}
    empty = _empty_at(there, steps, looked)
    extents = PartialTables()
    extents.add(there, at(0), empty, at(looked))
    known: dict[TableName, Extent] = {}
    for place, step in enumerate((*steps, ("run ends",))):
        if step == ("run ends",):
            for one in extents.changed_extents(at(place)):
                known[one.table] = one
            partial = [one for one in known.values() if one.begins is not None]
            for table in source.keys() - {one.table for one in partial}:
                assert mirrors[table] == source[table]
            extents = PartialTables(partial)
        elif (effect := _take(source, step)) is not None:
            _follow(mirrors, step)
            extents.apply_effects([effect])
        else:
            _log(source, mirrors, step)
            if step[0] == "read" and step[1] in source:
                extents.remove_read([step[1]])


def test_what_the_log_made_was_never_partial() -> None:
    """A swap of tables takes each one's past along."""
    a, b, c, _ = NAMES
    extents = PartialTables([Extent(a, at(4))])
    extents.apply_effects([Created(b, replace(SCHEMA, name=b)), Renamed(a, c), Renamed(b, a)])
    assert extents.changed_extents(at(9)) == (Extent(a, None), Extent(c, at(4)))


def _take(source: dict[TableName, set[int]], step: tuple[object, ...]) -> Effect | None:
    """What the server does, if it does it, to structures."""
    match step:
        case ("create", TableName() as table) if table not in source:
            source[table] = set()
            return Created(table, replace(SCHEMA, name=table))
        case ("drop", TableName() as table) if table in source:
            del source[table]
            return Dropped(table)
        case ("truncate", TableName() as table) if table in source:
            source[table] = set()
            return Truncated(table)
        case ("rename", TableName() as table, TableName() as to) if (
            table in source and to not in source
        ):
            source[to] = source.pop(table)
            return Renamed(table, to)
    return None


def _follow(mirrors: dict[TableName, set[int]], step: tuple[object, ...]) -> None:
    match step:
        case ("create" | "truncate", TableName() as table):
            mirrors[table] = set()
        case ("drop", TableName() as table):
            del mirrors[table]
        case ("rename", TableName() as table, TableName() as to):
            mirrors[to] = mirrors.pop(table)


def _log(
    source: dict[TableName, set[int]], mirrors: dict[TableName, set[int]], step: tuple[object, ...]
) -> None:
    """Rows that are written reach both; a reading copies them all."""
    match step:
        case ("write", TableName() as table, int(row)) if table in source:
            source[table].add(row)
            mirrors[table].add(row)
        case ("delete", TableName() as table, int(row)) if table in source:
            source[table].discard(row)
            mirrors[table].discard(row)
        case ("read", TableName() as table) if table in source:
            mirrors[table] = set(source[table])


def _empty_at(
    there: dict[TableName, frozenset[int]], steps: list[tuple[object, ...]], looked: int
) -> set[TableName]:
    """Tables of the start that have no row behind so many steps."""
    source = {table: set(rows) for table, rows in there.items()}
    for step in steps[:looked]:
        if _take(source, step) is None:
            _log(source, {table: set() for table in source}, step)
    return {table for table in there if source.get(table) == set()}
