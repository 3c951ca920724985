"""Tables of the past by the command line: real logs, real Spark, read without either."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from tests.e2e.conftest import Follow
from tests.e2e.project import head
from tests.fix_mysql import MySqlStand

EVERY = 4
Rows = list[dict[str, Any]]


def test_a_table_as_of_any_transaction(
    mysql: MySqlStand, database: str, tmp_path: Path, follow: Follow
) -> None:
    """What MySQL showed after every fourth statement, over DDL that rewrites, widens and renames
    columns."""
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
        assert (done["as_of"]["place"], done["rows"]) == (place, len(rows))
        assert _sorted(DeltaTable(into).to_pyarrow_table()) == rows
    assert [path.name for path in (tmp_path / "past").iterdir() if path.name.startswith(".")] == []
    taken = project.run("rebuild", name, "--as-of", seen[2][0], "--into", str(into), expect=2)
    assert "exists already" in taken.stderr
    beside = project.json("rebuild", name, "--as-of", "latest")["into"]
    assert Path(beside).parents[2] == tmp_path / "project" / "lake-as-of"
    assert _sorted(DeltaTable(beside).to_pyarrow_table()) == seen[-1][1]
    inside = project.run("rebuild", name, "--as-of", "latest", "--into", "lake/x", expect=2)
    assert "lies in the lake" in inside.stderr


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
