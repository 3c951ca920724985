"""Tables that are followed late, with what the log still has of them from before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any, Final

import pytest
from pymysql import MySQLError

from lockstep.commands.plan import supply_lines
from lockstep.pipeline.model.table_state import Supplier, TableEventKind
from lockstep.pipeline.run.orders.reloads import Reload, give_reload, plan_reload
from lockstep.pipeline.run.orders.table_orders import OrderRequest
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.supply.plan import FromPast, RowsFromServer
from lockstep.pipeline.values.errors import PastRefused, StoppedBy
from tests.fix_mysql import ACCOUNT, MySqlStand
from tests.hostile.test_recovered import recovered, undone
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.outside import merge, publish
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import Crash, mortal, noted
from tests.positions.paused import Shop
from tests.positions.servers import prepare_xa

NUMBERED = ("_sequence", "_batch", "_schema_version")
"""Marks of a changelog that tell when a change was captured."""


@pytest.fixture(params=("mysql", "mariadb"))
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """A database of which only the table `first` is followed, on each server in turn. `t` is older
    than the log."""
    stand: MySqlStand = request.getfixturevalue(request.param)
    with stand.own_database() as name:
        stand.execute(
            f"grant trigger, show view on * to {ACCOUNT}",
            "create table first (id int primary key)",
            "create table t (id int primary key, v int)",
            "insert into t values (1, 1), (2, 2), (3, 3)",
            database=name,
        )
        forget_log(stand)
        shop = Shop(stand, name, Follower(server(stand), [f"{name}.first"], "snapshot"))
        shop.run()
        yield shop


def forget_log(stand: MySqlStand) -> None:
    """What was logged so far is purged."""
    stand.execute("flush binary logs")
    stand.purge_to(str(head(stand).file))


def beside(shop: Shop, table: str) -> Shop:
    """The same database, followed by another source that begins to follow the table now."""
    tables = [f"{shop.name}.{table}"]
    follower = Follower(shop.follower.server, tables, str(head(shop.stand)))
    return Shop(shop.stand, shop.name, follower)


def reload(shop: Shop, table: str = "t") -> Reload:
    """All tables are followed from now on, and this one with its past."""
    shop.follower.tables = [f"{shop.name}.*"]
    ports = shop.follower.ports()
    with shop.follower.leased() as lease:
        asked = OrderRequest(shop.table(table), "ann", "because")
        return give_reload(ports, lease, plan_reload(ports, asked, Supplier.LOG))


def ordered_late(shop: Shop, table: str) -> None:
    """The log has changes of both tables, and all rows of `n`; this one is followed with its
    past."""
    shop.do(
        "create table n (id int primary key, v int)",
        "insert into n values (1, 1), (2, 2)",
        "update t set v = 8 where id = 1",
    )
    shop.run()
    reload(shop, table)


def changes(shop: Shop, table: str) -> list[dict[str, Any]]:
    """Those of a changelog, in their order, and what does not depend on when they were captured."""
    images = sorted(shop.images(table), key=lambda row: row["_sequence"])
    return [
        {name: value for name, value in row.items() if name not in NUMBERED}
        for row in images
        if row["_change_type"] != "resnapshot"
    ]


def require_past(shop: Shop, other: Shop, table: str = "t") -> None:
    """The changelog is that of a table which was followed from then on, and goes on like it."""
    for key in (100, 101):
        other.run()
        assert changes(shop, table) == changes(other, table) != []
        shop.require_same(table)
        assert shop.state(table).is_complete
        assert shop.follower.ledger.open_loads(SOURCE) == []
        shop.require_history()
        shop.do(
            f"insert into {table} (id, v) values ({key}, 0)", f"delete from {table} where v = 2"
        )
        shop.run()


def test_from_where_the_log_begins(shop: Shop) -> None:
    """Rows of before are read from MySQL, and no change in between is missing, though others write
    on and a run comes before the order."""
    other = beside(shop, "t")
    shop.do("update t set v = 7 where id = 1", "truncate t", "insert into t values (1, 1), (2, 2)")
    shop.run()
    shop.do("delete from t where id = 2", "insert into first values (1)")
    found = reload(shop)
    assert "because the server's log begins there" in found.sentence
    assert found.sentence.endswith("then its rows from MySQL")
    shop.do("insert into t values (4, 4)")
    shop.run()
    assert shop.events("t") == [TableEventKind.TRUNCATED, TableEventKind.REREAD]
    require_past(shop, other)


def test_from_its_create(shop: Shop) -> None:
    """All of its rows are in the log, and nothing is read from MySQL. Statements after it are
    followed."""
    other = beside(shop, "n")
    shop.do(
        "create table n (id int primary key, v int)",
        "insert into n values (1, 1), (2, 2)",
        "alter table n add column w int not null default 5",
        "update n set v = 3",
        "truncate n",
        "insert into n values (7, 7, 7)",
    )
    shop.run()
    shop.do("insert into n values (4, 4, 4)")
    found = reload(shop, "n")
    assert "because its CREATE TABLE is logged there" in found.sentence
    assert found.estimated_rows is None
    shop.run()
    assert TableEventKind.REREAD not in shop.events("n")
    require_past(shop, other, "n")


def test_from_its_last_create(shop: Shop) -> None:
    """A table that was dropped, and one that was made again in its place."""
    shop.do("insert into t values (9, 9)", "drop table t")
    other = beside(shop, "t")
    shop.do("create table t (id int primary key, v int, w int)", "insert into t values (1, 2, 3)")
    shop.run()
    assert "its CREATE TABLE" in reload(shop).sentence
    shop.run()
    require_past(shop, other)


LAST = {
    "an ALTER": ["alter table t add column w int"],
    "a RENAME into its name": [
        "create table x (id int primary key, v int)",
        "insert into x values (2, 2), (4, 4)",
        "rename table t to old, x to t",
    ],
    "a name that it had before": ["rename table t to x", "rename table x to t"],
    "a CREATE and a lossy ALTER": [
        "drop table t",
        "create table t (id int primary key, v bigint)",
        "insert into t values (1, 1), (2, 2)",
        "alter table t modify v int",
    ],
    "a statement in place of its rows": [
        "set session binlog_format = 'STATEMENT'",
        "update t set v = v + 1",
    ],
}


@pytest.mark.thin
@pytest.mark.parametrize("what", LAST)
def test_from_behind_its_last(what: str, shop: Shop) -> None:
    """What left its rows or its structure unknown."""
    shop.do("update t set v = 2 where id = 1")
    shop.do(*LAST[what])
    other = beside(shop, "t")
    shop.do("update t set v = 1 where id = 2")
    shop.run()
    shop.do("insert into t (id, v) values (6, 1)")
    reload(shop)
    shop.run()
    require_past(shop, other)


def test_from_behind_what_a_foreign_key_did(shop: Shop) -> None:
    """Unless the server logs that: then nothing is missing since the key was made."""
    shop.do(
        "create table parent (id int primary key)",
        "insert into parent values (1), (2), (3)",
        "alter table t add foreign key (v) references parent (id) on delete cascade",
    )
    logs_it = "MariaDB" not in str(shop.stand.rows("select version()")[0][0])
    others = [beside(shop, "t")]
    shop.do("delete from parent where id = 1", "update t set v = 2", "delete from parent")
    others.append(beside(shop, "t"))
    shop.do("insert into parent values (0), (2)", "insert into t values (5, 2)")
    shop.run()
    assert ("ON DELETE CASCADE" in reload(shop).sentence) is not logs_it
    shop.run()
    require_past(shop, others[0 if logs_it else 1])


def test_xa_transactions(shop: Shop) -> None:
    """One that is open where the past begins has its rows where it is committed; one whose prepare
    is not in the log any more is what the past begins after."""
    shop.do("create table n (id int primary key, v int)")
    prepare_xa(shop.stand, "gone", f"insert into {shop.name}.t values (10, 10)")
    shop.run()
    forget_log(shop.stand)
    prepare_xa(shop.stand, "early", f"insert into {shop.name}.t values (11, 11)")
    shop.do("xa commit 'gone'", "insert into t values (12, 12)", "xa commit 'early'")
    shop.run()
    assert "and its prepare is not in the log" in reload(shop).sentence
    shop.run()
    shop.require_same("t")
    assert [row["id"] for row in changes(shop, "t")] == [12, 11]


def test_an_xa_transaction_that_is_open_where_the_past_begins(shop: Shop) -> None:
    """Its rows come where it is committed."""
    prepare_xa(shop.stand, "x", f"insert into {shop.name}.first values (11)")
    shop.do("alter table t add column w int")
    prepare_xa(shop.stand, "y", f"insert into {shop.name}.t (id, v) values (12, 12)")
    shop.do("xa commit 'x'", "insert into t (id, v) values (13, 13)")
    shop.run()
    shop.do("xa commit 'y'")
    reload(shop)
    shop.run()
    shop.require_same("t")
    assert [row["id"] for row in changes(shop, "t")] == [13, 12]


def test_a_table_without_a_key(shop: Shop) -> None:
    """Its rows belong to the very place that they are read at: the changelog says so."""
    shop.do("create table k (id int, v int)", "insert into k values (1, 1)")
    shop.run()
    forget_log(shop.stand)
    other = beside(shop, "k")
    shop.do("insert into k values (1, 1), (1, 1)")
    shop.run()
    reload(shop, "k")
    shop.run()
    other.run()
    assert changes(shop, "k") == changes(other, "k")
    shop.require_same("k")


def test_several_at_once_as_planned(shop: Shop) -> None:
    """Each has its own past; they are captured in one batch, and `lockstep plan` says so before."""
    others = {"t": beside(shop, "t")}
    shop.do("update t set v = 9 where id = 2", "create table n (id int primary key, v int)")
    others["n"] = beside(shop, "n")
    shop.do("insert into n values (1, 1)", "insert into t values (5, 5)")
    others["n"].follower.start = others["t"].follower.start
    shop.run()
    for table in others:
        reload(shop, table)
    plans = make_plan(shop.follower.ports()).table_plans
    supplies = {t.name: [type(step.supply) for step in p.steps] for t, p in plans.plans.items()}
    assert supplies == {"t": [FromPast, RowsFromServer], "n": [FromPast]}
    assert plans.tables_supplied(RowsFromServer).keys() == {shop.table("t")}
    lines = [line for line in supply_lines(plans) if "  past  " in line]
    assert len(lines) == 2 and all(" bytes" in line for line in lines)
    before = len(shop.batches())
    shop.run()
    new = shop.batches()[before:]
    assert [batch.catches_up for batch in new].count(True) == 1
    for table, other in others.items():
        require_past(shop, other, table)


def test_an_alter_before_the_run(shop: Shop) -> None:
    """The past would begin after what was captured: the table is read from MySQL as any other."""
    shop.do("insert into t values (4, 4)")
    shop.run()
    reload(shop)
    shop.do("alter table t add column w int")
    shop.run()
    assert any("is followed without the earlier changes" in note for note in shop.follower.notes)
    shop.require_same("t")


def test_a_run_whose_end_is_fixed_leaves_it_to_the_next(shop: Shop) -> None:
    other = beside(shop, "t")
    shop.do("insert into t values (4, 4)")
    shop.run()
    reload(shop)
    shop.follower.run(str(head(shop.stand)))
    assert shop.table("t") not in shop.follower.states()
    shop.run()
    require_past(shop, other)


def test_refusals(shop: Shop) -> None:
    """Each says what to type instead, and nothing is recorded."""
    shop.do("insert into t values (4, 4)")
    shop.run()
    shop.do("alter table t add column w int")
    with pytest.raises(PastRefused, match=r"nothing that can be read|not known"):
        reload(shop)
    with pytest.raises(PastRefused, match="it is in the lake") as refused:
        reload(shop, "first")
    assert "--from source" in refused.value.hint
    empty = Shop(shop.stand, shop.name, replace(shop.follower, ledger=type(shop.follower.ledger)()))
    with pytest.raises(PastRefused, match="no run has captured anything"):
        reload(empty)
    forget_log(shop.stand)
    with pytest.raises(PastRefused, match="not the one that was read"):
        reload(shop)
    assert shop.follower.ledger.open_loads(SOURCE) == []


STEPS = ("begin_batch", "begin_load", "record_capture", "plan_chunk")


@pytest.mark.thin
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("table", ["t", "n"])
def test_killed_anywhere(shop: Shop, table: str, after: bool) -> None:
    """The next run goes on, and nothing is lost or there twice."""
    others = {name: beside(shop, name) for name in ("t", "n")}
    ordered_late(shop, table)
    for number, step in enumerate(STEPS):
        with noted(f"{'after' if after else 'before'} {step}"), suppress(Crash):
            with mortal(shop.follower, step, after=after):
                shop.run()
            shop.do(f"insert into {table} values ({20 + number}, 0)")
    shop.run()
    require_past(shop, others[table], table)


DEEDS: Final = (
    "insert into {0} (id, v) values ({1}, {2})",
    "insert into {0} (id, v) values ({1}, {2}), (1{1}, {2}), (2{1}, 0)",
    "update {0} set v = v + 1 where id % 3 = {2}",
    "update {0} set id = id + 100000 where v = {2}",
    "delete from {0} where v = {2}",
    "insert into first values ({1})",
    "flush binary logs",
    "truncate {0}",
    "alter table {0} add column c{1} int default {2}",
    "alter table {0} add key (v)",
    "alter table {0} modify v bigint",
    "alter table {0} modify v int",
    "rename table {0} to away",
    "rename table away to {0}",
    "drop table {0}",
    "create table {0} (id int primary key, v int)",
)
WRITES: Final = 7
"""So many of them leave structures as they are."""
OFTEN: Final = (30, 10, 15, 5, 10, 5, 2, 2, 2, 1, 1, 1, 1, 3, 1, 6)
"""How often chance takes each of them; what cannot be done then is passed over."""


@pytest.mark.thin
@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 40))]
)
def test_random_histories(shop: Shop, seed: int) -> None:
    """Whatever happened to a table, its changelog is that of one which was followed from the place
    on that is told beforehand."""
    chance = Random(seed)

    def act(deeds: Sequence[str], often: Sequence[int], many: int) -> None:
        for number in range(many):
            (deed,) = chance.choices(deeds, often)
            with suppress(MySQLError):
                shop.do(deed.format("t", chance.randrange(10, 10_000), number % 3))
            if chance.random() < 0.1:
                shop.run()

    act(DEEDS, OFTEN, 60)
    with suppress(MySQLError):
        shop.do("create table t (id int primary key, v int)")
    act(DEEDS[:WRITES], OFTEN[:WRITES], 10)
    shop.run()
    found = reload(shop)
    act(DEEDS[:WRITES], OFTEN[:WRITES], 10)
    shop.run()
    [begins] = re.findall(r" from (\S+) on,", found.sentence)
    tables = [f"{shop.name}.t"]
    other = Shop(shop.stand, shop.name, Follower(shop.follower.server, tables, begins))
    require_past(shop, other)


@pytest.mark.thin
@pytest.mark.parametrize("table", ["t", "n"])
def test_its_past_is_lost_before_it_is_merged(shop: Shop, table: str) -> None:
    """The batch that read it is given up, and the rows of the table are read from MySQL."""
    ordered_late(shop, table)
    shop.do("insert into first values (1)")
    shop.follower.capture()
    files, folder = shop.follower.lake.files, f"/_changes/{shop.name}/{table}/"
    del files[next(path for path in files if folder in path)]
    shop.run()
    shop.require_same(table)
    assert TableEventKind.REREAD in shop.events(table)
    shop.do(f"insert into {table} values (9, 9)")
    shop.run()
    shop.require_same(table)
    assert shop.follower.ledger.open_loads(SOURCE) == []


def test_killed_once_its_past_is_recorded(shop: Shop) -> None:
    """A table that is whole is not read from MySQL as well."""
    ordered_late(shop, "n")
    with suppress(Crash), mortal(shop.follower, "record_capture", after=True):
        shop.run()
    shop.run()
    assert TableEventKind.REREAD not in shop.events("n")
    shop.require_same("n")


@pytest.mark.thin
@pytest.mark.parametrize("table", ["t", "n"])
def test_paused_once_its_past_is_recorded(shop: Shop, table: str) -> None:
    """The table stays where it stopped until it is resumed; then nothing is missing."""
    ordered_late(shop, table)
    with suppress(Crash), mortal(shop.follower, "record_capture", after=True):
        shop.run()
    shop.pause(table)
    shop.do(f"insert into {table} values (9, 9)")
    for _ in range(2):
        shop.run()
        assert shop.state(table).has_stopped
    shop.resume(table)
    shop.run()
    shop.require_same(table)
    assert shop.state(table).is_complete
    assert shop.follower.ledger.open_loads(SOURCE) == []


def test_from_the_source_after_all(shop: Shop) -> None:
    """The newer order counts."""
    ordered_late(shop, "n")
    shop.follower.reload(shop.table("n"), Supplier.SOURCE)
    shop.run()
    shop.require_same("n")
    assert shop.events("n") == [TableEventKind.REREAD]
    assert changes(shop, "n") == []


MEANWHILE = {
    "renamed away": ["rename table {0} to away"],
    "renamed and back": ["rename table {0} to away", "rename table away to {0}"],
    "swapped with one that is followed": [
        "alter table first add column v int",
        "rename table first to away, {0} to first, away to {0}",
    ],
    "in the place of one that is followed": ["drop table first", "rename table {0} to first"],
    "another takes its place": [
        "create table x (id int primary key, v int)",
        "insert into x values (7, 7)",
        "rename table {0} to away, x to {0}",
    ],
    "dropped": ["drop table {0}"],
    "dropped and created": [
        "drop table {0}",
        "create table {0} (id int primary key, v int)",
        "insert into {0} values (5, 5)",
    ],
    "truncated": ["truncate {0}", "insert into {0} values (5, 5)"],
    "altered": ["alter table {0} add column w int default 4", "insert into {0} values (5, 5, 5)"],
}
"""What happens between the order and the run."""


@pytest.mark.thin
@pytest.mark.parametrize("what", MEANWHILE)
@pytest.mark.parametrize("table", ["t", "n"])
def test_before_the_run(shop: Shop, what: str, table: str) -> None:
    """Whatever happens to it, all tables are what MySQL has."""
    shop.do("insert into first values (1)")
    ordered_late(shop, table)
    shop.do(f"insert into {table} values (9, 9)")
    shop.do(*(statement.format(table) for statement in MEANWHILE[what]))
    tables = {str(*row) for row in shop.stand.rows(f"show tables from {shop.name}")}
    for key in (50, 51):
        shop.run()
        states = {one.name: state for one, state in shop.follower.states().items()}
        shop.do(*(f"insert into {one} (id) values ({key})" for one in tables & states.keys()))
    shop.run()
    states = {one.name: state for one, state in shop.follower.states().items()}
    for one in tables & states.keys():
        assert states[one].is_complete, one
        shop.require_same(one)
    assert shop.follower.ledger.open_loads(SOURCE) == []


@pytest.mark.thin
@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("table", ["t", "n"])
def test_a_ledger_that_is_lost_after_it(shop: Shop, table: str, killed: bool) -> None:
    """From the newest batch, and from each one before it: no row is lost or there twice."""
    ordered_late(shop, table)
    shop.do(f"insert into {table} values (9, 9)", "insert into first values (2)")
    if killed:
        with suppress(Crash), mortal(shop.follower, "record_capture", after=True):
            shop.run()
        with shop.follower.leased() as lease:
            publish(shop.follower.ports(), lease)
            merge(shop.follower.ports(), lease)
    else:
        shop.run()
        shop.do(f"update {table} set v = 3 where id = 9")
        shop.run()
    for behind in (None, *(batch.id for batch in reversed(shop.batches()))):
        with noted(f"behind {behind}"):
            if behind is None:
                shop.follower.lose_ledger()
                recovered(shop.follower)
            else:
                undone(shop.follower, behind)
            for key in range(3):
                shop.run()
                shop.do(f"insert into first values ({100 * (behind or 0) + 20 + key})")
                shop.do(f"update {table} set v = v + 1 where id = 9")
            shop.run()
            for name in ("first", table):
                shop.require_same(name)


@pytest.mark.thin
@pytest.mark.parametrize("table", ["t", "n"])
def test_an_xa_transaction_that_is_open_where_it_ends(shop: Shop, table: str) -> None:
    """Its rows come where it is committed, whenever that is."""
    shop.do("create table n (id int primary key, v int)", "insert into n values (1, 1), (2, 2)")
    prepare_xa(shop.stand, "x", f"insert into {shop.name}.{table} values (11, 11)")
    shop.run()
    reload(shop, table)
    prepare_xa(shop.stand, "y", f"insert into {shop.name}.{table} values (12, 12)")
    shop.do("insert into first values (1)")
    for xid in "xy":
        shop.run()
        shop.do(f"xa commit '{xid}'")
    shop.run()
    shop.require_same(table)
    assert [row["id"] for row in changes(shop, table)][-2:] == [11, 12]


@pytest.mark.thin
@pytest.mark.parametrize("table", ["t", "n"])
def test_paused_before_its_past_is_lost(shop: Shop, table: str) -> None:
    """It waits for the person who paused it; then nothing is missing."""
    ordered_late(shop, table)
    shop.follower.capture()
    shop.pause(table)
    files, folder = shop.follower.lake.files, f"/_changes/{shop.name}/{table}/"
    del files[next(path for path in files if folder in path)]
    shop.do(f"insert into {table} values (9, 9)")
    for _ in range(2):
        shop.run()
        assert shop.state(table).stopped_by is StoppedBy.PERSON
    shop.resume(table)
    shop.run()
    shop.require_same(table)
    assert shop.state(table).is_complete
