"""TPC-C's consistency conditions hold in the lake, in every version set, while its load runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockstep.pipeline.values.errors import VersionSetUnknown
from tests.e2e import tpcc
from tests.e2e.points import Point
from tests.e2e.project import Project, place_of
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand

TERMINALS = 2


@pytest.mark.soak
def test_its_conditions_hold_in_every_version_set(
    mysql: MySqlStand,
    tmp_path: Path,
    warm: WarmProcess,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Of tables that are read while they are written to, followed through the log, and merged one
    by one by a run that is killed between two of them. A set that lacks a table names one that
    has it."""
    monkeypatch.setenv("LOCKSTEP_TEST_PASSWORD", "")
    database = mysql.fresh_name()
    request.addfinalizer(lambda: mysql.execute(f"drop database if exists {database}"))
    tpcc.create(mysql.connect(), database)
    project = Project.made(
        tmp_path / "project",
        port=mysql.port,
        tables=[f"{database}.*"],
        start="snapshot",
        warm=warm,
    )
    with tpcc.ordering(lambda: mysql.connect(database), TERMINALS, seed=1):
        project.run("run")
        project.killed(Point.WRITE_SETTLED, "after", 3)
        project.run("run")
    sets = project.sets()
    compared, numbers = 0, set()
    for listed in sets:
        found = project.read_at(place_of(listed["position"]))
        assert found.batch == listed["batch"]
        assert {*found, *found.missing} == {f"{database}.{name}" for name in tpcc.NAMES}
        if found.missing:
            for name, lacks in found.missing.items():
                with pytest.raises(VersionSetUnknown):
                    found[name]
                whole = lacks.hint.split("`")[1].removeprefix("lockstep versions --at ")
                assert name in project.read_at(whole)
            continue
        rows = {name: found[f"{database}.{name}"].arrow().to_pylist() for name in tpcc.NAMES}
        assert tpcc.broken(rows) == []
        compared += 1
        numbers.add(len(rows["orders"]))
    assert compared >= 3
    assert len(numbers) >= 3, "nobody ordered meanwhile"
    tampered = {**rows, "history": rows["history"][1:]}
    assert {sentence.split()[1] for sentence in tpcc.broken(tampered)} == {"8", "9", "10"}
    require_reports(project, sets)


def require_reports(project: Project, sets: list[dict[str, Any]]) -> None:
    """What the report of all of it counts is what those of its runs do."""
    parts = [_report(project, run) for run in dict.fromkeys(one["run"] for one in sets)]
    whole = _report(project, "--from", "earliest", "--to", "latest")
    assert _updated(whole) == sum(map(_updated, parts)) > 0
    assert whole["versions"] == project.json("versions")["sources"]["shop"]
    page = Path(whole["page"]).read_text(encoding="utf-8")
    assert f"{sets[0]['position']['offset']}" in page


def _report(project: Project, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = project.json("report", *arguments)["sources"]["shop"]
    return found


def _updated(report: dict[str, Any]) -> int:
    return sum(int(table["updated"]) for table in report["tables"].values())
