"""What ends the reading of tables half-way: a server that dies, a privilege that is taken away, a
lake that is full. What was read before stays, and the next run reads on."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import LakeUnavailable, SourceUnavailable
from pipeline.load import Chunk
from pipeline.runs.context import Workplace
from pipeline.snapshot.pace import Pace
from pipeline.source_plan import SnapshotPlan
from pipeline.table_state import TableCondition
from resources.lake.segments import ParquetSegments
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.paused import Shop
from tests.positions.servers import Pair, running

ROWS = 500
FIFTY = SnapshotPlan(seconds=1e9, connections=1, pace=Pace(1e-9, least=50, first=50, most=50))


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


def read(shop: Shop) -> list[Chunk]:
    loads = shop.follower.ledger.open_loads(SOURCE)
    return [chunk for load in loads for chunk in load.chunks if chunk.read is not None]


def test_a_server_that_dies_costs_no_chunk(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        at_chunk(patch, shop.follower, 7, running(shop.stand).kill)
        with pytest.raises(SourceUnavailable):
            shop.run()
    running(shop.stand).start()
    before = read(shop)
    assert len(before) >= 7
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
    assert state.condition is TableCondition.QUARANTINED
    assert "grant select on `shop`.`a`" in (state.hint or "")
    shop.require_whole("b", rereads=1)
    shop.release("a")
    shop.run()
    shop.require_whole("a", rereads=1)


@dataclass
class OnDisk(Follower):
    """Segments on a disk; nothing is merged."""

    folder: Path = Path()

    def work(self, until: str | None = None) -> Workplace:
        return replace(super().work(until), segments=ParquetSegments(self.folder))


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
    before = [chunk.read for chunk in read(shop) if chunk.read is not None]
    assert 4 <= len(before) < 20
    assert files_below(tmp_path) == {Path(file.path).name for one in before for file in one.files}
    follower.capture()
    parts = [part for one in shop.batches() for part in follower.ledger.snapshots(SOURCE, one.id)]
    files = {file: part.table for part in parts for file in part.files}
    assert {file for one in before for file in one.files} <= files.keys()
    assert sum(file.images for file in files) == 2 * ROWS
    assert files_below(tmp_path) == {Path(file.path).name for file in files}


def files_below(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("**/_snapshots/*/*.parquet")}
