"""The same server with another history, or its GTIDs given anew: what the anchor, the files, the
set and the transactions betray."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lockstep.commands.status import status_lines, status_values
from lockstep.pipeline.model.table_state import OrderKind
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.run.orders import OrderRequest, plan_resume
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.start.question import StartRule
from lockstep.pipeline.status.facts import Lag
from lockstep.pipeline.status.verdict import verdict
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import (
    HistoryRewritten,
    HistoryUnproven,
    PositionPurged,
    PreparedElsewhere,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.connection import ConnectionSettings
from lockstep.resources.mysql.server import MySqlServer
from tests.mysql.logged import head
from tests.mysql.reading import settings
from tests.positions.follower import SET_PAUSES, SOURCE
from tests.positions.servers import (
    Pair,
    catch_up,
    end_xa,
    executed,
    fresh,
    prepare_xa,
    promote,
    purge,
    replicate,
    uuid_of,
)
from tests.positions.shop import (
    changes,
    follow,
    newest,
    open_shop,
    put,
    read_shop,
    refused,
    require_each_once,
    require_rule,
    require_same,
    turn_to,
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
    never comes is refused: the log is as it was read, and the server says it did not execute it."""
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
    names = [f"is the log that was read, but the server's GTID set lacks {lacks}"]
    refused(follower, HistoryRewritten, StartRule.HISTORY_REWRITTEN, names)
    assert follower.pauses == SET_PAUSES


# -- GTIDs that were given anew: the numbers say that all is there, the log that it is not -----


def test_a_copy_of_a_server_that_was_reset_is_refused(either_pair: Pair) -> None:
    """Read to A:1-5, reset, filled again to A:1-8, replicated under another UUID: what was
    read is executed there by its numbers alone. The log of a MariaDB has no commit times: there the
    transaction itself is compared. A choice goes on over it as over a gap."""
    a, b = either_pair.a, either_pair.b
    follower = read_shop(a, 1, 2, 3)
    fresh(a)
    open_shop(a)
    put(a, 11, 12, 13, 14, 15, 16)
    replicate(a, b)
    catch_up(a, b)
    promote(b)
    turn_to(follower, b)
    read = changes(follower)[-1]["_gtid"]
    refused(follower, HistoryRewritten, StartRule.SET_REUSED, [read])
    cursor = follower.ledger.cursors(SOURCE).captured
    assert cursor is not None
    follower.choose(f"gtid:{cursor.position.gtid_set}")
    follower.run()
    assert newest(follower).decision.continuity is Continuity.GAP


def test_numbers_that_grew_past_a_purge_are_refused(pair: Pair) -> None:
    """The same server, its log begun anew: the cursor's file is gone, and the purged GTIDs
    lie within those that were read."""
    follower = read_shop(pair.a, 1, 2, 3)
    fresh(pair.a)
    open_shop(pair.a)
    put(pair.a, 11)
    purge(pair.a)
    put(pair.a, 12, 13, 14, 15)
    refused(follower, HistoryRewritten, StartRule.SET_REUSED)


def test_one_source_of_several_was_given_anew(pair: Pair) -> None:
    """The last transaction read is the same, one of another server is not."""
    a, b = pair.a, pair.b
    open_shop(a)
    put(a, 1, 2)
    replicate(a, b)
    catch_up(a, b)
    promote(b)
    follower = follow(b)
    follower.run()
    put(b, 3)
    follower.run()
    fresh(a)
    open_shop(a)
    put(a, 11, 12)
    replicate(b, a)
    catch_up(b, a)
    promote(a)
    turn_to(follower, a)
    refused(follower, HistoryRewritten, StartRule.SET_REUSED, [f"{uuid_of(a)}:4"])


def test_numbers_that_grew_to_where_they_were_are_refused(pair: Pair) -> None:
    """The same server, reset and filled again to just what was read, and that is purged:
    only a server that was not reset since shows by itself that nothing changed."""
    follower = read_shop(pair.a, 1, 2, 3)
    fresh(pair.a)
    open_shop(pair.a)
    put(pair.a, 11, 12, 13)
    purge(pair.a)
    put(pair.a, 14)
    refused(follower, HistoryUnproven, StartRule.SET_UNPROVEN)


@pytest.mark.parametrize("honest", [True, False])
def test_a_set_whose_end_is_purged_is_for_a_person_to_vouch_for(pair: Pair, honest: bool) -> None:
    """Everything that was read is purged on the other server, so nothing shows whether it is
    the same: refused, and the command of the hint goes on behind the set."""
    follower = read_shop(pair.a, 1, 2)
    if not honest:
        fresh(pair.a)
        open_shop(pair.a)
        put(pair.a, 11, 12)
    replicate(pair.a, pair.b)
    catch_up(pair.a, pair.b)
    purge(pair.b)
    put(pair.a, 3)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    turn_to(follower, pair.b)
    error = refused(follower, HistoryUnproven, StartRule.SET_UNPROVEN)
    follower.choose(error.hint.partition("`lockstep start-at ")[2].partition(" --source")[0])
    assert follower.run().transactions == 1
    require_rule(follower, StartRule.CHOSEN_START)
    assert newest(follower).decision.continuity is Continuity.CONTIGUOUS
    if honest:
        require_same(follower, pair.b)


def test_a_ledger_without_anchors_goes_on_by_the_numbers_and_says_so(pair: Pair) -> None:
    """Nothing was kept to know transactions by: as before, with what is left to do."""
    follower = read_shop(pair.a, 1, 2)
    replicate(pair.a, pair.b)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    follower.ledger.database.tell("delete from lockstep.set_anchors")
    turn_to(follower, pair.b)
    follower.run()
    require_rule(follower, StartRule.RESUME_OTHER_SERVER)
    assert "lockstep verify" in newest(follower).decision.reason


def test_a_mariadb_replica_that_compresses_its_log_is_known_again(mariadb_pair: Pair) -> None:
    """What a replica writes in its own way is the same transaction."""
    a, b = mariadb_pair.a, mariadb_pair.b
    b.execute("set global log_bin_compress = ON, global log_bin_compress_min_len = 10")
    try:
        open_shop(a)
        replicate(a, b)
        put(a, 1)
        a.execute("use shop", "insert into t select seq, 7 from seq_10_to_400")
        follower = follow(a)
        follower.run()
        catch_up(a, b)
        promote(b)
    finally:
        b.execute("set global log_bin_compress = OFF")
    put(b, 2)
    turn_to(follower, b)
    follower.run()
    require_rule(follower, StartRule.RESUME_OTHER_SERVER)
    require_same(follower, b)


def test_rows_that_were_prepared_in_a_log_that_is_gone_stop_the_run_where_they_are_committed(
    pair: Pair,
) -> None:
    """Nobody read them before RESET BINARY LOGS AND GTIDS, and the new log has only their commit: a
    run stops there, and goes on where its hint says; a comparison names the table."""
    follower = read_shop(pair.a, 1)
    prepare_xa(pair.a, "x", "insert into shop.t values (50, 50)")
    pair.a.execute(_RESET)
    end_xa(pair.a, "x")
    put(pair.a, 2)
    follower.choose("earliest")
    with pytest.raises(PreparedElsewhere, match="its prepare was never read") as raised:
        follower.run()
    [after] = re.findall(r"start-at (\S+) ", raised.value.hint)
    follower.choose(after)
    follower.run()
    assert [row["id"] for row in follower.mirror("shop.t")] == [1, 2]
    [table] = verify(follower.ports()).tables
    assert (table.only_in_source, table.difference_count) == (1, 1)
