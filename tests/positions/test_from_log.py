"""Tables that are followed late, with what the log still has of them from before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

import pytest
from pymysql import MySQLError

from lockstep.commands.plan import supply_lines
from lockstep.pipeline.model.table_state import Supplier, TableEventKind
from lockstep.pipeline.run.orders import OrderRequest, Reload, ReloadFacts, give_reload, plan_reload
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.supply import FromPast, RowsFromServer
from lockstep.pipeline.values.errors import PastRefused, StoppedBy
from tests.chance import by_chance
from tests.fix_mysql import ACCOUNT, MySqlStand
from tests.hostile.test_recovered import recovered, undone
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.outside import merge, publish
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import Crash, drawn, mortal, noted
from tests.positions.paused import Shop
from tests.positions.servers import is_mariadb, prepare_xa

NUMBERED = ("_sequence", "_batch", "_schema_version")
"""Marks of a changelog that tell when a change was captured."""


@pytest.fixture(params=("mysql", "mariadb"))
def stand(request: pytest.FixtureRequest) -> MySqlStand:
    stand: MySqlStand = request.getfixturevalue(request.param)
    return stand


@pytest.fixture
def shop(stand: MySqlStand) -> Iterator[Shop]:
    """The database of one case."""
    with shops(stand, ["all"]) as found:
        yield found["all"]


NOTHING: Final[Mapping[str, Sequence[str]]] = {}


@contextmanager
def shops(
    stand: MySqlStand, cases: Iterable[str], older: Mapping[str, Sequence[str]] = NOTHING
) -> Iterator[dict[str, Shop]]:
    """For each case a database of which only the table `first` is followed, all by one follower.
    `t` is older than the log, and so is what `older` does."""
    with ExitStack() as stack:
        names = {case: stack.enter_context(stand.own_database()) for case in cases}
        for case, name in names.items():
            stand.execute(
                f"grant trigger, show view on * to {ACCOUNT}",
                "create table first (id int primary key)",
                "create table t (id int primary key, v int)",
                "insert into t values (1, 1), (2, 2), (3, 3)",
                *older.get(case, ()),
                database=name,
            )
        forget_log(stand)
        tables = [f"{name}.first" for name in names.values()]
        follower = Follower(server(stand), tables, "snapshot")
        follower.run()
        yield {case: Shop(stand, name, follower) for case, name in names.items()}


def forget_log(stand: MySqlStand) -> None:
    """What was logged so far is purged."""
    stand.execute("flush binary logs")
    stand.purge_to(str(head(stand).file))


def beside(*tables: tuple[Shop, str]) -> Follower:
    """Another source, which begins to follow these tables now."""
    shop, _ = tables[0]
    names = [f"{one.name}.{table}" for one, table in tables]
    return Follower(shop.follower.server, names, str(head(shop.stand)))


def reload(*tables: tuple[Shop, str]) -> list[Reload]:
    """All tables of the follower's databases are followed from now on, and these with their
    pasts."""
    follower = tables[0][0].follower
    follower.tables = [f"{name.partition('.')[0]}.*" for name in follower.tables]
    ports = follower.ports()
    facts = ReloadFacts(ports, [shop.table(table) for shop, table in tables])
    asked = [OrderRequest(table, "ann", "because") for table in facts.tables]
    planned = [plan_reload(ports, request, Supplier.LOG, facts) for request in asked]
    with follower.leased() as lease:
        return [give_reload(ports, lease, one) for one in planned]


def ordered_late(*tables: tuple[Shop, str]) -> None:
    """The log has changes of both `t` and `n`, and all rows of `n`; these are followed with their
    pasts."""
    for shop in {shop.name: shop for shop, _ in tables}.values():
        shop.do(
            "create table n (id int primary key, v int)",
            "insert into n values (1, 1), (2, 2)",
            "update t set v = 8 where id = 1",
        )
    tables[0][0].follower.run()
    reload(*tables)


def changes(shop: Shop, table: str) -> list[dict[str, Any]]:
    """Those of a changelog, in their order, and what does not depend on when they were captured."""
    images = sorted(shop.images(table), key=lambda row: row["_sequence"])
    return [
        {name: value for name, value in row.items() if name not in NUMBERED}
        for row in images
        if row["_change_type"] != "resnapshot"
    ]


def require_pasts(other: Follower, *tables: tuple[Shop, str]) -> None:
    """The changelogs are those of tables which were followed from then on, and go on like them."""
    for key in (100, 101):
        other.run()
        for shop, table in tables:
            with noted(f"{table} of {shop.name}"):
                followed = replace(shop, follower=other)
                assert changes(shop, table) == changes(followed, table) != []
                shop.require_same(table)
                assert shop.state(table).is_complete
                shop.do(
                    f"insert into {table} (id, v) values ({key}, 0)",
                    f"delete from {table} where v = 2",
                )
        shop, _ = tables[0]
        assert shop.follower.ledger.open_loads(SOURCE) == []
        shop.require_history()
        shop.run()


@dataclass(frozen=True)
class Past:
    """What happens to a table up to where its past begins, and afterwards; then a run, and more
    before it is ordered. `said`: why the past begins there."""

    after: tuple[str, ...] = ("update t set v = 1 where id = 2",)
    before: tuple[str, ...] = ()
    then: tuple[str, ...] = ("insert into t (id, v) values (6, 1)",)
    said: str = "because "
    table: str = "t"
    is_whole: bool = False
    """The log has all its rows: none is read from MySQL."""


UPDATED = "update t set v = 2 where id = 1"
PASTS: Final = {
    "it is older than the log": Past(
        ("update t set v = 7 where id = 1", "truncate t", "insert into t values (1, 1), (2, 2)"),
        then=("delete from t where id = 2", "insert into first values (1)"),
        said="because the server's log begins there",
    ),
    "it is made in the log": Past(
        (
            "create table n (id int primary key, v int)",
            "insert into n values (1, 1), (2, 2)",
            "alter table n add column w int not null default 5",
            "update n set v = 3",
            "truncate n",
            "insert into n values (7, 7, 7)",
        ),
        then=("insert into n values (4, 4, 4)",),
        said="because its CREATE TABLE is logged there",
        table="n",
        is_whole=True,
    ),
    "it is made again": Past(
        ("create table t (id int primary key, v int, w int)", "insert into t values (1, 2, 3)"),
        before=("insert into t values (9, 9)", "drop table t"),
        said="its CREATE TABLE",
        is_whole=True,
    ),
    "an ALTER": Past(before=(UPDATED, "alter table t add column w int")),
    "a RENAME into its name": Past(
        before=(
            UPDATED,
            "create table x (id int primary key, v int)",
            "insert into x values (2, 2), (4, 4)",
            "rename table t to old, x to t",
        )
    ),
    "a name that it had before": Past(
        before=(UPDATED, "rename table t to x", "rename table x to t")
    ),
    "a CREATE and a lossy ALTER": Past(
        before=(
            "drop table t",
            "create table t (id int primary key, v bigint)",
            "insert into t values (1, 1), (2, 2)",
            "alter table t modify v int",
        )
    ),
    "a statement in place of its rows": Past(
        before=(UPDATED, "set session binlog_format = 'STATEMENT'", "update t set v = v + 1")
    ),
    "it has no key": Past(("insert into k values (1, 1), (1, 1)",), then=(), table="k"),
}
ON_MARIADB = ("it is made again", "a statement in place of its rows", "it has no key")
REFERENCES = (
    "create table parent (id int primary key)",
    "insert into parent values (1), (2), (3)",
    "alter table t add foreign key (v) references parent (id) on delete cascade",
)
CASCADES = ("delete from parent where id = 1", "update t set v = 2", "delete from parent")


def pasts(stand: MySqlStand, *, every: bool) -> dict[str, Past]:
    """A server that logs what a foreign key did leaves nothing out since the key was made. On a
    MariaDB `every` one is tried, or what its log has in another form."""
    rows = ("insert into parent values (0), (2)", "insert into t values (5, 2)")
    if is_mariadb(stand):
        cascade = Past(rows, (*REFERENCES, *CASCADES), (), "ON DELETE CASCADE")
    else:
        cascade = Past((*CASCADES, *rows), REFERENCES, (), "ALTER TABLE")
    cases = ON_MARIADB if is_mariadb(stand) and not every else PASTS
    return {**{case: PASTS[case] for case in cases}, "what a foreign key did": cascade}


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_table_is_followed_from_where_all_of_it_is_known(stand: MySqlStand, every: bool) -> None:
    """Each from its own place, which is told; what `lockstep plan` says is done, in one batch; only
    rows of before are read from MySQL. A run whose end is fixed leaves that to the next."""
    cases = pasts(stand, every=every)
    keyless = ("create table k (id int, v int)", "insert into k values (1, 1)")
    with shops(stand, cases, {"it has no key": keyless}) as found:
        told = [(case, found[name], name) for name, case in cases.items()]
        tables = [(shop, case.table) for case, shop, _ in told]
        for case, shop, _ in told:
            shop.do(*case.before)
        other = beside(*tables)
        for case, shop, _ in told:
            shop.do(*case.after)
        shop, _ = tables[0]
        follower = shop.follower
        follower.run()
        for case, shop, _ in told:
            shop.do(*case.then)
        for (case, _, name), order in zip(told, reload(*tables), strict=True):
            assert case.said in order.sentence, name
            assert order.sentence.endswith("then its rows from MySQL") is not case.is_whole, name
            assert (order.estimated_rows is None) is case.is_whole, name
        plans = make_plan(follower.ports()).table_plans
        for case, shop, name in told:
            steps = plans.plans[shop.table(case.table)].steps
            wanted = [FromPast] if case.is_whole else [FromPast, RowsFromServer]
            assert [type(step.supply) for step in steps] == wanted, name
        lines = [line for line in supply_lines(plans) if "  past  " in line]
        assert len(lines) == len(cases) and all(" bytes" in line for line in lines)
        follower.run(str(head(stand)))
        assert not {shop.table(table) for shop, table in tables} & follower.states().keys()
        shop.do("insert into first values (2)")
        before = len(shop.batches())
        follower.run()
        assert [batch.catches_up for batch in shop.batches()[before:]].count(True) == 1
        for case, shop, name in told:
            read = TableEventKind.REREAD in shop.events(case.table)
            assert read is not case.is_whole, name
        require_pasts(other, *(table for table in tables if table[1] != "k"))
        shop = found["it has no key"]
        assert changes(shop, "k") == changes(replace(shop, follower=other), "k")
        shop.require_same("k")


def test_xa_transactions(stand: MySqlStand) -> None:
    """The rows of one that is open where the past begins, or ends, come where it is committed; one
    whose prepare is not in the log any more is what the past begins after."""
    cases = ("lost", "begins", "ends", "ends, all known")
    with shops(stand, cases) as found:
        lost, begins, *ends = found.values()
        ending = [*zip(ends, "tn", strict=True)]
        follower = lost.follower

        def prepared(shop: Shop, xid: str, row: str) -> None:
            prepare_xa(stand, f"{shop.name}{xid}", f"insert into {shop.name}.{row}")

        def commit(shop: Shop, xid: str) -> None:
            shop.do(f"xa commit '{shop.name}{xid}'")

        prepared(lost, "gone", "t values (10, 10)")
        follower.run()
        forget_log(stand)
        prepared(lost, "early", "t values (11, 11)")
        commit(lost, "gone")
        lost.do("insert into t values (12, 12)")
        commit(lost, "early")
        prepared(begins, "x", "first values (11)")
        begins.do("alter table t add column w int")
        prepared(begins, "y", "t (id, v) values (12, 12)")
        commit(begins, "x")
        begins.do("insert into t (id, v) values (13, 13)")
        for shop, table in ending:
            shop.do("create table n (id int primary key, v int)", "insert into n values (1, 1)")
            prepared(shop, "x", f"{table} values (11, 11)")
        follower.run()
        commit(begins, "y")
        [gone, *_] = reload((lost, "t"), (begins, "t"), *ending)
        assert "and its prepare is not in the log" in gone.sentence
        for shop, table in ending:
            prepared(shop, "y", f"{table} values (12, 12)")
            shop.do("insert into first values (1)")
        for xid in "xy":
            follower.run()
            for shop, _ in ending:
                commit(shop, xid)
        follower.run()
        for shop, table, keys in (
            (lost, "t", [12, 11]),
            (begins, "t", [13, 12]),
            *((*one, [11, 12]) for one in ending),
        ):
            with noted(f"{table} of {shop.name}"):
                shop.require_same(table)
                assert [row["id"] for row in changes(shop, table)][-2:] == keys


@pytest.mark.thin
def test_refusals(shop: Shop) -> None:
    """Each says what to type instead, and nothing is recorded."""
    shop.do("insert into t values (4, 4)")
    shop.run()
    shop.do("alter table t add column w int")
    with pytest.raises(PastRefused, match=r"nothing that can be read|not known"):
        reload((shop, "t"))
    with pytest.raises(PastRefused, match="it is in the lake") as refused:
        reload((shop, "first"))
    assert "--from source" in refused.value.hint
    empty = Shop(shop.stand, shop.name, replace(shop.follower, ledger=type(shop.follower.ledger)()))
    with pytest.raises(PastRefused, match="no run has captured anything"):
        reload((empty, "t"))
    forget_log(shop.stand)
    with pytest.raises(PastRefused, match="not the one that was read"):
        reload((shop, "t"))
    assert shop.follower.ledger.open_loads(SOURCE) == []


STEPS = ("begin_batch", "begin_load", "record_capture", "plan_chunk")


@pytest.mark.thin
def test_killed_anywhere(shop: Shop) -> None:
    """The next run goes on, and nothing is lost or there twice."""
    tables = [(shop, "t"), (shop, "n")]
    other = beside(*tables)
    ordered_late(*tables)
    for number, (step, after) in enumerate(drawn(STEPS)):
        moment = f"{'after' if after else 'before'} {step}"
        with noted(moment), suppress(Crash), mortal(shop.follower, step, after=after):
            shop.run()
        shop.do(*(f"insert into {table} values ({20 + number}, 0)" for table in "tn"))
    shop.run()
    require_pasts(other, *tables)


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
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 40))]
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
    [found] = reload((shop, "t"))
    act(DEEDS[:WRITES], OFTEN[:WRITES], 10)
    shop.run()
    [begins] = re.findall(r" from (\S+) on,", found.sentence)
    other = Follower(shop.follower.server, [f"{shop.name}.t"], begins)
    require_pasts(other, (shop, "t"))


@pytest.mark.thin
def test_its_past_is_lost_before_it_is_merged(stand: MySqlStand) -> None:
    """The batch that read it is given up, and the rows of the table are read from MySQL; one that
    was paused meanwhile waits for the person who paused it."""
    with shops(stand, ("goes on", "paused")) as found:
        tables = [(shop, table) for shop in found.values() for table in "tn"]
        paused = [one for one in tables if one[0] is found["paused"]]
        ordered_late(*tables)
        follower = found["paused"].follower
        found["paused"].do("insert into first values (1)")
        follower.capture()
        for shop, table in paused:
            shop.pause(table)
        for shop, table in tables:
            files, folder = follower.lake.files, f"/_changes/{shop.name}/{table}/"
            del files[next(path for path in files if folder in path)]
            shop.do(f"insert into {table} values (9, 9)")
        for _ in range(2):
            follower.run()
            assert {shop.state(table).stopped_by for shop, table in paused} == {StoppedBy.PERSON}
        for shop, table in paused:
            shop.resume(table)
        follower.run()
        for shop, table in tables:
            with noted(f"{table} of {shop.name}"):
                shop.require_same(table)
                assert TableEventKind.REREAD in shop.events(table)
                assert shop.state(table).is_complete
        assert follower.ledger.open_loads(SOURCE) == []


@pytest.mark.thin
def test_killed_once_its_past_is_recorded(stand: MySqlStand) -> None:
    """A table that is whole is not read from MySQL as well, unless a newer order says so; one that
    was paused stays where it stopped until it is resumed, and then nothing is missing."""
    with shops(stand, ("goes on", "paused", "from the source")) as found:
        ongoing, paused, sourced = found.values()
        ordered_late((ongoing, "n"), (paused, "t"), (paused, "n"), (sourced, "n"))
        follower = ongoing.follower
        follower.reload(sourced.table("n"), Supplier.SOURCE)
        with suppress(Crash), mortal(follower, "record_capture", after=True):
            follower.run()
        paused.pause("t", "n")
        paused.do(*(f"insert into {table} values (9, 9)" for table in "tn"))
        for _ in range(2):
            follower.run()
            assert all(paused.state(table).has_stopped for table in "tn")
        for table in "tn":
            paused.resume(table)
        follower.run()
        for table in "tn":
            paused.require_same(table)
            assert paused.state(table).is_complete
        assert TableEventKind.REREAD not in ongoing.events("n")
        assert (sourced.events("n"), changes(sourced, "n")) == ([TableEventKind.REREAD], [])
        for shop in (ongoing, sourced):
            shop.require_same("n")
        assert follower.ledger.open_loads(SOURCE) == []


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
def test_before_the_run(stand: MySqlStand) -> None:
    """Whatever happens to it, all tables are what MySQL has; chance says of which cases the log has
    all rows. Where the past would begin after what was captured, the table is read from MySQL as
    any other."""
    chance = by_chance()
    cases = {what: chance.choice("tn") for what in MEANWHILE}
    with shops(stand, cases) as found:
        follower = found["altered"].follower
        for shop in found.values():
            shop.do("insert into first values (1)")
        ordered_late(*((found[what], table) for what, table in cases.items()))
        tables = dict[str, set[str]]()
        for what, table in cases.items():
            shop = found[what]
            shop.do(f"insert into {table} values (9, 9)")
            shop.do(*(statement.format(table) for statement in MEANWHILE[what]))
            tables[what] = {str(*row) for row in stand.rows(f"show tables from {shop.name}")}
        for key in (50, 51):
            follower.run()
            followed = follower.states().keys()
            for what, shop in found.items():
                names = (one for one in tables[what] if shop.table(one) in followed)
                shop.do(*(f"insert into {one} (id) values ({key})" for one in names))
        follower.run()
        states = follower.states()
        for what, shop in found.items():
            with noted(what):
                for name in tables[what]:
                    if shop.table(name) in states:
                        assert shop.state(name).is_complete, name
                        shop.require_same(name)
        assert follower.ledger.open_loads(SOURCE) == []
        without = f"{found['altered'].name}.t is followed without the earlier changes"
        assert any(without in note for note in follower.notes) is (cases["altered"] == "t")


def test_a_table_renamed_while_rows_of_it_are_prepared(mysql57: MySqlStand) -> None:
    """MySQL 5.7 unlocks a table once the session that prepared its rows is gone. Its past begins
    after their commit; the other name, which is not followed, does not matter."""
    with shops(mysql57, ["renamed"]) as found:
        shop = found["renamed"]
        prepare_xa(mysql57, shop.name, f"insert into {shop.name}.t values (4, 4)")
        shop.do("rename table t to u", "rename table u to t", f"xa commit '{shop.name}'")
        committed = head(mysql57)
        shop.do("update t set v = 8 where id = 1")
        shop.run()
        [given] = reload((shop, "t"))
        assert f"from {committed}" in given.sentence
        shop.run()
        shop.require_same("t")


@pytest.mark.thin
@pytest.mark.parametrize("killed", [False, True])
def test_a_ledger_that_is_lost_after_it(shop: Shop, killed: bool) -> None:
    """From the newest batch, and from some before it: no row is lost or there twice."""
    ordered_late((shop, "t"), (shop, "n"))
    shop.do(*(f"insert into {table} values (9, 9)" for table in "tn"))
    shop.do("insert into first values (2)")
    if killed:
        with suppress(Crash), mortal(shop.follower, "record_capture", after=True):
            shop.run()
        with shop.follower.leased() as lease:
            publish(shop.follower.ports(), lease)
            merge(shop.follower.ports(), lease)
    else:
        shop.run()
        shop.do(*(f"update {table} set v = 3 where id = 9" for table in "tn"))
        shop.run()
    batches = [batch.id for batch in reversed(shop.batches())]
    for behind in (None, *sorted(by_chance().sample(batches, 3), reverse=True)):
        with noted(f"behind {behind}"):
            if behind is None:
                shop.follower.lose_ledger()
                recovered(shop.follower)
            else:
                undone(shop.follower, behind)
            for key in range(2):
                shop.run()
                shop.do(f"insert into first values ({100 * (behind or 0) + 20 + key})")
                shop.do(*(f"update {table} set v = v + 1 where id = 9" for table in "tn"))
            shop.run()
            for name in ("first", "t", "n"):
                shop.require_same(name)
