"""The chapters of docs/recovery.md, typed as they are written."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

import lockstep
from tests.e2e.project import Project, head
from tests.e2e.warm import REPOSITORY, WarmProcess
from tests.fix_mysql import MySqlStand

REFUSED = 5

LEDGER = "resources.postgres.ledger:PostgresLedger"

KILLS = [
    ("resources.lake.mirror:SparkMirrors.restore", "after"),
    ("resources.lake.changelog:DeltaChangelog.restate", "after"),
    (f"{LEDGER}.record_capture", "after"),
]
"""Where `recover` ends, one try after another, each as far as it gets: in a lake of files, and in a
real ledger. `test_recovered` has each call of a ledger, with both in memory."""


def commands(chapter: str, block: int = 0) -> list[list[str]]:
    """The words of each command that a chapter has in one of its blocks."""
    text = (REPOSITORY / "docs/recovery.md").read_text(encoding="utf-8")
    (body,) = re.findall(rf"^## {chapter}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    blocks = re.findall(r"^```\n(.*?)^```$", body, re.M | re.S)
    typed = [shlex.split(line) for line in blocks[block].splitlines()]
    assert {words[0] for words in typed} <= {"lockstep", "mv"}
    return typed


def replaced(project: Project, part: str, kept: Path) -> None:
    project.at_rest()
    shutil.rmtree(project.folder / part)
    shutil.copytree(kept / part, project.folder / part, symlinks=True)


def healed(project: Project, chapter: str, told: str, cure: str, block: int = 0) -> None:
    """A run refuses, in words that name both sides; what the chapter says to type ends equal."""
    refused = project.run("run", expect=REFUSED)
    assert told in refused.stderr
    assert f"lockstep {cure} --source shop" in refused.stderr
    for program, *words in commands(chapter, block):
        if program == "mv":
            project.at_rest()
            subprocess.run([program, *words], cwd=project.folder, check=True)
            continue
        done = project.run(*words, expect=None if words == ["status"] else 0)
        if words == ["status"]:
            assert told in done.stdout + done.stderr
    assert project.proven()


def test_the_chapters_as_they_are_written(
    mysql: MySqlStand, database: str, tmp_path: Path, warm: WarmProcess
) -> None:
    start = head(mysql)
    mysql.execute(
        f"use {database}", "create table a (id int primary key, v int)", "create table b (id int)"
    )
    project = Project.made(
        tmp_path / "project", port=mysql.port, tables=[f"{database}.*"], start=start, warm=warm
    )

    def write(number: int) -> None:
        mysql.execute(
            f"use {database}",
            f"insert into a values ({number}, 0)",
            "update a set v = v + 1",
            f"insert into b values ({number})",
        )
        project.run("run")

    write(1)
    kept = project.copied(tmp_path / "kept").folder
    write(2)
    replaced(project, ".lockstep", kept)
    behind = "The ledger is behind its lake"
    healed(project, behind, "the ledger is behind its lake", "adopt")
    write(3)
    replaced(project, "lake", kept)
    healed(project, "The lake is behind its ledger", "the lake is behind its ledger", "adopt")
    write(4)
    project.at_rest()
    shutil.rmtree(project.folder / ".lockstep")
    healed(project, "The ledger is lost", "belongs to another ledger", "recover")
    kept = project.copied(tmp_path / "again").folder
    write(5)
    replaced(project, ".lockstep", kept)
    healed(project, behind, "the ledger is behind its lake", "adopt", block=1)
    write(6)
    project.run("verify")


def test_a_run_is_undone(
    mysql: MySqlStand, database: str, tmp_path: Path, warm: WarmProcess
) -> None:
    """Its chapter, behind statements that changed a structure and dropped a table; the lake shows
    what it showed before them, until the log is read again; killed again and again on the way. Then
    one run more, by its id."""
    start = head(mysql)
    project = Project.made(
        tmp_path / "project", port=mysql.port, tables=[f"{database}.*"], start=start, warm=warm
    )
    for statement in (
        "create table a (id int primary key, v int, w varchar(9) default 'w')",
        "create table b (id int)",
        "insert into a (id, v) values (1, 1), (2, 2)",
        "alter table a drop column w, modify v bigint, add u int default 7",
        "drop table b",
        "update a set v = v + 1",
    ):
        mysql.execute(f"use {database}", statement, "insert ignore into a (id) values (9)")
        project.run("run")
    project.at_rest()
    config = project.folder / "lockstep.toml"
    lockstep.make_consumer("shop", "ahead", start="latest", config=config)
    lockstep.make_consumer("shop", "there", start=3, config=config)
    lockstep.make_consumer("shop", "late", start="earliest", config=config)
    told = project.json("recover", "--back-to", "3")
    assert told["read_again"] == {}
    assert told["consumers"] == {"ahead": 6, "late": None, "there": 3}
    said = project.run("recover", "--back-to", "3").stdout
    assert "ahead is done up to batch 6: what came after batch 3 comes to it again" in said
    assert "late is done with no batch yet: let it read on first" in said
    for program, *words in commands("A run is undone", 1):
        if program == "mv":
            project.at_rest()
            subprocess.run([program, *words], cwd=project.folder, check=True)
            continue
        if "--yes" in words:
            for target, when in KILLS:
                project.killed(target, when, 1, *words)
        project.run(*words)
        if "--yes" in words:
            columns = DeltaTable(project.lake / "shop" / database / "a").schema().to_arrow()
            assert {"id", "v", "w"} <= set(columns.names)
            assert "u" not in columns.names
    mysql.execute(f"use {database}", "update a set v = 100")
    project.run("run")
    [run] = {one["run"] for one in project.json("report")["sources"]["shop"]["batches"]}
    for _, *words in commands("A run is undone"):
        typed = [run[:8] if word == "0f3c1d2e" else word for word in words]
        if "--yes" in words:
            assert "Another process uses the ledger" in project.run(*typed, expect=2).stderr
            told = project.alone.json(*typed)
            assert (told["run"], Path(told["ledger_kept"]).is_dir()) == (run, True)
            [newest] = DeltaTable(project.lake / "shop" / database / "a").history(1)
            assert newest["operation"] == "RESTORE"
            continue
        project.run(*typed)
    compared = project.json("verify")["sources"]["shop"]["tables"]
    assert {name: one["equal"] for name, one in compared.items()} == {f"{database}.a": True}


def test_a_mirror_that_somebody_else_loaded(
    mysql: MySqlStand, database: str, tmp_path: Path, warm: WarmProcess
) -> None:
    """Its chapter, with a table of ours for the page's."""
    mysql.execute(
        f"use {database}",
        "create table orders (id int primary key, v varchar(9))",
        "insert into orders values (1, 'a'), (2, 'b')",
        "create table a (id int primary key)",
        "insert into a values (1)",
    )
    project = Project.made(
        tmp_path / "project", port=mysql.port, tables=[f"{database}.*"], start="snapshot", warm=warm
    )
    rows = {"id": pa.array([1, 2], pa.int32()), "v": ["a", "b"]}
    write_deltalake(project.lake / "shop" / database / "orders", pa.table(rows))
    for _, *words in commands("A mirror that somebody else loaded"):
        typed = [word.replace("shop.orders", f"{database}.orders") for word in words]
        project.run(*typed)
        if typed == ["run"]:
            mysql.execute(f"update {database}.a set id = id + 1")
    mysql.execute(f"update {database}.orders set v = 'c' where id = 2")
    project.run("run")
    assert project.proven() == {f"{database}.a", f"{database}.orders"}
    first, *later = project.commits(f"{database}.orders")
    assert "txn" not in first
    assert "txn" in later[-1]
