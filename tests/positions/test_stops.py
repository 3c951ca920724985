"""What stands in the log and lets no run by: all before it is captured, merged and acknowledged,
and only then the run ends; every later run ends there at once.
"""

from __future__ import annotations

import pytest

from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.merge import merge
from lockstep.pipeline.values.errors import LogStops
from tests.fix_mysql import MySqlStand
from tests.positions.follower import SOURCE
from tests.positions.one_table import Shop, open_shop

UNKNOWN = "insert into t values (2, elsewhere())"
"""Whatever a stored function does is in no text that the log has."""


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    shop = open_shop(mysql, database, start="latest")
    mysql.execute("create function elsewhere() returns int no sql return 1", database=database)
    shop.follower.run()
    return shop


def stop(shop: Shop) -> None:
    shop.stand.execute("set binlog_format = statement", UNKNOWN, database=shop.name)


def test_all_before_the_place_is_captured(shop: Shop) -> None:
    """The report says what stopped it; the position is right before the place. Later runs end there
    at once, with the same error; nothing more is recorded, and its hint is the way on."""
    shop.put(1)
    before = shop.head()
    stop(shop)
    behind = shop.head()
    shop.put(3)
    report = shop.follower.run()
    first = report.stop_error
    assert isinstance(first, LogStops)
    assert (shop.keys(), str(report.end.at)) == ([1], before)
    acknowledged = shop.follower.acknowledged()
    assert acknowledged is not None and str(acknowledged.position.at) == before
    batches = [one.id for one in shop.follower.batches(limit=9) if one.end]
    for _ in range(2):
        with pytest.raises(LogStops) as again:
            shop.follower.run()
        assert (again.value.message, again.value.hint) == (first.message, first.hint)
        assert batches == [one.id for one in shop.follower.batches(limit=9) if one.end]
    assert f"start-at {behind}" in first.hint
    shop.follower.choose(behind)
    assert shop.follower.run().stop_error is None
    assert shop.keys() == [1, 3]


@pytest.mark.parametrize("steps", [1, 2])
def test_a_run_that_dies_before_the_end_has_nothing_to_remember(shop: Shop, steps: int) -> None:
    """Killed behind its capture, or its merge: the next run does the rest, and ends there."""
    shop.put(1)
    before = shop.head()
    stop(shop)
    shop.put(3)
    follower = shop.follower
    with follower.ledger.lock(SOURCE, "dies", None) as lease:
        ports = follower.ports()
        capture(ports, lease)
        if steps > 1:
            merge(ports, lease)
    assert follower.run().stop_error is not None
    assert shop.keys() == [1]
    acknowledged = follower.ledger.cursors(SOURCE).acknowledged
    assert acknowledged is not None and str(acknowledged.position.at) == before
    with pytest.raises(LogStops):
        follower.run()
