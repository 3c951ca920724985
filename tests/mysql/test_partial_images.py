"""Sessions with binlog_row_image=MINIMAL and NOBLOB: mirrors are equal to the tables, which have
every kind of column that a server fills by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from operator import itemgetter
from random import Random
from types import MappingProxyType
from typing import Any, Final

import pytest

from lockstep.pipeline.mirror.coalescing import MOVED_ROW_REASON
from lockstep.pipeline.ports.source import TableSnapshot
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.snapshot.chunks import Range
from lockstep.pipeline.snapshot.pace import Pace
from lockstep.pipeline.source_plan import SnapshotPlan
from lockstep.pipeline.values.errors import Need, StoppedBy
from lockstep.pipeline.values.policies import Deletes, LakePolicies
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server, settings
from tests.positions.follower import SOURCE, Follower

_COLUMNS: Final = (
    "a int default 5, b varchar(20) default 'hi', c int not null, t text, e enum('s','m') not null,"
    " d datetime(3) default current_timestamp(3), s timestamp null on update current_timestamp,"
    " bits bit(3) default b'101', n decimal(9,2) default 1.5, y binary(3) default 'ab',"
    " g int generated always as (a * 2) stored, v int generated always as (a + 1) virtual,"
    " x int default (1 + 1), blo blob"
)

TABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "keyed": f"id int primary key, {_COLUMNS}",
        "counted": f"id int primary key auto_increment, {_COLUMNS}",
        "paired": f"id int, k varchar(10) default 'k', {_COLUMNS}, primary key (id, k)",
        "uniquely": f"id int not null, {_COLUMNS}, unique key (id), unique key two (b, id)",
        "keyless": f"id int, {_COLUMNS}",
        "triggered": f"id int primary key, {_COLUMNS}",
    }
)
TRIGGERS: Final = (
    "create trigger before_one before insert on triggered for each row set new.n = new.id + 0.25",
    "create trigger before_two before update on triggered for each row set new.b ="
    " concat('u', new.id)",
)
IMAGES: Final = ("full", "minimal", "noblob")


ALTERED: Final = (
    "add column added int not null default 3, add column note varchar(9)",
    "rename column x to other, modify n decimal(12,2)",
    "drop column added, add column added varchar(5) default 'new'",
)
"""What becomes of every table, one after the other."""


class PartialWrites:
    """Seeded by `chance` alone. `added`: numbers may be written to these columns too."""

    def __init__(self, chance: Random, tables: Sequence[str] = tuple(TABLES)) -> None:
        self._chance = chance
        self._tables = tables
        self.added: tuple[str, ...] = ()

    def statements(self, count: int) -> Iterator[str]:
        """So many, of one session that is not strict."""
        yield "set sql_mode = ''"
        for _ in range(count):
            if self._chance.random() < 0.4:
                yield f"set binlog_row_image = {self._chance.choice(IMAGES)}"
            yield self._statement(self._chance.choice(self._tables))

    def _statement(self, table: str) -> str:
        if self._chance.random() < 0.03:
            return f"truncate table {table}"
        kinds = (self._insert, self._update, self._update, self._move, self._delete, self._replace)
        return self._chance.choice(kinds)(table)

    def _id(self) -> int:
        return self._chance.randint(1, 15)

    def _values(self) -> dict[str, str]:
        chance = self._chance
        found = {
            "a": chance.choice(("null", "7", "id + 1", "default")),
            "b": chance.choice(("null", "'x'", "default")),
            "c": str(chance.randint(0, 99)),
            "t": chance.choice(("null", "'text'", "repeat('y', 300)")),
            "e": chance.choice(("'m'", "'s'")),
            "d": "'2020-02-03 04:05:06.789'",
            "n": "2.25",
            "blo": "x'00ff'",
            **{name: str(chance.randint(0, 99)) for name in self.added},
        }
        return {name: found[name] for name in chance.sample(sorted(found), chance.randint(0, 4))}

    def _insert(self, table: str) -> str:
        values = {"id": str(self._id()), **self._values()}
        values = {n: v.replace("id + 1", "3") for n, v in values.items()}
        more = " on duplicate key update c = c + 1, t = concat(coalesce(t, ''), 'd')"
        if table == "counted" and self._chance.random() < 0.5:
            values.pop("id")
        words = self._chance.choice(("insert", "insert ignore"))
        return _insert(words, table, values) + ("" if words != "insert" else more)

    def _replace(self, table: str) -> str:
        values = {"id": str(self._id()), **self._values()}
        values = {n: v.replace("id + 1", "3") for n, v in values.items()}
        return _insert("replace", table, values)

    def _update(self, table: str) -> str:
        values = self._values() or {"c": "c + 1"}
        told = ", ".join(f"{name} = {value}" for name, value in values.items())
        return f"update ignore {table} set {told} where id % 3 = {self._chance.randint(0, 2)}"

    def _move(self, table: str) -> str:
        more = self._chance.choice(("", ", a = 9", ", t = 'moved'", ", b = 'moved'"))
        if self._chance.random() < 0.2:
            return f"update ignore {table} set id = id + 1{more} order by id desc"
        return f"update ignore {table} set id = {self._id()}{more} where id = {self._id()}"

    def _delete(self, table: str) -> str:
        return f"delete from {table} where id = {self._id()} limit 1"


def _insert(words: str, table: str, values: Mapping[str, str]) -> str:
    return f"{words} into {table} ({', '.join(values)}) values ({', '.join(values.values())})"


SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 30))]


def made(stand: MySqlStand, database: str) -> Follower:
    """Every table of `partial_writes`, followed from now on."""
    creates = [f"create table {name} ({columns})" for name, columns in TABLES.items()]
    stand.execute(*creates, *TRIGGERS, database=database)
    follower = Follower(server(stand), [f"{database}.*"])
    follower.run()
    return follower


def unequal(follower: Follower) -> list[str]:
    """Tables whose mirror is another, and those that were quarantined, with the reason."""
    found = verify(follower.ports())
    told = [str(table) for table in found.tables if not table.equal]
    return told + [str(one) for one in found.quarantined]


@pytest.mark.parametrize("seed", SEEDS)
def test_mirrors_are_equal_after_every_run(
    mysql: MySqlStand, database: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inserts, updates, changes of keys, REPLACE and ON DUPLICATE KEY, between which columns come
    and go: what an image of before leaves out is the column's fill, or goes with it. Folded in
    buckets, as if changes were too many for the memory, rows are followed from key to key all the
    same."""
    follower = made(mysql, database)
    writes = PartialWrites(Random(seed))
    for change in (None, *ALTERED):
        mysql.execute(*writes.statements(25), database=database)
        if change is not None:
            writes.added = ("added", "note")
            alters = (f"alter table {name} {change}" for name in TABLES)
            mysql.execute(*alters, *writes.statements(20), database=database)
        follower.run()
        assert unequal(follower) == []
    spilled = len(follower.spool.made)
    assert spilled == 0
    # More images than fit at once are at least two buckets, as with the product's limits.
    monkeypatch.setattr("lockstep.pipeline.mirror.strategy.BUCKET_IMAGES", 3)
    mysql.execute(*writes.statements(45), database=database)
    follower.run()
    assert unequal(follower) == []
    assert len(follower.spool.made) > spilled


@pytest.mark.servers("newest", "8.0")
def test_a_changelog_says_what_the_log_had(mysql: MySqlStand, database: str) -> None:
    """A NULL that was logged is told from one that was not, also where the mirror's value is
    known from elsewhere; images with every column say nothing."""
    mysql.execute("create table t (id int primary key, a int, b int default 7)", database=database)
    follower = Follower(server(mysql), [f"{database}.*"])
    follower.run()
    mysql.execute(
        "insert into t values (1, 1, 1)",
        "set binlog_row_image = minimal",
        "insert into t (id, a) values (2, null)",
        "update t set a = null where id = 1",
        "delete from t where id = 2",
        database=database,
    )
    follower.run()
    folder = follower.lake.path(f"shop/_changes/{database}/t/")
    rows = [
        {"_logged": None, **row}
        for path, file in follower.lake.files.items()
        if path.startswith(folder)
        for row in file.to_pylist()
    ]
    rows.sort(key=itemgetter("_sequence"))
    assert [(one["_change_type"], one["a"], one["b"], one["_logged"]) for one in rows] == [
        ("insert", 1, 1, None),
        ("insert", None, 7, ["id", "a"]),
        ("update_preimage", None, None, ["id"]),
        ("update_postimage", None, None, ["id", "a"]),
        ("delete", None, None, ["id"]),
    ]
    assert unequal(follower) == []


def test_deleted_rows_stay_with_what_they_had(mysql: MySqlStand, database: str) -> None:
    """`deletes = "soft"`: a delete logs the key alone."""
    mysql.execute("create table t (id int primary key, a int, b text)", database=database)
    policies = LakePolicies(deletes=Deletes.SOFT)
    follower = Follower(server(mysql), [f"{database}.*"], lake_policies=policies)
    follower.run()
    mysql.execute("insert into t values (1, 1, 'x'), (2, 2, 'y')", database=database)
    follower.run()
    mysql.execute(
        "set binlog_row_image = minimal",
        "update t set a = 7 where id = 1",
        "delete from t where id = 1",
        "update t set id = 3 where id = 2",
        database=database,
    )
    follower.run()
    rows = follower.lake.tables[f"{SOURCE}/{database}/t"][-1].rows.to_pylist()
    told = sorted((row["id"], row["a"], row["b"], row["_deleted_at"] is None) for row in rows)
    assert told == [(1, 7, "x", False), (2, 2, "y", False), (3, 2, "y", True)]


@pytest.mark.parametrize("seed", SEEDS)
def test_mirrors_of_mariadb_are_equal_or_quarantined(
    mariadb: MySqlStand, mariadb_database: str, seed: int
) -> None:
    """There REPLACE changes columns that its images leave out, and nothing tells which."""
    follower = made(mariadb, mariadb_database)
    writes = PartialWrites(Random(seed))
    for _ in range(2):
        mariadb.execute(*writes.statements(60), database=mariadb_database)
        follower.run()
        found = verify(follower.ports())
        assert [str(table) for table in found.tables if not table.equal] == []
    reasons = {one.table.name: one.reason for one in found.quarantined}
    assert "keyless" not in reasons
    assert all("binlog_row_image is not FULL" in reason for reason in reasons.values())


def test_what_mariadb_tells_in_full_is_merged(
    mariadb11: MySqlStand, mariadb11_database: str
) -> None:
    """FULL_NODUP leaves out what did not change, and deletes of MINIMAL have the key."""
    database = mariadb11_database
    mariadb11.execute(
        "create table t (id int primary key, a int default 5, b text)", database=database
    )
    follower = Follower(server(mariadb11), [f"{database}.*"])
    follower.run()
    mariadb11.execute(
        "set binlog_row_image = full_nodup",
        "insert into t values (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z')",
        "update t set a = 7 where id = 1",
        "replace into t (id, b) values (2, 'new')",
        "set binlog_row_image = minimal",
        "delete from t where id = 3",
        "insert into t (id) values (4)",
        database=database,
    )
    follower.run()
    assert unequal(follower) == []
    assert [row["a"] for row in follower.mirror(f"{database}.t")] == [7, 5, 5]


class Written(MySqlServer):
    """A server that is written to while tables are read from it: what is next of `statements`
    each time that a chunk was opened."""

    def __init__(self, stand: MySqlStand, database: str, statements: Iterator[str]) -> None:
        super().__init__(settings(stand))
        self._session = stand.connect(database, autocommit=True)
        self._statements = statements

    @contextmanager
    def chunk(
        self, schema: TableSchema, key_range: Range, **options: Any
    ) -> Iterator[TableSnapshot]:
        with super().chunk(schema, key_range, **options) as found:
            with self._session.cursor() as cursor:
                for statement in islice(self._statements, 5):
                    cursor.execute(statement)
            yield found


def read_in_chunks(mysql: MySqlStand, database: str, statements: Iterator[str]) -> Follower:
    """Tables that are older than the log, to be read three rows at a time while others write."""
    mysql.execute("flush binary logs")
    follower = Follower(Written(mysql, database, statements), [f"{database}.*"], start="snapshot")
    pace = Pace(seconds=1e-9, least_rows=3, first_rows=3, most_rows=3)
    follower.snapshot = SnapshotPlan(max_seconds=1e9, connections=1, pace=pace)
    return follower


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_are_read_while_rows_are_logged_in_part(
    mysql: MySqlStand, database: str, seed: int
) -> None:
    """Also rows that moved from where nobody had read yet to where somebody had, which are in no
    chunk: such a table is read again without being told."""
    writes = PartialWrites(Random(seed))
    mysql.execute(
        *(f"create table {name} ({columns})" for name, columns in TABLES.items()),
        *TRIGGERS,
        *writes.statements(60),
        database=database,
    )
    # TRUNCATE would wait for the chunk that waits for it.
    told = (
        statement for statement in writes.statements(400) if not statement.startswith("truncate")
    )
    follower = read_in_chunks(mysql, database, told)
    for _ in range(8):
        follower.run()
    assert unequal(follower) == []


def test_a_row_that_no_chunk_has_is_read_again(mysql: MySqlStand, database: str) -> None:
    """Its old key was read too late, its new one too early."""
    mysql.execute(
        "create table t (id int primary key, a int not null, b text)",
        "insert into t values (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z'), (4, 4, 'w'), (5, 5, 'v')",
        database=database,
    )
    statements = ("set binlog_row_image = minimal", "update t set a = 9, id = 0 where id = 5")
    follower = read_in_chunks(mysql, database, iter(statements))
    follower.run()
    (state,) = follower.ledger.table_states(SOURCE).values()
    assert (state.reason, state.need, state.stopped_by) == (
        MOVED_ROW_REASON,
        Need.ROWS,
        StoppedBy.RUN,
    )
    follower.run()
    assert unequal(follower) == []


def test_a_row_that_moved_behind_the_last_chunk_is_known(mysql: MySqlStand, database: str) -> None:
    """It was read under its old key, so nothing is read again."""
    mysql.execute(
        "create table t (id int primary key, a int not null, b text)",
        "insert into t values (1, 1, 'x'), (2, 2, 'y')",
        database=database,
    )
    statements = ("set binlog_row_image = minimal", "update t set id = 0 where id = 2")
    follower = read_in_chunks(mysql, database, iter(statements))
    follower.run()
    assert unequal(follower) == []
    assert [row["b"] for row in follower.mirror(f"{database}.t")] == ["y", "x"]
