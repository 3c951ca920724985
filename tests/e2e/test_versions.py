"""Version sets, read: what they show was true of the source at one moment, and stays so. One
project for the module, which each test goes on with."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from lockstep.pipeline.values.errors import VersionGone
from lockstep.reading import VersionSet
from tests.e2e.project import Project, followed, place_of
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand
from tests.typed_pages import blocks, chapter

PAGE = Path(__file__).resolve().parents[2] / "docs/reading.md"
TOTAL = 1_000
ROWS = 5


DATABASE = "accounts"
HERE, THERE = f"{DATABASE}.here", f"{DATABASE}.there"


@pytest.fixture(scope="module")
def project(
    mysql: MySqlStand, tmp_path_factory: pytest.TempPathFactory, warm: WarmProcess
) -> Project:
    """Two tables of accounts whose balances are `TOTAL` together, after their first run."""
    values = ", ".join(f"({n}, {TOTAL // (2 * ROWS)})" for n in range(ROWS))
    project = followed(
        mysql,
        DATABASE,
        tmp_path_factory.mktemp("accounts") / "project",
        warm,
        *(f"create table {name} (id int primary key, v int)" for name in (HERE, THERE)),
        "begin",
        *(f"insert into {name} values {values}" for name in (HERE, THERE)),
        "commit",
    )
    project.run("run")
    return project


def total(found: VersionSet) -> int:
    return sum(pc.sum(found[name].arrow().column("v")).as_py() for name in (HERE, THERE))


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_TEST_PASSWORD", "")


@pytest.mark.acceptance
def test_the_page_is_carried_out_as_typed(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The chapter of docs/reading.md from top to bottom, with the names and places of this
    source."""
    (one,) = project.sets()
    page = chapter(PAGE.read_text(), "Versions: all tables as of one moment")
    page = page.replace("shop.orders", HERE)
    page = page.replace("shop.items", THERE).replace("0f3c1d2e", one["run"])
    page = page.replace("2026-11-01T06:00:00Z", one["position"]["committed_at"])
    (typed,), (code,) = blocks(page, "sh"), blocks(page, "python")
    for line in typed.splitlines():
        said = project.run(*shlex.split(line)[1:]).stdout
        assert DATABASE in said or line.endswith("--list")
    monkeypatch.chdir(project.folder)
    exec(code, {})
    assert (
        f"{place_of(one['position'])}: {ROWS} orders, {ROWS} items\nmissing: []"
        in capsys.readouterr().out
    )
    (keep,) = re.findall(r"^```toml\n\[lake\]\n(.*?)^```$", page, flags=re.M | re.S)
    config = project.config
    kept = config.read_text()
    config.write_text(config.read_text().replace("[lake]\n", f"[lake]\n{keep}"))
    findings = project.json("check", expect=None)["sources"]["shop"]["findings"]
    config.write_text(kept)
    warned = [
        finding
        for finding in findings
        if "promises its versions for 60 days" in finding["sentence"]
    ]
    assert {one["subject"] for one in warned} == {HERE, THERE}
    assert all("'interval 90 days'" in one["hint"] for one in warned)


def test_a_table_is_read_as_of_a_place_by_what_is_printed(
    mysql: MySqlStand, project: Project
) -> None:
    """The snippets open the version of the place; one that shows nothing is a refusal."""
    (before,) = project.sets()
    mysql.execute(f"delete from {HERE}")
    project.run("run")
    told = project.json("read", HERE, "--at", place_of(before["position"]))
    assert told["delta_version"] == 0
    loads, table = told["snippets"]["delta-rs"].split("\n")
    names: dict[str, Any] = {}
    exec(loads, names)
    assert eval(table, names).num_rows == ROWS
    assert f"version => {told['delta_version']})" in told["snippets"]["DuckDB"]
    assert f'"versionAsOf", {told["delta_version"]})' in told["snippets"]["Spark"]
    refused = project.json("read", HERE, "--at", "2001-01-01T00:00:00Z", expect=5)
    assert refused["error"]["kind"] == "VersionSetUnknown"


def test_a_set_outlives_its_tables(mysql: MySqlStand, project: Project) -> None:
    """A table that is dropped and made again keeps the versions of before; where another Delta
    table is in its folder, nothing of that is read under their numbers."""
    before = project.sets()[-1]
    told = project.json("versions", "--at", place_of(before["position"]))["sources"]["shop"]
    mysql.execute(
        f"drop table {HERE}",
        f"create table {HERE} (id int primary key, v int)",
        f"insert into {HERE} values (9, {TOTAL})",
        f"update {THERE} set v = 0",
    )
    project.run("run")
    assert total(project.read_at()) == TOTAL
    assert project.read_at()[HERE].arrow().num_rows == 1
    assert total(project.read_at(place_of(before["position"]))) == TOTAL
    assert project.read_at(place_of(before["position"]))[HERE].arrow().num_rows == ROWS
    assert project.json("versions", "--at", place_of(before["position"]))["sources"]["shop"] == told

    entry = project.read_at(place_of(before["position"]))[HERE]
    other = project.read_at()[THERE].path
    assert isinstance(entry.path, Path)
    assert isinstance(other, Path)
    shutil.rmtree(entry.path)
    said = project.run("read", HERE, "--at", place_of(before["position"])).stdout
    assert "# this version cannot be opened now: " in said
    with pytest.raises(VersionGone):
        entry.arrow()
    shutil.copytree(other, entry.path)
    with pytest.raises(VersionGone, match="another table"):
        entry.arrow()


def test_what_is_printed_says_that_a_mirror_does_not_follow(project: Project) -> None:
    """A person who pastes the code learns that the rows are not the newest; of a table that is
    followed nothing is said."""

    def notes(*options: str) -> list[str]:
        lines = project.run("read", THERE, *options).stdout.splitlines()
        return [line for line in lines if line.startswith(f"# {THERE}: ")]

    assert notes() == []
    project.run("pause", THERE, "--reason", "an audit")
    try:
        [note] = notes()
        assert note.endswith(" paused it: an audit")
        assert notes("--changes") == []
    finally:
        project.run("resume", THERE, "--reason", "the audit is over")
