"""`_transactions` and `_ddl` of a source, against what a real server did and says of its log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from lockstep.pipeline.ports.changelog import Published
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.run.acknowledge import acknowledge
from lockstep.pipeline.run.merge import merge
from lockstep.pipeline.run.status.span_report import report_of_span
from lockstep.pipeline.values.places import parse_place
from lockstep.pipeline.values.segment import SystemTable
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import Crash, mortal
from tests.positions.paused import Shop
from tests.twins.changelog import MemoryChangelog
from tests.twins.lake import MemoryLake

pytestmark = pytest.mark.servers("newest", "8.0", "5.7")

Row = dict[str, Any]


def rows(shop: Shop, folder: str) -> list[Row]:
    """Those of a table of the lake, below the source's folder."""
    commits = shop.follower.lake.tables.get(f"{SOURCE}/{folder}")
    return [] if commits is None else commits[-1].rows.to_pylist()


def changed(shop: Shop) -> list[Row]:
    """The marks of all changelogs' rows, by their numbers."""
    below = f"{SOURCE}/_changes/{shop.name}/"
    paths = [path for path in shop.follower.lake.tables if path.startswith(below)]
    found = [row for path in paths for row in rows(shop, path.removeprefix(f"{SOURCE}/"))]
    return sorted(found, key=lambda row: int(row["_sequence"]))


@pytest.fixture
def other(mysql: MySqlStand) -> Iterator[str]:
    """A database of which nothing is captured."""
    with mysql.own_database() as name:
        mysql.execute("create table t (id int primary key)", database=name)
        yield name


@pytest.fixture
def shop(mysql: MySqlStand, database: str, other: str) -> Shop:
    """Two tables, one of which has a row, after a first run."""
    shop = Shop(mysql, database, Follower(server(mysql), [f"{database}.*"]))
    shop.do(*(f"create table {table} (id int primary key, v int)" for table in "ab"))
    shop.do("insert into b values (1, 1)")
    shop.run()
    return shop


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


def test_each_transaction_has_a_row(shop: Shop, other: str) -> None:
    """Its place, its GTID and its server as the log has them; how many rows of captured
    tables it changed, and which changes are its own; also where it changed none."""
    at = shop.stand.head()
    shop.do(
        *WRITTEN,
        f"insert into {other}.t values (1)",
        "alter table a add column w int default 5",
        "truncate table b",
        "insert into b select id + 10, v from a",
        "create view seen as select * from a",
    )
    shop.follower.run()
    found = rows(shop, SystemTable.TRANSACTIONS)
    places = ("_file", "_offset", "end_offset", "_gtid", "_server_id")
    assert [tuple(row[name] for name in places) for row in found] == logged(shop.stand, *at)
    assert [row["rows"] for row in found] == [2, 5, 0, 0, 0, 2, 0]
    batch = shop.follower.ledger.batches(SOURCE)[0].id
    assert {row["_batch"] for row in found} == {batch}
    changes = changed(shop)
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


def test_each_statement_has_a_row(shop: Shop, other: str) -> None:
    """As it was written, with what became of each table, in the place where it stands among
    the changes; a swap is one row."""
    shop.do(
        "insert into a values (1, 1)",
        "alter table a add column w int default 5",
        "insert into a values (2, 2, 2)",
        "insert into b values (5, 5)",
        "truncate table b",
        "insert into b values (9, 9)",
        "rename table a to c, b to a, c to b",
        f"create table {other}.u (id int)",
        "drop table if exists nothing_there",
        "create view seen as select 1",
    )
    shop.follower.run()
    found = rows(shop, SystemTable.DDL)
    name = shop.name
    assert [(row["statement"], row["database"], row["outcome"]) for row in found] == [
        ("alter table a add column w int default 5", name, "followed"),
        ("truncate table b", name, "followed"),
        ("rename table a to c, b to a, c to b", name, "followed"),
        (f"create table {other}.u (id int)", name, "followed"),
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
        (other, "u", None)
    ]
    assert {one["effect"] for one in nothing} == {"unchanged: it does not exist"}
    for row in found:
        begins = row["_file"], row["_offset"]
        for change in changed(shop):
            if change["_change_type"] == "resnapshot":
                continue
            before = (change["_file"], change["_offset"]) <= begins
            assert (change["_sequence"] <= row["_sequence"]) == before
    transactions = {row["_gtid"]: row for row in rows(shop, SystemTable.TRANSACTIONS)}
    same = ("_file", "_offset", "end_offset", "_committed_at", "_server_id", "_batch")
    for row in found:
        assert {n: row[n] for n in same} == {n: transactions[row["_gtid"]][n] for n in same}
    shop.do("create table d (id int primary key, v int)", "insert into d values (1, 1)")
    shop.do("alter table d modify v tinyint")
    shop.follower.run()
    [one] = rows(shop, SystemTable.DDL)[-1]["tables"]
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
def test_a_report_lists_each_statement_on_a_captured_table(shop: Shop, other: str) -> None:
    """Several of one table in a run, also those that left no event: of a table without a row so
    far, of one that stopped, and those after which the rows are the same. Each once, at its place
    in the order of the log, as `_ddl` has them."""
    shop.do(
        "create table c (id int primary key, v int)",
        "alter table c add index by_v (v)",
        "alter table b comment = 'first'",
        "alter table b add column x int",
        "insert into a values (7, 7)",
        "alter table a add column x int, add column y int",
        "truncate table a",
        "alter table a drop column x",
        "insert into c values (1, 1)",
        "alter table c modify v varchar(10)",
        "alter table c add column z int",
        f"create table {other}.u (id int)",
    )
    shop.follower.run()
    shop.do(
        "insert into a (id, v) values (8, 8)", "alter table a add column z int", "truncate table a"
    )
    shop.follower.run()
    whole = Span(parse_place("earliest"), parse_place("latest"))
    report = report_of_span(shop.follower.ledger, SOURCE, whole, datetime.now(UTC))
    told = [
        (change.event.place.offset, change.event.table.name, change.effects[0].partition(": ")[2])
        for change in report.structure_changes
        if change.statement is not None
    ]
    expected = [
        (row["end_offset"], table["name"], table["effect"])
        for row in rows(shop, SystemTable.DDL)
        for table in row["tables"]
        if table["database"] == shop.name
    ]
    assert told == expected
    kinds = [str(change.event.kind) for change in report.structure_changes]
    assert kinds.count("truncated") == 2


def test_each_batch_is_there_once(shop: Shop) -> None:
    """Wherever the process dies between the publishes, and however often it is repeated."""
    at = shop.stand.head()
    for number in (1, 2, 3, 4):
        shop.do(f"insert into a (id) values ({number})", f"alter table b add n{number} int")
        shop.do(f"insert into b (id) values ({number + 100})")
        shop.follower.capture()
        with shop.follower.leased() as lease:
            ports = shop.follower.ports()
            dying = replace(ports, changelog=Mortal(shop.follower.lake, number))
            with pytest.raises(Crash):
                merge(dying, lease)
            merge(ports, lease)
            merge(ports, lease)
            acknowledge(ports, lease)
    expected = [gtid for *_, gtid, _ in logged(shop.stand, *at)]
    assert [row["_gtid"] for row in rows(shop, SystemTable.TRANSACTIONS)] == expected
    statements = [row["statement"] for row in rows(shop, SystemTable.DDL)]
    assert statements == [f"alter table b add n{number} int" for number in (1, 2, 3, 4)]


@pytest.mark.thin
def test_an_abandoned_capture_leaves_no_rows(shop: Shop) -> None:
    """What it read is read again, and told once."""
    at = shop.stand.head()
    shop.do(*WRITTEN, "alter table b add n int")
    with mortal(shop.follower, "record_capture", after=False), pytest.raises(Crash):
        shop.follower.capture()
    shop.follower.run()
    expected = [gtid for *_, gtid, _ in logged(shop.stand, *at)]
    assert [row["_gtid"] for row in rows(shop, SystemTable.TRANSACTIONS)] == expected
    assert len(rows(shop, SystemTable.DDL)) == 1
    files = [path for path in shop.follower.lake.files if "/_ddl/" in path]
    assert len(files) == 1
    before = len(shop.follower.lake.tables[f"{SOURCE}/_transactions"])
    shop.follower.run()
    assert len(shop.follower.lake.tables[f"{SOURCE}/_transactions"]) == before, "nothing is new"
