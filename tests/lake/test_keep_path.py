"""Two tables that exchange their names exchange their folders: in tables of Delta."""

from __future__ import annotations

from dataclasses import replace

from pipeline.policies import LakePolicies, Renames
from pipeline.runs.acknowledge import acknowledge
from pipeline.runs.capture import capture
from pipeline.runs.merge import merge
from pipeline.table import TableName
from tests.fix_mysql import MySqlStand
from tests.lake.conftest import Lake
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower


def _run(follower: Follower, disk: Lake) -> None:
    with follower.ledger.lock(SOURCE, "test", None) as lease:
        work = replace(
            follower.work(),
            segments=disk.segments,
            changelog=disk.changelog,
            mirrors=disk.mirrors,
        )
        capture(work, lease)
        merge(work, lease)
        acknowledge(work, lease)


def test_a_swap_moves_no_row(mysql: MySqlStand, database: str, disk: Lake) -> None:
    """Each table goes on in the other's folder, and a later change is merged there."""
    mysql.execute(
        *(f"create table {one} (id int primary key, v int)" for one in ("a", "b")),
        database=database,
    )
    policies = LakePolicies(renames=Renames.KEEP_PATH)
    follower = Follower(server(mysql), [f"{database}.*"], lake_policies=policies)
    _run(follower, disk)
    mysql.execute(
        "insert into a values (1, 0), (2, 0)",
        "insert into b values (10, 0), (20, 0)",
        database=database,
    )
    _run(follower, disk)
    mysql.execute("rename table a to t, b to a, t to b", database=database)
    mysql.execute("update a set v = 5 where id = 10", database=database)
    _run(follower, disk)
    _run(follower, disk)
    states = follower.ledger.table_states(SOURCE)
    for name, folder, rows in (
        ("a", "b", [(10, 5), (20, 0)]),
        ("b", "a", [(1, 0), (2, 0)]),
    ):
        state = states[TableName(database, name)]
        assert state.mirror == f"{SOURCE}/{database}/{folder}"
        cursor = follower.ledger.acknowledged_cursor(SOURCE)
        assert cursor is not None
        (entry,) = [
            one
            for one in follower.ledger.version_set(SOURCE, cursor.batch)
            if one.table.name == name
        ]
        assert (entry.mirror, entry.delta_version) == (
            state.mirror,
            disk.mirrors.version(state.mirror),
        )
        found = disk.mirrors.rows(state.mirror, ["id", "v"], entry.delta_version)
        shown = sorted((row["id"], row["v"]) for batch in found for row in batch.to_pylist())
        assert shown == rows
