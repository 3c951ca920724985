"""A real server's partial images in mirrors that Spark writes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable

from pipeline.policies import Deletes, LakePolicies
from pipeline.runs.comparing.verify_rows import verify
from pipeline.runs.context import Workplace
from tests.e2e.project import head
from tests.fix_mysql import MySqlStand
from tests.lake.conftest import Lake
from tests.mysql.partial_writes import ALTERED, TABLES, PartialWrites
from tests.mysql.reading import server
from tests.positions.follower import Follower

TRIED = ("paired", "keyless")


@dataclass
class DiskFollower(Follower):
    """`disk` in place of the memory's lake."""

    disk: Lake | None = None

    def work(self, until: str | None = None) -> Workplace:
        assert self.disk is not None
        return replace(
            super().work(until),
            segments=self.disk.segments,
            changelog=self.disk.changelog,
            mirrors=self.disk.mirrors,
        )


def make_tables(mysql: MySqlStand, database: str) -> None:
    creates = [f"create table {name} ({TABLES[name]})" for name in TRIED]
    mysql.execute(*creates, database=database)


def unequal(follower: Follower) -> list[str]:
    found = verify(follower.work())
    told = [str(table) for table in found.tables if not table.equal]
    return told + [str(one) for one in found.quarantined]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3, 9))
def test_mirrors_on_disk_are_equal(
    mysql: MySqlStand, database: str, disk: Lake, folder: Path, seed: int
) -> None:
    """Also where columns come in between, and the changelog lists no column of ours."""
    make_tables(mysql, database)
    follower = DiskFollower(server(mysql), [f"{database}.*"], disk=disk)
    follower.run()
    writes = PartialWrites(Random(seed), TRIED)
    for change in ALTERED:
        mysql.execute(*writes.statements(30), database=database)
        mysql.execute(*(f"alter table {name} {change}" for name in TRIED), database=database)
        writes.added = ("added", "note")
        mysql.execute(*writes.statements(30), database=database)
        follower.run()
        assert unequal(follower) == []
    files = [path.name for path in (folder / "shop/_changes" / database).glob("paired*/*.parquet")]
    assert any(name.endswith("-partial.parquet") for name in files)


def test_deleted_rows_stay_with_what_they_had(mysql: MySqlStand, database: str, disk: Lake) -> None:
    """`deletes = "soft"`: a delete logs the key alone."""
    start = head(mysql)
    mysql.execute("create table t (id int primary key, a int, b text)", database=database)
    policies = LakePolicies(deletes=Deletes.SOFT)
    follower = DiskFollower(server(mysql), [f"{database}.*"], lake_policies=policies, disk=disk)
    mysql.execute("insert into t values (1, 1, 'x'), (2, 2, 'y')", database=database)
    follower.start = start
    follower.run()
    mysql.execute(
        "set binlog_row_image = minimal",
        "update t set a = 7 where id = 1",
        "delete from t where id = 1",
        "update t set id = 3 where id = 2",
        database=database,
    )
    follower.run()
    mirror = f"shop/{database}/t"
    version = disk.mirrors.version(mirror)
    assert version is not None
    rows = [
        row
        for batch in disk.mirrors.rows(mirror, ["id", "a", "b", "_deleted_at"], version)
        for row in batch.to_pylist()
    ]
    told = sorted((row["id"], row["a"], row["b"], row["_deleted_at"] is None) for row in rows)
    assert told == [(1, 7, "x", False), (2, 2, "y", False), (3, 2, "y", True)]


def test_a_changelog_on_disk_says_what_updates_changed(
    mysql: MySqlStand, database: str, disk: Lake, folder: Path
) -> None:
    """Beside what the log had of a row; rows of before the key was set, and of after, are NULL
    there, and the mirror is the same."""
    mysql.execute("create table t (id int primary key, a int, b text)", database=database)
    follower = DiskFollower(server(mysql), [f"{database}.t"], disk=disk)
    follower.run()
    for key, asked in enumerate((False, True, False)):
        follower.lake_policies = LakePolicies(updated_columns=asked)
        mysql.execute(
            f"insert into t values ({key}, 0, 'x')",
            f"update t set a = 1 where id = {key}",
            "set binlog_row_image = minimal",
            f"update t set b = 'y' where id = {key}",
            database=database,
        )
        follower.run()
    path = folder / "shop/_changes" / database / "t"
    rows = DeltaTable(path).to_pyarrow_table().to_pylist()
    updates = [row for row in rows if row["_change_type"] == "update_postimage"]
    updates.sort(key=itemgetter("_sequence"))
    assert [(update["_updated"], update["_logged"]) for update in updates] == [
        *[(None, None), (None, ["id", "b"])],
        *[(["a"], None), (["b"], ["id", "b"])],
        *[(None, None), (None, ["id", "b"])],
    ]
    assert unequal(follower) == []
