"""Tables that are older than the log: read chunk by chunk over several runs, while others write,
and joined with the log exactly."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from random import Random

import pytest
from pymysql.cursors import Cursor

from lockstep.pipeline.model.table_state import TableCondition, TableEventKind
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.ports.source import Baseline
from lockstep.pipeline.run.load import loads
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.schema.model import DatabaseSchema
from lockstep.pipeline.snapshot.pace import Pace
from lockstep.pipeline.source_plan import SnapshotPlan
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.connection import ConnectionSettings
from lockstep.resources.mysql.schemas import read_databases
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server, settings
from tests.positions.follower import SOURCE, Follower
from tests.positions.four_writers import MIXED, four_write, of_one_row
from tests.positions.paused import Shop

pytestmark = pytest.mark.servers("newest", "8.0", "5.7")

ROWS = 200
SMALL = Pace(seconds=1e-9, least_rows=50, first_rows=50, most_rows=50)
"""Chunks of fifty rows."""


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    """Tables with rows, and a log that has none of them."""
    values = ", ".join(f"({number}, {number})" for number in range(ROWS))
    mysql.execute(
        "create table a (id int primary key, v int)",
        "create table b (id int primary key, v int)",
        "create table uniquely (id int not null, v int, unique key (id))",
        "create table bare (id int primary key, v int)",
        "create table keyless (id int, v int)",
        f"insert into a values {values}",
        f"insert into uniquely values {values}",
        "insert into b values (1, 1)",
        "insert into keyless values (1, 1), (1, 1)",
        "flush binary logs",
        database=database,
    )
    source = server(mysql)
    follower = Follower(source, [f"{database}.*"], start="snapshot")
    return Shop(mysql, database, follower)


@pytest.fixture
def piecemeal(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """How many chunks a run may read."""
    shop.follower.snapshot = SnapshotPlan(max_seconds=1e9, connections=1, pace=SMALL)
    left = [0]
    may = loads.ChunkReader._may_read

    def counted(reader: loads.ChunkReader) -> bool:
        left[0] -= 1
        return left[0] >= 0 and may(reader)

    monkeypatch.setattr(loads.ChunkReader, "_may_read", counted)

    def chunks(number: int) -> None:
        left[0] = number

    return chunks


def loading(shop: Shop) -> set[str]:
    states = shop.follower.ledger.table_states(SOURCE)
    return {t.name for t, one in states.items() if one.is_loading}


def followed(shop: Shop) -> bool:
    """All tables that are there."""
    states = shop.follower.ledger.table_states(SOURCE).values()
    return all(one.is_complete or one.condition is TableCondition.DROPPED for one in states)


def unread(shop: Shop) -> set[str]:
    return {load.table.name for load in shop.follower.ledger.open_loads(SOURCE)}


def require_all(shop: Shop) -> None:
    for table in ("a", "b", "uniquely", "keyless"):
        shop.require_whole(table, rereads=1)


@pytest.mark.thin
def test_a_table_that_is_left_out_while_it_is_read(
    shop: Shop, piecemeal: Callable[[int], None]
) -> None:
    """Changes to rows that were read before are missed, so it is read from the beginning."""
    piecemeal(3)
    shop.run()
    shop.do("update a set v = v + 1")
    shop.run()
    assert "a" in loading(shop)
    shop.follower.tables = [f"{shop.name}.b"]
    shop.run()
    shop.do("update a set v = -1 where id = 0", "insert into b values (2, 2)")
    shop.run()
    shop.follower.tables = [f"{shop.name}.*"]
    piecemeal(100)
    shop.run()
    assert "a" not in unread(shop)
    shop.require_same("a")


@pytest.mark.thin
def test_a_first_run_reads_what_the_log_lacks(shop: Shop) -> None:
    """A table that the log makes is not read from the source."""
    report = shop.run()
    assert (report.rule, report.unfinished_loads, report.quarantined) == (
        "configured-snapshot",
        (),
        (),
    )
    require_all(shop)
    shop.do(
        "update a set v = -1 where id < 10",
        "insert into bare values (1, 1)",
        "create table made (id int primary key, v int)",
        "insert into made values (1, 1)",
    )
    shop.run()
    require_all(shop)
    shop.require_whole("bare", rereads=1)
    shop.require_whole("made")
    assert TableEventKind.REREAD not in shop.events("made")
    assert shop.follower.ledger.open_loads(SOURCE) == []


@pytest.mark.thin
def test_chunk_by_chunk_over_several_runs(shop: Shop, piecemeal: Callable[[int], None]) -> None:
    """What is written meanwhile is captured; the others are merged; each chunk is read once. A
    comparison tells of what is being read; the others are equal."""
    seen = []
    for number in range(20):
        piecemeal(2)
        report = shop.run()
        if not number:
            compared = verify(shop.follower.ports())
            assert [(one.table.name, one.reason) for one in compared.not_proven] == [
                (name, "its rows are being read from the source") for name in sorted(unread(shop))
            ]
            assert all(table.equal for table in compared.tables)
        shop.do(
            f"update a set v = v + 1000 where id % 7 = {number % 7}",
            f"delete from a where id = {number * 11 + 3}",
            f"insert into a values ({ROWS + number}, 0)",
            f"update a set id = id + 10000 where id = {number * 13 + 5}",
            f"insert into b values ({number + 2}, 0)",
        )
        seen.append(loading(shop))
        if not report.unfinished_loads:
            break
    assert seen[0] >= {"a"}
    assert seen[-1] == set()
    assert len(seen) > 3
    shop.run()
    require_all(shop)
    assert verify(shop.follower.ports()).equal
    assert shop.events("a").count(TableEventKind.REREAD) == 1


@pytest.mark.thin
def test_a_run_that_dies_loses_no_chunk(
    shop: Shop, piecemeal: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    piecemeal(5)
    ledger = shop.follower.ledger
    with monkeypatch.context() as patch, suppress(RuntimeError):
        patch.setattr(ledger, "record_capture", _dies)
        shop.run()
    read = [chunk for load in ledger.open_loads(SOURCE) for chunk in load.chunks if chunk.rows]
    assert len(read) >= 3
    shop.do("delete from a where id < 20")
    piecemeal(1000)
    shop.run()
    require_all(shop)
    joined = [
        part
        for batch in shop.batches()
        for part in batch_content(ledger, SOURCE, batch.id).snapshots
    ]
    files = {file.path for part in joined for file in part.files}
    assert {file.path for one in read if one.rows for file in one.rows.files} <= files


def _dies(*_: object) -> None:
    raise RuntimeError("killed")


CHANGED = {
    "altered": ("alter table altered add column w int",),
    "narrowed": ("set sql_mode = ''", "alter table narrowed modify v tinyint"),
    "emptied": ("truncate table emptied",),
    "exchanged": (
        "create table p (id int primary key, v int) partition by hash (id) partitions 1",
        "insert into p values (5, 6)",
        "alter table p exchange partition p0 with table exchanged",
    ),
    "made_again": (
        "drop table made_again",
        "create table made_again (id int primary key, v int)",
        "insert into made_again values (1, 2)",
    ),
    "swapped": ("rename table swapped to swapped2, b to swapped, swapped2 to b",),
    "altered_back": (
        "alter table altered_back add column w int",
        "alter table altered_back drop column w",
    ),
}
"""What happens to each table while it is read."""


@pytest.mark.thin
def test_tables_that_change_while_they_are_read(
    shop: Shop, piecemeal: Callable[[int], None]
) -> None:
    """Some of the chunks of each were read before."""
    for table in CHANGED:
        shop.do(f"create table {table} like a", f"insert into {table} select * from a")
    shop.do("flush binary logs")
    piecemeal(4 + 2 * len(CHANGED))
    shop.run()
    assert loading(shop) >= CHANGED.keys()
    for table, statements in CHANGED.items():
        shop.do(*statements, f"insert into {table} (id, v) values (77777, 1)")
    for _ in range(4):
        piecemeal(1000)
        shop.run()
        if not unread(shop) and followed(shop):
            break
    for table in ("b", *CHANGED):
        mirror = shop.follower.mirror(f"{shop.name}.{table}")
        assert sorted(map(str, mirror)) == sorted(map(str, shop.rows(table)))
    assert loading(shop) == set()


@pytest.mark.since(8, 0, 23)
def test_what_concerns_no_row_costs_no_chunk(
    shop: Shop, piecemeal: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between chunks, and behind the last of them; images of before and behind are merged."""
    voided: list[str] = []
    monkeypatch.setattr(
        shop.follower.ledger, "void_load", lambda lease, load, why: voided.append(why)
    )
    piecemeal(3)
    shop.run()
    shop.do(
        "alter table a add index (v), comment = 'x', alter column v set default 5",
        "insert into a (id) values (1000)",
    )
    piecemeal(3)
    shop.run()
    shop.do(
        "alter table a alter column v set invisible, add check (id > -5), auto_increment = 77",
        "insert into a (id, v) values (1001, 1)",
        "alter table a drop index v",
    )
    piecemeal(1000)
    shop.run()
    shop.do("alter table a alter column v set visible", "delete from a where id = 3")
    shop.run()
    assert voided == []
    shop.require_whole("a", rereads=1)


@dataclass
class AlteredAsItBegins(MySqlServer):
    """A server whose tables are altered, once, behind the place that their structures are
    said to be of, and before they are read."""

    connection: ConnectionSettings
    alter: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        super().__init__(self.connection)

    def baseline(self, names: Collection[TableName] | None = None) -> Baseline:
        low = super().baseline(names).low
        alter, self.alter = self.alter, None
        if alter is not None:
            alter()
        return replace(super().baseline(names), low=low)


@pytest.mark.thin
def test_a_table_that_is_altered_as_its_reading_begins(
    shop: Shop, piecemeal: Callable[[int], None]
) -> None:
    """The log has a statement that the structure has already, and that can be done once."""
    altered = AlteredAsItBegins(settings(shop.stand))
    shop.follower.server = altered
    piecemeal(1000)
    shop.run()
    altered.alter = lambda: shop.do("alter table a add column w int")
    with shop.follower.leased() as lease:
        shop.follower.ledger.order_load(lease, shop.table("a"), author="ann", reason="because")
    piecemeal(2)
    shop.run()
    piecemeal(1000)
    shop.run()
    shop.run()
    shop.require_whole("a", rereads=3)


@pytest.mark.thin
def test_members_that_change_places_as_a_reading_begins(
    shop: Shop, piecemeal: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement can be done twice, and the log does not name the members: nothing would tell
    that a row before it is read with the structure behind it."""
    values = ", ".join(f"({number}, 'x')" for number in range(1, ROWS))
    shop.do(
        "create table members (id int primary key, v enum('x', 'y'))",
        f"insert into members values {values}",
    )
    shop.follower.tables = [f"{shop.name}.b"]
    shop.run()
    altered: list[bool] = []

    def alter_and_read(cursor: Cursor) -> tuple[DatabaseSchema, ...]:
        if not altered:
            altered.append(True)
            shop.do(
                "insert into members values (0, 'x')",
                "alter table members modify v enum('y', 'x')",
            )
        return read_databases(cursor)

    monkeypatch.setattr("lockstep.resources.mysql.server.read_databases", alter_and_read)
    shop.follower.tables = [f"{shop.name}.*"]
    piecemeal(2)
    shop.run()
    piecemeal(1000)
    shop.run()
    assert altered
    shop.require_whole("members", rereads=1)


@pytest.mark.thin
def test_a_table_that_is_altered_again_and_again_holds_up_no_other(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are read, and this one by a later run."""
    shop.do("create table members (id int primary key)", "insert into members values (1)")
    shop.follower.tables = [f"{shop.name}.a"]
    shop.run()

    def alter_and_read(cursor: Cursor) -> tuple[DatabaseSchema, ...]:
        shop.do(f"alter table members add column c{next(numbers)} int")
        return read_databases(cursor)

    numbers = count()
    shop.follower.tables = [f"{shop.name}.*"]
    with monkeypatch.context() as patch:
        patch.setattr("lockstep.resources.mysql.server.read_databases", alter_and_read)
        shop.run()
        assert next(numbers) > 1
    shop.require_same("b")
    assert shop.follower.states()[shop.table("members")].has_stopped
    shop.run()
    shop.require_same("members")


@pytest.mark.thin
def test_a_paused_load_is_read_again(shop: Shop, piecemeal: Callable[[int], None]) -> None:
    piecemeal(3)
    shop.run()
    shop.pause("a")
    shop.do("update a set v = 5")
    piecemeal(1000)
    shop.run()
    shop.resume("a")
    shop.do("update a set v = 6 where id > 3")
    piecemeal(1000)
    shop.run()
    shop.run()
    mirror = shop.follower.mirror(f"{shop.name}.a")
    assert sorted(map(str, mirror)) == sorted(map(str, shop.rows("a")))


@pytest.mark.thin
def test_a_table_that_comes_back_waits_for_its_turn(
    shop: Shop, piecemeal: Callable[[int], None]
) -> None:
    """The log that it lacks is gone, and another table's rows are read first: a second capture
    reads it, and it does not go on without its rows."""
    piecemeal(1000)
    shop.run()
    shop.pause("a", "keyless")
    shop.do("update a set v = 5", "insert into keyless values (2, 2)", "flush binary logs")
    shop.run()
    shop.do("flush binary logs")
    shop.run()
    [(newest, *_)] = shop.stand.rows("show binary logs")[-1:]
    shop.stand.purge_to(newest)
    shop.resume("a")
    shop.resume("keyless")
    piecemeal(0)
    shop.run()
    shop.require_same("keyless")
    piecemeal(1000)
    shop.run()
    shop.require_same("a")


@pytest.mark.thin
@pytest.mark.parametrize("seed", MIXED)
def test_while_four_write(shop: Shop, piecemeal: Callable[[int], None], seed: int) -> None:
    """Several connections, and runs of a few chunks each."""
    random = Random(seed)
    pace = Pace(seconds=1e-9, least_rows=30, first_rows=30, most_rows=30)
    shop.follower.snapshot = SnapshotPlan(max_seconds=1e9, connections=3, pace=pace)
    with four_write(shop, random, _statement):
        for _ in range(60):
            piecemeal(6)
            if not shop.run().unfinished_loads:
                break
    piecemeal(1000)
    shop.run()
    for table in ("a", "b", "uniquely"):
        shop.require_whole(table, rereads=1)
    keyless = shop.state("keyless")
    if keyless.has_stopped:
        assert "at no moment was it free of writes" in (keyless.reason or "")
        shop.resume("keyless")
        shop.run()
    shop.require_whole("keyless", rereads=1)


def _statement(random: Random) -> str:
    if random.random() < 1 / 3:
        keyless = "insert into keyless values (2, 2)", "delete from keyless where id = 2 limit 1"
        return random.choice(keyless)
    return of_one_row(random, range(ROWS * 2), random.choice(("a", "uniquely")))


@pytest.mark.soak
def test_five_thousand_tables(mysql: MySqlStand, database: str) -> None:
    """Each in a chunk of its own, all in the first run; then they go on by the log."""
    names = [f"t{number:04d}" for number in range(5_000)]
    for name in names:
        mysql.execute(
            f"create table {name} (id int primary key, v int)",
            f"insert into {name} values (1, 1)",
            database=database,
        )
    mysql.execute("flush binary logs")
    follower = Follower(server(mysql), [f"{database}.*"], start="snapshot")
    follower.snapshot = SnapshotPlan(max_seconds=1e9)
    assert len(follower.run().finished_loads) == len(names)
    mysql.execute(f"update {database}.{names[-1]} set v = 2")
    follower.run()
    states = follower.ledger.table_states(SOURCE).values()
    assert all(one.is_complete for one in states)
    expected = [[{"id": 1, "v": 2 if name == names[-1] else 1}] for name in names]
    assert [follower.mirror(f"{database}.{name}") for name in names] == expected
