"""`[sources.standby]`: another address that is asked when the first does not answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from demo.tcp import free_port
from lockstep.pipeline.source_plan import SourcePlan, StandbyPlan
from lockstep.pipeline.start.question import StartRule
from lockstep.pipeline.values.errors import SourceDiverged, SourceUnavailable
from lockstep.pipeline.values.places import parse_place
from lockstep.pipeline.values.table import TablePatterns
from lockstep.resources.mysql.connection import ConnectionSettings
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import settings
from tests.positions.follower import SOURCE, Follower
from tests.positions.servers import Pair, catch_up, promote, replicate, uuid_of
from tests.positions.shop import (
    follow,
    newest,
    open_shop,
    put,
    refused,
    require_each_once,
    require_rule,
    require_same,
)


def _down(stand: MySqlStand) -> ConnectionSettings:
    """Its address while nobody listens there."""
    return replace(settings(stand), port=free_port())


def _either(primary: ConnectionSettings, standby: ConnectionSettings) -> MySqlServer:
    return MySqlServer(primary, standby=standby)


@pytest.fixture
def shops(pair: Pair) -> Pair:
    """B follows A, and has all of its shop."""
    open_shop(pair.a)
    put(pair.a, 1, 2)
    replicate(pair.a, pair.b)
    catch_up(pair.a, pair.b)
    return pair


def test_the_standby_is_read_while_the_primary_is_down(shops: Pair) -> None:
    """The rules of a failover hold, there and back: nothing is lost or doubled."""
    follower = follow(shops.a)
    follower.server = _either(settings(shops.a), settings(shops.b))
    follower.run()
    put(shops.a, 3)
    catch_up(shops.a, shops.b)
    follower.server = _either(_down(shops.a), settings(shops.b))
    follower.run()
    require_rule(follower, StartRule.RESUME_OTHER_SERVER)
    require_same(follower, shops.b)
    put(shops.a, 4)
    follower.server = _either(settings(shops.a), settings(shops.b))
    follower.run()
    require_rule(follower, StartRule.RESUME_OTHER_SERVER)
    require_same(follower, shops.a)
    require_each_once(follower)
    reigns = [reign.server_uuid for reign in follower.ledger.server_periods(SOURCE)]
    assert reigns == [uuid_of(shops.a), uuid_of(shops.b), uuid_of(shops.a)]


def test_a_standby_that_is_behind_is_refused(shops: Pair) -> None:
    """It lacks what was read: SourceDiverged, until it has caught up."""
    shops.b.execute("stop replica")
    put(shops.a, 3)
    follower = follow(shops.a)
    follower.run()
    follower.server = _either(_down(shops.a), settings(shops.b))
    refused(follower, SourceDiverged, StartRule.SOURCE_DIVERGED, [uuid_of(shops.b)])
    shops.b.execute("start replica")
    catch_up(shops.a, shops.b)
    follower.server = _either(_down(shops.a), settings(shops.b))
    follower.run()
    require_same(follower, shops.b)
    promote(shops.b)


def test_neither_answers(shops: Pair) -> None:
    """The error is the primary's, and nothing is recorded."""
    port = free_port()
    primary = replace(settings(shops.a), port=port)
    follower = Follower(_either(primary, _down(shops.b)), ["shop.*"])
    with pytest.raises(SourceUnavailable) as caught:
        follower.run()
    assert str(port) in caught.value.message
    assert follower.ledger.decisions(SOURCE) == []


def test_a_standby_has_a_start_of_its_own(shops: Pair) -> None:
    """Where there is no cursor: known by its UUID, or by the address that answered."""
    primary, standby = settings(shops.a), settings(shops.b)
    for uuid, by_itself in ((uuid_of(shops.b), "earliest"), (None, "latest")):
        plan = SourcePlan(
            SOURCE,
            TablePatterns(("shop.*",), ()),
            parse_place("latest"),
            standby=StandbyPlan(parse_place("earliest"), uuid),
        )
        starts = [
            str(plan.start_at(answering.facts()))
            for answering in (
                _either(primary, standby),
                _either(_down(shops.a), standby),
                MySqlServer(standby),
            )
        ]
        assert starts == ["latest", "earliest", by_itself]


def test_a_first_run_on_the_standby(shops: Pair) -> None:
    """Its own start counts, and the primary is read on from there once it is back."""
    both = _either(_down(shops.a), settings(shops.b))
    standby = StandbyPlan(parse_place("earliest"))
    follower = Follower(both, ["shop.*"], "latest", standby=standby)
    follower.run()
    require_rule(follower, StartRule.CONFIGURED_EARLIEST)
    require_same(follower, shops.b)
    put(shops.a, 3)
    follower.server = _either(settings(shops.a), settings(shops.b))
    follower.run()
    require_rule(follower, StartRule.RESUME_OTHER_SERVER)
    assert newest(follower).decision.previous_batch == 1
    require_same(follower, shops.a)
