"""Mirrors that somebody damaged, made whole by the command line: real files, real Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from tests.e2e.conftest import Follow
from tests.fix_mysql import MySqlStand


def _data(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"), key=lambda path: path.stat().st_mtime)


def _lose(folder: Path) -> None:
    for path in _data(folder):
        path.unlink()


def _cut(folder: Path) -> None:
    for path in _data(folder):
        path.write_bytes(path.read_bytes()[:100])


def _foreign(folder: Path) -> None:
    shutil.rmtree(folder)
    write_deltalake(folder, pa.table({"x": [1]}))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "lost": _lose,
    "cut": _cut,
    "gone": shutil.rmtree,
    "replaced": _foreign,
    "garbled": lambda folder: max((folder / "_delta_log").glob("*.json")).write_text("{}{"),
}


def test_damaged_mirrors_are_made_whole_by_a_command(
    mysql: MySqlStand, database: str, follow: Follow
) -> None:
    """`check` names the one whose files are lost, also those of a changelog. Each is quarantined
    alone with the command that helps, and the source goes on; afterwards each is equal, without a
    row read from the source."""
    tables = [*DAMAGE, "whole"]
    project = follow(
        *(f"create table `{table}` (id int primary key, v int)" for table in tables),
        *(f"insert into `{table}` values (1, 1), (2, 2), (3, 3)" for table in tables),
    )
    project.run("run")
    for table, damage in DAMAGE.items():
        damage(project.lake / "shop" / database / table)
    findings = project.json("check")["sources"]["shop"]["findings"]
    [unreadable] = [one for one in findings if "cannot be read as a whole" in one["sentence"]]
    assert unreadable["subject"] == f"{database}.lost"
    assert unreadable["hint"].startswith(f"`lockstep reload {database}.lost --reason …`")
    mysql.execute(
        f"use {database}",
        *(f"update `{table}` set v = 5 where id = 2" for table in tables),
        *(f"delete from `{table}` where id = 3" for table in tables),
    )
    run = project.json("run", expect=6)["sources"]["shop"]
    assert {one["table"] for one in run["stopped"]} == {f"{database}.{t}" for t in DAMAGE}
    for one in run["stopped"]:
        assert f"`lockstep reload {one['table']} --reason …`" in one["hint"], one
    assert run["tables"][f"{database}.whole"]["state"] == "following"
    for table in DAMAGE:
        told = project.run("reload", f"{database}.{table}", "--reason", "it was damaged")
        assert ", from its changelog, since batch 1" in told.stdout + told.stderr
    assert project.json("run")["sources"]["shop"]["stopped"] == []
    mysql.execute(f"use {database}", *(f"insert into `{t}` values (9, 9)" for t in tables))
    project.run("run")
    assert project.proven() == {f"{database}.{table}" for table in tables}
    _lose(project.lake / "shop" / "_changes" / database / "whole")
    findings = project.json("check")["sources"]["shop"]["findings"]
    [unreadable] = [one for one in findings if "cannot be read as a whole" in one["sentence"]]
    assert unreadable["subject"] == f"{database}.whole"
    assert "changelog" in unreadable["sentence"]
