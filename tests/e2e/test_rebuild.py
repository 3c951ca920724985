"""Tables of the past by the command line: real logs, real Spark, read without either."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tests.chance import by_chance
from tests.e2e.conftest import Follow
from tests.e2e.points import Point
from tests.e2e.project import Project, head, place_of
from tests.e2e.test_replay import note_size
from tests.fix_mysql import MySqlStand

EVERY = 4
Rows = list[dict[str, Any]]


def test_a_table_as_of_any_transaction(
    mysql: MySqlStand, database: str, tmp_path: Path, follow: Follow
) -> None:
    """What MySQL showed after every fourth statement, over DDL that rewrites, widens and renames
    columns; a live mirror that is wrong, written again from its changelog, though that was killed
    before the mirror's one commit, or after it. `tests/positions/test_reloads.py` kills such
    reloads at any step."""
    name, seen = f"{database}.t", list[tuple[str, Rows]]()
    project = follow()

    def do(*statements: str) -> None:
        for statement in statements:
            mysql.execute(statement, database=database)
            seen.append((head(mysql), _shown(mysql, database)))

    do("create table t (id int primary key, v int, d datetime(3))")
    do(*(f"insert into t values ({n}, {n}, '2026-11-01 06:00:00.{n:03d}')" for n in range(1, 4)))
    project.run("run")
    do("update t set v = v + 10 where id > 1", "alter table t modify v bigint")
    do("alter table t rename column v to value", "insert into t values (4, 4, null)")
    project.run("run")
    do("delete from t where id = 2", "alter table t add column more int default 7")
    do("update t set value = 5000000000 where id = 1", "update t set id = 9 where id = 3")
    project.run("run")
    newest = project.status()["acknowledged"]
    chosen = [*enumerate(seen)][::EVERY]
    middle = chosen[len(chosen) // 2][0]
    for number, (place, rows) in chosen:
        into = tmp_path / "past" / str(number)
        told = ("rebuild", name, "--as-of", place, "--into", str(into))
        if number == middle:
            planned = project.json(*told, "--dry-run")
            assert not into.exists()
        done = project.json(*told)
        if number == middle:
            assert {**done, **_DONE} == {**planned, **_DONE}
        assert (done["as_of"]["position"], done["rows"]) == (place, len(rows))
        assert _sorted(DeltaTable(into).to_pyarrow_table()) == rows
    assert [path.name for path in (tmp_path / "past").iterdir() if path.name.startswith(".")] == []
    taken = project.run("rebuild", name, "--as-of", seen[2][0], "--into", str(into), expect=2)
    assert "exists already" in taken.stderr
    beside = project.json("rebuild", name, "--as-of", "latest")["into"]
    assert Path(beside).parents[2] == tmp_path / "project" / "lake-as-of"
    assert _sorted(DeltaTable(beside).to_pyarrow_table()) == seen[-1][1]
    inside = project.run("rebuild", name, "--as-of", "latest", "--into", "lake/x", expect=2)
    assert "lies in the lake" in inside.stderr
    _damage(project, database)
    project.run("verify", name, expect=4)
    project.run("reload", name, "--from", "changelog", "--reason", "its files were damaged")
    when = by_chance().choice(("before", "after"))
    print("killed", when)
    project.killed(Point.MIRROR_WRITTEN, when)
    project.run("run")
    assert place_of(project.status()["acknowledged"]) == place_of(newest)
    do("update t set value = 0")
    project.run("run")
    assert project.proven() == {name}


def test_what_is_gone_is_refused(mysql: MySqlStand, database: str, follow: Follow) -> None:
    """Before a table was read, and versions that were vacuumed: the earliest that works is told,
    and works. The mirror is written again from the earliest version; once that is gone too, only
    MySQL can supply it."""
    name = f"{database}.t"
    project = follow(
        "create table t (id int primary key, v int)",
        "insert into t values (1, 1), (2, 2)",
        start="snapshot",
    )
    project.run("run")
    ends = [project.status()["acknowledged"]]

    def changed(value: int) -> None:
        mysql.execute(f"use {database}", f"update t set v = {value} where id = 1")
        project.run("run")
        ends.append(project.status()["acknowledged"])

    changed(10)
    changed(11)
    places = [place_of(end) for end in ends]
    assert project.json("rebuild", name, "--as-of", places[1], "--dry-run")["base"]["batch"] < 3
    mirror = project.lake / "shop" / database / "t"
    reload = ("reload", name, "--from", "changelog", "--reason", "a test")
    planned = project.json(*reload, "--dry-run")["tables"][name]
    assert planned["base"] == {"mirror": f"shop/{database}/t", "delta_version": 0, "batch": 1}
    assert (len(planned["batches"]), planned["estimated_rows"]) == (2, None)
    project.run(*reload)
    told = project.json("plan")["sources"]["shop"]["supplies"]
    [step] = told[0]["steps"]
    assert (step["from"], step["rows"], step["base"]) == ("changelog", 0, planned["base"])
    before = DeltaTable(mirror).version()
    project.run("run")
    assert DeltaTable(mirror).version() > before
    assert project.proven() == {name}
    changed(12)
    places.append(place_of(ends[-1]))
    listed = {Path(uri).name for uri in DeltaTable(mirror).file_uris()}
    for file in mirror.glob("*.parquet"):
        if file.name not in listed:
            file.unlink()
    told = project.json("rebuild", name, "--as-of", places[1], expect=2)["error"]
    assert "rows were read from the source" in told["message"]
    assert places[-1] in told["hint"]
    done = project.json("rebuild", name, "--as-of", places[-1])
    rows = _sorted(DeltaTable(done["into"]).to_pyarrow_table())
    assert rows == [{"id": 1, "v": 12}, {"id": 2, "v": 2}]
    early = project.json("rebuild", name, "--as-of", "2020-01-01T00:00:00Z", expect=2)["error"]
    assert early["kind"] == "PastRefused"
    shutil.rmtree(project.lake.with_name("lake-as-of"))


_DONE = {"seconds": 0, "rows": 0, "dry_run": None}


def _shown(mysql: MySqlStand, database: str) -> Rows:
    columns = [
        column
        for (column,) in mysql.rows(
            "select column_name from information_schema.columns where table_schema = "
            f"'{database}' and table_name = 't' order by ordinal_position"
        )
    ]
    found = mysql.rows(f"select {', '.join(columns)} from {database}.t order by id")
    return [dict(zip(columns, row, strict=True)) for row in found]


def _sorted(rows: pa.Table) -> Rows:
    return sorted(rows.to_pylist(), key=lambda row: row["id"])


def _damage(project: Project, database: str) -> None:
    """The newest column has another value in every row."""
    mirror = project.lake / "shop" / database / "t"
    for uri in DeltaTable(mirror).file_uris():
        path = Path(uri)
        rows = pq.read_table(path)
        at = rows.num_columns - 1
        wrong = pa.array([-1] * rows.num_rows, rows.schema.field(at).type)
        pq.write_table(rows.set_column(at, rows.schema.field(at), wrong), path)
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
        note_size(mirror, path)
