"""`renames = "keep-path"`: a table that got another name goes on in the folder it has; where
that is not safe it is read from the source, as ever."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import product
from typing import Any

import pytest

from pipeline.policies import DroppedTables, LakePolicies, Renames
from pipeline.runs.acknowledge import acknowledge
from pipeline.runs.merge import merge
from pipeline.table import TableName
from pipeline.table_state import TableCondition, TableState
from resources.mysql.server import MySqlServer
from tests.chance import by_chance
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions import paused
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import Crash, drawn, mortal, noted


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
            if state.condition is TableCondition.ACTIVE
        }

    def commits(self, path: str) -> list[Any]:
        return self.follower.lake.tables[f"{SOURCE}/{self.name}/{path}"]

    def commits_of(self, table: str) -> list[str]:
        """Which table made each commit of the mirror that the table has now."""
        lake = self.follower.lake.tables[self.states()[table].mirror]
        return [commit.app_id.split("/")[2].rpartition(".")[2] for commit in lake]

    def settle(self) -> None:
        """Run until nothing is left to read."""
        for _ in range(10):
            if self.follower.run().batch is None:
                return
        raise AssertionError("it never ends")

    def require_same(self) -> None:
        """Each table's mirror holds its rows, no two share a folder, each acknowledged version
        can be read, and no change stands twice in a changelog."""
        ledger, lake = self.follower.ledger, self.follower.lake.tables
        paths = [state.mirror for state in self.follower.states().values()]
        assert len(paths) == len(set(paths))
        tables = self.tables()
        assert sorted(tables) == sorted(self.paths())
        cursor = ledger.cursors(SOURCE).acknowledged
        assert cursor is not None
        entries = ledger.version_set(SOURCE, cursor.batch).shown
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
    lake = LakePolicies(**{"renames": Renames.KEEP_PATH, **policies})
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


@pytest.fixture
def readable(mysql: MySqlStand, database: str) -> Shop:
    return opened(mysql, database)


RENAMES: dict[str, tuple[str, dict[str, str]]] = {
    "a rename": ("rename table a to c", {"b": "b", "c": "a"}),
    "by ALTER": ("alter table a rename to c", {"b": "b", "c": "a"}),
    "a swap": ("rename table a to t, b to a, t to b", {"a": "b", "b": "a"}),
    "a chain": ("rename table b to c, a to b", {"b": "a", "c": "b"}),
    "a new one under its name": ("rename table a to a_old, b to a", {"a": "b", "a_old": "a"}),
}


def test_the_folder_goes_with_the_rows(mysql: MySqlStand, unread: None) -> None:
    """And nothing of the table is read from the source; what comes later is merged there."""
    with ExitStack() as stack:
        names = [stack.enter_context(mysql.own_database()) for _ in RENAMES]
        shops = several(mysql, names)
        for shop, (statement, _) in zip(shops, RENAMES.values(), strict=True):
            shop.do(statement)
        shops[0].run()
        for shop, (_, paths) in zip(shops, RENAMES.values(), strict=True):
            shop.require_same()
            assert shop.paths() == paths
            for name in paths:
                shop.do(
                    f"insert into {name} values (5, 5)", f"update {name} set v = 7 where id < 11"
                )
        shops[0].run()
        for shop, (_, paths) in zip(shops, RENAMES.values(), strict=True):
            shop.require_same()
            shop.do(f"delete from {min(paths)} where id = 5")
        shops[0].run()
        for shop in shops:
            shop.require_same()


def test_rows_before_it_are_merged_first(shop: Shop) -> None:
    """The run ends before the rename, the next one begins with it; rows behind it are merged
    together with it."""
    shop.do(
        "insert into a values (3, 3)",
        "rename table a to c",
        "insert into c values (4, 4)",
        "update c set v = 9 where id in (1, 3)",
    )
    report = shop.run()
    assert report.cut
    assert [row["id"] for row in shop.follower.mirror(f"{shop.name}.a")] == [1, 2, 3]
    report = shop.run()
    assert not report.cut
    shop.require_same()
    assert shop.paths() == {"b": "b", "c": "a"}
    assert shop.run().batch is None


def test_rows_of_other_tables_do_not_end_the_run(shop: Shop) -> None:
    """Only tables that the statement names are to be merged before it. What lies before the rename
    is maybe no transaction, but the beginning of a file."""
    shop.do("insert into b values (30, 0)", "rename table a to c", "insert into c values (3, 0)")
    assert not shop.run().cut
    shop.require_same()
    assert shop.paths() == {"b": "b", "c": "a"}
    shop.do("insert into c values (4, 0)", "flush binary logs", "rename table c to d")
    assert shop.run().cut
    shop.settle()
    shop.require_same()
    assert shop.paths() == {"b": "b", "d": "a"}


def test_one_after_the_other(shop: Shop) -> None:
    """Each run goes up to the next rename of what it has."""
    for number in range(3):
        shop.do(
            "rename table a to t, b to a, t to b",
            f"insert into a values ({100 + number}, 0)",
            f"insert into b values ({200 + number}, 0)",
        )
    shop.settle()
    shop.require_same()
    assert shop.paths() == {"a": "b", "b": "a"}
    assert len([name for name in shop.commits_of("a") if name == "a"]) == 2


def test_a_new_table_of_the_old_name(shop: Shop) -> None:
    """It has a folder of its own, and keeps it; both changelogs are their names'."""
    shop.do(
        "rename table a to c",
        "create table a (id int primary key, v int)",
        "insert into a values (1, 1)",
        "insert into c values (3, 3)",
    )
    shop.settle()
    shop.require_same()
    assert shop.paths() == {"a": "a@2", "b": "b", "c": "a"}
    shop.do("rename table a to d", "create table a (v int, id int primary key)")
    shop.do("insert into a values (2, 2)")
    shop.settle()
    shop.require_same()
    assert shop.paths() == {"a": "a@3", "b": "b", "c": "a", "d": "a@2"}


def test_what_changes_behind_it_is_followed(shop: Shop) -> None:
    """Columns, TRUNCATE, and the end of the table."""
    shop.do("rename table a to c", "alter table c add column w int default 3")
    shop.do("insert into c values (5, 5, 5)")
    shop.settle()
    shop.require_same()
    rows = shop.follower.lake.tables[shop.states()["c"].mirror][-1].rows.to_pylist()
    assert sorted((row["id"], row["w"]) for row in rows) == [(1, 3), (2, 3), (5, 5)]
    shop.do("rename table c to d", "truncate table d", "insert into d values (6, 6, 6)")
    shop.settle()
    shop.require_same()
    shop.do("rename table d to e", "drop table e")
    shop.settle()
    shop.require_same()
    assert shop.paths() == {"b": "b"}


def test_across_databases(mysql: MySqlStand, database: str) -> None:
    """The folder stays below the database it was in."""
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
        assert moved.mirror == f"{SOURCE}/{database}/a"
        rows = shop.follower.lake.tables[moved.mirror][-1].rows.to_pylist()
        assert sorted(row["id"] for row in rows) == [1, 2, 3]
        assert states[TableName(database, "a")].condition is TableCondition.DROPPED
    finally:
        mysql.execute(f"drop database {other}")


def test_dropped_mirrors_go(mysql: MySqlStand, database: str) -> None:
    """With `dropped_tables = "drop"`: the folder that the table has, and no other's."""
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
        shop.require_same()
    held = {state.mirror for state in shop.states().values() if state.mirror_version}
    below = f"{SOURCE}/{database}/"
    assert {path for path in shop.follower.lake.tables if path.startswith(below)} == held
    shop.do("drop table a", "drop table a_old")
    shop.settle()
    shop.require_same()
    left = {path for path in shop.follower.lake.tables if path.startswith(below)}
    assert left == {f"{below}b"}


def _another_batch_waits(shop: Shop) -> None:
    shop.do("insert into b values (11, 0)")
    shop.follower.capture()
    shop.do("rename table a to c")


def _its_own_changes_wait(shop: Shop) -> None:
    shop.do("insert into a values (3, 0)")
    shop.follower.capture()
    shop.do("rename table a to c")


def _it_does_more(shop: Shop) -> None:
    shop.do("alter table a rename to c, add column w int")


def _a_kept_mirror_is_in_the_way(shop: Shop) -> None:
    shop.do("drop table b")
    shop.run()
    shop.do("rename table a to b")


def _it_is_paused(shop: Shop) -> None:
    shop.pause("a")
    shop.do("rename table a to c")


READ: dict[str, Callable[[Shop], None]] = {
    "another batch waits": _another_batch_waits,
    "its own changes wait": _its_own_changes_wait,
    "it does more": _it_does_more,
    "a kept mirror is in the way": _a_kept_mirror_is_in_the_way,
    "it is paused": _it_is_paused,
}


@pytest.mark.parametrize("case", READ)
def test_it_is_read_where_that_is_safer(readable: Shop, case: str) -> None:
    """Each name keeps its own folder then."""
    READ[case](readable)
    readable.settle()
    paths = readable.paths()
    assert all(name == path for name, path in paths.items())
    if case != "it is paused":
        readable.require_same()
    rows = list(readable.stand.rows(f"select id from {readable.name}.{max(paths)} order by id"))
    mirror = readable.follower.mirror(f"{readable.name}.{max(paths)}")
    assert [(row["id"],) for row in mirror] == rows


def test_only_captured_names_change_hands(mysql: MySqlStand, database: str) -> None:
    """A table that comes from outside is read; one that goes there is gone."""
    shop = opened(mysql, database)
    shop.follower.tables = [f"{database}.a", f"{database}.b"]
    shop.do("create table x (id int primary key, v int)", "insert into x values (9, 9)")
    shop.do("rename table a to y, x to a")
    shop.settle()
    assert shop.paths() == {"a": "a", "b": "b"}
    assert [row["id"] for row in shop.follower.mirror(f"{database}.a")] == [9]


STEPS = ("begin_batch", "record_capture", "intend", "settle", "mark_merged", "acknowledge")


def _swapped_twice(shop: Shop, keys: int) -> None:
    for number in range(keys, keys + 2):
        shop.do(
            f"insert into a values ({300 + number}, 0)",
            "rename table a to t, b to a, t to b",
            f"insert into a values ({100 + number}, 0)",
            f"insert into b values ({200 + number}, 0)",
        )


def _die_at(
    moments: Iterable[tuple[str, bool]], shop: Shop, then: Callable[[Shop], object]
) -> None:
    """Two swaps, and deaths on the way to them, for each moment in turn."""
    for number, (step, after) in enumerate(moments, start=1):
        with noted(f"killed at {step}, after it: {after}"):
            _swapped_twice(shop, 1_000 * number)
            assert _deaths(shop, step, after=after, then=then)
            shop.settle()
            shop.require_same()


def _deaths(shop: Shop, step: str, *, after: bool, then: Callable[[Shop], object]) -> int:
    """How often a run died, of three: so many it takes to follow two swaps."""
    died = 0
    for _ in range(3):
        try:
            with mortal(shop.follower, step, after=after):
                shop.run()
        except Crash:
            died += 1
            then(shop)
    return died


def test_a_death_at_any_step_loses_nothing(shop: Shop) -> None:
    """The next runs end with all there, nothing doubled, and nothing read from the source where
    what was captured is merged first; at the run before the rename as at the one behind it."""
    _die_at(drawn(STEPS), shop, _finish)
    assert shop.paths() == {"a": "a", "b": "b"}


def _finish(shop: Shop) -> None:
    """Merge and acknowledge what the dead run left."""
    with shop.follower.leased() as lease:
        work = shop.follower.work()
        merge(work, lease)
        acknowledge(work, lease)


def test_where_the_next_run_captures_first_it_may_read(readable: Shop) -> None:
    """A capture that finds a batch unfinished reads renamed tables; all is there, once. Two of
    those deaths, by chance."""
    _die_at(by_chance().sample(drawn(STEPS), 2), readable, lambda _: None)


@pytest.mark.soak
@pytest.mark.parametrize("then", [lambda _: None, _finish], ids=["captured first", "merged first"])
def test_a_death_at_every_moment_loses_nothing(
    readable: Shop, then: Callable[[Shop], object]
) -> None:
    """Before each step and after it."""
    _die_at(product(STEPS, (False, True)), readable, then)


def test_an_abandoned_batch_gives_the_folders_back(shop: Shop) -> None:
    """Its files are damaged: the tables are where they were, and the rename is followed anew."""
    before = shop.states()
    shop.do("rename table a to c, b to a", "insert into c values (3, 3)")
    shop.follower.capture()
    assert shop.states()["c"].mirror == before["a"].mirror
    lake = shop.follower.lake
    for path in [path for path in lake.files if "/c/" in path]:
        del lake.files[path]
    shop.settle()
    shop.require_same()
    assert shop.paths() == {"a": "b", "c": "a"}


def test_abandoning_restores_all_of_the_states(shop: Shop) -> None:
    """Generation, folder, what it shows."""
    before = shop.states()
    shop.do("rename table a to t, b to a, t to b")
    shop.follower.capture()
    with shop.follower.leased() as lease:
        (batch,) = shop.follower.ledger.unfinished(SOURCE)
        shop.follower.ledger.abandon(lease, batch.id, "so")
    assert shop.states() == before


def test_a_folder_that_is_gone_is_not_begun_anew(shop: Shop) -> None:
    """Also under its new name: that table alone is quarantined, with what makes it whole."""
    shop.do("rename table a to c", "insert into b values (30, 0)")
    gone = f"{SOURCE}/{shop.name}/a"
    del shop.follower.lake.tables[gone]
    shop.run()
    state = shop.states()["c"]
    assert state.condition is TableCondition.QUARANTINED
    assert f"its mirror {gone} is not there" in str(state.reason)
    assert f"`lockstep reload {shop.name}.c --reason …`" in str(state.hint)
    assert shop.paths() == {"b": "b"}
    assert {gone, f"{SOURCE}/{shop.name}/c"}.isdisjoint(shop.follower.lake.tables)
    assert [row["id"] for row in shop.commits("b")[-1].rows.to_pylist()] == [10, 20, 30]


def test_the_default_reads_it(mysql: MySqlStand, database: str) -> None:
    """`rewrite`: the address is the name."""
    shop = opened(mysql, database, renames=Renames.REWRITE)
    shop.do("insert into a values (3, 0)", "rename table a to t, b to a, t to b")
    assert not shop.run().cut
    shop.settle()
    shop.require_same()
    assert shop.paths() == {"a": "a", "b": "b"}
