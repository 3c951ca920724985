"""The order of changes, where tables have several table maps in one batch: a real server's log,
every mirror compared with its table, every change with its place in the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from tests.e2e.project import head
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.outside import verify
from tests.positions.follower import SOURCE, Follower

TABLES = (
    "create table parents (id int primary key, v int)",
    "create table children (id int primary key, parent int, v int,"
    " foreign key (parent) references parents (id))",
    "create table others (id int primary key, v int)",
)
"""A foreign key's child has other flags in its table map for a DELETE than for an UPDATE."""


def unequal(follower: Follower) -> list[str]:
    found = verify(follower.ports())
    told = [str(table) for table in found.tables if not table.equal]
    return told + [str(one) for one in found.quarantined]


def assert_in_order(follower: Follower, database: str, table: str) -> int:
    """Numbers ascend as the places in the log do, file by file as they were written; how many
    there are."""
    folder = follower.lake.path(f"{SOURCE}/_changes/{database}/{table}/")
    before, count = (0, "", 0, 0), 0
    for path in sorted(file for file in follower.lake.files if file.startswith(folder)):
        rows = follower.lake.files[path].select(["_sequence", "_file", "_offset", "_row"])
        for place in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            assert place[0] > before[0]
            assert place[1:] >= before[1:]  # an update's two images share a row
            before = place
            count += 1
    return count


def test_a_migration_of_a_child(mysql: MySqlStand, database: str) -> None:
    """An index, a DELETE and an UPDATE of a foreign key's child in one first run."""
    start = head(mysql)
    mysql.execute(
        *TABLES,
        "insert into parents values (1, 1)",
        "insert into children values (1, 1, 1), (2, 1, 2)",
        "alter table children add index (v)",
        "delete from children where id = 1",
        "update children set v = 20 where id = 2",
        database=database,
    )
    follower = Follower(server(mysql), [f"{database}.*"], start=start)
    follower.run()
    assert follower.mirror(f"{database}.children") == [{"id": 2, "parent": 1, "v": 20}]
    assert_in_order(follower, database, "children")
    assert unequal(follower) == []


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 40))]
)
def test_statements_by_chance(mysql: MySqlStand, database: str, seed: int) -> None:
    """In transactions plain, compressed, rolled back in part and prepared, while
    `binlog_row_metadata` and sessions' `foreign_key_checks` change between statements."""
    chance, follower = Random(seed), Follower(server(mysql), [f"{database}.*"])
    mysql.execute(*TABLES, database=database)
    follower.run()
    with mysql.metadata("full"):
        for _ in range(3):
            mysql.execute(*_statements(chance, 40), database=database)
            follower.run()
            assert unequal(follower) == []
    rows = [assert_in_order(follower, database, table) for table in ("children", "others")]
    assert min(rows) > 10


def _statements(chance: Random, count: int) -> Iterator[str]:
    """Transactions, each of a few statements that cannot fail."""
    for number in range(count):
        # What a comment holds is executed from that version on.
        yield f"/*!80001 set global binlog_row_metadata = {chance.choice(['minimal', 'full'])} */"
        yield f"set foreign_key_checks = {chance.choice([0, 1, 1])}"
        yield f"/*!80020 set binlog_transaction_compression = {chance.choice([0, 0, 1])} */"
        xid = f"'{chance.getrandbits(40)}'" if chance.random() < 0.2 else None
        yield "begin" if xid is None else f"xa start {xid}"
        yield "insert into parents values (1, 1) on duplicate key update v = v + 1"
        for inner in range(chance.randint(1, 6)):
            yield _write(chance)
            if inner == 2 and xid is None and chance.random() < 0.3:
                yield from ("savepoint one", _write(chance), "rollback to one")
        if xid is None:
            yield "commit"
        else:
            yield from (f"xa end {xid}", f"xa prepare {xid}", f"xa commit {xid}")
        if number % 20 == 19:
            shown = chance.choice(["invisible", "visible"])
            yield f"alter table children /*!80000 alter index parent {shown} */"


def _write(chance: Random) -> str:
    table, key, value = chance.choice(["children", "children", "others"]), *_numbers(chance)
    match chance.randrange(3):
        case 0:
            columns = "(id, parent, v)" if table == "children" else "(id, v)"
            parent = "1, " if table == "children" else ""
            return f"replace into {table} {columns} values ({key}, {parent}{value})"
        case 1:
            return f"update {table} set v = v + 1 where id between {key} and {key + 3}"
        case _:
            return f"delete from {table} where id = {key}"


def _numbers(chance: Random) -> tuple[int, int]:
    return chance.randrange(12), chance.randrange(1000)
