"""`_transactions` and `_ddl` of a source, against what a real server did and says of its log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from lockstep.pipeline.ports.changelog import Published
from lockstep.pipeline.run.acknowledge import acknowledge
from lockstep.pipeline.run.merge import merge
from lockstep.pipeline.values.segment import SystemTable
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import Crash, mortal
from tests.twins.changelog import MemoryChangelog
from tests.twins.lake import MemoryLake

pytestmark = pytest.mark.servers("newest", "8.0", "5.7")

Row = dict[str, Any]


@dataclass
class Scene:
    """Two tables, `a` and `b`, on a real server, and their follower after a first run."""

    stand: MySqlStand
    name: str
    other: str
    follower: Follower

    def do(self, *statements: str) -> None:
        self.stand.execute(*statements, database=self.name)

    def rows(self, table: SystemTable) -> list[Row]:
        return self._rows(table)

    def changes(self) -> list[Row]:
        """The marks of all changelogs' rows, by their numbers."""
        below = f"{SOURCE}/_changes/{self.name}/"
        found = [
            row
            for path in self.follower.lake.tables
            if path.startswith(below)
            for row in self._rows(path.removeprefix(f"{SOURCE}/"))
        ]
        return sorted(found, key=lambda row: int(row["_sequence"]))

    def _rows(self, folder: str) -> list[Row]:
        commits = self.follower.lake.tables.get(f"{SOURCE}/{folder}")
        return [] if commits is None else commits[-1].rows.to_pylist()


@pytest.fixture
def scene(mysql: MySqlStand, database: str) -> Iterator[Scene]:
    other = f"{database}_other"
    mysql.execute(
        *(f"create table {table} (id int primary key, v int)" for table in "ab"),
        "insert into b values (1, 1)",
        f"create database {other}",
        f"create table {other}.t (id int primary key)",
        database=database,
    )
    made = Scene(mysql, database, other, Follower(server(mysql), [f"{database}.*"]))
    made.follower.run()
    yield made
    mysql.execute(f"drop database {other}")


def logged(stand: MySqlStand, file: str, offset: int) -> list[tuple[object, ...]]:
    """(file, begin, end, GTID, server id) of each transaction behind a place, as the server
    shows them."""
    found: list[tuple[object, ...]] = []
    for name, begin, kind, server_id, end, info in stand.rows(
        f"show binlog events in '{file}' from {offset}"
    ):
        if kind == "Gtid":
            (gtid,) = re.findall(r"'([^']+)'", info)
            found.append((name, begin, end, gtid, server_id))
        elif kind not in ("Rotate", "Stop"):
            found[-1] = (*found[-1][:2], end, *found[-1][3:])
    return found


WRITTEN = (
    "insert into a values (1, 1), (2, 2)",
    "begin",
    "insert into a values (3, 3)",
    "update a set v = v + 1 where id <= 2",
    "delete from a where id = 3",
    "insert into b values (3, 3)",
    "commit",
)


def test_each_transaction_has_a_row(scene: Scene) -> None:
    """Its place, its GTID and its server as the log has them; how many rows of captured
    tables it changed, and which changes are its own; also where it changed none."""
    at = scene.stand.head()
    scene.do(
        *WRITTEN,
        f"insert into {scene.other}.t values (1)",
        "alter table a add column w int default 5",
        "truncate table b",
        "insert into b select id + 10, v from a",
        "create view seen as select * from a",
    )
    scene.follower.run()
    found = scene.rows(SystemTable.TRANSACTIONS)
    places = ("_file", "_offset", "end_offset", "_gtid", "_server_id")
    assert [tuple(row[name] for name in places) for row in found] == logged(scene.stand, *at)
    assert [row["rows"] for row in found] == [2, 5, 0, 0, 0, 2, 0]
    batch = scene.follower.ledger.batches(SOURCE)[0].id
    assert {row["_batch"] for row in found} == {batch}
    changes = scene.changes()
    own: dict[str, list[int]] = {}
    for change in changes:
        own.setdefault(change["_gtid"], []).append(change["_sequence"])
    for row in found:
        numbers = own.get(row["_gtid"])
        ends = (row["first_sequence"], row["last_sequence"])
        assert ends == ((numbers[0], numbers[-1]) if numbers else (None, None))
    committed = {change["_gtid"]: change["_committed_at"] for change in changes}
    told = {row["_gtid"]: row["_committed_at"] for row in found if row["_gtid"] in committed}
    assert told == committed


def test_each_statement_has_a_row(scene: Scene) -> None:
    """As it was written, with what became of each table, in the place where it stands among
    the changes; a swap is one row."""
    scene.do(
        "insert into a values (1, 1)",
        "alter table a add column w int default 5",
        "insert into a values (2, 2, 2)",
        "insert into b values (5, 5)",
        "truncate table b",
        "insert into b values (9, 9)",
        "rename table a to c, b to a, c to b",
        f"create table {scene.other}.u (id int)",
        "drop table if exists nothing_there",
        "create view seen as select 1",
    )
    scene.follower.run()
    found = scene.rows(SystemTable.DDL)
    name = scene.name
    assert [(row["statement"], row["database"], row["outcome"]) for row in found] == [
        ("alter table a add column w int default 5", name, "followed"),
        ("truncate table b", name, "followed"),
        ("rename table a to c, b to a, c to b", name, "followed"),
        (f"create table {scene.other}.u (id int)", name, "followed"),
        ("DROP TABLE IF EXISTS `nothing_there` /* generated by server */", name, "followed"),
    ]
    added, emptied, swapped, created, nothing = (row["tables"] for row in found)
    assert [(one["name"], one["schema_version"], one["action"]) for one in added] == [
        ("a", 2, "follow")
    ]
    assert added[0]["effect"] == "columns: (id, v), (id, v, w)"
    assert [(one["name"], one["effect"], one["action"]) for one in emptied] == [
        ("b", "emptied", "empty")
    ]
    assert {(one["name"], one["schema_version"], one["action"]) for one in swapped} == {
        ("a", 3, "copy"),
        ("b", 2, "re-read"),
        ("c", None, None),
    }
    assert [(one["database"], one["name"], one["action"]) for one in created] == [
        (scene.other, "u", None)
    ]
    assert {one["effect"] for one in nothing} == {"unchanged: it does not exist"}
    for row in found:
        begins = row["_file"], row["_offset"]
        for change in scene.changes():
            if change["_change_type"] == "resnapshot":
                continue
            before = (change["_file"], change["_offset"]) <= begins
            assert (change["_sequence"] <= row["_sequence"]) == before
    transactions = {row["_gtid"]: row for row in scene.rows(SystemTable.TRANSACTIONS)}
    same = ("_file", "_offset", "end_offset", "_committed_at", "_server_id", "_batch")
    for row in found:
        assert {n: row[n] for n in same} == {n: transactions[row["_gtid"]][n] for n in same}
    scene.do("create table d (id int primary key, v int)", "insert into d values (1, 1)")
    scene.do("alter table d modify v tinyint")
    scene.follower.run()
    [one] = scene.rows(SystemTable.DDL)[-1]["tables"]
    assert (one["name"], one["action"]) == ("d", "quarantined")
    assert "stored values" in one["reason"]


class Mortal(MemoryChangelog):
    """The process dies behind the publish of that number."""

    def __init__(self, lake: MemoryLake, number: int) -> None:
        super().__init__(lake)
        self._left = number

    def publish(self, folder: str, **told: Any) -> Published:
        done = super().publish(folder, **told)
        self._left -= 1
        if not self._left:
            raise Crash
        return done


@pytest.mark.thin
def test_each_batch_is_there_once(scene: Scene) -> None:
    """Wherever the process dies between the publishes, and however often it is repeated."""
    at = scene.stand.head()
    for number in (1, 2, 3, 4):
        scene.do(f"insert into a (id) values ({number})", f"alter table b add n{number} int")
        scene.do(f"insert into b (id) values ({number + 100})")
        scene.follower.capture()
        with scene.follower.leased() as lease:
            ports = scene.follower.ports()
            dying = replace(ports, changelog=Mortal(scene.follower.lake, number))
            with pytest.raises(Crash):
                merge(dying, lease)
            merge(ports, lease)
            merge(ports, lease)
            acknowledge(ports, lease)
    expected = [gtid for *_, gtid, _ in logged(scene.stand, *at)]
    assert [row["_gtid"] for row in scene.rows(SystemTable.TRANSACTIONS)] == expected
    statements = [row["statement"] for row in scene.rows(SystemTable.DDL)]
    assert statements == [f"alter table b add n{number} int" for number in (1, 2, 3, 4)]


@pytest.mark.thin
def test_an_abandoned_capture_leaves_no_rows(scene: Scene) -> None:
    """What it read is read again, and told once."""
    at = scene.stand.head()
    scene.do(*WRITTEN, "alter table b add n int")
    with mortal(scene.follower, "record_capture", after=False), pytest.raises(Crash):
        scene.follower.capture()
    scene.follower.run()
    expected = [gtid for *_, gtid, _ in logged(scene.stand, *at)]
    assert [row["_gtid"] for row in scene.rows(SystemTable.TRANSACTIONS)] == expected
    assert len(scene.rows(SystemTable.DDL)) == 1
    files = [path for path in scene.follower.lake.files if "/_ddl/" in path]
    assert len(files) == 1
    before = len(scene.follower.lake.tables[f"{SOURCE}/_transactions"])
    scene.follower.run()
    assert len(scene.follower.lake.tables[f"{SOURCE}/_transactions"]) == before, "nothing is new"
