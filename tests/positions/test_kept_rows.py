"""`deletes = "soft"`: when rows went that a statement took all at once, and what they were last.

However the log is cut into batches, and whenever those are merged, it comes to the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from random import Random
from typing import Any

import pytest

from lockstep.pipeline.values.policies import Deletes, LakePolicies, OnRewrite
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.servers import is_mariadb

CREATE = "create table {t} (id int primary key, v int)"
AGAIN = "create table {t} (id int primary key, w int, v bigint)"
SOFT = LakePolicies(deletes=Deletes.SOFT, on_rewrite=OnRewrite.RESNAPSHOT)


@pytest.fixture(params=("mysql", "mariadb"))
def stand(request: pytest.FixtureRequest) -> Iterator[MySqlStand]:
    stand: MySqlStand = request.getfixturevalue(request.param)
    stand.begin_file()
    yield stand


def followers(stand: MySqlStand, tables: Sequence[str], count: int) -> list[Follower]:
    """Of one source, each with a ledger and a lake of its own, which have its empty tables."""
    start = str(head(stand))
    stand.execute(*(CREATE.format(t=table) for table in tables))
    patterns = [f"{table.partition('.')[0]}.*" for table in tables]
    found = [Follower(server(stand), patterns, start, lake_policies=SOFT) for _ in range(count)]
    for follower in found:
        follower.run()
    return found


def shown(follower: Follower, table: str) -> list[tuple[Any, ...]]:
    """Each row, its columns by name."""
    return sorted((tuple(sorted(row.items())) for row in follower.mirror(table)), key=str)


def went(follower: Follower, table: str) -> dict[int, Any]:
    """When each row of the mirror went."""
    return {row["id"]: row["_deleted_at"] for row in follower.mirror(table)}


def told(follower: Follower) -> list[Any]:
    """When each transaction was committed, those that change nothing among them, as
    `_transactions` says."""
    rows = follower.lake.tables[f"{SOURCE}/_transactions"][-1].rows.to_pylist()
    return [row["_committed_at"] for row in rows]


STORIES: dict[str, tuple[tuple[str, ...], dict[int, int | None]]] = {
    "truncate": (("insert into {t} values (1, 1)", "truncate table {t}"), {1: 1}),
    "a delete before it": (
        (
            "insert into {t} values (1, 1), (2, 2)",
            "delete from {t} where id = 1",
            "truncate table {t}",
        ),
        {1: 1, 2: 2},
    ),
    "the same key again and again": (
        (
            "insert into {t} values (1, 1), (2, 2)",
            "truncate table {t}",
            "insert into {t} values (1, 10), (3, 3)",
            "truncate table {t}",
            "insert into {t} values (4, 4), (3, 30)",
        ),
        {1: 3, 2: 1, 3: None, 4: None},
    ),
    "a key that moved": (
        ("insert into {t} values (1, 1)", "update {t} set id = 2", "truncate table {t}"),
        {1: 1, 2: 2},
    ),
    "drop and create": (
        (
            "insert into {t} values (1, 1), (2, 2)",
            "drop table {t}",
            CREATE,
            "insert into {t} values (2, 0)",
        ),
        {1: 1, 2: None},
    ),
    "with other columns": (
        (
            "insert into {t} values (1, 1)",
            "drop table {t}",
            AGAIN,
            "insert into {t} values (2, 0, 0)",
        ),
        {1: 1, 2: None},
    ),
    "renamed away": (
        ("insert into {t} values (1, 1)", "rename table {t} to {t}_away", CREATE),
        {1: 1},
    ),
    "drop database": (
        ("insert into {t} values (1, 1)", "drop database {d}", "create database {d}", CREATE),
        {1: 1},
    ),
    "create or replace": (
        (
            "insert into {t} values (1, 1)",
            "create or replace table {t} (id int primary key, v int)",
        ),
        {1: 1},
    ),
}
"""Statements of a table `{t}` in a database `{d}`; by key, the statement that took its row."""

ON_MARIADB = ("create or replace",)


def test_a_row_goes_when_its_statement_is_committed(stand: MySqlStand) -> None:
    """The same moment that a DELETE would have given: however many statements a batch has, and
    however many batches a merge."""
    stories = [
        story for name, story in STORIES.items() if is_mariadb(stand) or name not in ON_MARIADB
    ]
    with ExitStack() as stack:
        databases = [stack.enter_context(stand.own_database()) for _ in stories]
        tables = [f"{database}.t" for database in databases]
        at_once, by_one, late = followers(stand, tables, 3)
        committed: list[tuple[str, int]] = []
        for number in range(max(len(statements) for statements, _ in stories)):
            for database, (statements, _) in zip(databases, stories, strict=True):
                for statement in statements[number : number + 1]:
                    stand.execute(statement.format(t=f"{database}.t", d=database))
                    committed.append((f"{database}.t", number))
            by_one.run()
            late.capture()
        for follower in (at_once, late):
            follower.run()
        moments = dict(zip(committed, told(at_once)[-len(committed) :], strict=True))
        for table, (_, expected) in zip(tables, stories, strict=True):
            assert went(at_once, table) == {
                key: None if at is None else moments[table, at] for key, at in expected.items()
            }
            assert shown(by_one, table) == shown(at_once, table)
            assert shown(late, table) == shown(at_once, table)


def random_statements(random: Random, table: str, count: int) -> Sequence[str]:
    """Of a table that comes and goes."""
    found, there = list[str](), True
    for number in range(count):
        key = random.randrange(8)
        acts = [
            f"replace into {table} (id, v) values ({key}, {number}), ({key + 1}, {number})",
            f"delete from {table} where id = {key}",
            f"update {table} set v = -{number} where id <= {key}",
            f"update {table} set id = id + 100 where id = {key}",
            f"truncate table {table}",
            f"drop table {table}",
        ]
        if not there:
            found.append(random.choice((CREATE, AGAIN)).format(t=table))
            there = True
            continue
        found.append(random.choices(acts, (6, 2, 2, 1, 2, 1))[0])
        there = not found[-1].startswith("drop table")
    return found if there else [*found, CREATE.format(t=table)]


@pytest.mark.thin
@pytest.mark.parametrize(
    ("seed", "count"), [(0, 6), *(pytest.param(n, 9, marks=pytest.mark.soak) for n in (1, 2))]
)
def test_however_the_log_is_cut_the_rows_are_the_same(
    stand: MySqlStand, seed: int, count: int
) -> None:
    """Also what they were last, and which of them came and went inside one batch."""
    random = Random(seed)
    with stand.own_database() as name:
        tables = [f"{name}.t{number}" for number in range(3)]
        at_once, by_one, late, some = followers(stand, tables, 4)
        statements = [random_statements(random, table, count) for table in tables]
        for several in zip_longest(*statements, fillvalue="do 0"):
            stand.execute(*several)
            by_one.run()
            late.capture()
            if random.random() < 0.3:
                some.run()
        for follower in (at_once, by_one, late, some):
            follower.run()
        for table in tables:
            wanted = shown(by_one, table)
            assert shown(late, table) == wanted
            assert shown(some, table) == wanted
            assert shown(at_once, table) == wanted
