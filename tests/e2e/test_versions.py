"""Version sets, read: what they show was true of the source at one moment, and stays so."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import lockstep
from lockstep.reading import VersionSet
from pipeline.errors import VersionGone
from tests.e2e.project import Project, head
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand

PAGE = Path(__file__).resolve().parents[2] / "docs/versions.md"
TOTAL = 1_000
ROWS = 5


@pytest.fixture
def project(mysql: MySqlStand, database: str, tmp_path: Path, warm: WarmProcess) -> Project:
    """Two tables of accounts whose balances are `TOTAL` together, and no run yet."""
    start = head(mysql)
    for name in ("here", "there"):
        mysql.execute(f"create table {database}.{name} (id int primary key, v int)")
    values = ", ".join(f"({n}, {TOTAL // (2 * ROWS)})" for n in range(ROWS))
    mysql.execute(
        "begin",
        f"insert into {database}.here values {values}",
        f"insert into {database}.there values {values}",
        "commit",
    )
    return Project.made(
        tmp_path / "project",
        port=mysql.port,
        tables=[f"{database}.*"],
        start=start,
        warm=warm,
    )


def listed(project: Project) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = project.json("versions", "--list")["sources"]["shop"]["sets"]
    return found


def place(one: dict[str, Any]) -> str:
    return f"{one['position']['file']}:{one['position']['offset']}"


def read(project: Project, at: str | None = None) -> VersionSet:
    return lockstep.read_at("shop", at, config=project.folder / "lockstep.toml")


def total(found: VersionSet, database: str) -> int:
    return sum(
        pc.sum(found[f"{database}.{name}"].arrow().column("v")).as_py()
        for name in ("here", "there")
    )


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_TEST_PASSWORD", "")


def test_a_set_outlives_its_tables(mysql: MySqlStand, database: str, project: Project) -> None:
    """A table that is dropped and made again keeps the versions of before; where another Delta
    table is in its folder, nothing of that is read under their numbers."""
    project.run("run")
    (before,) = listed(project)
    told = project.json("versions", "--at", place(before))["sources"]["shop"]
    mysql.execute(
        f"drop table {database}.here",
        f"create table {database}.here (id int primary key, v int)",
        f"insert into {database}.here values (9, {TOTAL})",
        f"update {database}.there set v = 0",
    )
    project.run("run")
    assert total(read(project), database) == TOTAL
    assert read(project)[f"{database}.here"].arrow().num_rows == 1
    assert total(read(project, place(before)), database) == TOTAL
    assert read(project, place(before))[f"{database}.here"].arrow().num_rows == ROWS
    assert project.json("versions", "--at", place(before))["sources"]["shop"] == told

    entry = read(project, place(before))[f"{database}.here"]
    other = read(project)[f"{database}.there"].path
    assert isinstance(entry.path, Path)
    assert isinstance(other, Path)
    shutil.rmtree(entry.path)
    with pytest.raises(VersionGone):
        entry.arrow()
    shutil.copytree(other, entry.path)
    with pytest.raises(VersionGone, match="another table"):
        entry.arrow()


def test_the_page_is_carried_out_as_typed(
    mysql: MySqlStand,
    database: str,
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """docs/versions.md from top to bottom, with the names and places of this source."""
    project.run("run")
    (one,) = listed(project)
    page = PAGE.read_text().replace("shop.orders", f"{database}.here")
    page = page.replace("shop.items", f"{database}.there").replace("0f3c1d2e", one["run"])
    page = page.replace("2026-11-01T06:00:00Z", "2100-01-01T00:00:00Z")
    (typed,) = re.findall(r"^```sh\n(.*?)^```$", page, flags=re.M | re.S)
    for line in typed.splitlines():
        said = project.run(*shlex.split(line)[1:]).stdout
        assert database in said or line.endswith("--list")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, flags=re.M | re.S)
    monkeypatch.chdir(project.folder)
    exec(code, {})
    assert f"{place(one)}: {ROWS} orders, {ROWS} items\nmissing: []" in capsys.readouterr().out
    (keep,) = re.findall(r"^```toml\n\[lake\]\n(.*?)^```$", page, flags=re.M | re.S)
    config = project.folder / "lockstep.toml"
    config.write_text(config.read_text().replace("[lake]\n", f"[lake]\n{keep}"))
    findings = project.json("check", expect=None)["sources"]["shop"]["findings"]
    warned = [
        finding
        for finding in findings
        if "promises its versions for 60 days" in finding["sentence"]
    ]
    assert {one["subject"] for one in warned} == {f"{database}.here", f"{database}.there"}
    assert all("'interval 90 days'" in one["hint"] for one in warned)


def test_a_table_is_read_as_of_a_place_by_what_is_printed(
    mysql: MySqlStand, database: str, project: Project
) -> None:
    """The snippets open the version of the place; one that shows nothing is a refusal."""
    project.run("run")
    (before,) = listed(project)
    mysql.execute(f"delete from {database}.here")
    project.run("run")
    told = project.json("read", f"{database}.here", "--at", place(before))
    assert told["delta_version"] == 0
    loads, table = told["snippets"]["delta-rs"].split("\n")
    names: dict[str, Any] = {}
    exec(loads, names)
    assert eval(table, names).num_rows == ROWS
    assert f"version => {told['delta_version']})" in told["snippets"]["DuckDB"]
    assert f'"versionAsOf", {told["delta_version"]})' in told["snippets"]["Spark"]
    refused = project.json("read", f"{database}.here", "--at", "2001-01-01T00:00:00Z", expect=5)
    assert refused["error"]["kind"] == "VersionSetUnknown"
