"""Tables of engines drawn by chance, on MySQL and MariaDB: named, by a session's default, in
place of one that is missing, or changed later. Each is equal to the source, or quarantined with
the reason."""

from __future__ import annotations

import random

import pytest

from lockstep.pipeline.values.engines import engine_of, reason_refused
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import Follower
from tests.positions.paused import Shop

COLUMNS = "(id int not null, v int not null{key})"
KEYLESS = ("CSV", "ARCHIVE", "BLACKHOLE", "EXAMPLE", "FEDERATED")


def opened(stand: MySqlStand, name: str) -> Shop:
    shop = Shop(stand, name, Follower(server(stand), [f"{name}.*"]))
    shop.do("create table first (id int primary key)")
    shop.run()
    return shop


def known(stand: MySqlStand) -> list[str]:
    """Engines that this server can make tables of, and some that it lacks."""
    found = [str(row[0]).upper() for row in stand.rows("show engines") if row[1] != "NO"]
    others = {"PERFORMANCE_SCHEMA", "MRG_MYISAM", "SEQUENCE", "FEDERATED"}
    return sorted({*found, "FEDERATED"} - others)


def statements(chance: random.Random, table: str, engines: list[str]) -> list[str]:
    """How a table comes to its engine."""
    engine = chance.choice(engines)
    columns = COLUMNS.format(key="" if engine in KEYLESS else ", primary key (id)")
    ways = [
        [f"create table {table} {columns} engine = {engine}"],
        [
            f"set default_storage_engine = {engine}",
            f"create table {table} {columns}",
            "set default_storage_engine = InnoDB",
        ],
        [
            f"create table {table} {columns}",
            f"insert into {table} values (1, 1), (2, 2)",
            f"alter table {table} engine = {engine}",
        ],
        [
            f"create table {table} {columns} engine = {engine}",
            f"insert into {table} values (1, 1)",
            f"alter table {table} engine = InnoDB",
        ],
        [f"create table m{table} {columns} engine = MyISAM", merged(table, columns)],
    ]
    if engine == "FEDERATED":
        ways = [ways[0]]
    return ["set sql_mode = ''", *chance.choice(ways)]


def merged(table: str, columns: str) -> str:
    keyed = columns.replace("primary key", "key")
    return f"create table {table} {keyed} engine = MERGE union = (m{table})"


def drawn(stand: MySqlStand, name: str, seed: int, tables: int) -> None:
    chance = random.Random(seed)
    shop, engines = opened(stand, name), known(stand)
    for number in range(tables):
        _try(shop, *statements(chance, f"t{number}", engines))
        if chance.random() < 0.3:
            shop.run()
        _try(shop, f"insert into t{number} values (7, 7), (8, 8)")
        _try(shop, f"update t{number} set v = 9 where id = 8")
    shop.run()
    shop.do("insert into first values (1)")
    shop.run()
    require_told(shop)


def _try(shop: Shop, *given: str) -> None:
    """In one session; what a server refuses is not what this is about."""
    with shop.stand.connect(shop.name) as connection, connection.cursor() as cursor:
        for one in given:
            try:
                cursor.execute(one)
            except Exception:  # noqa: BLE001
                break


def require_told(shop: Shop) -> None:
    states = shop.follower.states()
    for listed in server(shop.stand).tables():
        if listed.name.database != shop.name:
            continue
        state, table = states.get(listed.name), listed.name.name
        why = reason_refused(listed.engine)
        if why is not None:
            assert state is not None, (table, listed.engine)
            assert state.has_stopped, (table, listed.engine)
            assert engine_of(listed.engine).reason in (state.reason or ""), state.reason
            assert f"lockstep resume {listed.name} --reason" in (state.hint or "")
        elif state is None or state.is_complete:
            mirror = shop.follower.mirror(str(listed.name))
            assert sorted(map(str, mirror)) == sorted(map(str, shop.rows(table))), table
        else:
            assert state.has_stopped
            assert state.reason


@pytest.mark.parametrize(
    ("flavour", "seed", "tables"),
    [
        ("mysql", 1, 20),
        ("mariadb", 7, 14),
        *(pytest.param("mysql", seed, 40, marks=pytest.mark.soak) for seed in range(100, 130)),
    ],
)
def test_engines_at_random(
    request: pytest.FixtureRequest, flavour: str, seed: int, tables: int
) -> None:
    stand: MySqlStand = request.getfixturevalue(flavour)
    with stand.own_database() as name:
        drawn(stand, name, seed, tables)


def test_a_table_that_became_innodb_again_comes_back(mysql: MySqlStand, database: str) -> None:
    """Not while it has the other engine. Its log is read up to the statement; what follows is not:
    the log does not have all rows of the table."""
    shop = opened(mysql, database)
    shop.do("create table t (id int primary key, v int)", "insert into t values (1, 1)")
    shop.run()
    shop.do(
        "insert into t values (4, 4)",
        "alter table t engine = MEMORY",
        "insert into first values (1)",
        "insert into t values (2, 2)",
    )
    shop.run()
    assert (shop.state("t").reason or "").startswith("its engine is MEMORY")
    assert shop.kinds("t") == [("insert", 1), ("insert", 4)]
    shop.resume("t")
    shop.do("insert into first values (2)")
    shop.run()
    assert (shop.state("t").reason or "").startswith("its engine is MEMORY")
    shop.do("alter table t engine = InnoDB", "insert into t values (3, 3)")
    told = shop.resume("t")
    assert "reads" in told
    assert "from the source: it stopped because its engine is MEMORY" in told
    shop.run()
    shop.require_whole("t", rereads=1)
