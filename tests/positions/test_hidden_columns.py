"""Columns that a server adds, hides or computes, in tables that are made and altered while a source
is followed: the mirror is the table, or the table is set aside by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import Follower
from tests.positions.paused import Shop
from tests.positions.stories import tell

GENERATED = (
    "create table s (id int primary key, v int, g int as (v + 1) virtual, t int as (v + 2) stored)",
    "insert into s (id, v) values (1, 1)",
    "alter table s add x int as (v * 2) stored",
    "update s set v = 2",
    "alter table s drop g",
    "insert into s (id, v) values (2, 2)",
)
INVISIBLE = (
    "create table s (id int primary key, v int, h int invisible default 3)",
    "insert into s values (1, 1)",
    "alter table s add g int invisible default 4",
    "update s set v = 2",
    "insert into s (id, v, h) values (2, 2, 5)",
)
HASHED = (
    "create table s (id int primary key, v int, t text, unique (t))",
    "insert into s values (1, 1, 'a')",
    "update s set v = 2",
    "alter table s add u text, add unique (u)",
    "insert into s values (2, 2, 'b', 'c')",
    "alter table s drop key t",
    "insert into s values (3, 2, 'b', 'd')",
)
"""MariaDB keeps a hash of a long UNIQUE key at the end of each row."""

_GENERATES = "set sql_generate_invisible_primary_key = on"
NUMBERED = (
    _GENERATES,
    "create table s (id int, v int)",
    "insert into s values (1, 1), (1, 1)",
    "update s set v = 2 limit 1",
    "delete from s where v = 1",
    "alter table s alter column my_row_id set visible",
    "insert into s values (5, 2, 1)",
)
LATER = (
    "create table s (id int, v int)",
    "insert into s values (1, 1)",
    _GENERATES,
    "alter table s add w int default 4",
    "insert into s values (1, 1, 2)",
)
"""The key is only generated for tables that are made from then on."""

FOLLOWED = {
    "mysql": (GENERATED, INVISIBLE, NUMBERED, LATER),
    "mysql80": (GENERATED,),
    "mysql57": (GENERATED,),
    "mariadb": (GENERATED, INVISIBLE, HASHED),
    "mariadb11": (GENERATED, INVISIBLE, HASHED),
}


@pytest.mark.parametrize(
    ("nameless", "cases"),
    [
        pytest.param(*one, marks=[pytest.mark.soak] if one[0] in ("mysql80", "mariadb11") else [])
        for one in FOLLOWED.items()
    ],
    indirect=["nameless"],
    ids=FOLLOWED,
)
def test_a_mirror_is_the_table(nameless: MySqlStand, cases: Sequence[tuple[str, ...]]) -> None:
    """Both in the run that reads the table's first statement, and in those after it."""
    tell(nameless, [partial(_mirror_is_the_table, statements) for statements in cases], ["a"])


def _mirror_is_the_table(statements: tuple[str, ...], shop: Shop) -> Iterator[None]:
    shop.do(*statements)
    yield
    assert shop.quarantined() == {}
    assert visible(shop, "s") == listed(shop.rows("s"))
    shop.do("update s set v = v + 1")
    yield
    assert shop.quarantined() == {}
    assert visible(shop, "s") == listed(shop.rows("s"))


def visible(shop: Shop, table: str) -> list[str]:
    """The mirror's rows, with the columns that `select *` shows."""
    names = list(shop.rows(table)[0])
    mirror = shop.follower.mirror(f"{shop.name}.{table}")
    return listed([{name: row[name] for name in names} for row in mirror])


def listed(rows: list[dict[str, Any]]) -> list[str]:
    """Rows of whole numbers and texts, as text in one order."""
    return sorted(str([str(value) for value in row.values()]) for row in rows)


_KEEP = "set system_versioning_alter_history = keep"
VERSIONED = {
    "created": ("create table s (id int primary key, v int) with system versioning",),
    "named": (
        "create table s (id int primary key, v int, b timestamp(6) generated always as row start, "
        "e timestamp(6) generated always as row end, "
        "period for system_time (b, e)) with system versioning",
    ),
    "column": (
        "create table s (id int primary key, v int, c int with system versioning)",
        _KEEP,
        "alter table s add w int default 7",
        "alter table s drop column w",
    ),
    "like": (
        "create table q (id int primary key, v int) with system versioning",
        "create table s like q",
    ),
    "selected": ("create table s (id int primary key) with system versioning as select 9 id, 9 v",),
    "renamed": (
        "create table q (id int primary key, v int) with system versioning",
        "rename table q to s",
    ),
    "added": (
        "create table s (id int primary key, v int)",
        "insert into s values (7, 7)",
        "alter table s add system versioning",
    ),
    "replaced": (
        "create table s (id int primary key, v int)",
        "insert into s values (7, 7)",
        "create or replace table s (id int primary key, v int) with system versioning",
    ),
}


@pytest.mark.parametrize(
    "nameless", ["mariadb", pytest.param("mariadb11", marks=pytest.mark.soak)], indirect=True
)
def test_a_system_versioned_table_is_set_aside(nameless: MySqlStand) -> None:
    """Whichever statement made it one. The others go on, and it comes back when it is none."""
    tell(nameless, [partial(_is_set_aside, case) for case in VERSIONED], ["a"])


def _is_set_aside(case: str, shop: Shop) -> Iterator[None]:
    changes = ("insert into s (id, v) values (1, 1)", "update s set v = 2", "delete from s")
    shop.do(*VERSIONED[case], *changes, "insert into a values (2, 2)")
    yield
    shop.require_whole("a")
    state = shop.state("s")
    assert state.has_stopped
    assert (state.reason or "").startswith("it is system-versioned: ")
    assert f"alter table `{shop.name}`.`s` drop system versioning" in (state.hint or "")
    shop.resume("s")
    yield
    assert (shop.state("s").reason or "").startswith("it is system-versioned: ")
    period = ", drop period for system_time, drop b, drop e" if case == "named" else ""
    shop.do(
        _KEEP,
        f"alter table s drop system versioning{period}",
        "insert into s (id, v) values (3, 3)",
    )
    shop.resume("s")
    yield
    shop.do("update s set v = v + 1")
    yield
    assert shop.state("s").is_complete
    assert visible(shop, "s") == listed(shop.rows("s"))


@pytest.mark.parametrize("nameless", ["mariadb"], indirect=True)
def test_what_mariadb_logs_as_another_table(nameless: MySqlStand) -> None:
    """Where the first run reads the structures that the server has, the first rows of a
    system-versioned table and of a sequence tell."""
    with nameless.own_database() as name:
        shop = Shop(nameless, name, Follower(server(nameless), [f"{name}.*"]))
        shop.make(["a"], ["create table s (id int primary key, v int) with system versioning"])
        shop.run()
        shop.do("insert into s values (1, 1)", "insert into a values (3, 3)")
        shop.do("create sequence q", "select nextval(q)")
        shop.run()
        assert (shop.state("s").reason or "").startswith("it is system-versioned: ")
        assert (shop.state("q").hint or "").startswith("exclude it if it is a sequence, ")
        shop.resume("q")
        shop.run()
        assert shop.state("q").has_stopped
        assert (shop.state("q").hint or "").startswith("exclude it if it is a sequence, ")
        assert shop.kinds("a") == [("insert", 3)]
