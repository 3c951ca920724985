"""A damaged span replayed by the command line, and killed: real files, real Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tests.chance import by_chance
from tests.e2e.conftest import Follow
from tests.e2e.points import Point
from tests.e2e.project import Project
from tests.fix_mysql import MySqlStand

KILLS = (
    Point.CHANGES_REVISED,
    Point.MIRROR_WRITTEN,
)
"""Each behind a commit that the ledger does not know of, one of them by chance;
`tests/positions/test_replays.py` kills replays at any step."""
SPAN = ("--from", "earliest", "--to", "latest")


def test_a_damaged_span_is_whole_behind_a_replay(
    mysql: MySqlStand, database: str, follow: Follow
) -> None:
    """A file of the changelog, and a row of the mirror: both are told first and put right then,
    though the replay is killed. What is right is not written, and the position stays."""
    name = f"{database}.t"
    project = follow(
        "create table t (id int primary key, v int, s varchar(40))",
        *(f"insert into t values ({n}, {n}, 'row {n}')" for n in range(1, 9)),
    )
    project.run("run")
    mysql.execute(
        f"use {database}",
        "update t set v = v + 100 where id in (2, 3)",
        "alter table t add column more int default 7",
        "delete from t where id = 8",
    )
    project.run("run")
    mysql.execute(f"use {database}", "update t set v = 1000 where id = 2")
    project.run("run")
    position = project.status()["acknowledged"]
    before = _changes(project, database)
    planned = project.run("replay", *SPAN, "--dry-run").stdout
    assert "3 batches" in planned
    assert "from its changelog alone" not in planned
    _damage(project, database)
    told = project.json("replay", *SPAN, "--compare", expect=4)["tables"][name]
    assert (told["segments"], told["replaced"]) == ({"same": 3, "damaged": 1}, 0)
    assert told["mirror"]["wrong"] == 2
    target = by_chance().choice(KILLS)
    print("killed behind", target)
    project.killed(target, "after", 1, "replay", *SPAN)
    if "mirror" in target:
        project.run("run")
    project.run("replay", *SPAN)
    assert _changes(project, database) == before
    assert project.proven() == {name}
    commits = len(project.commits(name))
    again = project.json("replay", *SPAN)
    assert again["tables"][name]["segments"] == {"same": 4}
    assert again["tables"][name]["mirror"]["wrong"] == 0
    assert [one["revision"] for one in again["batches"]] == [0, 1, 0]
    assert len(project.commits(name)) == commits
    assert project.status()["acknowledged"] == position


def _changes(project: Project, database: str) -> list[dict[str, Any]]:
    table = DeltaTable(project.lake / "shop" / "_changes" / database / "t")
    rows = pa.table(table.to_pyarrow_table()).to_pylist()
    return sorted(rows, key=lambda row: row["_sequence"])


def _damage(project: Project, database: str) -> None:
    """Half of the file that has the second batch's updates; other values in two rows."""
    folder = project.lake / "shop" / "_changes" / database / "t"
    listed = [Path(uri).name for uri in DeltaTable(folder).file_uris()]
    [file] = [one for one in listed if "batch-000000000002-v1" in one]
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[: len(content) // 2])
    mirror = project.lake / "shop" / database / "t"
    for uri in DeltaTable(mirror).file_uris():
        path = mirror / Path(uri).name
        rows = pq.read_table(path)
        wrong = [-1 if id_ in (2, 3) else v for id_, v in zip(*_columns(rows), strict=True)]
        at = rows.schema.get_field_index("v")
        pq.write_table(
            rows.set_column(at, rows.schema.field(at), pa.array(wrong, pa.int32())), path
        )
        (mirror / f".{path.name}.crc").unlink(missing_ok=True)
        note_size(mirror, path)


def _columns(rows: pa.Table) -> tuple[list[int], list[int]]:
    return rows.column("id").to_pylist(), rows.column("v").to_pylist()


def note_size(mirror: Path, path: Path) -> None:
    """The log says of the file what it is now."""
    for log in (mirror / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for action in actions:
            if action.get("add", {}).get("path") == str(path.relative_to(mirror)):
                action["add"]["size"] = path.stat().st_size
                action["add"]["stats"] = json.dumps({"numRecords": pq.read_metadata(path).num_rows})
        (log.parent / f".{log.name}.crc").unlink(missing_ok=True)
        log.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
