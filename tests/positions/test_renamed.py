"""A table that got another name: its rows are copied inside the lake, and MySQL is asked for none;
where that cannot be, they are read from it, and the reason is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from lockstep.pipeline.model.table_state import (
    OrderKind,
    Supplier,
    TableCondition,
    TableEventKind,
    TableState,
)
from lockstep.pipeline.run.acknowledge import acknowledge
from lockstep.pipeline.run.merge import merge
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.schema.treatments import Hash
from lockstep.pipeline.shape.shape import ShapeRules
from lockstep.pipeline.source_plan import TableSettings
from lockstep.pipeline.values.policies import Deletes, DroppedTables, LakePolicies
from lockstep.pipeline.values.table import TableName, TablePatterns
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_ledger import LedgerOfTest
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions import paused
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import Crash, Moments, at_moments, mortal, noted
from tests.positions.stories import stories_in, tell
from tests.shape.follower import ShapedFollower


class Shop(paused.Shop):
    """Tables `a` (rows 1, 2) and `b` (rows 10, 20), in mirrors."""

    def states(self) -> dict[str, TableState]:
        found = self.follower.states().items()
        return {table.name: state for table, state in found if table.database == self.name}

    def paths(self) -> dict[str, str]:
        """Where the tables are that are there, below the database's folder."""
        return {
            name: state.mirror.rpartition("/")[2]
            for name, state in self.states().items()
            if state.is_complete
        }

    def settle(self) -> None:
        """Run until nothing is left to read."""
        for _ in range(10):
            if self.follower.run().batch_id is None:
                return
        raise AssertionError("it never ends")

    def require_all_same(self) -> None:
        """Each table's mirror holds its rows, no two share a folder, each acknowledged version
        can be read, and no change stands twice in a changelog."""
        ledger, lake = self.follower.ledger, self.follower.lake.tables
        paths = [state.mirror for state in self.follower.states().values()]
        assert len(paths) == len(set(paths))
        tables = self.tables()
        assert sorted(tables) == sorted(self.paths())
        cursor = ledger.cursors(SOURCE).acknowledged
        assert cursor is not None
        entries = ledger.version_set(SOURCE, cursor.batch).entries
        versions = {one.table.name: one for one in entries if one.table.database == self.name}
        for name, rows in tables.items():
            entry = versions[name]
            assert entry.mirror == self.states()[name].mirror
            assert entry.delta_version == len(lake[entry.mirror]) - 1
            mirror = lake[entry.mirror][entry.delta_version].rows.to_pylist()
            assert sorted((row["id"], row["v"]) for row in mirror) == sorted(rows)
        for path, commits in lake.items():
            if "/_changes/" in path:
                marks = ("_gtid", "_offset", "_row", "_change_type", "_sequence")
                images = [tuple(row[m] for m in marks) for row in commits[-1].rows.to_pylist()]
                assert len(images) == len(set(images))

    def tables(self) -> dict[str, list[tuple[Any, ...]]]:
        """Those that the server has, with their rows."""
        found = {}
        with self.stand.connect(self.name) as connection, connection.cursor() as cursor:
            cursor.execute("show tables")
            for (name,) in list(cursor.fetchall()):
                cursor.execute(f"select id, v from {name}")
                found[name] = list(cursor.fetchall())
        return found


def _unread(*_: object, **__: object) -> None:
    raise AssertionError("a table is read from the source")


def opened(stand: MySqlStand, name: str, **policies: Any) -> Shop:
    [shop] = several(stand, [name], **policies)
    return shop


def several(stand: MySqlStand, names: Sequence[str], **policies: Any) -> list[Shop]:
    """Databases of one source."""
    lake = LakePolicies(**policies)
    tables = [f"{name}.*" for name in names]
    follower = Follower(server(stand), tables, str(head(stand)), lake_policies=lake)
    shops = [Shop(stand, name, follower) for name in names]
    for shop in shops:
        shop.do(
            *(f"create table {one} (id int primary key, v int)" for one in ("a", "b")),
            "insert into a values (1, 0), (2, 0)",
            "insert into b values (10, 0), (20, 0)",
        )
    follower.run()
    return shops


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table is read from the source, but in a first run, which finds none."""
    for reads in ("snapshot", "chunk"):
        monkeypatch.setattr(MySqlServer, reads, _unread)


@pytest.fixture
def shop(mysql: MySqlStand, database: str, unread: None) -> Shop:
    """No table of it is read from the source."""
    return opened(mysql, database)


RENAMES: dict[str, Sequence[str]] = {
    "a rename": ("rename table a to c",),
    "by ALTER": ("alter table a rename to c",),
    "a swap": ("rename table a to t, b to a, t to b",),
    "a swap in three statements": (
        "rename table a to t",
        "insert into t values (41, 0)",
        "rename table b to a",
        "update a set v = v + 1",
        "rename table t to b",
    ),
    "a chain": ("rename table b to c, a to b",),
    "round and back": ("rename table a to c", "delete from c where id = 1", "rename table c to a"),
    "a new one under its name": ("rename table a to a_old, b to a",),
    "a ghost": (
        "create table ghost (id int primary key, v int)",
        "insert into ghost select id, v from a",
        "insert into a values (42, 0)",
        "insert into ghost values (42, 1)",
        "rename table a to a_del, ghost to a",
        "drop table a_del",
    ),
    "emptied before": ("truncate a", "insert into a values (43, 0)", "rename table a to c"),
    "altered before and after": (
        "alter table a add column w int default 3, change v x int",
        "insert into a values (44, 0, 4)",
        "rename table a to c",
        "alter table c change x v bigint",
    ),
}


def test_rows_are_copied(mysql: MySqlStand, unread: None) -> None:
    """Each name has its own folder; what changed before the RENAME, in the same batch, and after it
    is there, and nothing of the table is read from the source."""
    with ExitStack() as stack:
        names = [stack.enter_context(mysql.own_database()) for _ in RENAMES]
        shops = several(mysql, names)
        for shop, statements in zip(shops, RENAMES.values(), strict=True):
            shop.do("update a set v = 1 where id = 1", "delete from b where id = 10")
            shop.do("insert into a values (3, 3)", *statements)
            for name in shop.tables():
                shop.do(
                    f"insert into {name} (id, v) values (5, 5)",
                    f"update {name} set v = 7 where id in (2, 3, 20)",
                )
        report = shops[0].run()
        assert not report.quarantined
        for shop, told in zip(shops, RENAMES, strict=True):
            with noted(told):
                shop.require_all_same()
                assert all(name == path for name, path in shop.paths().items())
                shop.do(f"delete from {min(shop.paths())} where id = 5")
        shops[0].run()
        for shop, told in zip(shops, RENAMES, strict=True):
            with noted(told):
                shop.require_all_same()


def test_the_intent_names_the_version(shop: Shop) -> None:
    """And the changelog says when the rows came, as that of a table does that is read again."""
    versions = {name: shop.states()[name].mirror for name in "ab"}
    shop.do("insert into a values (3, 3)", "rename table a to t, b to a, t to b")
    shop.run()
    ledger = shop.follower.ledger
    cursor = ledger.cursors(SOURCE).acknowledged
    assert cursor is not None
    pinned = {
        intent.table.name: ledger.mirror_version(SOURCE, intent.copied_write_id)
        for intent in ledger.intents_of_batch(SOURCE, cursor.batch)
        if intent.copied_write_id is not None
    }
    assert {name: one.mirror for name, one in pinned.items() if one} == {
        "a": versions["b"],
        "b": versions["a"],
    }
    for name in "ab":
        events = [event for event in shop.events(name) if event is TableEventKind.COPIED]
        assert len(events) == 1
        changes = shop.follower.lake.tables[shop.states()[name].changelog][-1].rows
        assert changes.column("_change_type").to_pylist().count("resnapshot") == 1


def test_a_table_without_a_key(mysql: MySqlStand, database: str, unread: None) -> None:
    """Its copies are counted."""
    shop = opened(mysql, database)
    shop.do("create table k (id int, v int)", "insert into k values (1, 1), (1, 1), (2, 2)")
    shop.run()
    shop.do("insert into k values (1, 1)", "delete from k where id = 2", "rename table k to l")
    shop.do("insert into l values (1, 1), (3, 3)", "delete from l where v = 1 limit 1")
    shop.run()
    rows = [(row["id"], row["v"]) for row in shop.follower.mirror(f"{database}.l")]
    assert sorted(rows) == [(1, 1), (1, 1), (1, 1), (3, 3)]


def test_what_only_the_mirror_has_stays_behind(
    mysql: MySqlStand, database: str, unread: None
) -> None:
    """Rows that are marked as deleted, also those that went in the batch of the RENAME, and columns
    that were dropped at the source. What goes afterwards is marked under the new name."""
    shop = opened(mysql, database, deletes=Deletes.SOFT)
    shop.do("alter table a add column x int default 8", "delete from a where id = 1")
    shop.do("insert into a values (3, 0, 1), (4, 0, 1)")
    shop.run()
    shop.do("alter table a drop column x")
    shop.run()
    shop.do("delete from a where id = 3", "update a set id = 6 where id = 4")
    shop.do("rename table a to c", "delete from c where id = 2", "insert into c values (5, 5)")
    shop.run()
    rows = shop.follower.lake.tables[shop.states()["c"].mirror][-1].rows
    assert sorted(rows.column_names) == ["_deleted_at", "id", "v"]
    found = [(row["id"], row["_deleted_at"] is not None) for row in rows.to_pylist()]
    assert sorted(found) == [(2, True), (5, False), (6, False)]


def test_what_is_hidden_stays_so(mysql: MySqlStand, database: str) -> None:
    """Rows are copied as the mirror of the former name shows them, also if that was recorded from
    the log of a server that calls its files otherwise."""
    rules = ShapeRules(
        exclude_columns=("ssn",),
        hash_columns={"code": Hash.EXACT},
        rows="active",
    )
    shapes = {f"{database}.*": rules}
    follower = ShapedFollower(mysql, [*shapes], shapes, start=str(head(mysql)))
    shop = Shop(mysql, database, follower)
    columns = "id int primary key, ssn int, code varchar(9), active boolean"
    shop.do(f"create table a ({columns})", "insert into a values (1, 7, 'x', 1), (2, 7, 'y', 0)")
    shop.run()
    database_of_ledger = follower.ledger.database
    database_of_ledger.tell("update lockstep.table_versions set since_base = 'elsewhere'")
    follower.ledger = LedgerOfTest(database_of_ledger)
    shop.do(
        "update a set active = 1, code = 'z' where id = 2", "insert into a values (3, 7, 'w', 0)"
    )
    shop.do("rename table a to c", "insert into c values (4, 7, 'v', 1), (5, 7, 'u', 0)")
    shop.run()
    assert shop.events("c") == [TableEventKind.COPIED]
    rows = follower.mirror(f"{database}.c")
    assert [row["id"] for row in rows] == [1, 2, 4]
    assert [*rows[0]] == ["id", "code", "active"]
    report = verify(follower.ports())
    assert report.tables and all(table.equal for table in report.tables)


def test_a_new_table_of_the_old_name(shop: Shop) -> None:
    """Both mirrors and both changelogs are their names'."""
    shop.do(
        "rename table a to c",
        "create table a (id int primary key, v int)",
        "insert into a values (1, 1)",
        "insert into c values (3, 3)",
    )
    shop.settle()
    shop.require_all_same()
    shop.do("rename table a to d", "create table a (v int, id int primary key)")
    shop.do("insert into a values (2, 2)")
    shop.settle()
    shop.require_all_same()


def test_batches_that_wait_for_their_merge(shop: Shop) -> None:
    """The version is older than all of them; what they have of the table comes from changelogs."""
    shop.do("insert into a values (3, 0)")
    shop.follower.capture()
    shop.do("rename table a to c", "insert into c values (4, 0)")
    shop.follower.capture()
    shop.do("insert into c values (5, 0)", "rename table c to d, b to c")
    shop.run()
    shop.settle()
    shop.require_all_same()


def test_across_databases(mysql: MySqlStand, database: str, unread: None) -> None:
    """The mirror lies below the database that the table is in."""
    shop = opened(mysql, database)
    other = f"{database}_2"
    shop.follower.tables = [f"{database}.*", f"{other}.*"]
    mysql.execute(f"create database {other}")
    try:
        shop.do(f"rename table a to {other}.a")
        shop.do(f"insert into {other}.a values (3, 0)")
        shop.settle()
        states = shop.follower.ledger.table_states(SOURCE)
        moved = states[TableName(other, "a")]
        assert moved.mirror == f"{SOURCE}/{other}/a"
        rows = shop.follower.lake.tables[moved.mirror][-1].rows.to_pylist()
        assert sorted(row["id"] for row in rows) == [1, 2, 3]
        assert states[TableName(database, "a")].condition is TableCondition.DROPPED
    finally:
        mysql.execute(f"drop database {other}")


def test_dropped_mirrors_go(mysql: MySqlStand, database: str, unread: None) -> None:
    """With `dropped_tables = "drop"`, once the rows are copied."""
    shop = opened(mysql, database, dropped_tables=DroppedTables.DROP)
    for _ in range(3):
        shop.do(
            "drop table if exists a_old",
            "create table a_new (id int primary key, v int)",
            "insert into a_new values (7, 7)",
            "rename table a to a_old, a_new to a",
            "insert into a values (8, 8)",
        )
        shop.settle()
        shop.require_all_same()
    held = {state.mirror for state in shop.states().values() if state.mirror_schema_version}
    below = f"{SOURCE}/{database}/"
    assert {path for path in shop.follower.lake.tables if path.startswith(below)} == held
    shop.do("drop table a", "drop table a_old")
    shop.settle()
    shop.require_all_same()
    left = {path for path in shop.follower.lake.tables if path.startswith(below)}
    assert left == {f"{below}b"}


# -- stories: what cannot be copied ------------------------------------------------------------


def follow(shop: paused.Shop, *tables: str) -> None:
    """Patterns match these tables of the database from now on."""
    others = [one for one in shop.follower.tables if not one.startswith(f"{shop.name}.")]
    shop.follower.tables = [*others, *(f"{shop.name}.{table}" for table in tables)]


def _is_read(shop: paused.Shop, table: str, *, foreseen: bool = True) -> Iterator[None]:
    """As a plan says where it can be known beforehand: else the copy was tried."""
    if foreseen:
        reading = make_plan(shop.follower.ports()).reading
        assert reading is not None and shop.table(table) in reading.rereads
    for _ in range(3):
        yield
    shop.require_same(table)
    assert TableEventKind.REREAD in shop.events(table)
    assert (TableEventKind.COPIED in shop.events(table)) is not foreseen


def it_does_more(shop: paused.Shop) -> Iterator[None]:
    shop.do("alter table a rename to c, add column w int")
    yield from _is_read(shop, "c")


def it_is_paused(shop: paused.Shop) -> Iterator[None]:
    shop.pause("a")
    shop.do("rename table a to c")
    yield from _is_read(shop, "c")


def it_comes_from_outside(shop: paused.Shop) -> Iterator[None]:
    follow(shop, "a", "b")
    shop.do("create table x (id int primary key, v int)", "insert into x values (9, 9)")
    shop.do("rename table a to y, x to a")
    yield from _is_read(shop, "a")


def it_is_being_read(shop: paused.Shop) -> Iterator[None]:
    with shop.follower.leased() as lease:
        shop.follower.ledger.order_table(
            lease,
            shop.table("a"),
            OrderKind.RELOAD,
            author="ada",
            reason="because",
            supplier=Supplier.SOURCE,
        )
    shop.do("rename table a to t, b to a, t to b")
    yield from _is_read(shop, "b")


def _left_out(shop: paused.Shop, *statements: str) -> Iterator[None]:
    """A run whose patterns do not match `a`, after these statements."""
    follow(shop, "b")
    shop.do(*statements)
    yield
    follow(shop, "*")


def it_was_made_while_left_out(shop: paused.Shop) -> Iterator[None]:
    shop.do("drop table a")
    yield
    made = "create table a (id int primary key, v int)"
    yield from _left_out(shop, made, "insert into a values (9, 9)")
    shop.do("rename table a to c")
    yield from _is_read(shop, "c")


def it_was_left_out(shop: paused.Shop) -> Iterator[None]:
    yield from _left_out(shop, "insert into a values (3, 3)", "insert into b values (3, 3)")
    shop.do("rename table a to c")
    yield from _catches_up_first(shop)


def it_was_left_out_and_altered(shop: paused.Shop) -> Iterator[None]:
    yield from _left_out(shop, "insert into a values (3, 3)", "insert into b values (3, 3)")
    shop.do("alter table a add column w int", "rename table a to c")
    yield from _catches_up_first(shop)


def _catches_up_first(shop: paused.Shop) -> Iterator[None]:
    """Then the mirror of its former name has all rows, and it is copied."""
    for _ in range(3):
        yield
    shop.require_same("c")
    assert TableEventKind.REREAD not in shop.events("c")
    assert TableEventKind.COPIED in shop.events("c")


def its_version_is_gone(shop: paused.Shop) -> Iterator[None]:
    shop.do("rename table a to c")
    shop.follower.capture()
    shop.follower.lake.vacuumed[f"{SOURCE}/{shop.name}/a"] = 99
    yield
    assert shop.state("c").has_stopped
    yield from _is_read(shop, "c", foreseen=False)


def its_images_leave_columns_out(shop: paused.Shop) -> Iterator[None]:
    """Those under the new name: then a row that was deleted under the former one would be marked
    under the new one."""
    soft = TableSettings(TablePatterns((f"{shop.name}.*",)), {"deletes": Deletes.SOFT})
    shop.follower.settings = [*shop.follower.settings, soft]
    shop.do("delete from a where id = 1", "rename table a to c")
    shop.do("set binlog_row_image = minimal", "update c set v = 4 where id = 2")
    for _ in range(4):
        yield
    assert {TableEventKind.COPIED, TableEventKind.REREAD} <= {*shop.events("c")}
    mirror = shop.follower.mirror(f"{shop.name}.c")
    assert [row["id"] for row in mirror] == [row["id"] for row in shop.rows("c")]


def a_column_has_the_name_of_the_mark(shop: paused.Shop) -> Iterator[None]:
    """It was dropped, and the mirror keeps its values, which mark nothing."""
    shop.do("alter table a add column _deleted_at int default 1")
    yield
    shop.do("alter table a drop column _deleted_at")
    yield
    shop.do("rename table a to c", "create table a (id int primary key, v int)")
    yield
    yield from _is_read(shop, "c", foreseen=False)


def its_mirror_lacks_a_row(shop: paused.Shop) -> Iterator[None]:
    """Of which an image leaves columns out: the write itself is refused."""
    shop.do("alter table a add column w int default 1")
    yield
    commits = shop.follower.lake.tables[shop.state("a").mirror]
    commits[-1] = replace(commits[-1], rows=commits[-1].rows.slice(0, 1))
    shop.do("set binlog_row_image = minimal", "update a set v = 4", "rename table a to c")
    yield
    yield from _is_read(shop, "c", foreseen=False)


def test_else_it_is_read(mysql: MySqlStand) -> None:
    """From the source, under its new name; a table that was left out catches up before that."""
    tell(mysql, stories_in(globals()), more=["insert into a values (2, 0)"])


STEPS = ("begin_batch", "record_capture", "intend", "settle", "mark_merged", "acknowledge")


def _swapped_twice(shop: Shop, keys: int) -> None:
    for number in range(keys, keys + 2):
        shop.do(
            f"insert into a values ({300 + number}, 0)",
            "rename table a to t, b to a, t to b",
            f"insert into a values ({100 + number}, 0)",
            f"insert into b values ({200 + number}, 0)",
        )


def _finish(shop: Shop) -> None:
    """Merge and acknowledge what the dead run left."""
    with shop.follower.leased() as lease:
        ports = shop.follower.ports()
        merge(ports, lease)
        acknowledge(ports, lease)


@at_moments
@pytest.mark.parametrize("then", [lambda _: None, _finish], ids=["captured first", "merged first"])
def test_a_death_at_any_step_loses_nothing(
    shop: Shop, then: Callable[[Shop], object], moments: Moments
) -> None:
    """The next runs end with all there, nothing doubled, and nothing read from the source: the
    version that rows are copied from is the one that was recorded before the first write."""
    for number, (step, after) in enumerate(moments(STEPS), start=1):
        with noted(f"killed at {step}, after it: {after}"):
            _swapped_twice(shop, 1_000 * number)
            assert _deaths(shop, step, after=after, then=then)
            shop.settle()
            shop.require_all_same()
    assert shop.paths() == {"a": "a", "b": "b"}


def _deaths(shop: Shop, step: str, *, after: bool, then: Callable[[Shop], object]) -> int:
    """How often a run died, of three."""
    died = 0
    for _ in range(3):
        try:
            with mortal(shop.follower, step, after=after):
                shop.run()
        except Crash:
            died += 1
            then(shop)
    return died


def test_a_second_try_asks_for_nothing_of_before(shop: Shop) -> None:
    """Where the log says what all rows were, a write that was begun is made of the same changes,
    though the mirror of the former name was written from its changelog once."""
    shop.order(OrderKind.RELOAD, "a")
    shop.settle()
    assert TableEventKind.REBUILT in shop.events("a")
    shop.do("truncate a", "insert into a values (3, 3)", "rename table a to c")
    with pytest.raises(Crash), mortal(shop.follower, "intend", after=True):
        shop.run()
    shop.settle()
    shop.require_all_same()
    assert TableEventKind.COPIED in shop.events("c")


def test_an_abandoned_batch_is_read_again(shop: Shop) -> None:
    """Its files are damaged: the rename is followed anew."""
    shop.do("rename table a to c, b to a", "insert into c values (3, 3)")
    shop.follower.capture()
    lake = shop.follower.lake
    for path in [path for path in lake.files if "/c/" in path]:
        del lake.files[path]
    shop.settle()
    shop.require_all_same()
