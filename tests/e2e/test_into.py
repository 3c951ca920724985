"""Mirrors that are called otherwise than their tables, with Spark: they go where the settings say,
and are found by either name."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.e2e.conftest import Follow
from tests.e2e.project import Project
from tests.fix_mysql import MySqlStand


def test_a_mirror_goes_where_the_settings_say(
    mysql: MySqlStand, database: str, follow: Follow
) -> None:
    """Its rows are those of MySQL at each place, and an earlier version is read from the place it
    had then. Settings that have two mirrors meet are told by `check`."""
    project = follow(
        "create table customers (id int primary key, v int)",
        "create table stock (id int primary key, v int)",
        "insert into customers values (1, 1), (2, 2)",
        "insert into stock values (1, 1)",
    )
    named(project, database, "crm.{table}_{database}")
    project.run("run")
    own, crm = f"{database}.customers", f"crm.customers_{database}"
    first = project.json("read", own)
    assert first["path"].endswith(f"/lake/shop/crm/customers_{database}")
    assert first == project.json("read", crm)
    place = "{file}:{offset}".format(**first["position"])
    [source] = yaml.safe_load(project.run("read", crm, "--dbt").stdout)["sources"]
    assert (source["name"], source["tables"][0]["name"]) == ("crm", f"customers_{database}")

    named(project, database, "crm.customers")
    mysql.execute("update customers set v = 7 where id = 2", database=database)
    assert "called crm.customers now" in project.run("plan").stdout
    project.run("run")
    later = project.json("read", "crm.customers")
    assert (later["table"], Path(later["path"]).parts[-2:]) == (own, ("crm", "customers"))
    assert project.proven() == {own, f"{database}.stock"}
    assert project.json("read", own, "--at", place)["path"] == first["path"]

    named(project, database, "{database}.stock")
    answer = project.json("check", expect=None)
    told = [
        finding["sentence"]
        for finding in answer["sources"]["shop"]["findings"]
        if finding["level"] == "refusal"
    ]
    assert f"their mirrors would both be called {database}.stock" in told


def named(project: Project, database: str, into: str) -> None:
    """The settings name the mirror of the customers so, from now on."""
    file = project.config
    before = file.read_text().partition("\n[[sources.table]]")[0]
    file.write_text(
        f'{before}\n[[sources.table]]\nmatch = "{database}.customers"\ninto = "{into}"\n'
    )
