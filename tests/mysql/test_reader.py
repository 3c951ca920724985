"""Snapshots of one table beside sessions that write to it, and beside what the log says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace

import pymysql
import pytest

from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.snapshot.chunks import Range
from lockstep.pipeline.values.errors import SourceUnavailable, StructureMoved, TableError
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.retries import COMMITTED
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.connection import read_dialect
from lockstep.resources.mysql.reader import reading_cursor, translate_table_errors
from lockstep.resources.mysql.select import BEGIN, select_rows
from lockstep.resources.mysql.server import MySqlServer
from lockstep.resources.mysql.watermarks import low_mark
from tests.fix_mysql import MySqlStand
from tests.mysql.chunked import Sliced, rows_of
from tests.mysql.logged import head
from tests.mysql.reading import server, settings
from tests.mysql.writers import Rows, states, writers

COLUMNS = "v int not null, w varchar(40)"
KEYED = f"create table t (id int primary key, {COLUMNS})"
KEYLESS = f"create table t (id int not null, {COLUMNS}, key (id))"


@dataclass(frozen=True, slots=True)
class Taken:
    low: Coordinates
    high: Coordinates
    exact: bool
    rows: Rows


def taken(source: MySqlServer, schema: TableSchema, *, exact: bool = False) -> Taken:
    opened = source.chunk(schema, Range(), exact=True) if exact else source.snapshot(schema)
    with opened as snapshot:
        return Taken(snapshot.low, snapshot.high, snapshot.exact, rows_of(snapshot))


def test_a_snapshot_is_a_state_between_its_marks(place: Sliced) -> None:
    """Beside four writers: the rows are those behind some transaction not before `low` and
    not behind `high`; on MariaDB, which tells the snapshot's place, at that place."""
    place.do(KEYED)
    start, schema, source = head(place.stand), place.schema(), server(place.stand)
    with writers(place.stand, place.table, 4):
        snapshots = [taken(source, schema) for _ in range(12)]
    told = states(place.stand, start, place.table)
    assert len(told) > 12
    for snapshot in snapshots:
        assert snapshot.rows in list(_between(told, snapshot))
    assert not place.mariadb or all(snapshot.exact for snapshot in snapshots)


def _between(told: dict[Coordinates, Rows], snapshot: Taken) -> Iterator[Rows]:
    """The states that the marks allow; the one that held at `low` among them."""
    before = max((place for place in told if place <= snapshot.low), default=None)
    for place, rows in told.items():
        if place == before or snapshot.low < place <= snapshot.high:
            yield rows


@pytest.mark.thin
@pytest.mark.parametrize("engine", ["innodb", "myisam"])
def test_an_exact_snapshot_is_the_state_at_its_mark(place: Sliced, engine: str) -> None:
    """Of a table without a key too: the rows and then all changes behind `high` are the
    table, each counted once. Writers that never rest may keep the lock away: said, then."""
    place.do(f"{KEYLESS} engine = {engine}")
    start, source = head(place.stand), place.account("select, lock tables on *.*")
    schema = place.schema(source)
    with writers(place.stand, place.table, 4):
        snapshots = [taken(source, schema, exact=True) for _ in range(6)]
    told = states(place.stand, start, place.table)
    exactly = [snapshot for snapshot in snapshots if snapshot.exact]
    assert exactly
    for snapshot in exactly:
        assert snapshot.low == snapshot.high
        assert snapshot.rows == told[max(place for place in told if place <= snapshot.high)]


def test_without_the_privilege_a_quiet_moment_will_do(place: Sliced) -> None:
    """Nobody writes: the marks are one, and no lock is needed."""
    place.do(KEYLESS, "insert into t values (1, 1, 'a'), (1, 1, 'a')")
    found = taken(server(place.stand), place.schema(), exact=True)
    assert (found.exact, found.low, found.rows) == (True, found.high, {(1, 1, "a"): 2})
    assert found.high == head(place.stand)


def test_a_table_in_use_is_not_waited_for(place: Sliced) -> None:
    """Someone's open transaction keeps the lock away; a quiet moment is found without it, and
    what is not committed is not seen."""
    place.do(KEYLESS)
    source = place.account("select, lock tables on *.*")
    schema = place.schema(source)
    with place.stand.connect(place.table.database, autocommit=False) as connection:
        with connection.cursor() as cursor:
            cursor.execute("insert into t values (1, 1, 'a')")
        found = taken(source, schema, exact=True)
        connection.commit()
    assert (found.exact, found.rows) == (True, {})


def test_some_columns_come_with_the_key(place: Sliced) -> None:
    """In the table's order, whatever was asked first."""
    place.do("create table t (a int, b int, c varchar(9), d int, primary key (d, b))")
    place.do("insert into t values (1, 2, 'x', 4)")
    schema = place.schema()
    for structure in (schema, row_structure(schema)):
        with server(place.stand).snapshot(structure, ["c"]) as snapshot:
            (batch,) = snapshot.batches
        assert batch.to_pylist() == [{"b": 2, "c": "x", "d": 4}]
        assert batch.schema == snapshot.schema
    with (
        pytest.raises(ValueError, match="no column e"),
        server(place.stand).snapshot(schema, ["e"]),
    ):
        pass


MOVED = {
    "alter table t add x int": "columns id, v, w, x instead of id, v, w",
    "alter table t modify v bigint not null": "the definition of v differs",
    "alter table t modify w varchar(40) character set latin1": "the definition of w differs",
    "alter table t drop primary key, add primary key (v)": "its primary key differs",
    "alter table t drop primary key": "its primary key differs",
    "alter table t rename column v to u": "column 'v'|columns id, u, w",
    "alter table t rename column id to k": "column 'id'|columns k, v, w",
    "alter table t alter v set default 5": "a default or a visibility differs",
    "drop table t": "was dropped",
    "rename table t to u": "was dropped",
}
UNBOUND = ("drop primary key", "rename column id to k", "drop table t", "rename table t to u")
"""How statements end after which no bound is found either."""


def test_a_table_altered_since_is_told(place: Sliced) -> None:
    """Between plan and read, and between two chunks, of which the next bound may still be found:
    whoever asked reads the structure anew. What changes no row image, an index or an option, is no
    change."""
    source, schema = server(place.stand), None
    for change, words in MOVED.items():
        place.do("drop table if exists t", "drop table if exists u", KEYED)
        schema = place.schema(source)
        place.do(change)
        reads = [source.snapshot(schema), source.chunk(schema, Range())]
        for read in reads[: 1 if "set default" in change else 2]:  # which no row of a chunk needs
            with pytest.raises(StructureMoved, match=words), read:
                pytest.fail(f"read though {change}")
        with pytest.raises(StructureMoved) if change.endswith(UNBOUND) else nullcontext():
            source.next_bound(schema, None, 1)
    place.do(KEYED, "alter table t add key (v), comment 'c'")
    assert schema is not None
    assert taken(source, schema).rows == {}


def test_a_table_altered_behind_the_snapshot_is_told(place: Sliced) -> None:
    """The engine refuses rows of before the change."""
    place.do(KEYED)
    structure = row_structure(place.schema())
    chosen = settings(place.stand)
    with reading_cursor(chosen) as cursor:
        cursor.execute(BEGIN)
        place.do("alter table t add x int, algorithm = copy")
        with pytest.raises(StructureMoved), translate_table_errors(chosen, place.table):
            list(select_rows(cursor, structure))


def test_a_table_keeps_its_structure_while_it_is_read(place: Sliced) -> None:
    """Who alters it waits for the snapshot's end."""
    place.do(KEYED, "insert into t values (1, 2, 'a')")
    schema = place.schema()
    with (
        place.stand.connect(place.table.database) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("set session lock_wait_timeout = 1")
        with server(place.stand).snapshot(schema) as snapshot:
            with pytest.raises(pymysql.err.OperationalError, match="Lock wait timeout"):
                cursor.execute("alter table t add x int, algorithm = copy")
            assert rows_of(snapshot) == {(1, 2, "a"): 1}
        cursor.execute("alter table t add x int, algorithm = copy")


def test_a_connection_killed_half_way_is_told(large: Sliced) -> None:
    """In the middle of the rows, and never taken for their end."""
    stand = large.stand
    with large.source.snapshot(large.schema()) as snapshot:
        assert next(snapshot.batches).num_rows == 10_000
        numbers = stand.rows(
            f"select id from information_schema.processlist where user = '{stand.account}'"
            f" and db is null and info like 'select%`{large.table.database}`%'"
        )
        stand.execute(*(f"kill {number}" for (number,) in numbers))
        assert len(numbers) == 1
        with pytest.raises(SourceUnavailable):
            list(snapshot.batches)


def test_long_values_make_small_batches(mysql: MySqlStand, database: str) -> None:
    """Memory is bounded by bytes where rows are long."""
    mysql.execute("create table t (id int primary key, v longblob)", database=database)
    size = 5 << 20
    with mysql.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("set sql_log_bin = 0")
        for number in range(10):
            cursor.execute("insert into t values (%s, repeat('x', %s))", (number, size))
    (schema,) = server(mysql).baseline([TableName(database, "t")]).tables
    with server(mysql).snapshot(schema) as snapshot:
        counts = [(batch.num_rows, batch.nbytes // size) for batch in snapshot.batches]
    assert sum(rows for rows, _ in counts) == 10
    assert max(many for _, many in counts) <= 8


def test_the_low_mark_is_gtids_too(place: Sliced) -> None:
    """What was executed there, as the server says it."""
    place.do(KEYED)
    name = "gtid_executed" if not place.mariadb else "gtid_binlog_state"
    ((executed,),) = place.stand.rows(f"select @@global.{name}")
    with server(place.stand).snapshot(place.schema()) as snapshot:
        assert snapshot.low_set == executed.replace("\n", "")


def test_what_is_never_settled_begins_with_its_file(mysql: MySqlStand) -> None:
    """A GTID that a session holds may belong to what is in the log and not committed."""
    with (
        mysql.connect() as holder,
        holder.cursor() as holding,
        mysql.connect() as connection,
        connection.cursor() as cursor,
    ):
        dialect = read_dialect(cursor)
        assert low_mark(cursor, dialect).at == head(mysql)
        holding.execute("set gtid_next = '11111111-1111-1111-1111-111111111111:1'")
        at_once = replace(COMMITTED, seconds=0)
        begins = Coordinates(head(mysql).file, 4)
        assert low_mark(cursor, dialect, retry=at_once).at == begins
        holding.execute("rollback")
        holding.execute("set gtid_next = automatic")
        assert low_mark(cursor, dialect).at == head(mysql)


def test_what_cannot_be_selected_is_said(mariadb: MySqlStand, mariadb_database: str) -> None:
    """MariaDB's column for a long UNIQUE is in the row images, and hidden from statements."""
    mariadb.execute("create table t (a text, unique key (a))", database=mariadb_database)
    source = server(mariadb)
    (schema,) = source.baseline([TableName(mariadb_database, "t")]).tables
    assert [column.name for column in row_structure(schema).columns] == ["a", "DB_ROW_HASH_1"]
    with pytest.raises(TableError, match="DB_ROW_HASH_1"), source.snapshot(schema):
        pass
    with source.snapshot(schema, ["a"]) as snapshot:
        assert list(snapshot.batches) == []
