"""Upkeep on a real lake: files become fewer, and whatever is promised stays readable."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from lockstep.pipeline.values.errors import VersionGone
from tests.e2e.conftest import Follow
from tests.e2e.points import Point
from tests.e2e.project import Project, place_of
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand
from tests.hostile.takeovers import asleep
from tests.typed_pages import blocks

PAGE = Path(__file__).resolve().parents[2] / "docs/upkeep.md"
RUNS = 3


@pytest.fixture
def tables(database: str) -> tuple[str, str]:
    return f"{database}.added", f"{database}.changed"


@pytest.fixture
def project(mysql: MySqlStand, tables: tuple[str, str], follow: Follow) -> Project:
    """A table to which each of `RUNS` runs added rows, in a file of its own, and one whose row each
    of them changed."""
    added, changed = tables
    made = follow(
        f"create table {added} (id int primary key, v int)",
        f"create table {changed} (id int primary key, v int)",
        f"insert into {changed} values (1, 0)",
        top="[upkeep]\nsmall_files = 3\n",
    )
    for number in range(RUNS):
        mysql.execute(
            f"insert into {added} values ({number}, 0)",
            f"update {changed} set v = v + 1",
        )
        made.run("run")
    return made


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_TEST_PASSWORD", "")


def plan(project: Project) -> Any:
    return project.json("upkeep", "--dry-run")["sources"]["shop"]


def upkeep(project: Project) -> Any:
    """Carry out the upkeep, which does what the dry run before it says: the same steps, with as
    many files and bytes."""
    planned = plan(project)
    done = project.json("upkeep")["sources"]["shop"]
    for table, report in done["tables"].items():
        before = planned["tables"][table]
        assert (before["planned"], before["obstacles"]) == (report["planned"], report["obstacles"])
        assert [step["step"] for step in report["done"]] == [
            step["step"] for step in before["planned"]
        ]
        for step, result in zip(before["planned"], report["done"], strict=True):
            deleted = result["deleted_files"], result["deleted_bytes"]
            assert step["step"] != "vacuum" or (step["files"], step["bytes"]) == deleted
    for part in ("changes", "cleared", "former_mirrors", "checkpoint_files", "checkpoint_bytes"):
        assert planned[part] == done[part]
    return done["tables"]


def files(project: Project, table: str) -> int:
    return len([*(project.lake / "shop" / table.replace(".", "/")).glob("*.parquet")])


@pytest.mark.parametrize("met", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_fewer_files_show_the_same_rows_then_and_now(
    request: pytest.FixtureRequest,
    mysql: MySqlStand,
    tables: tuple[str, str],
    project: Project,
    met: bool,
) -> None:
    """Small files are put together by a commit that runs, sets, `verify` and a new ledger take for
    what it is; an upkeep that was killed behind it leaves nothing undone, and one that `met` a run
    left it to the next (`require_that_runs_go_first`; that its commit is refused then is in
    `tests/lake/test_upkeep.py`). Files go once no promised version needs them: earlier places are
    refused with the earliest that works."""
    added, changed = tables
    told = plan(project)["tables"]
    assert [one["step"] for one in told[added]["planned"]] == ["compact"]
    assert told[added]["planned"][0]["files"] == RUNS == told[added]["files"]
    assert (told[changed]["planned"], len(project.commits(added))) == ([], RUNS)
    runs = RUNS
    if met:
        require_that_runs_go_first(mysql, added, project, request.getfixturevalue("rival"))
        runs += 1
    last, *_, first = (place_of(one["position"]) for one in project.sets())

    project.killed(Point.UPKEEP_STEP, "after", 1, "upkeep")
    assert project.read_at()[added].delta_version == runs - 1
    told = upkeep(project)
    assert (told[added]["files"], told[added]["done"]) == (1, [])
    assert project.read_at()[added].delta_version == runs
    assert len(project.commits(added)) == runs + 1
    rows = {place: project.read_at(place)[added].arrow().num_rows for place in (first, last)}
    assert rows == {first: 1, last: runs}
    assert project.run("verify").returncode == 0

    mysql.execute(f"insert into {added} values (100, 0)")
    project.run("run")
    assert project.unequal(mysql, *tables) == {}
    project.at_rest()
    for table in tables:
        age(project.lake / "shop" / table.replace(".", "/"), 40)
    before = files(project, added), files(project, changed)
    told = upkeep(project)
    gone = tuple(told[table]["done"][0]["deleted_files"] for table in tables)
    assert gone == (runs + met, RUNS - 1)  # with the file that no commit named
    assert (files(project, added), files(project, changed)) == (before[0] - runs - met, 1)
    assert project.read_at()[changed].arrow().to_pylist() == [{"id": 1, "v": RUNS}]
    assert project.read_at(last)[added].arrow().num_rows == runs
    with pytest.raises(VersionGone) as refused:
        project.read_at(first)[added].arrow()
    assert f"the earliest place that it can be read as of is {last}" in refused.value.hint
    assert all(not one["planned"] and not one["obstacles"] for one in upkeep(project).values())

    project.at_rest()
    shutil.rmtree(project.folder / ".lockstep")
    project.run("recover", "--yes")
    project.run("run")
    assert project.unequal(mysql, *tables) == {}
    assert set(project.read_at()) == set(tables)


def require_that_runs_go_first(
    mysql: MySqlStand, added: str, project: Project, rival: WarmProcess
) -> None:
    """Upkeep that had planned its commit when a run wrote to the mirror never makes it; the run
    waits for nothing."""
    mysql.execute(f"insert into {added} values (200, 0)")
    beside = replace(project, warm=rival)
    with asleep(project, Point.MIRROR_PINNED, command="upkeep") as hanging:
        beside.run("run")
        hanging.wake()
        code, said = hanging.end()
    beside.at_rest()
    assert code == 0, said
    assert len(project.commits(added)) == RUNS + 1
    assert project.unequal(mysql, added) == {}


@pytest.mark.acceptance
def test_the_page_is_carried_out_as_typed(
    mysql: MySqlStand, tables: tuple[str, str], project: Project
) -> None:
    """docs/upkeep.md: its commands, with its keys."""
    page = PAGE.read_text().replace("shop.orders", tables[0])
    (typed,), (keys, *_) = blocks(page, "sh"), blocks(page, "toml")
    config = project.config
    config.write_text(config.read_text().replace("[upkeep]\nsmall_files = 3\n", keys))
    for line in typed.splitlines():
        project.run(*shlex.split(line)[1:])
    assert project.unequal(mysql, *tables) == {}


# -- a lake as it will be when time has passed ----------------------------------------------------

_MOMENTS: Final = ("inCommitTimestamp", "timestamp", "deletionTimestamp", "modificationTime")
_DAY: Final = 86_400


def age(table: Path, days: int) -> None:
    """Have every commit of a Delta table be so many days older: the moments in it and those of its
    files. The log has no checkpoint yet."""
    log = table / "_delta_log"
    assert not [*log.glob("*.checkpoint*")], "what is in checkpoints cannot be moved"
    for checksum in [*log.glob("*.crc")]:
        checksum.unlink()
    for commit in sorted(log.glob("*.json")):
        lines = [_moved(json.loads(line), days) for line in commit.read_text().splitlines() if line]
        commit.write_text("".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines))
    for file in (file for file in table.rglob("*") if file.is_file()):
        told = file.stat()
        os.utime(file, (told.st_atime - days * _DAY, told.st_mtime - days * _DAY))


def _moved(action: dict[str, Any], days: int) -> dict[str, Any]:
    for found in action.values():
        for name in _MOMENTS:
            if isinstance(found, dict) and isinstance(found.get(name), int):
                found[name] -= days * _DAY * 1000
    return action
