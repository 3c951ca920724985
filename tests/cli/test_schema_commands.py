"""`schema`, `pause`, `resume`, `plan` and `status` over a real server and real books."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lockstep.cli import main
from lockstep.pipeline.model.table_state import StoppedTable
from lockstep.pipeline.run.begin import StartProposal
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.run.repair import foresee_next_start
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.table import TableName
from lockstep.resources.adapters import Adapters
from lockstep.resources.config import load_settings
from lockstep.resources.lake.spark.session import SparkProcess
from tests.e2e.project import Project, head
from tests.fix_mysql import MySqlStand
from tests.ledger.servers import embedded_server

ADD = "alter table orders add note varchar(20) character set latin1"


@dataclass
class Typed:
    """The command line on a project, in this process."""

    project: Project
    capfd: pytest.CaptureFixture[str]

    def run(self, *arguments: str, expect: int = 0) -> str:
        """What people are told."""
        return self._run(*arguments, expect=expect)[0]

    def json(self, *arguments: str, expect: int = 0) -> Any:
        return json.loads(self._run(*arguments, "--json", expect=expect)[0])

    def _run(self, *arguments: str, expect: int) -> tuple[str, str]:
        file = str(self.project.folder / "lockstep.toml")
        self.capfd.readouterr()  # What was said before is nobody's answer.
        code = main([*arguments, "--config", file])
        said = self.capfd.readouterr()
        assert code == expect, said.err
        return said

    @contextmanager
    def held(self) -> Iterator[tuple[RunPorts, Lease]]:
        """What a run has in its hands."""
        settings = load_settings(self.project.folder / "lockstep.toml")
        with (
            Adapters(settings, on_warning=print) as adapters,
            adapters.ledger().lock("shop", "test", None) as lease,
        ):
            yield adapters.ports("shop", SilentProgress()), lease


@pytest.fixture
def project(
    mysql: MySqlStand,
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Iterator[Typed]:
    """A table of one row, captured; then altered, and captured again. Nothing is merged, so the
    Java that a capture begins to start would be waited for by nobody. The ledger's server is kept
    from one command to the next."""
    monkeypatch.setattr(SparkProcess, "prepare", lambda *_: None)
    monkeypatch.setenv("LOCKSTEP_TEST_PASSWORD", mysql.password)
    mysql.execute("create table orders (id int primary key)", database=database)
    made = Project.made(
        tmp_path / "project",
        port=mysql.port,
        tables=[f"{database}.*"],
        start=head(mysql),
        user=mysql.account,
        extra='on_rewrite = "resnapshot"\n',
    )
    typed = Typed(made, capfd)
    with embedded_server(made.folder / ".lockstep" / "ledger"):
        with typed.held() as (ports, lease):
            mysql.execute("insert into orders values (1)", database=database)
            capture(ports, lease)
            mysql.execute(ADD, database=database)
            capture(ports, lease)
        yield typed


def test_structures_then_and_now(mysql: MySqlStand, database: str, project: Typed) -> None:
    """The table as people see it, one object for programs, 4 once the server has another. A plan
    names what is read from the source by policy, where stored values change without row events."""
    table = f"{database}.orders"
    said = project.run("schema", table)
    assert f"shop: {table}: version 2, since " in said
    assert "varchar(20)" in said
    assert "primary key (id)" in said
    assert "column note: new" in said
    told = project.json("schema", table)
    assert [one["name"] for one in told["columns"]] == ["id", "note"]
    then = project.json("schema", table, "--at", told["versions"][0]["since"])
    assert (then["version"], [one["name"] for one in then["columns"]]) == (1, ["id"])
    wrong = project.json("schema", f"{database}.order", expect=2)
    # Other databases of the server may have similar names; the most similar comes first.
    assert wrong["error"]["hint"].startswith(f"did you mean {table}")
    project.run("schema", table, "--at", "binlog.999999:4", expect=5)
    project.run("schema", "verify", "--at", "latest", expect=2)

    assert "1 statement" in project.run("schema", "verify")
    with mysql.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("set sql_log_bin = 0")
        cursor.execute("alter table orders modify note varchar(40) character set latin1")
    found = project.json("schema", "verify", expect=4)["sources"]["shop"]
    assert [one["table"] for one in found["otherwise_on_the_server"]] == [table]
    said = project.run("schema", "verify", expect=4)
    assert "column note length: 20, 40" in said

    mysql.execute("alter table orders modify note varchar(5)", database=database)
    plan = project.json("plan")["sources"]["shop"]
    assert list(plan["rereads"]) == [table]
    assert f"{table} is read from the source: " in project.run("plan")


def test_orders_about_several_tables(
    mysql: MySqlStand, database: str, project: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name, or by a pattern, which means the tables that the order fits; if one table cannot be
    resumed, none is. The log is read once to find the next run's start, not for each table."""
    found = []

    def find_start(*arguments: Any) -> StartProposal:
        found.append(arguments)
        return foresee_next_start(*arguments)

    monkeypatch.setattr("lockstep.commands.orders.foresee_next_start", find_start)
    orders, items = f"{database}.orders", f"{database}.items"
    pattern, because = f"{database}.*", ("--reason", "a load")
    mysql.execute("create table items (id int primary key)", database=database)
    mysql.execute("insert into items values (1)", database=database)
    with project.held() as (ports, lease):
        capture(ports, lease)
    project.run("resume", pattern, *because, expect=2)  # none is stopped
    assert [*project.json("pause", orders, items, *because)["tables"]] == [orders, items]
    project.run("pause", pattern, *because, expect=2)  # none is followed
    # A pattern brings no table back that waits for a person.
    assert project.json("reload", pattern, *because)["tables"] == {}
    project.run("resume", orders, f"{database}.nothing", expect=2)
    found.clear()
    foreseen = project.json("resume", pattern, "--dry-run")["tables"]
    assert len(found) == 1
    assert {table: one["order"] for table, one in foreseen.items()} == {items: None, orders: None}
    tables = project.json("status", expect=6)["sources"]["shop"]["tables"]
    assert [one["order"] for one in tables] == [None, None]
    project.run("resume", pattern, "--schema", "orders.sql", expect=2)
    resumed = project.json("resume", pattern, *because)["tables"]
    assert {table: one["order"]["kind"] for table, one in resumed.items()} == {
        items: "resume",
        orders: "resume",
    }
    assert resumed[orders]["next"] == foreseen[orders]["next"]


def test_of_several_sources_the_one_that_has_the_table_is_meant(
    database: str, project: Typed
) -> None:
    """A pattern may mean tables of each."""
    file = project.project.folder / "lockstep.toml"
    before, block, source = file.read_text().partition("[[sources]]")
    another = source.replace('"shop"', '"another"')
    file.write_text(f"{before}{block}{source}\n{block}{another}")
    asked = ("--reason", "a file is lost", "--dry-run")
    told = project.json("reload", f"{database}.orders", *asked)
    assert (told["source"], told["tables"][f"{database}.orders"]["order_id"]) == ("shop", None)
    project.run("reload", f"{database}.*", *asked, expect=2)


def test_a_resume_with_a_structure(mysql: MySqlStand, database: str, project: Typed) -> None:
    """Read from a file, in the database's character set; what is not one is refused."""
    table = f"{database}.orders"
    quarantined = StoppedTable(TableName(database, "orders"), "it broke", "mend it", head(mysql))
    mysql.execute("create table another (id int primary key)", database=database)
    with project.held() as (ports, lease):
        capture(ports, lease)
        ports.ledger.quarantine(lease, quarantined)
    file = project.project.folder / "orders.sql"
    file.write_text("drop table orders")
    line = ("resume", table, "--reason", "mended", "--schema", str(file))
    project.run(*line, expect=2)
    project.run(*line[:-1], "nowhere.sql", expect=2)
    file.write_text("create table orders (id int primary key, note varchar(7));\n")
    project.run(*line, "--rename", "note", expect=2)
    project.run(*line[:-2], "--rename", "a=note", expect=2)  # --schema is missing
    wrong = project.json(*line, "--rename", "remark=note", expect=2)
    assert "the table had no column remark where it stopped" in wrong["error"]["message"]
    foreseen = project.json(*line, "--dry-run")
    assert foreseen["order"] is None
    resumed = project.json(*line)
    assert "it has the given structure" in resumed["next"]
    assert foreseen["next"] == resumed["next"]
    said = project.run(*line).splitlines()
    assert said[0] == f"shop: {resumed['next']}"
    assert said[1].startswith(f"shop: recorded: resume {table} (")
    (_, note) = resumed["order"]["schema"]["columns"]
    assert (note["type"], note["length"], note["charset"]) == ("varchar", 7, "utf8mb4")
    (one,) = project.json("status", expect=3)["sources"]["shop"]["tables"]
    assert (one["stopped_by"], one["order"]["with_structure"]) == ("system", True)
