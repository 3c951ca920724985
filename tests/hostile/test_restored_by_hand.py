"""The chapters of docs/recovery.md, typed as they are written."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import lockstep
from tests.chance import by_chance
from tests.e2e.conftest import Follow
from tests.e2e.points import Point
from tests.e2e.project import Project
from tests.e2e.warm import REPOSITORY
from tests.fix_mysql import MySqlStand
from tests.typed_pages import blocks

pytestmark = pytest.mark.acceptance

REFUSED = 5


KILLS = [
    (Point.MIRROR_RESTORED, "after"),
    (Point.CHANGELOG_RESTATED, "after"),
    (Point.CAPTURE_RECORDED, "after"),
]
"""Where `recover` ends, one try after another, each as far as it gets: in a lake of files, and in a
real ledger. `make acceptance` has one of them, by chance, `make soak` all. `test_recovered` has
each call of a ledger, with both in memory."""


def commands(chapter: str, block: int = 0) -> list[list[str]]:
    """The words of each command that a chapter has in one of its blocks."""
    text = (REPOSITORY / "docs/recovery.md").read_text(encoding="utf-8")
    (body,) = re.findall(rf"^## {chapter}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    typed = [shlex.split(line) for line in blocks(body)[block].splitlines()]
    assert {words[0] for words in typed} <= {"lockstep", "mv"}
    return typed


def replaced(project: Project, part: str, kept: Path) -> None:
    project.at_rest()
    shutil.rmtree(project.folder / part)
    shutil.copytree(kept / part, project.folder / part, symlinks=True)


def typed(project: Project, words: list[str]) -> subprocess.CompletedProcess[str] | None:
    """A command as the page has it; `status` may find what it likes."""
    program, *arguments = words
    if program == "mv":
        project.at_rest()
        subprocess.run(words, cwd=project.folder, check=True)
        return None
    return project.run(*arguments, expect=None if arguments == ["status"] else 0)


def healed(project: Project, chapter: str, told: str, block: int = 0) -> None:
    """A run refuses, in words that name both sides, whichever block is typed then; what the chapter
    says to type, a comparison at its end, ends equal."""
    if not block:
        refused = project.run("run", expect=REFUSED)
        assert told in refused.stderr
        assert "lockstep recover --source shop" in refused.stderr
    chosen = commands(chapter, block)
    assert chosen[-2:] == [["lockstep", "run"], ["lockstep", "verify"]]
    for words in chosen:
        done = typed(project, words)
        if done is not None and words[1:] == ["status"]:
            assert told in done.stdout + done.stderr


def test_the_chapters_as_they_are_written(
    mysql: MySqlStand, database: str, tmp_path: Path, follow: Follow
) -> None:
    """One behind the other, while the source is written to."""
    project = follow("create table a (id int primary key, v int)")
    numbers = count(1)

    def write() -> None:
        mysql.execute(
            f"insert into {database}.a values ({next(numbers)}, 0)",
            f"update {database}.a set v = v + 1",
        )

    write()
    project.run("run")
    kept = project.copied(tmp_path / "kept").folder
    write()
    project.run("run")
    behind = "The ledger is behind its lake"
    for lost, chapter, told, block in (
        (".lockstep", behind, "the ledger is behind its lake", 0),
        ("lake", "The lake is behind its ledger", "the lake is behind its ledger", 0),
        (".lockstep", behind, "the ledger is behind its lake", 1),
        (None, "The ledger is lost", "belongs to another ledger", 0),
        (None, "The ledger is lost", "belongs to another ledger", 1),
    ):
        write()
        if lost is None:
            project.at_rest()
            shutil.rmtree(project.folder / ".lockstep")
        else:
            replaced(project, lost, kept)
        healed(project, chapter, told, block)
    assert project.unequal(mysql, f"{database}.a") == {}


@pytest.mark.parametrize(
    ("altered", "killed"),
    [
        ("drop column w, add u int default 7", 1),
        pytest.param(
            "drop column w, modify v bigint, add u int default 7",
            len(KILLS),
            marks=pytest.mark.soak,
        ),
    ],
)
def test_a_run_is_undone(
    mysql: MySqlStand, database: str, follow: Follow, altered: str, killed: int
) -> None:
    """Its chapter, behind statements that changed a structure and dropped a table; the lake shows
    what it showed before them, until the log is read again; killed on the way. Then one run more,
    by its id."""
    kills = sorted(by_chance().sample(KILLS, killed), key=KILLS.index)
    print(kills)
    project = follow()
    for statements in (
        (
            "create table a (id int primary key, v int, w varchar(9) default 'w')",
            "create table b (id int)",
            "insert into a (id, v) values (1, 1), (2, 2)",
        ),
        (f"alter table a {altered}",),
        ("drop table b", "update a set v = v + 1"),
    ):
        mysql.execute(f"use {database}", *statements, "insert ignore into a (id) values (9)")
        project.run("run")
    project.at_rest()
    config = project.config
    lockstep.make_consumer("shop", "ahead", start="latest", config=config)
    lockstep.make_consumer("shop", "there", start=1, config=config)
    lockstep.make_consumer("shop", "late", start="earliest", config=config)
    for program, *page in commands("A run is undone", 1):
        words = ["1" if word == "3" else word for word in page]
        if "--yes" in words:
            for target, when in kills:
                project.killed(target, when, 1, *words)
        done = typed(project, [program, *words])
        if done is not None and words == ["recover", "--back-to", "1"]:
            said = "ahead has acknowledged batch 3: it gets what came after batch 1 again"
            assert said in done.stdout
            assert "there has acknowledged batch 1; create it again" in done.stdout
            assert "late has not acknowledged a batch yet: let it read up to batch 1" in done.stdout
            assert "from the source" not in done.stdout
        if "--yes" in words:
            columns = DeltaTable(project.lake / "shop" / database / "a").schema().to_arrow()
            assert {"id", "v", "w"} <= set(columns.names)
            assert "u" not in columns.names
    mysql.execute(f"use {database}", "update a set v = 100")
    project.run("run")
    [run] = {one["run"] for one in project.json("report")["sources"]["shop"]["batches"]}
    for _, *page in commands("A run is undone"):
        words = [run[:8] if word == "0f3c1d2e" else word for word in page]
        if "--yes" in words:
            assert "Another process uses the ledger" in project.run(*words, expect=2).stderr
            told = project.alone.json(*words)
            assert (told["run"], Path(told["ledger_kept"]).is_dir()) == (run, True)
            [newest] = DeltaTable(project.lake / "shop" / database / "a").history(1)
            assert newest["operation"] == "RESTORE"
            continue
        compared = project.run(*words).stdout
    assert "1 of 1 table is equal" in compared


def test_a_mirror_that_somebody_else_loaded(database: str, follow: Follow) -> None:
    """Its chapter, with a table of ours for the page's."""
    project = follow(
        "create table orders (id int primary key, v varchar(9))",
        "insert into orders values (1, 'a'), (2, 'b')",
        "create table a (id int primary key)",
        "insert into a values (1)",
        start="snapshot",
    )
    rows = {"id": pa.array([1, 2], pa.int64()), "of_others": ["a", "b"]}
    write_deltalake(project.lake / "shop" / database / "orders", pa.table(rows))
    for _, *words in commands("A mirror that somebody else loaded"):
        page = [word.replace("shop.orders", f"{database}.orders") for word in words]
        compared = project.run(*page).stdout
        if "--dry-run" in words:
            assert "what somebody else made" in compared
    assert "2 of 2 tables are equal" in compared
    first, *later = project.commits(f"{database}.orders")
    assert "txn" not in first
    assert "txn" in later[-1]
