"""`deletes = "soft"`: when rows went that a statement took all at once, and what they were last.

However the log is cut into batches, and whenever those are merged, it comes to the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest

from pipeline.policies import Deletes, LakePolicies, OnRewrite
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower

CREATE = "create table t (id int primary key, v int)"
AGAIN = "create table t (id int primary key, w int, v bigint)"
SOFT = LakePolicies(deletes=Deletes.SOFT, on_rewrite=OnRewrite.RESNAPSHOT)


@pytest.fixture(params=("mysql", "mariadb11"))
def stand(request: pytest.FixtureRequest) -> Iterator[MySqlStand]:
    stand: MySqlStand = request.getfixturevalue(request.param)
    stand.begin_file()
    yield stand


def followers(stand: MySqlStand, name: str, count: int) -> list[Follower]:
    """Of one source, each with a ledger and a lake of its own, which have its empty table."""
    start = str(head(stand))
    stand.execute(CREATE, database=name)
    found = [
        Follower(server(stand), [f"{name}.*"], start, lake_policies=SOFT) for _ in range(count)
    ]
    for follower in found:
        follower.run()
    return found


def shown(follower: Follower, name: str) -> list[tuple[Any, ...]]:
    """Each row, its columns by name."""
    rows = follower.mirror(f"{name}.t")
    return sorted((tuple(sorted(row.items())) for row in rows), key=str)


def went(follower: Follower, name: str) -> dict[int, Any]:
    """When each row of the mirror went."""
    return {row["id"]: row["_deleted_at"] for row in follower.mirror(f"{name}.t")}


def told(follower: Follower) -> list[Any]:
    """When each transaction was committed, those that change nothing among them, as
    `_transactions` says."""
    rows = follower.lake.tables[f"{SOURCE}/_transactions"][-1].rows.to_pylist()
    return [row["_committed_at"] for row in rows]


STORIES: dict[str, tuple[tuple[str, ...], dict[int, int | None]]] = {
    "truncate": (("insert into t values (1, 1)", "truncate table t"), {1: 1}),
    "a delete before it": (
        ("insert into t values (1, 1), (2, 2)", "delete from t where id = 1", "truncate table t"),
        {1: 1, 2: 2},
    ),
    "the same key again and again": (
        (
            "insert into t values (1, 1), (2, 2)",
            "truncate table t",
            "insert into t values (1, 10), (3, 3)",
            "truncate table t",
            "insert into t values (4, 4), (3, 30)",
        ),
        {1: 3, 2: 1, 3: None, 4: None},
    ),
    "a key that moved": (
        ("insert into t values (1, 1)", "update t set id = 2", "truncate table t"),
        {1: 1, 2: 2},
    ),
    "drop and create": (
        (
            "insert into t values (1, 1), (2, 2)",
            "drop table t",
            CREATE,
            "insert into t values (2, 0)",
        ),
        {1: 1, 2: None},
    ),
    "with other columns": (
        ("insert into t values (1, 1)", "drop table t", AGAIN, "insert into t values (2, 0, 0)"),
        {1: 1, 2: None},
    ),
    "renamed away": (("insert into t values (1, 1)", "rename table t to away", CREATE), {1: 1}),
    "create or replace": (
        ("insert into t values (1, 1)", "create or replace table t (id int primary key, v int)"),
        {1: 1},
    ),
    "drop database": (
        ("insert into t values (1, 1)", "drop database {}", "create database {}", CREATE),
        {1: 1},
    ),
}
ON_MARIADB = ("create or replace",)


@pytest.mark.thin
@pytest.mark.parametrize("story", STORIES)
def test_a_row_goes_when_its_statement_is_committed(stand: MySqlStand, story: str) -> None:
    """The same moment that a DELETE would have given: however many statements a batch has, and
    however many batches a merge."""
    statements, expected = STORIES[story]
    if story in ON_MARIADB and "MariaDB" not in str(stand.rows("select version()")):
        pytest.skip("MySQL has no such statement")
    with stand.own_database() as name:
        at_once, by_one, late = followers(stand, name, 3)
        for statement in statements:
            stand.execute(
                statement.format(name), database=None if " database " in statement else name
            )
            by_one.run()
            late.capture()
        for follower in (at_once, late):
            follower.run()
        moments = told(at_once)[-len(statements) :]
        wanted = {key: None if at is None else moments[at] for key, at in expected.items()}
        assert went(at_once, name) == wanted
        assert shown(by_one, name) == shown(at_once, name)
        assert shown(late, name) == shown(at_once, name)


def random_statements(random: Random, count: int) -> Sequence[str]:
    """Of a table that comes and goes."""
    found, there = list[str](), True
    for number in range(count):
        key = random.randrange(8)
        acts = [
            f"replace into t (id, v) values ({key}, {number}), ({key + 1}, {number})",
            f"delete from t where id = {key}",
            f"update t set v = -{number} where id <= {key}",
            f"update t set id = id + 100 where id = {key}",
            "truncate table t",
            "drop table t",
        ]
        if not there:
            found.append(random.choice((CREATE, AGAIN)))
            there = True
            continue
        found.append(random.choices(acts, (6, 2, 2, 1, 2, 1))[0])
        there = found[-1] != "drop table t"
    return found if there else [*found, CREATE]


@pytest.mark.thin
@pytest.mark.parametrize("seed", range(2))
def test_however_the_log_is_cut_the_rows_are_the_same(stand: MySqlStand, seed: int) -> None:
    """Also what they were last, and which of them came and went inside one batch."""
    random = Random(seed)
    with stand.own_database() as name:
        at_once, by_one, late, some = followers(stand, name, 4)
        for statement in random_statements(random, 24):
            stand.execute(statement, database=name)
            by_one.run()
            late.capture()
            if random.random() < 0.3:
                some.run()
        for follower in (at_once, by_one, late, some):
            follower.run()
        wanted = shown(by_one, name)
        assert shown(late, name) == wanted
        assert shown(some, name) == wanted
        assert shown(at_once, name) == wanted
