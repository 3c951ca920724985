"""Names that file systems, Delta or Spark take for something of theirs: none stops a source, and
MySQL and the lake are equal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.project import Project, followed, head
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand

LONG = "中" * 50
"""MySQL itself, whose files are called so too, takes no longer one on Linux."""

PLAIN = "names"
FIRST = (
    (LONG, "a"),
    (PLAIN, LONG),
    (PLAIN, "_delta_log"),
    (PLAIN, "_change_data"),
    (PLAIN, "a.b/c\n%41@v1"),
    ("_delta_log", "t"),
    ("..", "t"),
)
LATER = ((LONG, LONG), (PLAIN, "_delta_index"), (PLAIN, ".."), ("..", "a=1"))
"""Created while the others are followed."""


def quoted(*names: str) -> str:
    return ".".join(f"`{name}`" for name in names)


@pytest.fixture
def server(mysql: MySqlStand) -> Iterator[MySqlStand]:
    databases = {database for database, _ in (*FIRST, *LATER)}
    mysql.execute(*(f"create database {quoted(database)}" for database in databases))
    yield mysql
    mysql.execute(*(f"drop database {quoted(database)}" for database in databases))


def test_no_name_of_a_table_stops_a_source(
    server: MySqlStand, tmp_path: Path, warm: WarmProcess
) -> None:
    """Neither the tables of before nor those that come while all goes on."""
    start = head(server)
    _create(server, FIRST)
    # A pattern cannot spell the database of two points: `??` is that, and nobody else's here.
    patterns = [*sorted({f"{database}.*" for database, _ in FIRST if database != ".."}), "??.*"]
    project = Project.made(tmp_path, port=server.port, tables=patterns, start=start, warm=warm)
    project.run("run")
    _create(server, LATER)
    for table in FIRST:
        server.execute(f"update {quoted(*table)} set v = 7 where id = 1")
    project.run("run")
    assert project.proven() == {".".join(table) for table in (*FIRST, *LATER)}


COLUMNS = ("a b", "x;y", "count(``id``)", "k=v", "filePath", "_row_id_", "_tmp_metadata_row_index")
TWINS = ("\u1e9e", "\u00df")


@pytest.mark.parametrize("readers", ["spark", pytest.param("any", marks=pytest.mark.soak)])
def test_no_name_of_a_column_stops_a_source(
    server: MySqlStand, tmp_path: Path, warm: WarmProcess, readers: str
) -> None:
    """Columns that Parquet, Delta or Spark would not take are followed, also those that are added
    and renamed later. Two that are one to Delta set their table aside."""
    columns = ", ".join(f"`{name}` int default 5" for name in COLUMNS)
    project = followed(
        server,
        PLAIN,
        tmp_path,
        warm,
        f"create table odd (id int primary key, {columns})",
        "create table later (id int primary key, v int)",
        f"create table twins (id int primary key, `{TWINS[0]}` int, `{TWINS[1]}` int)",
        *(f"insert into {table} (id) values (1), (2)" for table in ("odd", "later", "twins")),
        extra=f'readers = "{readers}"\n',
    )
    told = project.json("run", expect=6)["sources"]["shop"]
    assert f"{PLAIN}.twins" in json.dumps(told)
    server.execute(
        f"use {PLAIN}",
        f"alter table later {', '.join(f'add column `{name}` int' for name in COLUMNS)}",
        "alter table later rename column v to `v w`",
        *(
            f"update {table} set `a b` = 7, `_row_id_` = 8 where id = 1"
            for table in ("odd", "later")
        ),
    )
    project.run("run", expect=None)
    compared = project.json("verify", expect=None)["sources"]["shop"]["tables"]
    assert {name: one["equal"] for name, one in compared.items()} == {
        f"{PLAIN}.odd": True,
        f"{PLAIN}.later": True,
    }
    assert project.run("read", f"{PLAIN}.odd", "--changes").stdout.count("a%20b") > 0


def _create(server: MySqlStand, tables: tuple[tuple[str, str], ...]) -> None:
    for table in tables:
        server.execute(
            f"create table {quoted(*table)} (id int primary key, v int)",
            f"insert into {quoted(*table)} values (1, 1), (2, 2)",
        )


def test_two_sources_whose_databases_would_be_one_to_dbt(
    mysql: MySqlStand, tmp_path: Path, warm: WarmProcess
) -> None:
    """They are refused with the setting that tells them apart; each alone is printed."""
    names = ("names_dbt_y", "dbt_y")
    start = head(mysql)
    mysql.execute(
        *(f"create database {name}" for name in names),
        *(f"create table {name}.t (id int primary key)" for name in names),
        *(f"insert into {name}.t values (1)" for name in names),
    )
    password = 'password = "env:LOCKSTEP_TEST_PASSWORD"\ntls = "off"'
    other = (
        f'[[sources]]\nname = "shop_names"\nhost = "127.0.0.1"\nport = {mysql.port}\n'
        f'user = "root"\n{password}\ntables = ["dbt_y.*"]\nstart = "{start}"\n'
    )
    project = Project.made(
        tmp_path, port=mysql.port, tables=["names_dbt_y.*"], start=start, extra=other, warm=warm
    )
    project.run("run")
    refused = project.run("read", "--dbt", expect=2)
    sentence = "Mirrors of shop and of shop_names would both be in a dbt source shop_names_dbt_y."
    assert sentence in " ".join(refused.stderr.split())
    assert "by `into` under [[sources.table]]" in " ".join(refused.stderr.split())
    printed = project.run("read", "--dbt", "--source", "shop_names").stdout
    assert "- name: shop_names_dbt_y\n" in printed
    mysql.execute(*(f"drop database {name}" for name in names))
