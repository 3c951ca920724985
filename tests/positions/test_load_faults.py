"""What ends the reading of tables half-way: a server that dies, a privilege that is taken away, a
lake that is full. What was read before stays, and the next run reads on."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.pipeline.model.load import Chunk
from lockstep.pipeline.model.table_state import TableCondition
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.load import loads
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.snapshot.pace import LoadLimits, Pace
from lockstep.pipeline.source_plan import SnapshotPlan
from lockstep.pipeline.values.errors import LakeUnavailable, SourceUnavailable, StoppedBy
from lockstep.pipeline.values.policies import OnPositionLost, StartPolicies
from lockstep.pipeline.values.row_groups import row_groups
from lockstep.resources.lake.changelog.segments import ParquetSegments
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.paused import Shop
from tests.positions.servers import Pair, running

ROWS = 500
FIFTY = SnapshotPlan(
    max_seconds=1e9, connections=1, pace=Pace(1e-9, least_rows=50, first_rows=50, most_rows=50)
)


@pytest.fixture
def shop(pair: Pair) -> Shop:
    values = ", ".join(f"({number}, repeat('x', 900))" for number in range(ROWS))
    pair.a.execute(
        "create database shop",
        *(f"create table shop.{name} (id int primary key, v text)" for name in "ab"),
        *(f"insert into shop.{name} values {values}" for name in "ab"),
        "flush binary logs",
    )
    follower = Follower(server(pair.a), ["shop.*"], start="snapshot", snapshot=FIFTY)
    return Shop(pair.a, "shop", follower)


def at_chunk(
    patch: pytest.MonkeyPatch, follower: Follower, number: int, fault: Callable[[], None]
) -> None:
    """Behind so many chunks that are recorded."""
    record, seen = follower.ledger.record_chunk, [0]

    def recorded(*arguments: Any) -> None:
        record(*arguments)
        seen[0] += 1
        if seen[0] == number:
            fault()

    patch.setattr(follower.ledger, "record_chunk", recorded)


def among_large_rows(patch: pytest.MonkeyPatch, fault: Callable[[], None]) -> None:
    """Behind the first rows of a chunk that come to many megabytes."""
    done = list[bool]()

    def taken(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.nbytes > 1 << 20 and not done:
                done.append(True)
                fault()
            yield batch

    patch.setattr(loads, "row_groups", lambda batches: row_groups(taken(batches)))


def read(shop: Shop) -> list[Chunk]:
    loads = shop.follower.ledger.open_loads(SOURCE)
    return [chunk for load in loads for chunk in load.chunks if chunk.rows is not None]


def test_a_server_that_dies_costs_one_chunk(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """That which it was sending, 80 MB long: more than a batch and what both ends keep of it."""
    without_log = "set sql_log_bin = 0"
    shop.do(
        "alter table b modify v mediumtext",
        without_log,
        "update b set v = repeat('y', 2000000) where id between 200 and 239",
    )
    with monkeypatch.context() as patch:
        among_large_rows(patch, running(shop.stand).kill)
        with pytest.raises(SourceUnavailable):
            shop.run()
    running(shop.stand).start()
    shop.do(without_log, "update b set v = 'shorter' where id between 200 and 239")
    before = read(shop)
    assert len(before) >= 8
    loads = {load.table.name: load for load in shop.follower.ledger.open_loads(SOURCE)}
    assert [chunk.number for load in loads.values() for chunk in load.unread_chunks] == [4]
    shop.do("update a set v = 'later' where id % 3 = 0", "delete from b where id < 60")
    with monkeypatch.context() as patch:
        told: list[int] = []
        at_chunk(patch, shop.follower, 1, lambda: told.append(len(read(shop))))
        shop.run()
    assert told == [len(before) + 1]
    for table in "ab":
        shop.require_whole(table, rereads=1)


def test_a_privilege_that_is_taken_away_stops_that_table(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def revoked() -> None:
        shop.stand.execute(
            "revoke select on *.* from lockstep", "grant select on shop.b to lockstep"
        )

    try:
        with monkeypatch.context() as patch:
            at_chunk(patch, shop.follower, 3, revoked)
            shop.run()
    finally:
        shop.stand.execute("grant select on *.* to lockstep")
    state = shop.state("a")
    assert state.has_stopped
    assert "GRANT SELECT ON `shop`.`a`" in (state.hint or "")
    shop.require_whole("b", rereads=1)
    shop.resume("a")
    shop.run()
    shop.require_whole("a", rereads=1)


def test_reading_waits_for_what_is_more_urgent(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is busy, and a log that is being purged: one chunk is read in any case, the
    log is captured, and the next run reads on."""
    monkeypatch.setattr(loads, "CHECK_SECONDS", 0.0)
    busy = replace(FIFTY, limits=LoadLimits(threads_running=0, pause_seconds=1e9))
    follower = Follower(shop.follower.server, ["shop.*"], "snapshot", snapshot=busy)
    shop = replace(shop, follower=follower)
    shop.run()
    assert len(read(shop)) == 1
    assert "threads are running at the source, more than 0" in follower.notes[-1]
    shop.do("update a set v = 'later' where id % 3 = 0", "flush binary logs")
    start = shop.run().end.at.file
    shop.do("insert into b values (1000, 'new')")
    follower.snapshot = FIFTY
    with monkeypatch.context() as patch:
        at_chunk(patch, follower, 3, lambda: shop.do(f"purge binary logs to '{start}'"))
        report = shop.run()
    assert len(read(shop)) == 2 + 3
    assert f"the server purged its log up to {start}" in follower.notes[-1]
    assert {one.table.name for one in report.unfinished_loads} == {"a", "b"}
    shop.run()
    for table in "ab":
        shop.require_whole(table, rereads=1)


def test_tables_are_not_read_beside_a_transaction_that_is_held_open(
    mysql: MySqlStand, database: str
) -> None:
    """It has its GTID already, so the log may have it. The run does not wait for its end: it says
    who is asked to act, as do the next ones, and reads the tables once the session has ended it."""
    shop = Shop(mysql, database, Follower(server(mysql), [f"{database}.*"], "snapshot"))
    shop.do("create table a (id int primary key)", "insert into a values (1)")
    with mysql.connect(database) as session, session.cursor() as cursor:
        cursor.execute("set gtid_next = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1'")
        cursor.execute("begin")
        for _ in range(2):
            shop.run()
            assert "`select @@global.gtid_owned` ends with its thread" in str(
                shop.state("a").reason
            )
            assert shop.state("a").stopped_by is StoppedBy.RUN
        [(owned,)] = mysql.rows("select @@global.gtid_owned")
        cursor.execute("select connection_id()")
        assert cursor.fetchall() == ((int(str(owned).rpartition("#")[2]),),)
        cursor.execute("rollback")
        cursor.execute("set gtid_next = 'automatic'")
    shop.run()
    shop.require_whole("a", rereads=1)


class Killed(Exception):
    """The run ends here."""


def kill() -> None:
    raise Killed


@pytest.mark.parametrize("regrown", [False, True], ids=["shorter", "longer"])
def test_a_log_that_was_reset_while_the_first_run_was_dead(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, regrown: bool
) -> None:
    """The changes after the first chunks are gone with the log, so these are read again."""
    with monkeypatch.context() as patch:
        at_chunk(patch, shop.follower, 3, kill)
        with pytest.raises(Killed):
            shop.run()
    assert read(shop)
    shop.do("update a set v = 'lost'", "delete from b where id < 60")
    shop.do("reset binary logs and gtids")
    if regrown:
        # A file's time of creation has whole seconds.
        shop.do("set timestamp = unix_timestamp() + 1", *["flush binary logs"] * 3)
        shop.do("update a set v = 'later' where id % 7 = 0")
    shop.run()
    for table in "ab":
        shop.require_whole(table, rereads=1)


def test_a_log_that_is_purged_ends_the_wait_for_a_busy_server(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is captured before it is lost, and the next run reads on."""
    monkeypatch.setattr(loads, "CHECK_SECONDS", 0.0)
    follower = shop.follower
    follower.snapshot = replace(FIFTY, limits=LoadLimits(pause_seconds=0.0))
    shop.do("flush binary logs")
    file = shop.stand.head()[0]
    asked: list[str] = []

    def reason_to_wait(*_: object) -> str | None:
        if len(asked) == 1:
            shop.do("flush binary logs", f"purge binary logs to '{file}'")
        asked.append("it is busy")
        return "it is busy" if 1 < len(asked) < 9 else None

    monkeypatch.setattr(loads, "reason_to_wait", reason_to_wait)
    shop.run()
    assert len(asked) == 2
    assert f"the server purged its log up to {file}" in follower.notes[-1]
    shop.run()
    for table in "ab":
        shop.require_whole(table, rereads=1)


def test_a_log_that_was_purged_unread(shop: Shop) -> None:
    """With `on_position_lost = "resnapshot"` all tables are read again, over as many runs as it
    takes: what was changed, deleted, dropped, made and altered in between is right."""
    policies = StartPolicies(on_position_lost=OnPositionLost.RESNAPSHOT)
    follower = replace(shop.follower, policies=policies)
    shop = replace(shop, follower=follower)
    shop.do(
        "create table keyless (id int)",
        "insert into keyless values (1), (1)",
        "create table gone (id int primary key)",
        "insert into gone values (1)",
    )
    shop.run()
    shop.do(
        "update a set v = 'lost' where id % 3 = 0",
        "delete from b where id < 60",
        "insert into keyless values (1)",
        "alter table b add column w int default 7",
        "create table made (id int primary key)",
        "insert into made values (1)",
        "drop table gone",
        "flush binary logs",
    )
    newest = shop.stand.rows("show binary logs")[-1][0]
    shop.do(f"purge binary logs to '{newest}'", "update a set v = 'later' where id % 7 = 0")
    follower.snapshot = replace(FIFTY, limits=LoadLimits(threads_running=0, pause_seconds=1e9))
    for number in range(3):
        shop.run()
        shop.do(f"update b set w = w + 1 where id % 5 = {number}", "delete from a where id < 9")
    assert unread(follower)
    follower.snapshot = FIFTY
    shop.run()
    shop.run()
    assert not unread(follower)
    compared = verify(follower.ports())
    assert compared.equal
    tables = {table.table.name for table in compared.tables}
    assert tables == {"a", "b", "keyless", "made"}
    assert shop.state("gone").condition is TableCondition.DROPPED


def unread(follower: Follower) -> bool:
    return bool(follower.ledger.open_loads(SOURCE))


@dataclass
class OnDisk(Follower):
    """Segments on a disk; nothing is merged."""

    folder: Path = Path()

    def ports(self, until: str | None = None) -> RunPorts:
        return replace(super().ports(until), segments=ParquetSegments(self.folder))


@contextmanager
def full(most: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_lake_without_room_costs_no_chunk(shop: Shop, tmp_path: Path) -> None:
    """The first chunk with rows that do not fit ends the run, which says so, and
    leaves nothing of it; with room, the next one reads on."""
    shop.do(
        "update b set v = concat(hex(random_bytes(1024)), hex(random_bytes(1024))) where id >= 200"
    )
    memory = shop.follower
    follower = OnDisk(memory.server, memory.tables, "snapshot", snapshot=FIFTY, folder=tmp_path)
    with full(64 << 10), pytest.raises(LakeUnavailable, match=str(tmp_path)):
        follower.capture()
    shop = replace(shop, follower=follower)
    before = [chunk.rows for chunk in read(shop) if chunk.rows is not None]
    assert 4 <= len(before) < 20
    assert files_below(tmp_path) == {Path(file.path).name for one in before for file in one.files}
    follower.capture()
    parts = [
        part
        for one in shop.batches()
        for part in batch_content(follower.ledger, SOURCE, one.id).snapshots
    ]
    files = {file: part.table for part in parts for file in part.files}
    assert {file for one in before for file in one.files} <= files.keys()
    assert sum(file.images for file in files) == 2 * ROWS
    assert files_below(tmp_path) == {Path(file.path).name for file in files}


def files_below(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("**/_snapshots/*/*.parquet")}
