"""Tables read in chunks on real servers: what is in a chunk, and what it costs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pymysql.cursors import Cursor

from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.snapshot.chunks import Range, chunk_key, range_condition
from lockstep.pipeline.snapshot.pace import SourceLoad
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.chunks import next_bound
from lockstep.resources.mysql.reader import reading_cursor
from lockstep.resources.mysql.receiving import ReadingCursor
from lockstep.resources.mysql.select import select_rows
from tests.fix_mysql import MySqlStand
from tests.mysql.chunked import FEWER, NUMBERS, Sliced, knife, together
from tests.mysql.reading import settings

# -- what is in a chunk -------------------------------------------------------------------


def test_the_last_chunk_is_never_empty(place: Sliced) -> None:
    """Of one row, of exactly a chunk, of one more. A table without rows is one chunk, without a
    bound."""
    place.do("create table t (id int primary key)")
    assert (list(place.ranges(10)), place.chunks(10)) == ([Range()], [{}])
    place.do("insert into t values (1)")
    assert place.chunks(1) == [{(1,): 1}]
    place.do("insert into t values (2), (3)")
    assert place.chunks(3) == [{(1,): 1, (2,): 1, (3,): 1}]
    assert place.chunks(2) == [{(1,): 1, (2,): 1}, {(3,): 1}]


def test_chunks_of_keys_with_gaps_are_equally_large(place: Sliced) -> None:
    """A few dense heaps, and keys that lie billions apart: the server counts rows."""
    place.do(
        "create table t (id bigint primary key, v int not null)",
        f"insert into t select if(n % 3, n, n * n * 1000000000 - 9000000000), n from ({NUMBERS}) x"
        " where n < 3000",
    )
    chunks = place.chunks(400)
    assert [sum(chunk.values()) for chunk in chunks] == [400] * 7 + [200]
    assert together(chunks) == place.whole()


def test_a_table_of_a_thousand_columns_is_read(mysql: MySqlStand, database: str) -> None:
    """With a key of sixteen of them, the most there are."""
    place = Sliced(mysql, TableName(database, "t"))
    names = [f"c{number} tinyint not null default {number % 100}" for number in range(1000)]
    key = ", ".join(f"c{number}" for number in range(0, 320, 20))
    place.do(f"create table t ({', '.join(names)}, primary key ({key}))")
    rows = ", ".join(f"({n % 3}, {n})" for n in range(20))
    place.do(f"insert into t (c0, c300) values {rows}")
    with knife(mysql) as cutting:
        found = cutting.cut(place.table, 6)
    assert len(chunk_key(found.schema)) == 16
    assert [sum(chunk.values()) for chunk in found.chunks] == [6, 6, 6, 2]
    assert together(found.chunks) == found.whole


@pytest.mark.thin
@pytest.mark.parametrize("by", ["hash (id) partitions 7", "range (id) ({})"])
def test_a_table_in_partitions_is_read_in_the_key_s_order(place: Sliced, by: str) -> None:
    """Rows of one chunk lie in all of them."""
    parts = ", ".join(f"partition p{n} values less than ({n * 30})" for n in range(1, 5))
    place.do(
        f"create table t (id int primary key, v int) partition by {by.format(parts)}",
        f"insert into t select n, n from ({NUMBERS}) x where n < 100",
    )
    chunks = place.chunks(15)
    assert [sum(chunk.values()) for chunk in chunks] == [15] * 6 + [10]
    assert together(chunks) == place.whole()


# -- what it costs ------------------------------------------------------------------------


def _read_so_far(cursor: Cursor) -> int:
    """Rows and index entries that the session was given by its engines."""
    cursor.execute("show session status like 'handler_read%'")
    return sum(int(value) for _, value in cursor.fetchall())


KEYS = {
    "one": ("id int primary key", "n"),
    "three": ("a int, b varchar(20), c int, primary key (a, b, c)", "n % 5, n % 700, n"),
    "six": (
        "a int, b int, c int, d int, e int, f int, primary key (a, b, c, d, e, f)",
        "n % 3, n % 5, n % 7, n % 9, 1, n",
    ),
    "text": (
        "a varchar(20) character set utf8mb3, b char(9) character set latin1, primary key (a, b)",
        "concat('k', n % 300), n",
    ),
    "moments": (
        "a date, b time(6), c datetime(3), primary key (a, b, c)",
        "from_days(730000 + n % 99), sec_to_time(n % 700 - 350), from_unixtime(n)",
    ),
    "numbers": (
        "a double, b decimal(20,5), c bit(20), primary key (a, b, c)",
        "n % 99 / 7, n % 700 / 3, n",
    ),
    "bytes": ("a binary(16), primary key (a)", "unhex(lpad(hex(n * 7919), 32, '5c'))"),
    "groups": ("a int, b int, primary key (a, b)", "n div 3000, n"),
    "backwards": ("a int, b int, primary key (a desc, b desc)", "n % 300, n"),
    "beside": ("a int, b int, c int, primary key (a, b), key (b), key (a, c)", "n % 9, n, n % 7"),
}


@pytest.mark.thin
@pytest.mark.parametrize("engine", ["innodb", "myisam"])
def test_a_chunk_reads_as_many_index_rows_as_it_has(place: Sliced, engine: str) -> None:
    """In the middle of 10,000 rows: its bound reads that many and a few, its rows likewise."""
    with (
        place.stand.connect() as session,
        session.cursor() as cursor,
        reading_cursor(settings(place.stand)) as reader,
    ):
        for name, (columns, values) in KEYS.items():
            if (name, engine, _is_mariadb(place)) == ("backwards", "myisam", False):
                continue  # MySQL's MyISAM has no such index
            one = replace(place, table=replace(place.table, name=f"t_{name}"))
            one.do(
                f"create table t_{name} ({columns}) engine = {engine}",
                f"insert into t_{name} select {values} from ({FEWER}) x",
                f"analyze table t_{name}",
            )
            _require_few_reads(name, cursor, reader, one.schema())


def _require_few_reads(
    name: str, cursor: Cursor, reader: ReadingCursor, schema: TableSchema
) -> None:
    structure, middle = row_structure(schema), next_bound(cursor, schema, None, 5_000)
    for size in (1, 100, 500):
        before = _read_so_far(cursor)
        through = next_bound(cursor, schema, middle, size)
        assert size <= _read_so_far(cursor) - before <= size + 20, name
        before = _read_so_far(reader)
        rows = select_rows(reader, structure, where=range_condition(Range(middle, through)))
        assert sum(batch.num_rows for batch in rows) == size, name
        assert size <= _read_so_far(reader) - before <= size + 20, name


# -- load and estimates ------------------------------------------------------------------------


def _is_mariadb(place: Sliced) -> bool:
    return "mariadb" in str(place.stand.rows("select @@version")).lower()


def test_the_server_tells_what_it_has_to_do(place: Sliced) -> None:
    """It replicates from none; sessions that are open are among its connections."""
    before = place.source.source_load()
    assert isinstance(before, SourceLoad)
    assert before.threads_running >= 1
    assert before.replica_lag is None
    ((most,),) = place.stand.rows("select @@max_connections")
    assert before.max_connections == most
    sessions = [place.stand.connect() for _ in range(30)]
    assert place.source.source_load().connections >= 31
    for session in sessions:
        session.close()


def test_rows_are_estimated(place: Sliced) -> None:
    """Of the tables that there are."""
    place.do(
        "create table t (id int primary key)",
        f"insert into t select n from ({NUMBERS}) x where n < 5000",
        "analyze table t",
    )
    gone = TableName(place.table.database, "gone")
    found = place.source.estimated_rows([place.table, gone])
    assert set(found) == {place.table}
    assert 2_500 < found[place.table] < 10_000
