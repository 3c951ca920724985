"""An online schema change by its program, native changes beside it, and the command line under
the same writer: the lake follows, and the program's own tables never reach it. (With a lake in
memory: `tests/online`.)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.project import Project, head
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand
from tests.online.conftest import toolkit as toolkit
from tests.online.load import Load
from tests.online.made import ALTER, STILL, copied, make_table
from tests.online.toolkit import PerconaToolkit

INSTANT = (
    "add column ahead int not null default 7 first",
    "add column kind enum('a', 'b') not null default 'b' after id",
    "modify kind enum('a', 'b', 'c') not null default 'c'",
    "rename column ahead to renamed",
    "drop column kind",
)


@pytest.mark.soak
def test_a_run_in_the_middle_and_one_behind(
    toolkit: PerconaToolkit, mysql: MySqlStand, database: str, tmp_path: Path, warm: WarmProcess
) -> None:
    """pt-online-schema-change on one table, ALGORITHM=INSTANT on another."""
    start = head(mysql)
    swapped, instant = f"{database}.swapped", f"{database}.at_once"
    for table in (swapped, instant):
        make_table(mysql, table)
    project = Project.made(
        tmp_path / "project", port=mysql.port, tables=[f"{database}.*"], start=start, warm=warm
    )
    log = tmp_path / "log"
    with (
        Load(mysql, [swapped, instant]) as load,
        toolkit.online_schema_change(mysql, database, "swapped", ALTER, log) as tool,
    ):
        tool.hold(lambda: copied(mysql, database, "_swapped_new") > 0)
        mysql.execute(f"alter table {instant} {INSTANT[0]}, algorithm=instant")
        load.go_on()
        project.run("run")
        assert 0 < copied(mysql, database, "_swapped_new") < STILL
        before = project.commits(swapped)
        tool.go_on()
        tool.require_done()
        for change in INSTANT[1:]:
            mysql.execute(f"alter table {instant} {change}, algorithm=instant")
            load.go_on(1)
    project.run("run")
    require_replaced(before, project.commits(swapped))
    require_followed(project, {swapped, instant})


def require_replaced(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> None:
    """One commit more, and it brought the new table's columns."""
    assert now[:-1] == before
    assert "note" in now[-1]["metaData"]["schemaString"]


def require_followed(project: Project, tables: set[str]) -> None:
    """Equal, under the new structures, and no table of the program's."""
    told: Any = project.json("verify")["sources"]["shop"]
    assert {name: one["equal"] for name, one in told["tables"].items()} == dict.fromkeys(
        tables, True
    )
    assert told["quarantined"] == []
    names = {table.partition(".")[2] for table in tables}
    database = min(tables).partition(".")[0]
    lake = project.lake / "shop"
    for folder in (lake / database, lake / "_changes" / database):
        assert {path.name.partition("@")[0] for path in folder.iterdir()} == names
