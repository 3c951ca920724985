"""What goes wrong between two chunks of a table, and in the middle of one."""

from __future__ import annotations

from collections.abc import Callable
from time import sleep

import pytest

from lockstep.pipeline.snapshot.chunks import Bound, Range
from lockstep.pipeline.values.errors import StructureMoved, TableBusy, TableError
from tests.fix_mysql import MySqlStand
from tests.mysql.chunked import LARGE_ROWS, Sliced, rows_of, until


def _second(place: Sliced) -> Range:
    """The chunk behind the first, of a table of three rows."""
    place.do("create table t (id int primary key, v int)", "insert into t values (1,1),(2,2),(3,3)")
    first, second, _ = place.ranges(1)
    return Range(first.through, second.through)


def test_a_table_that_compares_otherwise_is_told(place: Sliced) -> None:
    """Though its rows are the same: under the new collation D comes before c, and would be in
    no chunk."""
    place.do(
        "create table t (k varchar(9) character set latin1 collate latin1_swedish_ci primary key)",
        "insert into t values ('a'), ('B'), ('c'), ('D')",
    )
    schema = place.schema()
    first = place.source.next_bound(schema, None, 3)
    assert first is not None
    assert place.read(schema, Range(None, first)) == {("a",): 1, ("B",): 1, ("c",): 1}
    place.do("alter table t modify k varchar(9) character set latin1 collate latin1_bin")
    with pytest.raises(StructureMoved, match="the definition of k differs"):
        place.read(schema, Range(first))
    assert place.read(place.schema(), Range(first)) == {}


def test_a_table_truncated_between_chunks_has_no_more(place: Sliced) -> None:
    """The log says so, behind the low mark of the chunks before."""
    rows = _second(place)
    schema = place.schema()
    with place.source.chunk(schema, Range(None, rows.after)) as first:
        assert rows_of(first) == {(1, 1): 1}
    place.do("truncate table t")
    assert place.source.next_bound(schema, rows.after, 1) is None
    with place.source.chunk(schema, rows) as second:
        assert rows_of(second) == {}
        assert first.high < second.low


def test_a_range_of_another_key_is_told(place: Sliced) -> None:
    """As a ledger has it that knew the table before."""
    place.do("create table t (a int primary key, b int not null)")
    rows = Range(through=Bound(("b",), ("1",)))
    with pytest.raises(StructureMoved, match="cut into chunks by a; this chunk was cut by b"):
        place.read(place.schema(), rows)
    with pytest.raises(StructureMoved, match="cut into chunks by a; this chunk was cut by b"):
        place.source.next_bound(place.schema(), rows.through, 1)


def test_a_privilege_taken_away_is_told(place: Sliced) -> None:
    """What may not be read is not seen at all; to ask it for a bound is refused."""
    rows = _second(place)
    schema, table = place.schema(), f"{place.table.database}.t"
    source = place.account(f"select on {table}")
    with source.chunk(schema, rows) as snapshot:
        assert rows_of(snapshot) == {(2, 2): 1}
    place.stand.execute(f"revoke select on {table} from u_{place.table.database}")
    with pytest.raises(StructureMoved, match="may not see it"), source.chunk(schema, rows):
        pass
    with pytest.raises(TableError, match="may not read the table"):
        source.next_bound(schema, rows.after, 1)


def test_a_statement_killed_half_way_is_told(large: Sliced) -> None:
    """The table waits for the next run."""
    schema = large.schema()
    rows = Range(large.source.next_bound(schema, None, 10))
    with large.source.chunk(schema, rows) as snapshot:
        next(snapshot.batches)
        ((session,),) = large.stand.rows(
            "select id from information_schema.processlist where info like 'select%'"
            f" and info like '%`{large.table.database}`.`t`%' and id <> connection_id()"
        )
        large.stand.execute(f"kill query {session}")
        with pytest.raises(TableBusy, match="interrupted"):
            list(snapshot.batches)


def test_a_server_s_time_limit_ends_no_chunk(
    mysql: MySqlStand, large_on: Callable[[MySqlStand], Sliced]
) -> None:
    """A session of ours may take as long as whoever takes the rows does."""
    place = large_on(mysql)
    mysql.execute("set global max_execution_time = 500")
    try:
        with place.source.chunk(place.schema(), Range()) as snapshot:
            first = next(snapshot.batches)
            sleep(0.8)
            rest = sum(batch.num_rows for batch in snapshot.batches)
    finally:
        mysql.execute("set global max_execution_time = 0")
    assert first.num_rows + rest == LARGE_ROWS


def test_a_session_ended_for_being_idle_loses_nothing(place: Sliced) -> None:
    """Rows that were sent are there, whenever they are taken. The next chunk has new sessions, and
    none is kept between two, whose server would end it for being idle."""
    rows, schema = _second(place), place.schema()
    source = place.account(f"select on {place.table.database}.*")
    with source.chunk(schema, rows) as snapshot:
        until(lambda: bool(_sessions(place, "command = 'Sleep'")))
        place.stand.execute(*(f"kill {one}" for one in _sessions(place, "true")))
        until(lambda: not _sessions(place, "true"))
        assert rows_of(snapshot) == {(2, 2): 1}
    with source.chunk(schema, Range(after=rows.through)) as snapshot:
        assert rows_of(snapshot) == {(3, 3): 1}
    until(lambda: not _sessions(place, "command <> 'Binlog Dump'"))


def _sessions(place: Sliced, condition: str) -> list[int]:
    """The numbers of those of the test's own account."""
    who = f"user = 'u_{place.table.database}'"
    found = f"select id from information_schema.processlist where {who} and {condition}"
    return [int(number) for (number,) in place.stand.rows(found)]
