"""Policies of deletes, TRUNCATE and dropped columns: which rows stay, as what, and since when; each
table follows its own, as if it were alone in a source with them.

However the log is cut into batches, and whenever those are merged, it comes to the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields
from itertools import zip_longest
from random import Random
from typing import Any

import pytest

from lockstep.pipeline.mirror.layout import application_id
from lockstep.pipeline.model.table_state import OrderKind, Supplier
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.source_plan import TableSettings
from lockstep.pipeline.values.policies import (
    Deletes,
    DroppedColumns,
    DroppedTables,
    LakePolicies,
    OnRewrite,
    Truncates,
)
from lockstep.pipeline.values.table import TableName, TablePatterns
from tests.chance import by_chance
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import Crash, mortal
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
    however many batches a merge. A MariaDB is told some of the stories."""
    names = [name for name in STORIES if name not in ON_MARIADB]
    if is_mariadb(stand):
        names = [*by_chance().sample(names, 3), *ON_MARIADB]
    stories = [STORIES[name] for name in names]
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


@pytest.mark.parametrize("supplier", [None, Supplier.CHANGELOG, Supplier.SOURCE])
def test_a_kept_column_goes_where_all_rows_are_replaced(
    stand: MySqlStand, supplier: Supplier | None
) -> None:
    """By a TRUNCATE and by either reload; rows that went stay."""
    with stand.own_database() as name:
        table = f"{name}.t"
        [follower] = followers(stand, [table], 1)
        stand.execute(
            f"insert into {table} values (1, 1), (2, 2)",
            f"delete from {table} where id = 1",
            f"alter table {table} drop column v, add column w int",
        )
        follower.run()
        assert [row["v"] for row in follower.mirror(table)] == [1, 2]
        if supplier is None:
            stand.execute(f"truncate table {table}")
        else:
            follower.reload(TableName(name, "t"), supplier)
        follower.run()
        assert [sorted(row) for row in follower.mirror(table)] == [["_deleted_at", "id", "w"]] * 2


def kept_row(mysql: MySqlStand, database: str) -> Follower:
    """A mirror with a row that the source no longer has, and settings that do not say so."""
    start = str(head(mysql))
    table = f"{database}.t"
    mysql.execute(CREATE.format(t=table), f"insert into {table} values (1, 1)")
    follower = Follower(server(mysql), [f"{database}.*"], start)
    follower.run()
    follower.lake_policies = LakePolicies(deletes=Deletes.IGNORE)
    mysql.execute(f"delete from {table}")
    follower.run()
    follower.lake_policies = LakePolicies()
    return follower


def test_a_plan_foretells_the_merge_into_a_mirror_that_kept_rows(
    mysql: MySqlStand, database: str
) -> None:
    """Under settings that keep none any more: the run decides by what the ledger has of the
    mirror's last write, and so does the plan before it."""
    follower, table = kept_row(mysql, database), TableName(database, "t")
    mysql.execute(f"insert into {table} values (1, 2)")
    plan = make_plan(follower.ports())
    assert plan.reading is not None
    assert plan.reading.merge_sentences[table].startswith("merge: ")
    follower.run()
    assert follower.mirror(f"{table}") == [{"id": 1, "v": 2}]
    [(_, written)] = follower.ledger.newest_writes(
        SOURCE, [application_id(SOURCE, follower.states()[table], "mirror")]
    ).items()
    assert written.settled_write is not None
    assert plan.reading.merge_sentences[table].partition(": ")[2] in str(
        written.settled_write.reason
    )


def test_settings_that_change_between_two_tries_of_a_write(
    mysql: MySqlStand, database: str
) -> None:
    """The first try would have deleted a row, the second one keeps it: later writes know it."""
    start, table = str(head(mysql)), f"{database}.t"
    mysql.execute(CREATE.format(t=table), f"insert into {table} values (1, 1)")
    follower = Follower(server(mysql), [f"{database}.*"], start)
    follower.run()
    mysql.execute(f"delete from {table}")
    with mortal(follower, "intend", after=True), pytest.raises(Crash):
        follower.run()
    follower.lake_policies = LakePolicies(deletes=Deletes.IGNORE)
    with mortal(follower, "settle", after=False), pytest.raises(Crash):
        follower.run()
    assert follower.mirror(table) == [{"id": 1, "v": 1}], "it was kept"
    follower.lake_policies = LakePolicies()
    mysql.execute(f"insert into {table} values (1, 2)")
    follower.run()
    assert follower.mirror(table) == [{"id": 1, "v": 2}]


# -- policies of tables ------------------------------------------------------------------------

WORDS: Mapping[str, Sequence[Any]] = {
    "deletes": tuple(Deletes),
    "truncates": tuple(Truncates),
    "dropped_columns": tuple(DroppedColumns),
    "dropped_tables": tuple(DroppedTables),
    "updated_columns": (True, False),
}


def block(pattern: str, **policies: Any) -> TableSettings:
    return TableSettings(TablePatterns((pattern,)), policies)


def source_of(policies: LakePolicies) -> dict[str, Any]:
    return {field.name: getattr(policies, field.name) for field in fields(policies)}


def changes(follower: Follower, table: str) -> list[Any]:
    """A table's changelog as it is known in the lake, without what depends on other tables."""
    name = str(table).replace(".", "/")
    found = []
    for folder, versions in follower.lake.tables.items():
        if folder.startswith(f"{SOURCE}/_changes/{name}"):
            rows = versions[-1].rows.sort_by("_sequence").to_pylist()
            found += [
                {key: value for key, value in row.items() if key not in ("_sequence", "_batch")}
                for row in rows
            ]
    return found


@pytest.mark.thin
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in (1, 2, 3))])
def test_each_table_is_as_if_it_were_alone(stand: MySqlStand, seed: int) -> None:
    """Mirrors and changelogs, also if each has policies of its own which differ from the source's,
    and some come from two blocks."""
    random = Random(seed)
    with stand.own_database() as name:
        start = str(head(stand))
        tables = [f"{name}.t{number}" for number in range(4)]
        stand.execute(*(CREATE.format(t=table) for table in tables))
        own = [
            LakePolicies(
                on_rewrite=OnRewrite.RESNAPSHOT,
                **{key: random.choice(words) for key, words in WORDS.items()},
            )
            for _ in tables
        ]
        settings = [block(f"{name}.t*", deletes=Deletes.SOFT, on_rewrite=OnRewrite.RESNAPSHOT)]
        settings += [
            block(table, **source_of(policies)) for table, policies in zip(tables, own, strict=True)
        ]
        together = Follower(server(stand), [f"{name}.*"], start, settings=settings)
        alone = [
            Follower(server(stand), [table], start, lake_policies=policies)
            for table, policies in zip(tables, own, strict=True)
        ]
        every = [together, *alone]
        for follower in every:
            follower.run()
        statements = [random_statements(random, table, 9) for table in tables]
        for several in zip_longest(*statements, fillvalue="do 0"):
            stand.execute(*several)
            if random.random() < 0.3:
                for follower in every:
                    follower.run()
        for follower in every:
            follower.run()
        for table, follower in zip(tables, alone, strict=True):
            assert shown(together, table) == shown(follower, table), table
            assert changes(together, table) == changes(follower, table), table


IGNORE = LakePolicies(deletes=Deletes.IGNORE, on_rewrite=OnRewrite.RESNAPSHOT)
TRUNCATES = LakePolicies(truncates=Truncates.IGNORE, on_rewrite=OnRewrite.RESNAPSHOT)
Expected = dict[int, int | None]
SHORTER = ("alter table {t} add w varchar(9)", "alter table {t} modify w varchar(3)")
"""What may have cut values, so that the table is read again."""

KEPT_STORIES: dict[str, tuple[LakePolicies, tuple[str, ...], Expected]] = {
    "a delete leaves the row as it was last": (
        IGNORE,
        (
            "insert into {t} values (1, 1), (2, 2)",
            "update {t} set v = 3 where id = 1",
            "delete from {t} where id = 1",
        ),
        {1: 3, 2: 2},
    ),
    "an insert replaces the row that was left": (
        IGNORE,
        ("insert into {t} values (1, 1)", "delete from {t}", "insert into {t} values (1, 2)"),
        {1: 2},
    ),
    "a key that moves leaves nothing": (
        IGNORE,
        ("insert into {t} values (1, 1)", "update {t} set id = 2", "delete from {t}"),
        {2: 1},
    ),
    "a key that moves onto a row that was left": (
        IGNORE,
        (
            "insert into {t} values (1, 1), (2, 2)",
            "delete from {t} where id = 2",
            "update {t} set id = 2",
        ),
        {2: 1},
    ),
    "a row that is gone at a re-read stays": (
        IGNORE,
        (
            "insert into {t} values (1, 1), (2, 2), (3, 3)",
            "delete from {t} where id = 1",
            "update {t} set id = 4 where id = 2",
            *SHORTER,
        ),
        {1: 1, 3: 3, 4: 2},
    ),
    "a truncate is a delete of all rows": (
        IGNORE,
        (
            "insert into {t} values (1, 1), (2, 2)",
            "truncate table {t}",
            "insert into {t} values (2, 20)",
        ),
        {1: 1, 2: 20},
    ),
    "a table that is dropped and comes again": (
        IGNORE,
        (
            "insert into {t} values (1, 1), (2, 2)",
            "drop table {t}",
            CREATE,
            "insert into {t} values (2, 0)",
        ),
        {1: 1, 2: 0},
    ),
    "deletes alone count where truncates are ignored": (
        TRUNCATES,
        (
            "insert into {t} values (1, 1), (2, 2), (3, 3)",
            "truncate table {t}",
            "insert into {t} values (2, 20), (4, 4)",
            "delete from {t} where id = 2",
        ),
        {1: 1, 3: 3, 4: 4},
    ),
    "truncated rows stay at a re-read": (
        TRUNCATES,
        (
            "insert into {t} values (1, 1), (2, 2)",
            "truncate table {t}",
            "insert into {t} values (2, 20), (4, 4)",
            "delete from {t} where id = 4",
            *SHORTER,
        ),
        {1: 1, 2: 20},
    ),
}
"""Policies, statements of a table `{t}`; the values of the mirror by key."""


@pytest.mark.thin
def test_rows_stay_that_are_gone_at_the_source(stand: MySqlStand) -> None:
    """However many statements a run reads, also where a DELETE logs the key alone; rows that stay
    are no difference to MySQL, any other row that is wrong is one. An UPDATE that leaves columns
    out quarantines a table of MariaDB's."""
    with stand.own_database() as name:
        start = str(head(stand))
        mariadb = is_mariadb(stand)
        told = [(story, "full") for story in KEPT_STORIES]
        told += [
            (story, "minimal")
            for story, (_, statements, _) in KEPT_STORIES.items()
            if not {*SHORTER, CREATE} & {*statements}
            and not (mariadb and any(one.startswith("update") for one in statements))
        ]
        tables = {
            f"{name}.t{number}": (*one, *KEPT_STORIES[one[0]]) for number, one in enumerate(told)
        }
        stand.execute(*(CREATE.format(t=table) for table in tables))
        settings = [block(table, **source_of(one[2])) for table, one in tables.items()]
        by_one, at_once, late = (
            Follower(server(stand), [f"{name}.*"], start, settings=settings) for _ in range(3)
        )
        for follower in (by_one, at_once, late):
            follower.run()
        for number in range(max(len(statements) for *_, statements, _ in tables.values())):
            for table, (_, image, _, statements, _) in tables.items():
                for one in statements[number : number + 1]:
                    image_of = f"set session binlog_row_image = {image}"
                    stand.execute(image_of, one.format(t=table))
            by_one.run()
            late.capture()
        for follower in (by_one, at_once, late):
            follower.run()
            follower.run()
            for table, (story, image, _, _, expected) in tables.items():
                found = {row["id"]: row["v"] for row in follower.mirror(table)}
                assert found == expected, (story, image)
        report = verify(by_one.ports())
        assert [str(one.table) for one in report.tables if not one.equal] == []
        assert sum(one.kept for one in report.tables) == sum(
            len(expected.keys() - {row[0] for row in stand.rows(f"select id from {table}")})
            for table, (*_, expected) in tables.items()
        )


@pytest.mark.thin
def test_a_setting_that_changes(stand: MySqlStand) -> None:
    """Back from `soft` the table is read again without the rows that were marked; from `remove` on
    they are marked; from `ignore` on, rows that were left stay until the table is reloaded."""
    with stand.own_database() as name:
        table = f"{name}.t"
        start = str(head(stand))
        stand.execute(CREATE.format(t=table), f"insert into {table} values (1, 1), (2, 2), (3, 3)")
        follower = Follower(server(stand), [f"{name}.*"], start)

        def under(deletes: Deletes, *statements: str) -> dict[int, Any]:
            follower.settings = [block(table, deletes=deletes)]
            stand.execute(*statements)
            follower.run()
            follower.run()
            return {row["id"]: row.get("_deleted_at") for row in follower.mirror(table)}

        assert set(under(Deletes.REMOVE)) == {1, 2, 3}
        found = under(Deletes.SOFT, f"delete from {table} where id = 1")
        assert {key: at is None for key, at in found.items()} == {1: False, 2: True, 3: True}
        found = under(Deletes.REMOVE, f"insert into {table} values (4, 4)")
        assert found == {2: None, 3: None, 4: None}
        found = under(Deletes.IGNORE, f"delete from {table} where id = 2")
        assert found == {2: None, 3: None, 4: None}
        found = under(Deletes.REMOVE, f"delete from {table} where id = 3")
        assert found == {2: None, 4: None}
        follower.order(OrderKind.RELOAD, TableName(name, "t"))
        assert under(Deletes.REMOVE) == {4: None}


KEPT = (
    ({"deletes": Deletes.IGNORE}, {"deletes": Deletes.REMOVE}, "delete from {t}"),
    ({"deletes": Deletes.IGNORE}, {"deletes": Deletes.SOFT}, "delete from {t}"),
    ({"truncates": Truncates.IGNORE}, {"truncates": Truncates.DELETE}, "truncate table {t}"),
)


@pytest.mark.thin
@pytest.mark.parametrize(("before", "after", "emptied"), KEPT)
def test_a_key_that_comes_again_replaces_the_row_that_stayed(
    stand: MySqlStand, before: dict[str, Any], after: dict[str, Any], emptied: str
) -> None:
    """Also once the setting that kept the row has changed, and under a new name. A reload leaves
    no such row, so inserts are appended again unless rows stay with marks."""
    with stand.own_database() as name:
        t, u = f"{name}.t", f"{name}.u"
        start = str(head(stand))
        follower = Follower(server(stand), [f"{name}.*"], start)

        def under(policies: dict[str, Any], *statements: str) -> None:
            follower.settings = [block(f"{name}.*", **policies)]
            stand.execute(*statements)
            follower.run()

        def rows(table: str) -> list[tuple[int, int]]:
            return [(row["id"], row["v"]) for row in follower.mirror(table)]

        under(before, CREATE.format(t=t), f"insert into {t} values (1, 1), (2, 2), (3, 3)")
        under(before, emptied.format(t=t))
        under(after, f"insert into {t} values (1, 10)")
        assert rows(t) == [(1, 10), (2, 2), (3, 3)]
        under(after, f"insert into {t} values (2, 20)")
        assert rows(t) == [(1, 10), (2, 20), (3, 3)]
        under(after, f"rename table {t} to {u}")
        under(after, f"insert into {u} values (3, 30)")
        assert rows(u) == [(1, 10), (2, 20), (3, 30)]
        follower.reload(TableName(name, "u"), Supplier.SOURCE)
        under(after)
        under(after, f"insert into {u} values (4, 40)")
        assert rows(u) == [(1, 10), (2, 20), (3, 30), (4, 40)]
        state = follower.states()[TableName(name, "u")]
        app_id = application_id(SOURCE, state, "mirror")
        newest = follower.ledger.newest_writes(SOURCE, [app_id])[app_id].settled_write
        assert newest is not None
        assert newest.reason is not None
        appended = newest.reason.startswith("the log only inserts rows")
        assert appended == (after.get("deletes") is not Deletes.SOFT)
