"""Mirrors as sources of a dbt project: the file that is printed is true, and its graph joins up."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.project import Project, environment, followed
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand
from tests.lake.duck import duck

pytestmark = pytest.mark.acceptance

PYTHON = "LOCKSTEP_TEST_DBT"
"""A Python with Lockstep, dagster-dbt and dbt-duckdb: their versions of other packages are not
those of the lock."""

DATABASE = "sakila_dbt"
ODD, ODD_KEY = "o'dd täble", "o.27dd.20t.C3.A4ble"

SCHEMA = f"""
create table {DATABASE}.actor (
  actor_id int primary key comment 'no {{{{ template }}}}, and no {{% tag %}}',
  name varchar(20) not null, nick varchar(20) unique, `order` int not null unique
) comment 'who plays';
create table {DATABASE}.film_actor (
  actor_id int, film_id int, place int, part int, primary key (actor_id, film_id),
  unique (place, part)
);
create table {DATABASE}.`{ODD}` (`a-b` int primary key, `%` int);
create table {DATABASE}.plain (v int);
insert into {DATABASE}.actor values (1, 'A', null, 1), (2, 'B', null, 2), (3, 'C', 'c', 3);
insert into {DATABASE}.film_actor values (1, 1, 1, null), (1, 2, 1, null), (2, 1, 1, 1);
insert into {DATABASE}.`{ODD}` values (1, 1);
insert into {DATABASE}.plain values (1), (1)"""

DBT_PROJECT = {
    "dbt_project.yml": "name: films\nversion: '1.0'\nprofile: films\n",
    "profiles.yml": "films:\n  target: dev\n  outputs:\n    dev:\n      type: duckdb\n"
    "      path: films.duckdb\n      extensions: [delta]\n"
    "      config_options: {extension_directory: EXTENSIONS}\n",
    "models/plays.sql": "select a.name, count(*) n\n"
    f"from {{{{ source('{DATABASE}', 'actor') }}}} a\n"
    f"join {{{{ source('{DATABASE}', 'film_actor') }}}} f using (actor_id) group by all",
    "models/odd.sql": f"select * from {{{{ source('{DATABASE}', '{ODD_KEY}') }}}}",
}
DEFINITIONS = """
import json, sys
from pathlib import Path
import dagster as dg
from dagster_dbt import DbtCliResource, DbtProject, dbt_assets
from lockstep.location import definitions_of

project = DbtProject(Path(sys.argv[2]))

@dbt_assets(manifest=project.manifest_path)
def films(context: dg.AssetExecutionContext, dbt: DbtCliResource):
    yield from dbt.cli(["build"], context=context).stream()

ours = dg.Definitions(assets=[films], resources={"dbt": DbtCliResource(project_dir=project)})
defs = dg.Definitions.merge(definitions_of(Path(sys.argv[1])), ours)
graph = defs.get_repository_def().asset_graph
names = {key: key.to_user_string() for key in graph.get_all_asset_keys()}
print(json.dumps({
    "parents": {
        names[key]: sorted(names[parent] for parent in graph.get(key).parent_keys)
        for key in names if "dbt" in graph.get(key).kinds
    },
    "undefined": [names[key] for key in names if not graph.get(key).description],
}))
"""


@pytest.fixture(scope="module")
def project(
    mysql: MySqlStand, tmp_path_factory: pytest.TempPathFactory, warm: WarmProcess
) -> Project:
    folder = tmp_path_factory.mktemp("dbt") / "project"
    made = followed(mysql, DATABASE, folder, warm, *SCHEMA.split(";"))
    made.run("run")
    return made


def printed(project: Project) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(project.run("read", "--dbt").stdout)
    return found


def test_what_is_printed_is_true(project: Project, tmp_path: Path) -> None:
    """Each table is found where it says, with these columns; comments, keys and the moment of the
    newest transaction are MySQL's."""
    [source] = printed(project)["sources"]
    tables = {table["name"]: table for table in source["tables"]}
    assert set(tables) == {"actor", "film_actor", ODD_KEY, "plain"}
    assert tables[ODD_KEY]["identifier"] == ODD
    with duck(tmp_path) as database:
        database.execute("install delta; load delta")
        for table in tables.values():
            rows = database.execute(f"select * from {table['config']['external_location']}")
            assert [column["name"] for column in table["columns"]] == [
                column[0] for column in rows.description
            ]
        [[newest]] = database.execute(source["config"]["loaded_at_query"]).fetchall()
    lag = project.json("status")["sources"]["shop"]["acknowledged"]["committed_at"]
    assert newest.isoformat().replace("+00:00", "Z")[:19] == str(lag)[:19]
    tests = {
        column["name"]: column["data_tests"]
        for column in tables["actor"]["columns"]
        if "data_tests" in column
    }
    assert tests == {"actor_id": ["unique", "not_null"], "nick": ["unique"], "order": ["unique"]}
    [together] = tables["film_actor"]["data_tests"]
    assert together["unique"]["arguments"] == {"column_name": "(actor_id, film_id)"}
    assert tables["actor"]["description"] == "who plays"
    assert "data_tests" not in tables["plain"]


def test_one_table_is_printed_alone(project: Project) -> None:
    """And a table that nobody captured is refused."""
    text = project.run("read", f"{DATABASE}.plain", "--dbt").stdout
    assert [table["name"] for table in yaml.safe_load(text)["sources"][0]["tables"]] == ["plain"]
    project.run("read", f"{DATABASE}.nowhere", "--dbt", expect=2)


@pytest.mark.skipif(PYTHON not in os.environ, reason=f"{PYTHON} names no Python with dbt")
@pytest.mark.parametrize("prefix", ['["{source}"]', "[]"])
def test_a_dbt_project_joins_the_graph(project: Project, tmp_path: Path, prefix: str) -> None:
    """With dagster-dbt and dbt-duckdb: dbt builds its models of mirrors and tests their keys, its
    source is fresh, and each model depends on the mirrors themselves in Dagster. Without a prefix
    dbt needs no names of ours for that."""
    settings = project.config
    text = settings.read_text()
    settings.write_text(f"[dagster]\nkey_prefix = {prefix}\n{text}")
    try:
        sources = project.run("read", "--dbt").stdout
        assert sources.count("asset_key") == (0 if prefix == "[]" else 4)
        duck(tmp_path / "extensions").close()
        for name, content in (DBT_PROJECT | {"models/sources.yml": sources}).items():
            file = tmp_path / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(content.replace("EXTENSIONS", str(tmp_path / "extensions")))
        for command in (["build"], ["source", "freshness"]):
            dbt(tmp_path, "-m", "dbt.cli.main", *command)
        graph = json.loads(dbt(tmp_path, "-c", DEFINITIONS, str(settings), str(tmp_path)))
    finally:
        settings.write_text(text)
    before = [DATABASE] if prefix == "[]" else ["shop", DATABASE]
    actor, film_actor, odd = ("/".join([*before, n]) for n in ("actor", "film_actor", ODD_KEY))
    assert graph == {"parents": {"plays": [actor, film_actor], "odd": [odd]}, "undefined": []}


def dbt(folder: Path, *arguments: str) -> str:
    """What that Python's last line is."""
    programs = f"{Path(os.environ[PYTHON]).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [os.environ[PYTHON], "-W", "ignore", *arguments],
        cwd=folder,
        env=environment(PATH=programs, DO_NOT_TRACK="1", DBT_PROFILES_DIR=str(folder)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout.strip().splitlines()[-1]
