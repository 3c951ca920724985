"""The same server with another history: what the anchor, the files and the set betray."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from lockstep.commands.status import status_lines, status_values
from lockstep.pipeline.model.table_state import OrderKind
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.run.orders import OrderRequest, plan_resume
from lockstep.pipeline.start.question import StartRule
from lockstep.pipeline.status.facts import Lag
from lockstep.pipeline.status.verdict import verdict
from lockstep.pipeline.values.errors import HistoryRewritten, PositionPurged
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.connection import ConnectionSettings
from lockstep.resources.mysql.server import MySqlServer
from tests.mysql.logged import head
from tests.mysql.reading import settings
from tests.positions.follower import SET_PAUSES, SOURCE
from tests.positions.servers import Pair, executed, purge
from tests.positions.shop import (
    follow,
    open_shop,
    put,
    read_shop,
    refused,
    require_each_once,
    require_rule,
    require_same,
)

_RESET = "reset binary logs and gtids"
T = TableName("shop", "t")


def test_a_reset_that_grew_to_the_same_place_is_noticed(pair: Pair) -> None:
    """After RESET BINARY LOGS AND GTIDS the server reaches the same file, offset and GTIDs
    with other rows: nothing but the anchor tells."""
    follower = read_shop(pair.a, 1, 2)
    before = head(pair.a), executed(pair.a)
    pair.a.execute("set sql_log_bin = 0", "drop database shop", _RESET)
    open_shop(pair.a)
    put(pair.a, 3, 4)
    assert (head(pair.a), executed(pair.a)) == before
    error = refused(follower, HistoryRewritten, StartRule.HISTORY_REWRITTEN, ["is a different one"])
    assert "start-at earliest" in error.hint
    assert follower.pauses == []
    now = datetime.now(UTC)
    found = follower.standing(now=now)
    assert (found.lag, found.headroom, found.reads_other_log) == (Lag(), None, True)
    pairs = [*status_lines(found, verdict(found, now, None), now)][2]
    assert "unknown: the server's log is not the one that was read" in pairs
    assert "would be refused: the server's log is not the one that was read" in pairs
    values = status_values(found, verdict(found, now, None), now, ())
    assert values["captured"]["why_not_by_gtid"] == "the server's log is not the one that was read"


def test_after_a_reset_a_person_may_begin_again(pair: Pair) -> None:
    """The file ends before the cursor, and what was read was never executed. What was between is a
    gap that names the tables; the mirror holds what the new log tells, although keys come
    again."""
    follower = read_shop(pair.a, 1, 2)
    pair.a.execute(_RESET)
    refused(follower, HistoryRewritten, StartRule.HISTORY_REWRITTEN, ["binlog.000001 ends at"])
    assert follower.pauses == []
    put(pair.a, 1, 2, v=5)
    refused(follower, HistoryRewritten, StartRule.HISTORY_REWRITTEN)
    follower.choose("earliest")
    follower.run()
    require_same(follower, pair.a)
    assert [gap.tables for gap in follower.ledger.gaps(SOURCE)] == [("shop.t",)]
    put(pair.a, 3)
    follower.run()
    require_rule(follower, StartRule.RESUME_SAME_SERVER)
    require_same(follower, pair.a)


def test_a_resume_after_a_reset_says_that_no_run_starts(pair: Pair) -> None:
    """With the command that has one start; once that is chosen, what the run does."""
    follower = read_shop(pair.a, 1, 2)
    follower.order(OrderKind.PAUSE, T)
    put(pair.a, 3)
    follower.run()
    pair.a.execute(_RESET)
    asked = OrderRequest(T, "ada", "because")
    sentence = plan_resume(follower.ports(), asked).sentence
    assert sentence.startswith("shop.t waits until a run starts: the log at the cursor binlog.")
    assert "`lockstep start-at earliest --source shop --reason …`" in sentence
    follower.choose("earliest")
    sentence = plan_resume(follower.ports(), asked).sentence
    assert sentence.startswith("the next run reads shop.t from the source: the server's log is not")
    follower.order(OrderKind.RESUME, T)
    follower.run()
    require_same(follower, pair.a)


# -- purged on the same server ---------------------------------------------------


def test_the_file_is_gone_but_nothing_is_missing(pair: Pair) -> None:
    """All that was purged was read: on behind the set, in the files that are left."""
    follower = read_shop(pair.a, 1, 2)
    purge(pair.a)
    put(pair.a, 3)
    assert follower.run().transactions == 1
    require_rule(follower, StartRule.RESUME_AFTER_PURGE)
    require_same(follower, pair.a)
    require_each_once(follower)
    follower.run()
    assert len(follower.ledger.server_periods(SOURCE)) == 1


def test_the_file_is_gone_and_something_is_missing(pair: Pair) -> None:
    """PositionPurged names the file, the oldest one there is, and the GTIDs."""
    open_shop(pair.a)
    follower = follow(pair.a)
    follower.run()
    before = executed(pair.a)
    put(pair.a, 1)
    purge(pair.a)
    lost = str(executed(pair.a).difference(before))
    names = ["binlog.000001", "oldest now: binlog.000002", lost]
    refused(follower, PositionPurged, StartRule.POSITION_PURGED, names)


# -- the set that lags -----------------------------------------------------------


class _Lagging(MySqlServer):
    """A server whose `gtid_executed` lacks some transactions for so many looks."""

    def __init__(self, settings: ConnectionSettings, lacks: GtidSet, looks: int) -> None:
        super().__init__(settings)
        self._lacks = lacks
        self._looks = looks

    def facts(self) -> ServerFacts:
        facts = super().facts()
        self._looks -= 1
        if self._looks < 0:
            return facts
        there = GtidSet.parse(facts.gtid_executed).difference(self._lacks)
        return replace(facts, gtid_executed=str(there))


def test_a_set_that_lags_the_log_is_waited_for(pair: Pair) -> None:
    """Under load `gtid_executed` is behind the log: it is looked at again for a while. One that
    never comes is a rewritten history: the log is as it was read, and the server says it never
    executed it."""
    follower = read_shop(pair.a, 1)
    lacks = executed(pair.a)
    put(pair.a, 2)
    follower.server = _Lagging(settings(pair.a), lacks, looks=6)
    follower.run()
    assert {*follower.pauses} == {1.0}
    require_rule(follower, StartRule.RESUME_SAME_SERVER)
    require_same(follower, pair.a)
    lacks = executed(pair.a)
    follower.server = _Lagging(settings(pair.a), lacks, looks=1000)
    follower.pauses.clear()
    names = [f"never executed {lacks}"]
    refused(follower, HistoryRewritten, StartRule.HISTORY_REWRITTEN, names)
    assert follower.pauses == SET_PAUSES
