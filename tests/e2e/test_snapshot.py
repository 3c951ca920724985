"""A database that is older than its log: two commands, and the lake equals it, killed on the way
or not."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chance import by_chance
from tests.e2e.points import Point
from tests.e2e.project import Project
from tests.e2e.warm import REPOSITORY, WarmProcess
from tests.fix_mysql import MySqlStand
from tests.typed_pages import blocks, chapter

DATABASE = "older"
ROWS = {
    f"{DATABASE}.{name}": rows
    for name, rows in {
        "customers": 3000,
        "orders": 3000,
        "lines": 3000,
        "notes": 3,
        "nothing": 0,
    }.items()
}
TABLES = set(ROWS)
KILLS = (
    (Point.LOAD_BEGUN, 2, 1),
    (Point.CHUNK_RECORDED, 2, 1),
    (Point.CHUNK_PLANNED, 2, 2),
    (Point.CAPTURE_RECORDED, 1, 2),
)
"""Behind what, which time, and with how many connections."""
TOLD = KILLS[1]
DRAWN = 1
"""So many besides `TOLD`, by chance, in `make test`; all in `make soak`."""


@pytest.fixture
def project(mysql: MySqlStand, tmp_path: Path, warm: WarmProcess) -> Iterator[Project]:
    """Rows that no log has."""
    mysql.execute(
        f"create database {DATABASE}",
        f"create table {DATABASE}.customers (id int primary key, v int)",
        f"create table {DATABASE}.orders (id int primary key, created_at datetime, v varchar(20))",
        f"create table {DATABASE}.lines (a int, b int, v varchar(20), primary key (a, b))",
        f"create table {DATABASE}.notes (v text)",
        f"create table {DATABASE}.nothing (id int primary key)",
        f"insert into {DATABASE}.customers values {customers(range(1, 3001))}",
        f"insert into {DATABASE}.orders select id, '2026-10-01' + interval id hour,"
        f" concat('o', id) from {DATABASE}.customers",
        f"insert into {DATABASE}.lines select id % 7, id, v from {DATABASE}.orders",
        f"insert into {DATABASE}.notes values ('one'), ('one'), (null)",
        "flush binary logs",
    )
    extra = "[sources.snapshot]\nchunk_seconds = 0.000001\n"
    yield Project.made(
        tmp_path / "project",
        port=mysql.port,
        tables=[f"{DATABASE}.*"],
        start="snapshot",
        warm=warm,
        extra=extra,
    )
    mysql.execute(f"drop database {DATABASE}")


def customers(numbers: range) -> str:
    return ", ".join(f"({number}, {number % 7})" for number in numbers)


@pytest.mark.parametrize("drawn", [DRAWN, pytest.param(len(KILLS) - 1, marks=pytest.mark.soak)])
def test_killed_while_it_reads(project: Project, mysql: MySqlStand, drawn: int) -> None:
    """Again and again: each run goes on where the one before it was killed. How far it got is
    told."""
    more = customers(range(3001, 15_001))
    secretly(mysql, f"insert into customers values {more}", "analyze table customers")
    config = project.config
    kept = config.read_text()
    others = by_chance().sample([one for one in KILLS if one != TOLD], drawn)
    for number, kill in enumerate(one for one in KILLS if one == TOLD or one in others):
        place, nth, connections = kill
        print("killed after", place.name)
        config.write_text(f"{kept}connections = {connections}\n")
        project.killed(place, "after", nth)
        if kill == TOLD:
            said = project.run("status", expect=None).stdout
            read = (
                r"following, reading rows: older\.customers: 10,000 of about 1\d,\d+ rows, \d\d %"
            )
            assert re.search(rf"{read}, about \d+ s left$", said, re.M)
        mysql.execute(
            f"delete from {DATABASE}.customers where id % 100 = {number}",
            f"update {DATABASE}.lines set v = '{place.name.lower()}' where b < 50",
            f"insert into {DATABASE}.notes values ('two')",
        )
    project.run("run")
    assert project.proven() == TABLES


def typed(page: str, heading: str = "") -> Iterator[list[str]]:
    """The words of each command in the blocks of a page, or of a chapter of it, with the names of
    ours."""
    text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
    if heading:
        text = chapter(text, heading)
    for block in blocks(text, "sh"):
        for line in block.splitlines():
            program, *words = shlex.split(line, comments=True)
            assert program == "lockstep"
            yield [word.replace("shop.", f"{DATABASE}.") for word in words]


def secretly(mysql: MySqlStand, *statements: str) -> None:
    """Without a word in the log."""
    mysql.execute("set sql_log_bin = 0", f"use {DATABASE}", *statements)


@pytest.mark.acceptance
def test_how_to_read_and_to_verify_tables_as_it_is_written(
    project: Project, mysql: MySqlStand
) -> None:
    """One run, and the lake equals the database; then the commands of docs/tables.md, and those
    of docs/verify.md, rows changed without a word in the log before each that repairs. What is only
    foreseen is read by nobody."""
    plan = project.json("plan")["sources"]["shop"]
    assert {one["table"] for one in plan["supplies"]} == TABLES
    time, space = plan["loads_take"]
    assert "the server keeps its log for" in time
    assert "in the lake twice" in space
    orders, told = f"{DATABASE}.orders", list[Any]()
    for words in typed("tables.md", "Rows read from MySQL"):
        if "--where" in words and "--dry-run" in words:
            secretly(
                mysql,
                "update orders set v = 'x' where id = 1500",
                "delete from orders where id = 1501",
            )
        told.append(project.json(*words))
    first = told[0]["sources"]["shop"]
    assert first["loaded"] == ROWS
    assert (first["reading"], first["partial"], first["stopped"]) == ({}, [], [])
    assert set(told[1]["tables"]) == {orders}
    assert told[2]["sources"]["shop"]["loaded"] == {orders: 3000}
    assert [set(one["tables"]) for one in told[3:5]] == [TABLES, {orders}]
    assert told[5]["reread"] == {orders: {"read": 2256, "gone": 1, "left": 0}}
    assert project.proven() == TABLES
    where = ("--where", "id = 1; drop table x")
    project.run("reload", orders, "--reason", "a test", *where, expect=2)
    mysql.execute(f"update {DATABASE}.customers set v = -1 where id < 5")
    project.run("run")
    codes = []
    for words in typed("verify.md"):
        if "--repair" in words:
            secretly(
                mysql,
                "update orders set v = concat(v, 'x') where id = 17",
                "delete from notes limit 1",
            )
        codes.append((words[0], project.run(*words, expect=None).returncode))
    equal, unproven, differs = ("verify", 0), ("verify", 3), ("verify", 4)
    assert codes == [equal, equal, equal, unproven, differs, differs, ("run", 0), equal]


@pytest.mark.acceptance
def test_the_first_day_as_it_is_written(project: Project) -> None:
    """The chapters of docs/first-day.md that run, prove and read: each command ends well, and what
    is printed for a table of the page reads one of ours."""
    said = {
        " ".join(words): project.run(*words).stdout
        for heading in ("4. The first run", "5. Read the lake")
        for words in typed("first-day.md", heading)
    }
    assert [words for words, text in said.items() if not text] == []
    assert f"{DATABASE}/orders" in said[f"read {DATABASE}.orders"]
    assert project.proven() == TABLES
