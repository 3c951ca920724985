"""Mirrors that are called otherwise than their tables: where they lie, through renames of the
tables, through settings that change, and when their ledger is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lockstep.commands import plan as show
from lockstep.pipeline.model.table_state import OrderKind, Supplier, TableCondition, TableEventKind
from lockstep.pipeline.run.mirror_folders import former_folders
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.run.status.version_sets import version_set_at
from lockstep.pipeline.run.upkeep import delete_former_folders, plan_former_folders
from lockstep.pipeline.snapshot.pace import Pace
from lockstep.pipeline.source_plan import SnapshotPlan, TableSettings
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.pipeline.values.mirror_names import ONLY_CASE_DIFFERS, MirrorNameTemplate
from lockstep.pipeline.values.table import TablePatterns
from tests.fix_ledger import LedgerOfTest
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.outside import plan_recovery, recover, repair, verify
from tests.positions.follower import SOURCE, Clock, Follower
from tests.positions.foreseen import require_told
from tests.positions.interrupted import Crash, drawn, mortal, noted
from tests.positions.paused import Shop, open_shop
from tests.positions.stories import stories_in, tell
from tests.proof.writing import spoil


def named(shop: Shop, **into: str) -> None:
    """From the next run on these tables of the shop have such names, and no others."""
    mine = f"{shop.name}."
    others = [one for one in shop.follower.settings if not one.match.include[0].startswith(mine)]
    rules = [
        TableSettings(TablePatterns((mine + table,)), {}, into=MirrorNameTemplate.parse(text))
        for table, text in into.items()
    ]
    shop.follower.settings = [*others, *rules]


def place(shop: Shop, table: str) -> str:
    """Its mirror's folder, below the source's."""
    return shop.state(table).mirror.removeprefix(f"{SOURCE}/")


def require_same(shop: Shop, *tables: str) -> None:
    """They are followed, their mirrors hold their rows, no two have one folder, and the newest
    version set shows what the mirrors show."""
    states = shop.follower.states().values()
    assert len({state.mirror for state in states}) == len(states)
    shown = {
        entry.table: entry for entry in version_set_at(shop.follower.ledger, SOURCE, None).entries
    }
    for table in tables:
        state = shop.state(table)
        assert state.is_complete, state.reason
        rows = [dict(zip(("id", "v"), row, strict=True)) for row in _rows(shop, table)]
        assert shop.follower.mirror(f"{shop.name}.{table}") == rows
        assert shown[state.table].mirror == state.mirror


def _rows(shop: Shop, table: str) -> list[tuple[object, ...]]:
    return list(shop.stand.rows(f"select id, v from {shop.name}.{table} order by id"))


def a_mirror_goes_where_the_settings_say(shop: Shop) -> Iterator[None]:
    """Also where nothing was written since, and back again: its rows come from its changelog. A
    folder that it had before is not written to once more, and keeps what it shows."""
    crm = f"crm_{shop.name}"
    former = shop.state("a").mirror
    named(shop, a="crm_{database}.{table}")
    ports = shop.follower.ports()
    told = [*show.supply_lines(make_plan(ports).table_plans)]
    changelog = f"the mirror of {shop.name}.a is rewritten from its changelog"
    cost = f"called {crm}.a now; no row is read from the source"
    assert any(changelog in line and cost in line for line in told), told
    yield
    assert place(shop, "a") == f"{crm}/a"
    require_same(shop, "a", "b")
    before = shop.follower.lake.tables[former][-1].rows
    shop.do("insert into a values (2, 2)", "update b set v = 9")
    yield
    require_same(shop, "a", "b")
    assert place(shop, "a") == f"{crm}/a"
    named(shop, a=f"{crm}.customers")
    shop.do("insert into a values (3, 3)")
    yield
    assert place(shop, "a") == f"{crm}/customers"
    named(shop)
    yield
    require_same(shop, "a", "b")
    assert place(shop, "a").startswith(f"{shop.name}/a@1-")
    assert shop.follower.lake.tables[former][-1].rows == before
    former_ones = former_folders(shop.follower.ports())
    assert {former, f"{SOURCE}/{crm}/a", f"{SOURCE}/{crm}/customers"} <= {*former_ones}
    for folder in (former, f"{SOURCE}/{crm}/a"):
        del shop.follower.lake.tables[folder]
    named(shop, a=f"{crm}.customers")
    yield
    require_same(shop, "a", "b")
    assert place(shop, "a").startswith(f"{crm}/customers@1-")
    assert shop.events("a").count(TableEventKind.REBUILT) == 4
    assert TableEventKind.REREAD not in shop.events("a")


def a_stopped_table_moves_once_it_is_back(shop: Shop) -> Iterator[None]:
    """It catches up where it was, and is read for the move; one that is reloaded anyway is read
    once."""
    shop.pause("a")
    yield
    named(shop, a="s_{database}.a")
    shop.do("insert into a values (2, 2)", "insert into b values (2, 2)")
    yield
    assert place(shop, "a") == f"{shop.name}/a"
    shop.resume("a")
    yield
    yield
    require_same(shop, "a", "b")
    assert place(shop, "a") == f"s_{shop.name}/a"
    named(shop, a="s_{database}.a2")
    shop.order(OrderKind.RELOAD, "a")
    yield
    require_same(shop, "a", "b")
    assert place(shop, "a") == f"s_{shop.name}/a2"
    # The log and its changelog have all of it, each time.
    assert TableEventKind.REREAD not in shop.events("a")
    assert shop.events("a").count(TableEventKind.REBUILT) == 2


def two_mirrors_change_places(shop: Shop) -> Iterator[None]:
    """Each goes beside the folder that the other one had."""
    shop.do("insert into a values (2, 2)")
    named(shop, a="{database}.b", b="{database}.a")
    yield
    require_same(shop, "a", "b")
    assert [place(shop, one) for one in "ab"] == [f"{shop.name}/b@1-2", f"{shop.name}/a@1-2"]
    shop.do("insert into a values (3, 3)", "delete from b")
    yield
    require_same(shop, "a", "b")


def captured_batches_wait(shop: Shop) -> Iterator[None]:
    """Those of a table that has a mirror, and those of one that has none yet."""
    shop.do("insert into a values (2, 2)", "create table c (id int primary key, v int)")
    shop.do("insert into c values (1, 1)")
    shop.follower.capture()
    named(shop, a="{table}_{database}.x", c="{table}_{database}.x")
    shop.do("insert into a values (3, 3)", "insert into c values (2, 2)")
    yield
    require_same(shop, "a", "b", "c")
    assert [place(shop, table) for table in "abc"] == [
        f"a_{shop.name}/x",
        f"{shop.name}/b",
        f"c_{shop.name}/x",
    ]


def it_is_the_tables_through_its_life(shop: Shop) -> Iterator[None]:
    """From its first row on; through TRUNCATE, DROP and another table of the name."""
    named(shop, c="x_{database}.t")
    shop.do("create table c (id int primary key, v int)", "insert into c values (1, 1)")
    yield
    require_same(shop, "c")
    for statements in (
        ("truncate table c", "insert into c values (4, 4)"),
        ("drop table c", "create table c (id int primary key, v int)"),
        ("create table d like c", "rename table c to c_old, d to c", "insert into c values (5, 5)"),
    ):
        shop.do(*statements)
        yield
        require_same(shop, "c")
        assert place(shop, "c") == f"x_{shop.name}/t"
    shop.do("drop table c")
    yield
    assert shop.state("c").condition is TableCondition.DROPPED
    shop.do("create table c (id int primary key, v int)", "insert into c values (6, 6)")
    yield
    require_same(shop, "c", "c_old")
    assert place(shop, "c") == f"x_{shop.name}/t"


def a_renamed_table_lies_where_its_new_name_does(shop: Shop) -> Iterator[None]:
    """There and back, and in a swap."""
    named(shop, a="y_{database}.a")
    yield
    shop.do("rename table a to c", "insert into c values (7, 7)")
    yield
    require_same(shop, "b", "c")
    assert place(shop, "c") == f"{shop.name}/c"
    shop.do("rename table c to a", "insert into a values (8, 8)")
    yield
    require_same(shop, "a", "b")
    assert place(shop, "a") == f"y_{shop.name}/a"
    shop.do("rename table a to t, b to a, t to b", "insert into a values (9, 9)")
    yield
    require_same(shop, "a", "b")
    assert [place(shop, table) for table in "ab"] == [f"y_{shop.name}/a", f"{shop.name}/b"]


def tables_that_meet_are_told_apart(shop: Shop) -> Iterator[None]:
    """The first one keeps its place, in whatever case the other is called; once the settings
    differ, a resume brings that one to its own."""
    named(shop, a="z_{database}.t", c="z_{database}.T", d="{database}.b")
    shop.do(
        *(f"create table {table} (id int primary key, v int)" for table in "cd"),
        *(f"insert into {table} values (1, 1)" for table in "acd" if table != "a"),
    )
    yield
    require_same(shop, "a", "b")
    for table, other in (("c", "a"), ("d", "b")):
        state = shop.state(table)
        assert state.has_stopped
        assert f"as the mirror of {shop.name}.{other} is" in str(state.reason)
        assert f"`lockstep resume {shop.name}.{table} --reason …`" in str(state.hint)
        assert state.mirror not in shop.follower.lake.tables
    reason = f"its mirror would be called z_{shop.name}.T, as the mirror of {shop.name}.a is"
    with pytest.raises(ConfigurationError) as refused:
        shop.resume("c")
    assert refused.value.message == f"no run follows {shop.name}.c: {reason}"
    assert shop.follower.ledger.open_orders(SOURCE) == []
    yield
    assert shop.state("c").has_stopped
    named(shop, a="z_{database}.t", c="z_{database}.u")
    shop.do("insert into c values (2, 2)", "insert into a values (2, 2)")
    shop.resume("c")
    shop.resume("d")
    yield
    require_same(shop, "a", "b", "c", "d")
    assert [place(shop, table) for table in "abcd"] == [
        f"z_{shop.name}/t",
        f"{shop.name}/b",
        f"z_{shop.name}/u",
        f"{shop.name}/d",
    ]


def settings_that_have_two_meet(shop: Shop) -> Iterator[None]:
    """The table whose mirror is there goes on, and the other one stops as it is."""
    named(shop, b="{database}.a")
    shop.do("insert into a values (2, 2)", "insert into b values (2, 2)")
    yield
    require_same(shop, "a")
    assert shop.state("b").has_stopped
    named(shop)
    shop.resume("b")
    yield
    require_same(shop, "a", "b")
    assert place(shop, "b") == f"{shop.name}/b"


def a_renamed_table_that_would_meet_another(shop: Shop) -> Iterator[None]:
    """It is refused, through a template and in another case as well, and so is a table that is
    made under such a name."""
    named(shop, **{"m*": "v_{database}.{table}", "[nN]*": "V_{database}.M1"})
    shop.do("create table m1 (id int primary key, v int)", "insert into m1 values (1, 1)")
    yield
    require_same(shop, "m1")
    shop.do("rename table a to n1", "insert into n1 values (2, 2)", "create table N2 like m1")
    shop.do("insert into N2 values (5, 5)")
    yield
    require_same(shop, "b", "m1")
    for table in ("n1", "N2"):
        state = shop.state(table)
        assert state.has_stopped
        assert f"as the mirror of {shop.name}.m1 is" in str(state.reason)
        assert state.mirror not in shop.follower.lake.tables
    named(shop, **{"m*": "v_{database}.{table}"})
    for table in ("n1", "N2"):
        shop.resume(table)
    yield
    require_same(shop, "b", "m1", "n1", "N2")


def the_place_of_an_earlier_mirror_is_not_anothers(shop: Shop) -> Iterator[None]:
    """What one table left behind is still read by its version sets."""
    named(shop, a="w_{database}.t")
    yield
    named(shop, c="w_{database}.t")
    shop.do("create table c (id int primary key, v int)", "insert into c values (3, 3)")
    yield
    require_same(shop, "a", "b", "c")
    assert place(shop, "c") == f"w_{shop.name}/t@1-2"


def rows_are_copied_to_where_the_new_name_is(shop: Shop) -> Iterator[None]:
    """From a name with `into` to one without, and back, and in a swap."""
    named(shop, a="k_{database}.a", d="k_{database}.d")
    yield
    yield
    shop.do("rename table a to c", "insert into c values (2, 2)")
    yield
    require_same(shop, "b", "c")
    assert place(shop, "c") == f"{shop.name}/c"
    shop.do("rename table c to d", "insert into d values (3, 3)")
    yield
    require_same(shop, "b", "d")
    assert place(shop, "d") == f"k_{shop.name}/d"
    shop.do("rename table b to t, d to b, t to d", "insert into d values (4, 4)")
    yield
    require_same(shop, "b", "d")
    assert [place(shop, table) for table in "bd"] == [f"{shop.name}/b", f"k_{shop.name}/d"]
    assert TableEventKind.REREAD not in [*shop.events("b"), *shop.events("d")]


def test_places_of_mirrors(mysql: MySqlStand) -> None:
    tell(mysql, stories_in(globals()))


def test_settings_change_in_the_middle_of_a_load(mysql: MySqlStand, database: str) -> None:
    """And back, and once more: what was read goes to the last place; nothing is read twice."""
    values = ", ".join(f"({number}, 0)" for number in range(200))
    mysql.execute(
        "create table a (id int primary key, v int)",
        f"insert into a values {values}",
        "flush binary logs",
        database=database,
    )
    shop = Shop(mysql, database, Follower(server(mysql), [f"{database}.*"], start="snapshot"))
    shop.follower.snapshot = SnapshotPlan(
        1e-9, 1, Pace(1e-9, least_rows=50, first_rows=50, most_rows=50)
    )
    shop.run()
    for into in ({"a": "crm.x"}, {}):
        named(shop, **into)
        shop.run()
        assert shop.state("a").is_loading
    shop.follower.snapshot = SnapshotPlan()
    named(shop, a="crm.{database}")
    shop.run()
    require_same(shop, "a")
    assert place(shop, "a") == f"crm/{database}"
    assert shop.events("a").count(TableEventKind.REREAD) == 1


def test_tables_that_meet_from_the_beginning(mysql: MySqlStand, database: str) -> None:
    """The one that comes first by name is read; the other one is not until it has a place."""
    mysql.execute(
        *(f"create table {one} (id int primary key, v int)" for one in ("a", "b")),
        *(f"insert into {one} values (1, 1)" for one in ("a", "b")),
        "flush binary logs",
        database=database,
    )
    shop = Shop(mysql, database, Follower(server(mysql), [f"{database}.*"], start="snapshot"))
    named(shop, **{"*": "crm.{database}"})
    shop.run()
    shop.do("update a set v = 2", "update b set v = 2")
    shop.run()
    require_same(shop, "a")
    assert shop.state("b").has_stopped
    assert shop.follower.mirror(f"{database}.b") == []
    named(shop, **{"*": "crm.{database}_{table}"})
    shop.resume("b")
    shop.run()
    require_same(shop, "a", "b")
    assert [place(shop, one) for one in "ab"] == [f"crm/{database}_{one}" for one in "ab"]


def test_a_table_is_called_as_a_former_mirror(mysql: MySqlStand, database: str) -> None:
    """Once no setting names any mirror: what was left in that folder is still read."""
    shop = Shop(mysql, database, Follower(server(mysql), [f"{database}.*"], str(head(mysql))))
    shop.make()
    named(shop, a="{database}.c")
    shop.run()
    assert place(shop, "a") == f"{database}/c"
    named(shop)
    shop.run()
    former = shop.follower.lake.tables[f"{SOURCE}/{database}/c"][-1].rows
    shop.do("create table c (id int primary key, v int)", "insert into c values (5, 5)")
    shop.run()
    require_same(shop, "a", "b", "c")
    assert shop.follower.lake.tables[f"{SOURCE}/{database}/c"][-1].rows == former


def test_whatever_is_done_with_a_mirror_that_moved(mysql: MySqlStand, database: str) -> None:
    """Compared, replayed, made again live and as of places before and behind the move, repaired and
    undone; once the settings say another place, and once the mirror is there. Folders that it had
    are named, stay as long as a version in them is promised, and are deleted then."""
    clock = Clock()
    follower = Follower(server(mysql), [f"{database}.*"], str(head(mysql)))
    follower.ledger = LedgerOfTest(clock=clock)
    shop = Shop(mysql, database, follower)
    seen: dict[str, list[dict[str, Any]]] = {}

    def run(*statements: str) -> None:
        shop.do(*statements)
        seen[str(head(mysql))] = shop.rows("a")
        shop.run()

    def former() -> dict[str, str | None]:
        ports = replace(follower.ports(), clock=clock)
        found = delete_former_folders(ports, plan_former_folders(ports, timedelta(hours=1)), "test")
        return {one.folder.removeprefix(f"{SOURCE}/"): one.reason_kept for one in found}

    shop.make()
    shop.run()
    own, crm = f"{database}/a", f"crm_{database}/a"
    run("insert into a values (2, 2)")
    for step in ("before", "behind"):
        assert place(shop, "a") == (own if step == "before" else crm)
        named(shop, a="crm_{database}.a")
        _work_on(shop, seen)
        require_same(shop, "a", "b")
        run("update a set v = v + 10")
    assert place(shop, "a") == crm
    assert TableEventKind.REREAD not in shop.events("a")
    assert "promised until 2026-11-01 01:00" in str(former()[own])
    clock.now += timedelta(minutes=59)
    run("update a set v = v + 10")
    assert "promised" in str(former()[own])
    clock.now += timedelta(minutes=2)
    assert follower.standing(now=clock.now).former_folders == (f"{SOURCE}/{own}",)
    assert former() == {own: None}
    assert former() == {}
    assert f"{SOURCE}/{own}" not in follower.lake.tables
    newest = list(seen)[-2:]
    _work_on(shop, {place: seen[place] for place in newest})
    named(shop)
    run("insert into a values (9, 9)")
    assert place(shop, "a") == own
    require_same(shop, "a", "b")
    # Undone with the setting: its rows are where they were, and nothing is read for that.
    moved = shop.batches()[-1].id
    named(shop, a="crm_{database}.a")
    _lose(follower, behind=moved - 1)
    assert place(shop, "a") == crm
    run("insert into a values (10, 10)")
    require_same(shop, "a", "b")
    assert place(shop, "a") == crm
    # What a ledger found in the lake goes where the settings say.
    _lose(follower)
    named(shop)
    run("insert into a values (11, 11)")
    assert place(shop, "a").startswith(own)
    require_same(shop, "a", "b")
    damaged = _damaged(shop, "a")
    report = verify(follower.ports())
    named(shop, a="crm.{table}")
    with follower.leased() as lease:
        assert repair(follower.ports(), lease, report) == (shop.table("a"),)
    run()
    assert place(shop, "a") == "crm/a"
    require_same(shop, "a", "b")
    assert follower.lake.tables[damaged][-1].rows


def _work_on(shop: Shop, seen: Mapping[str, list[dict[str, Any]]]) -> None:
    follower, table = shop.follower, shop.table("a")
    assert verify(follower.ports()).equal
    follower.replay()
    for at, rows in seen.items():
        assert sorted(follower.rebuilt(table, at), key=lambda row: int(row["id"])) == rows
    right = follower.lake.tables[shop.state("a").mirror][-1]
    folder = _damaged(shop, "a")
    assert not verify(follower.ports()).equal
    follower.reload(table, Supplier.CHANGELOG)
    shop.run()
    assert verify(follower.ports()).equal
    commits = follower.lake.tables[folder]
    commits[-2] = right


def _damaged(shop: Shop, table: str) -> str:
    """A value of each row of the mirror is wrong; its folder."""
    spoil(shop.follower, shop.table(table), lambda rows: [row.update(v=-1) for row in rows])
    return shop.state(table).mirror


STEPS = ("order_table", "record_capture", "record_event", "intend", "settle", "acknowledge")


def test_a_death_at_any_step_brings_it_there(mysql: MySqlStand, database: str) -> None:
    shop = open_shop(mysql, database)
    for number, (step, after) in enumerate(drawn(STEPS)):
        with noted(f"killed at {step}, after it: {after}"):
            named(shop, a=f"crm_{{database}}.a{number}")
            shop.do(f"insert into a values ({number + 10}, 0)")
            with pytest.raises(Crash), mortal(shop.follower, step, after=after):
                shop.run()
            shop.run()
            shop.run()
            require_same(shop, "a", "b")
            assert place(shop, "a") == f"crm_{database}/a{number}"


def test_a_lost_ledger_is_made_of_mirrors_in_such_places(mysql: MySqlStand, database: str) -> None:
    """Their commits say whose they are; the settings then need no write. A run is undone as well,
    also the one that moved a mirror."""
    shop = open_shop(mysql, database)
    named(shop, a="crm_{database}.a")
    shop.do("insert into a values (2, 2)")
    shop.run()
    shop.do("insert into b values (3, 3)")
    shop.run()
    _lose(shop.follower)
    assert place(shop, "a") == f"crm_{database}/a"
    shop.do("insert into a values (3, 3)")
    shop.run()
    require_same(shop, "a", "b")
    events = shop.events("a")
    shop.run()
    assert shop.events("a") == events
    assert place(shop, "a") == f"crm_{database}/a"
    newest = shop.batches()[-1].id
    _lose(shop.follower, behind=newest - 1)
    shop.run()
    shop.run()
    require_same(shop, "a", "b")


def _lose(follower: Follower, behind: int | None = None) -> None:
    follower.lose_ledger()
    foreseen = plan_recovery(follower.ports(), behind)
    with follower.leased() as lease:
        done = recover(follower.ports(), lease, author="somebody", after_batch=behind)
    assert done == foreseen
    assert not done.reloads
    require_told(foreseen.table_plans, follower.ports())


def test_tables_that_differ_in_case_on_a_store_that_ignores_it(
    mysql: MySqlStand, database: str
) -> None:
    """The first one goes on, the other is set aside with the sentence of `lockstep check`, also if
    it comes and goes within a run; on any other store they are followed both."""
    follower = Follower(server(mysql), [f"{database}.*"], str(head(mysql)), ignores_case=True)
    shop = Shop(mysql, database, follower)
    shop.do("create table T (id int primary key, v int)", "insert into T values (1, 1)")
    shop.run()
    shop.do(
        "create table t (id int primary key, v int)",
        "insert into t values (2, 2)",
        "insert into T values (3, 3)",
    )
    shop.run()
    shop.require_same("T")
    assert f"its name and {database}.T {ONLY_CASE_DIFFERS}" in str(shop.state("t").reason)
    assert [name for name in follower.lake.tables if name.endswith("/t")] == []
    with pytest.raises(ConfigurationError, match=ONLY_CASE_DIFFERS):
        shop.resume("t")
    shop.do("insert into t values (4, 4)", "rename table t to u")
    shop.run()
    shop.require_same("T")
    shop.require_same("u")
    shop.do(
        "create table U (id int primary key, v int)",
        "insert into U values (2, 2)",
        "drop table U",
        "insert into u values (5, 5)",
    )
    shop.run()
    shop.require_same("T")
    shop.require_same("u")
    assert [name for name in follower.lake.tables if name.endswith("/U")] == []


def test_a_folder_with_an_unsettled_write_is_not_free(mysql: MySqlStand, database: str) -> None:
    """A run died between a mirror's first write and its record; another table is to have the folder
    then: the write is settled, and the mirror moves afterwards."""
    follower = Follower(server(mysql), [f"{database}.*"], str(head(mysql)))
    shop = Shop(mysql, database, follower)
    named(shop, a="crm_{database}.c")
    shop.make(("a",))
    with pytest.raises(Crash), mortal(follower, "settle", after=False):
        follower.run()
    named(shop, a="crm_{database}.a", c="crm_{database}.c")
    shop.do("create table c (id int primary key, v int)", "insert into c values (3, 3)")
    for _ in range(3):
        follower.run()
        shop.do("update a set v = v + 1", "update c set v = v + 1")
    follower.run()
    require_same(shop, "a", "c")
    assert place(shop, "a") == f"crm_{database}/a"
