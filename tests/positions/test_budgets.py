"""Where a run ends by itself: the head that was fixed before, or a budget that is spent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

import pytest

from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.ports.source import BinlogDump, Received, SourceServer
from lockstep.pipeline.start.bounds import Budget
from lockstep.pipeline.values.position import Coordinates
from lockstep.resources.mysql.receiving import MySqlDump
from tests.fix_mysql import MySqlStand
from tests.positions.follower import SOURCE
from tests.positions.interrupted import noted
from tests.positions.one_table import Shop, open_shop


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    return open_shop(mysql, database)


BUDGETS = {
    Budget(max_transactions=2, max_bytes=1 << 30): 3,
    Budget(max_bytes=1): 5,
    Budget(max_seconds=1e-9): None,
}
"""How many runs five transactions take; how many in a time so short, nobody knows."""


def test_a_budget_cuts_between_transactions(shop: Shop) -> None:
    """Each run ends at the first end of a transaction at or beyond it; the next goes on; at
    last one finds nothing to do. However little time there is, a run that has something to read
    gets on."""
    for number, (budget, batches) in enumerate(BUDGETS.items()):
        with noted(str(budget)):
            keys = range(10 * number + 1, 10 * number + 6)
            shop.stand.execute(
                *(f"insert into {shop.name}.t values ({key}, 0), (-{key}, 0)" for key in keys)
            )
            shop.follower.budget = budget
            shown = [shop.keys()]
            while shop.follower.run().batch_id is not None:
                shown.append(shop.keys())
                assert len(shown[-1]) > len(shown[-2])
                assert sorted(shown[-1]) == sorted(-key for key in shown[-1])
            assert batches in (None, len(shown) - 1)
            assert len(shown[-1]) == len(shown[0]) + 2 * len(keys)


def test_a_run_gets_on_although_its_time_is_over_before_the_log_arrives(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first packet of a dump, which is no part of the log, comes alone."""
    pieces_of = MySqlDump.__iter__

    def first_packet_alone(dump: MySqlDump) -> Iterator[Received]:
        pieces = pieces_of(dump)
        first = next(pieces)
        end = first.begin + 4 + int.from_bytes(first.data[first.begin :][:3].tobytes(), "little")
        yield Received(first.data, first.begin, end)
        yield Received(first.data, end, first.end)
        yield from pieces

    monkeypatch.setattr(MySqlDump, "__iter__", first_packet_alone)
    shop.put(1)
    shop.follower.budget = Budget(max_seconds=1e-9)
    shop.follower.run()
    assert shop.keys() == [1]


def test_the_nearer_of_until_and_a_budget_ends_a_run(shop: Shop) -> None:
    """Both are kept, whichever comes first."""
    shop.put(1, 2, 3)
    place = shop.head()
    shop.put(4)
    shop.follower.budget = Budget(max_transactions=2)
    shop.follower.run(place)
    assert shop.keys() == [1, 2]
    shop.follower.run(place)
    assert shop.keys() == [1, 2, 3]


@dataclass
class BusyServer:
    """A server that commits something whenever a piece of its log was sent."""

    real: SourceServer
    write: Callable[[], None]

    def dump(self, start: Coordinates) -> BinlogDump:
        return BusyDump(self.real.dump(start), self.write)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


@dataclass
class BusyDump:
    dump: BinlogDump
    write: Callable[[], None]

    @property
    def begins(self) -> Coordinates | None:
        return self.dump.begins

    def __iter__(self) -> Iterator[Received]:
        for got in self.dump:
            self.write()
            yield got

    def close(self) -> None:
        self.dump.close()


def test_a_source_that_is_always_written_to_ends_a_run(shop: Shop) -> None:
    """The end is fixed before the first byte: what is committed while the log is read is the
    next run's, and each run ends although the log never does."""
    real, numbers = shop.follower.server, count(1)
    busy = BusyServer(real, lambda: shop.put(next(numbers)))
    shop.follower.server = cast("SourceServer", busy)
    shop.put(0)
    for _ in range(3):
        begin = Coordinates.parse(shop.head())
        report = shop.follower.run()
        assert begin <= report.end.at < Coordinates.parse(shop.head())
    shop.follower.server = real
    shop.follower.run()
    assert shop.keys() == list(range(next(numbers)))


def test_foreign_traffic_moves_the_position(shop: Shop) -> None:
    """Other databases' changes are read over: a batch without segments, acknowledged; then
    nothing is left to do."""
    foreign = f"{shop.name}_foreign"
    shop.stand.execute(
        f"create database {foreign}",
        f"create table {foreign}.t (id int primary key)",
        f"insert into {foreign}.t values (1), (2)",
        f"drop database {foreign}",
    )
    report = shop.follower.run()
    assert (report.transactions, report.rows, report.counts) == (4, 0, {})
    cursor = shop.follower.ledger.cursors(SOURCE).acknowledged
    assert cursor is not None
    assert (cursor.batch, str(cursor.position.at)) == (report.batch_id, shop.head())
    assert batch_content(shop.follower.ledger, SOURCE, cursor.batch).segments == ()
    assert shop.follower.run().batch_id is None
    assert shop.told().reason == f"nothing was written to the log since {cursor.position}"
