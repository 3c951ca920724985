"""What is called whole is equal to the source, whatever statements and rows come."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.model.table_state import Extent
from lockstep.pipeline.run.dump.table_extents import PartialTables
from lockstep.pipeline.schema.effects import Created, Dropped, Effect, Renamed, Truncated
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.table import TableName
from tests.positions.fake import SCHEMA

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
    source: dict[TableName, set[int]],
    mirrors: dict[TableName, set[int]],
    step: tuple[object, ...],
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
