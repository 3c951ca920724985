"""Tables read in chunks on real servers: what is in a chunk, what it costs, and what goes wrong
between two of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from time import sleep

import pytest
from pymysql.cursors import Cursor

from pipeline.batch import Xid
from pipeline.errors import StructureMoved, TableBusy, TableError
from pipeline.schema.rows import row_structure
from pipeline.snapshot.bounds import Bound, Range, where
from pipeline.snapshot.keys import chunk_key
from pipeline.snapshot.pace import SourceLoad
from pipeline.table import TableName
from resources.mysql.chunks import next_bound
from resources.mysql.reader import reading
from resources.mysql.select import prepare_session, select_rows
from resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.chunked import Sliced, quickly, rows_of, together, until
from tests.mysql.random_tables import random_tables
from tests.mysql.reading import server, settings

DIGITS = "(select 0 d union select 1 union select 2 union select 3 union select 4 union select 5"
DIGITS += " union select 6 union select 7 union select 8 union select 9)"
NUMBERS = (
    "select a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d n from"
    f" {DIGITS} a, {DIGITS} b, {DIGITS} c, {DIGITS} e, {DIGITS} f"
)
"""0 to 99,999."""


@pytest.fixture(params=["mysql", "mariadb"])
def place(request: pytest.FixtureRequest) -> Iterator[Sliced]:
    stand: MySqlStand = request.getfixturevalue(request.param)
    name = stand.fresh_name()
    stand.execute(f"create database {name} character set utf8mb4")
    yield Sliced(stand, TableName(name, "t"))
    stand.execute(f"drop database {name}", f"drop user if exists u_{name}")


@contextmanager
def account(place: Sliced, *grants: str) -> Iterator[MySqlServer]:
    """An account of the test's own, with those privileges and replication's."""
    name = f"u_{place.table.database}"
    place.stand.execute(
        f"create user {name} identified by 'x'",
        f"grant replication slave, replication client on *.* to {name}",
        *(f"grant {one} to {name}" for one in grants),
    )
    yield MySqlServer(settings(place.stand, user=name, password="x"))


# -- what is in a chunk -------------------------------------------------------------------


def test_a_table_without_rows_is_one_empty_chunk(place: Sliced) -> None:
    """There is no bound in it."""
    place.do("create table t (id int primary key)")
    assert list(place.ranges(10)) == [Range()]
    assert place.chunks(10) == [{}]


def test_the_last_chunk_is_never_empty(place: Sliced) -> None:
    """Of one row, of exactly a chunk, of one more."""
    place.do("create table t (id int primary key)", "insert into t values (1)")
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


def test_a_table_of_a_thousand_columns_is_read(place: Sliced) -> None:
    """With a key of sixteen of them, the most there are."""
    names = [f"c{number} tinyint not null default {number % 100}" for number in range(1000)]
    key = ", ".join(f"c{number}" for number in range(0, 320, 20))
    place.do(f"create table t ({', '.join(names)}, primary key ({key}))")
    place.do(*(f"insert into t (c0, c300) values ({n % 3}, {n})" for n in range(20)))
    assert len(chunk_key(place.schema())) == 16
    chunks = place.chunks(6)
    assert [sum(chunk.values()) for chunk in chunks] == [6, 6, 6, 2]
    assert together(chunks) == place.whole()


@pytest.mark.parametrize("seed", [1, 2])
def test_random_tables_are_their_chunks(mysql: MySqlStand, database: str, seed: int) -> None:
    """Keys of one to four columns of any types, among columns of any types."""
    chance, cut = Random(seed), 0
    for table in random_tables(chance, 20):
        one = Sliced(mysql, TableName(database, table.name))
        rows = [table.row(chance) for _ in range(40)]
        columns = ", ".join(table.written)
        into = f"insert ignore into {table.name} ({columns}) values"
        one.do(table.create(), *(f"{into} {row}" for row in rows))
        chunks, whole = quickly(one, chance.randint(1, 9)), one.whole()
        assert together(chunks) == whole, table.create()
        cut += len(chunks) > 1
    assert cut > 8


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
    "groups": ("a int, b int, primary key (a, b)", "n div 30000, n"),
    "backwards": ("a int, b int, primary key (a desc, b desc)", "n % 300, n"),
    "beside": ("a int, b int, c int, primary key (a, b), key (b), key (a, c)", "n % 9, n, n % 7"),
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("engine", ["innodb", "myisam"])
def test_a_chunk_reads_as_many_index_rows_as_it_has(place: Sliced, name: str, engine: str) -> None:
    """In the middle of 100,000 rows: its bound reads that many and a few, its rows likewise."""
    if (name, engine, _is_mariadb(place)) == ("backwards", "myisam", False):
        return  # MySQL's MyISAM has no such index
    columns, values = KEYS[name]
    place.do(
        f"create table t ({columns}) engine = {engine}",
        f"insert into t select {values} from ({NUMBERS}) x",
        "analyze table t",
    )
    schema = place.schema()
    structure = row_structure(schema)
    with (
        place.stand.connect() as session,
        session.cursor() as cursor,
        reading(settings(place.stand)) as reader,
    ):
        prepare_session(cursor)
        middle = next_bound(cursor, schema, None, 50_000)
        for size in (1, 1_000, 5_000):
            before = _read_so_far(cursor)
            through = next_bound(cursor, schema, middle, size)
            assert size <= _read_so_far(cursor) - before <= size + 20
            before = _read_so_far(reader)
            rows = select_rows(reader, structure, where=where(Range(middle, through)))
            assert sum(batch.num_rows for batch in rows) == size
            assert size <= _read_so_far(reader) - before <= size + 20


# -- what goes wrong between two chunks ----------------------------------------------------


def _second(place: Sliced) -> Range:
    """The chunk behind the first, of a table of three rows."""
    place.do("create table t (id int primary key, v int)", "insert into t values (1,1),(2,2),(3,3)")
    first, second, _ = place.ranges(1)
    return Range(first.through, second.through)


@pytest.mark.parametrize(
    ("change", "bound_too"),
    [
        ("drop table t", True),
        ("rename table t to u", True),
        ("alter table t add x int", False),
        ("alter table t modify id bigint", False),
        ("alter table t rename column id to k", True),
        ("alter table t drop primary key", True),
        ("alter table t drop primary key, add primary key (v)", False),
    ],
)
def test_a_table_altered_between_chunks_is_told(
    place: Sliced, change: str, bound_too: bool
) -> None:
    """Its next bound may still be found, the chunk is not read."""
    rows = _second(place)
    schema = place.schema()
    place.do(change)
    with pytest.raises(StructureMoved):
        place.read(schema, rows)
    if bound_too:
        with pytest.raises(StructureMoved):
            place.source.next_bound(schema, rows.after, 1)


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
    with pytest.raises(StructureMoved, match="cut by a, its chunk by b"):
        place.read(place.schema(), rows)
    with pytest.raises(StructureMoved, match="cut by a, its chunk by b"):
        place.source.next_bound(place.schema(), rows.through, 1)


def test_a_privilege_taken_away_is_told(place: Sliced) -> None:
    """What may not be read is not seen at all; to ask it for a bound is refused."""
    rows = _second(place)
    schema, table = place.schema(), f"{place.table.database}.t"
    with account(place, f"select on {table}") as source:
        with source.chunk(schema, rows) as snapshot:
            assert rows_of(snapshot) == {(2, 2): 1}
        place.stand.execute(f"revoke select on {table} from u_{place.table.database}")
        with pytest.raises(StructureMoved, match="may not see it"), source.chunk(schema, rows):
            pass
        with pytest.raises(TableError, match="may not read it"):
            source.next_bound(schema, rows.after, 1)


def _wide(place: Sliced) -> Range:
    """30 MB in the second chunk of a table."""
    place.do(
        "create table t (id int primary key, w varchar(400) not null)",
        f"insert into t select n, repeat('x', 300) from ({NUMBERS}) x",
    )
    after = place.source.next_bound(place.schema(), None, 10)
    return Range(after)


def _session(place: Sliced) -> int:
    """Of the statement that reads."""
    ((number,),) = place.stand.rows(
        "select id from information_schema.processlist where info like 'select%'"
        f" and info like '%`{place.table.database}`.`t`%' and id <> connection_id()"
    )
    return int(number)


def test_a_statement_killed_half_way_is_told(place: Sliced) -> None:
    """The table waits for the next run."""
    rows, schema = _wide(place), place.schema()
    with place.source.chunk(schema, rows) as snapshot:
        next(snapshot.batches)
        place.stand.execute(f"kill query {_session(place)}")
        with pytest.raises(TableBusy, match="interrupted"):
            list(snapshot.batches)


def test_a_server_s_time_limit_ends_no_chunk(mysql: MySqlStand, database: str) -> None:
    """A session of ours may take as long as whoever takes the rows does."""
    place = Sliced(mysql, TableName(database, "t"))
    rows, schema = _wide(place), place.schema()
    mysql.execute("set global max_execution_time = 2000")
    try:
        with place.source.chunk(schema, rows) as snapshot:
            first = next(snapshot.batches)
            sleep(2.5)
            rest = sum(batch.num_rows for batch in snapshot.batches)
    finally:
        mysql.execute("set global max_execution_time = 0")
    assert first.num_rows + rest == 99_990


def test_a_session_ended_for_being_idle_loses_nothing(place: Sliced) -> None:
    """Rows that were sent are there, whenever they are taken; the next chunk has new sessions."""
    rows, schema = _second(place), place.schema()
    ((before,),) = place.stand.rows("select @@global.wait_timeout")
    place.stand.execute("set global wait_timeout = 1")
    try:
        with place.source.chunk(schema, rows) as snapshot:
            reads = f"user = '{place.stand.account}' and command = 'Sleep'"
            sleeping = f"select 1 from information_schema.processlist where {reads}"
            until(lambda: not place.stand.rows(sleeping))
            assert rows_of(snapshot) == {(2, 2): 1}
        assert place.read(schema, Range(after=rows.through)) == {(3, 3): 1}
    finally:
        place.stand.execute(f"set global wait_timeout = {before}")


def test_a_chunk_is_opened_in_sessions_of_its_own(place: Sliced) -> None:
    """None is kept between two, whose server would end it for being idle."""
    rows, schema = _second(place), place.schema()
    place.read(schema, rows)
    mine = f"user = '{place.stand.account}' and command <> 'Binlog Dump'"
    sessions = f"select 1 from information_schema.processlist where {mine}"
    until(lambda: not place.stand.rows(sessions))


# -- marks and load ------------------------------------------------------------------------


def test_what_is_prepared_at_a_chunk_s_low_mark_is_named(place: Sliced) -> None:
    """Its rows are in the log before it, and in no chunk."""
    place.do("create table t (id int primary key)")
    schema, xid = place.schema(), f"'{place.table.database}'"
    with place.stand.connect(place.table.database) as session, session.cursor() as cursor:
        cursor.execute(f"xa start {xid}")
        cursor.execute("insert into t values (1)")
        cursor.execute(f"xa end {xid}")
        cursor.execute(f"xa prepare {xid}")
        extra = [] if _is_mariadb(place) else ["xa_recover_admin on *.*"]
        with account(place, "select on *.*", *extra) as source:
            for open_read in (source.chunk(schema, Range()), source.snapshot(schema)):
                with open_read as snapshot:
                    assert rows_of(snapshot) == {}
                    assert snapshot.prepared is not None
                    assert Xid(1, place.table.database.encode(), b"") in snapshot.prepared
        cursor.execute(f"xa commit {xid}")
    assert place.chunks(5) == [{(1,): 1}]


def _is_mariadb(place: Sliced) -> bool:
    return "mariadb" in str(place.stand.rows("select @@version")).lower()


def test_who_may_not_ask_does_not_know_what_is_prepared(mysql: MySqlStand, database: str) -> None:
    """Which is something else than nothing."""
    place = Sliced(mysql, TableName(database, "t"))
    place.do("create table t (id int primary key)")
    with server(mysql).chunk(place.schema(), Range()) as snapshot:
        assert snapshot.prepared is None


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
