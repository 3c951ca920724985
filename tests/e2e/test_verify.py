"""Rows that changed behind the log's back: found, shown, repaired; real files, real Spark. One
project for the module."""

from __future__ import annotations

import pytest

from tests.e2e.project import Project, followed
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand

DATABASE = "verified"
ORDERS, VISITS = f"{DATABASE}.orders", f"{DATABASE}.visits"


@pytest.fixture(scope="module")
def project(
    mysql: MySqlStand, tmp_path_factory: pytest.TempPathFactory, warm: WarmProcess
) -> Project:
    rows = ", ".join(f"({n}, 'name {n}', {n} / 3)" for n in range(200))
    project = followed(
        mysql,
        DATABASE,
        tmp_path_factory.mktemp("verified") / "project",
        warm,
        "create table orders (id int primary key, name varchar(20), price double)",
        "create table visits (at datetime, who varchar(20))",
        f"insert into orders values {rows}",
        "insert into visits values ('2024-01-01', 'a'), ('2024-01-01', 'a'), (null, null)",
    )
    project.run("run")
    return project


def secretly(mysql: MySqlStand, *statements: str) -> None:
    mysql.execute("set sql_log_bin = 0", f"use {DATABASE}", *statements)


def test_what_differs_is_found_and_repaired(project: Project, mysql: MySqlStand) -> None:
    """Each row, its kind and its columns; values only where they are asked for. Rows that a key
    names are read again by themselves, a table without one by the next run, whatever is written
    meanwhile."""
    secretly(
        mysql,
        "update orders set name = 'a secret', price = price + 1 where id = 7",
        "delete from orders where id = 8",
        "insert into orders values (200, 'new', 1)",
        "delete from visits where who = 'a' limit 1",
    )
    mysql.execute(f"insert into {ORDERS} values (201, 'logged', 0)")
    told = project.json("verify", expect=4)["sources"]["shop"]
    found = told["tables"][ORDERS]
    assert (found["only_in_source"], found["only_in_lake"], found["different"]) == (1, 1, 1)
    assert found["examples"] == [
        "different: id=7",
        "only in MySQL: id=200",
        "only in the lake: id=8",
    ]
    assert [row["columns"] for row in found["rows"]] == [["name", "price"], [], []]
    assert told["tables"][VISITS]["only_in_lake"] == 1
    assert "secret" not in str(told)
    shown = project.json("verify", ORDERS, "--show-values", expect=4)["sources"]["shop"]
    [row, *_] = shown["tables"][ORDERS]["rows"]
    assert (row["source"]["name"], row["lake"]["name"]) == ("'a secret'", "'name 7'")
    status = project.json("status", expect=6)["sources"]["shop"]
    assert status["state"] == "differs"
    assert {one["table"]: one["differing"] for one in status["proofs"]} == {ORDERS: 3, VISITS: 1}
    page = project.folder / "lockstep.prom"
    project.run("metrics", "--files", "--output", str(page))
    assert 'lockstep_state{source="shop",state="differs"} 1.0' in page.read_text()
    assert 'lockstep_tables_differing{source="shop"} 2.0' in page.read_text()
    assert 'lockstep_last_run_rows{operation="inserted",source="shop"}' in page.read_text()

    foreseen = project.json("verify", "--repair", "--dry-run", expect=4)["sources"]["shop"]
    by_key, whole = (foreseen["repairs"][table] for table in (ORDERS, VISITS))
    assert by_key["where"] == "`id` in (7, 8, 200)"
    assert "all rows" not in str(by_key) and by_key["estimated_rows"] is not None
    assert whole["load"] is None and "from the source" in whole["next"]
    told = project.json("verify", "--repair", expect=4)["sources"]["shop"]
    assert told["read_again"] == {ORDERS: {"read": 2, "gone": 1, "left": 0}}
    assert told["repaired"] == [VISITS]
    [read] = project.json("plan")["sources"]["shop"]["supplies"]
    [step] = read["steps"]
    why = "a comparison found 1 row that differs, and it is to be repaired"
    assert (read["table"], step["from"], step["reason"]) == (VISITS, "source", why)
    assert step["rows"] is not None and whole["estimated_rows"] is not None
    mysql.execute(f"update {ORDERS} set price = 2 where id = 7")
    project.run("run")
    after = project.json("verify")["sources"]["shop"]["tables"]
    assert {name: one["equal"] for name, one in after.items()} == {ORDERS: True, VISITS: True}
    proofs = project.json("status")["sources"]["shop"]["proofs"]
    assert [(proof["differing"], proof["whole"]) for proof in proofs] == [(0, True)] * 2
    assert all(proof["position"] and proof["age_seconds"] is not None for proof in proofs)


def test_some_rows_are_compared(project: Project, mysql: MySqlStand) -> None:
    """So many as a command says; a number that is none is refused, and tables without a key are
    told of. With `prove_rows` a run says that rows differ, ends with 4, and has done its work."""
    told = project.json("verify", ORDERS, "--sample", "40")["sources"]["shop"]
    found = told["tables"][ORDERS]
    assert found["proof"] == "sample"
    assert 20 <= found["compared"] < 200
    project.run("verify", "--sample", "0", expect=2)
    assert project.json("verify", "--sample", "9", expect=3)["sources"]["shop"]["not_proven"]
    config = project.config
    config.write_text(config.read_text() + "prove_rows = 2000\n")
    secretly(mysql, "update orders set name = 'another' where id = 7")
    mysql.execute(f"insert into {ORDERS} values (203, 'logged', 0)")
    run = project.json("run", expect=4)["sources"]["shop"]
    assert run["acknowledged"] == run["end"]
    assert run["compared"][ORDERS]["different"] == 1
    status = project.json("status", expect=6)["sources"]["shop"]
    assert status["state"] == "differs"
    whole = {proof["table"]: proof["whole"] for proof in status["proofs"]}
    assert whole == {ORDERS: False, VISITS: True}
