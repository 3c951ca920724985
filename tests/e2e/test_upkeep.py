"""Upkeep on a real lake: files become fewer, and whatever is promised stays readable."""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lockstep
from lockstep.reading import VersionSet
from pipeline.errors import VersionGone
from tests.e2e.aged import age
from tests.e2e.project import Project, head
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand
from tests.hostile.takeovers import asleep

PAGE = Path(__file__).resolve().parents[2] / "docs/upkeep.md"
RUNS = 4
DATABASE = "upkeep"
ADDED, CHANGED = f"{DATABASE}.added", f"{DATABASE}.changed"


@pytest.fixture(scope="module")
def followed(
    mysql: MySqlStand, tmp_path_factory: pytest.TempPathFactory, warm: WarmProcess
) -> Project:
    """A table to which each of `RUNS` runs added rows, in a file of its own, and one whose row each
    of them changed."""
    start = head(mysql)
    mysql.execute(
        f"create database {DATABASE}",
        f"create table {ADDED} (id int primary key, v int)",
        f"create table {CHANGED} (id int primary key, v int)",
        f"insert into {CHANGED} values (1, 0)",
    )
    made = Project.made(
        tmp_path_factory.mktemp("upkeep") / "project",
        port=mysql.port,
        tables=[f"{DATABASE}.*"],
        start=start,
        warm=warm,
        top="[upkeep]\nsmall_files = 3\n",
    )
    for number in range(RUNS):
        mysql.execute(
            f"insert into {ADDED} values ({number}, 0)",
            f"update {CHANGED} set v = v + 1",
        )
        made.run("run")
    return made


@pytest.fixture
def project(followed: Project, tmp_path: Path) -> Project:
    """As it stands then, whatever was written since."""
    return followed.copied(tmp_path / "project")


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_TEST_PASSWORD", "")


def upkeep(project: Project, *more: str) -> Any:
    return project.json("upkeep", *more)["sources"]["shop"]["tables"]


def read(project: Project, at: str | None = None) -> VersionSet:
    return lockstep.read_at("shop", at, config=project.folder / "lockstep.toml")


def files(project: Project, table: str) -> int:
    return len([*(project.lake / "shop" / table.replace(".", "/")).glob("*.parquet")])


def test_fewer_files_show_the_same_rows_then_and_now(mysql: MySqlStand, project: Project) -> None:
    """Small files are put together by a commit that runs, sets, `verify` and a new ledger take for
    what it is; an upkeep that was killed behind it leaves nothing undone. Files go once no promised
    version needs them: earlier places are refused with the earliest that works. The page is carried
    out as typed."""
    sets = project.json("versions", "--list")["sources"]["shop"]["sets"]
    first, last = (f"{one['position']['file']}:{one['position']['offset']}" for one in sets[::-3])
    told = upkeep(project, "--dry-run")
    assert [one["step"] for one in told[ADDED]["planned"]] == ["compact"]
    assert told[ADDED]["planned"][0]["files"] == RUNS == told[ADDED]["files"]
    assert (told[CHANGED]["planned"], len(project.commits(ADDED))) == ([], RUNS)

    project.killed("resources.lake.upkeep:SparkUpkeep.carry_out", "after", 1, "upkeep")
    assert read(project)[ADDED].version == RUNS - 1
    told = upkeep(project)
    assert (told[ADDED]["files"], told[ADDED]["done"]) == (1, [])
    assert read(project)[ADDED].version == RUNS
    assert len(project.commits(ADDED)) == RUNS + 1
    rows = {place: read(project, place)[ADDED].arrow().num_rows for place in (first, last)}
    assert rows == {first: 1, last: RUNS}
    assert project.run("verify").returncode == 0

    mysql.execute(f"insert into {ADDED} values (100, 0)")
    project.run("run")
    assert project.unequal(mysql, ADDED, CHANGED) == {}
    project.at_rest()
    for table in (ADDED, CHANGED):
        age(project.lake / "shop" / table.replace(".", "/"), 40)
    before = files(project, ADDED), files(project, CHANGED)
    told = upkeep(project)
    gone = tuple(told[table]["done"][0]["deleted_files"] for table in (ADDED, CHANGED))
    assert gone == (RUNS, RUNS - 1)
    assert (files(project, ADDED), files(project, CHANGED)) == (before[0] - RUNS, 1)
    assert read(project)[CHANGED].arrow().to_pylist() == [{"id": 1, "v": RUNS}]
    assert read(project, last)[ADDED].arrow().num_rows == RUNS
    with pytest.raises(VersionGone) as refused:
        read(project, first)[ADDED].arrow()
    assert f"the earliest place that it can be read as of is {last}" in refused.value.hint
    assert all(not one["planned"] and not one["left"] for one in upkeep(project).values())

    project.at_rest()
    shutil.rmtree(project.folder / ".lockstep")
    project.run("recover", "--yes")
    project.run("run")
    assert project.unequal(mysql, ADDED, CHANGED) == {}
    assert set(read(project)) == {ADDED, CHANGED}

    page = PAGE.read_text().replace("shop.orders", ADDED)
    (typed,) = re.findall(r"^```sh\n(.*?)^```$", page, flags=re.M | re.S)
    (keys,) = re.findall(r"^```toml\n(.*?)^```$", page, flags=re.M | re.S)
    config = project.folder / "lockstep.toml"
    config.write_text(config.read_text().replace("[upkeep]\nsmall_files = 3\n", keys))
    for line in typed.splitlines():
        project.run(*shlex.split(line)[1:])
    assert project.unequal(mysql, ADDED, CHANGED) == {}


def test_of_a_run_and_upkeep_that_meet_the_run_goes_first(
    mysql: MySqlStand, project: Project, rival: WarmProcess
) -> None:
    """Upkeep that had planned its commit when a run wrote to the mirror never makes it, and
    compacts the next time; the run waits for nothing."""
    mysql.execute(f"insert into {ADDED} values (200, 0)")
    place = "resources.lake.pin:Head.pin"
    with asleep(project, place, command="upkeep") as hanging:
        replace(project, warm=rival).run("run")
        hanging.wake()
        code, said = hanging.end()
    assert code == 0, said
    assert len(project.commits(ADDED)) == RUNS + 1
    (step,) = upkeep(project)[ADDED]["done"]
    assert (step["step"], step["delta_version"]) == ("compact", RUNS + 1)
    assert project.unequal(mysql, ADDED, CHANGED) == {}
