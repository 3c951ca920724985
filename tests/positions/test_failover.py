"""Another server answers: with GTIDs a run goes on behind what it read, or says why not."""

from __future__ import annotations

from pipeline.decisions import Continuity
from pipeline.errors import PositionPurged, SourceDiverged
from pipeline.position import Reign
from pipeline.start.question import StartRule
from tests.positions.follower import SOURCE, Follower
from tests.positions.servers import (
    Pair,
    as_gtid,
    catch_up,
    executed,
    head,
    promote,
    purge,
    replicate,
    uuid_of,
)
from tests.positions.shop import (
    follow,
    newest,
    open_shop,
    put,
    refused,
    require_each_once,
    require_rule,
    require_same,
    take,
    turn_to,
)

_THIRD = "33333333-3333-3333-3333-333333333333"


def _read_half(pair: Pair) -> Follower:
    """A's first half is read, the second half is on B alone as yet, which is promoted."""
    open_shop(pair.a)
    put(pair.a, 1, 2, 3)
    replicate(pair.a, pair.b)
    follower = follow(pair.a)
    follower.run()
    put(pair.a, 2, 4, v=1)
    take(pair.a, 1)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    return follower


def test_a_promoted_replica_is_read_on_behind_the_set(pair: Pair) -> None:
    """Other files and offsets, the same transactions: what was only in the tail of the old
    log comes from the new one, nothing is lost or doubled, and the lineage grows."""
    pair.b.execute("flush binary logs", "flush binary logs")
    follower = _read_half(pair)
    assert head(pair.a) != head(pair.b)
    put(pair.b, 5)
    turn_to(follower, pair.b)
    follower.run()
    require_rule(follower, StartRule.RESUME_OTHER_SERVER)
    assert newest(follower).decision.continuity is Continuity.CONTIGUOUS
    require_same(follower, pair.b)
    require_each_once(follower)
    put(pair.b, 6)
    follower.run()
    require_rule(follower, StartRule.RESUME_SAME_SERVER)
    require_same(follower, pair.b)
    reigns = (Reign(uuid_of(pair.a), 1), Reign(uuid_of(pair.b), 2))
    assert follower.ledger.lineage(SOURCE).reigns == reigns
    assert follower.ledger.gaps(SOURCE) == []


def test_the_old_primary_may_come_back(pair: Pair) -> None:
    """A → B → A: each time behind the set, and the lineage tells all three reigns."""
    follower = _read_half(pair)
    put(pair.b, 5)
    turn_to(follower, pair.b)
    follower.run()
    put(pair.b, 6)
    replicate(pair.b, pair.a)
    catch_up(pair.b, pair.a)
    promote(pair.a)
    put(pair.a, 7)
    turn_to(follower, pair.a)
    follower.run()
    require_rule(follower, StartRule.RESUME_OTHER_SERVER)
    require_same(follower, pair.a)
    require_each_once(follower)
    servers = [reign.server_uuid for reign in follower.ledger.lineage(SOURCE).reigns]
    assert servers == [uuid_of(pair.a), uuid_of(pair.b), uuid_of(pair.a)]


def test_nothing_new_on_the_new_server(pair: Pair) -> None:
    """A failover with nothing to read is a batch without changes; the next run is idle."""
    open_shop(pair.a)
    put(pair.a, 1, 2)
    replicate(pair.a, pair.b)
    catch_up(pair.a, pair.b)
    follower = follow(pair.a)
    follower.run()
    turn_to(follower, pair.b)
    report = follower.run()
    assert (report.batch, report.transactions, report.rows) == (2, 0, 0)
    assert report.end.gtid_set == executed(pair.b)
    assert follower.run().batch is None
    require_same(follower, pair.b)


def test_errant_transactions_of_the_new_server_come_out(pair: Pair) -> None:
    """What was written to the replica itself, before or after what was read, is a change of
    the new server and is read."""
    open_shop(pair.a)
    replicate(pair.a, pair.b)
    catch_up(pair.a, pair.b)
    put(pair.b, 100)
    put(pair.a, 1)
    follower = follow(pair.a)
    follower.run()
    put(pair.a, 2)
    catch_up(pair.a, pair.b)
    put(pair.b, 101)
    promote(pair.b)
    turn_to(follower, pair.b)
    follower.run()
    assert [row["id"] for row in follower.mirror("shop.t")] == [1, 2, 100, 101]
    require_same(follower, pair.b)
    require_each_once(follower)


def test_errant_transactions_of_the_old_server_are_named(pair: Pair) -> None:
    """Read from the old server and never seen by the new one: SourceDiverged, by name; once
    the new one has them, the run goes on."""
    follower = _read_half(pair)
    put(pair.a, 50)
    follower.run()
    missing = executed(pair.a).difference(executed(pair.b))
    turn_to(follower, pair.b)
    error = refused(follower, SourceDiverged, StartRule.SOURCE_DIVERGED, [str(missing)])
    assert uuid_of(pair.b) in error.message
    assert "catch up" in error.hint
    replicate(pair.a, pair.b)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    follower.run()
    require_rule(follower, StartRule.RESUME_OTHER_SERVER)
    require_same(follower, pair.b)
    require_each_once(follower)


def test_a_third_servers_transactions_count_too(pair: Pair) -> None:
    """Transactions of a UUID that is neither server's, read and not on the new server: the
    server's own check looks at its own UUID alone and would stream; Lockstep refuses."""
    open_shop(pair.a)
    replicate(pair.a, pair.b)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    as_gtid(pair.a, f"{_THIRD}:7", "insert into shop.t values (1, 1)")
    follower = follow(pair.a)
    follower.run()
    turn_to(follower, pair.b)
    refused(follower, SourceDiverged, StartRule.SOURCE_DIVERGED, [f"{_THIRD}:7"])


def test_holes_in_a_set_are_read_when_they_are_filled(pair: Pair) -> None:
    """1-5:7-9 was read; the new server filled 6: it comes out, once."""
    open_shop(pair.a)
    for number in (*range(1, 6), *range(7, 10)):
        as_gtid(pair.a, f"{_THIRD}:{number}", f"insert into shop.t values ({number}, 0)")
    replicate(pair.a, pair.b)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    follower = follow(pair.a)
    follower.run()
    as_gtid(pair.b, f"{_THIRD}:6", "insert into shop.t values (6, 0)")
    turn_to(follower, pair.b)
    report = follower.run()
    assert report.transactions == 1
    assert f"{_THIRD}:1-9" in str(report.end.gtid_set)
    require_same(follower, pair.b)
    require_each_once(follower)


def test_a_hole_is_filled_on_the_same_server(pair: Pair) -> None:
    """Numbers need not ascend in one log either."""
    open_shop(pair.a)
    as_gtid(pair.a, f"{_THIRD}:3", "insert into shop.t values (3, 0)")
    follower = follow(pair.a)
    follower.run()
    as_gtid(pair.a, f"{_THIRD}:1", "insert into shop.t values (1, 0)")
    follower.run()
    require_rule(follower, StartRule.RESUME_SAME_SERVER)
    require_same(follower, pair.a)


def test_tagged_transactions_fail_over(pair: Pair) -> None:
    """A tag is a source of its own: read ones are left out, others come out."""
    a = uuid_of(pair.a)
    open_shop(pair.a)
    as_gtid(pair.a, "AUTOMATIC:billing", "insert into shop.t values (1, 0)")
    as_gtid(pair.a, "AUTOMATIC", "insert into shop.t values (2, 0)")
    replicate(pair.a, pair.b)
    follower = follow(pair.a)
    follower.run()
    as_gtid(pair.a, "AUTOMATIC:billing", "insert into shop.t values (3, 0)")
    as_gtid(pair.a, "AUTOMATIC:stock", "insert into shop.t values (4, 0)")
    catch_up(pair.a, pair.b)
    promote(pair.b)
    turn_to(follower, pair.b)
    report = follower.run()
    assert report.transactions == 2
    assert f"{a}:1-3:billing:1-2:stock:1" in str(report.end.gtid_set)
    require_same(follower, pair.b)
    require_each_once(follower)


def test_a_log_purged_beyond_the_cursor_is_refused_by_name(pair: Pair) -> None:
    """The new server has thrown away what was never read: PositionPurged names it."""
    follower = _read_half(pair)
    cursor = follower.ledger.acknowledged_cursor(SOURCE)
    assert cursor is not None
    purge(pair.b)
    lost = executed(pair.b).difference(cursor.position.gtid_set)
    turn_to(follower, pair.b)
    error = refused(follower, PositionPurged, StartRule.PURGED_ON_OTHER_SERVER, [str(lost)])
    assert "binlog_expire_logs_seconds" in error.hint
    follower.choose("earliest")
    follower.run()
    [gap] = follower.ledger.gaps(SOURCE)
    assert gap.tables == (("shop.t"),)


def test_a_log_purged_within_the_cursor_goes_on(pair: Pair) -> None:
    """What the new server purged was all read, and it shows the last that was: nothing is
    missing."""
    open_shop(pair.a)
    put(pair.a, 1)
    replicate(pair.a, pair.b)
    catch_up(pair.a, pair.b)
    purge(pair.b)
    put(pair.a, 2)
    follower = follow(pair.a)
    follower.run()
    put(pair.a, 3)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    turn_to(follower, pair.b)
    assert follower.run().transactions == 1
    require_rule(follower, StartRule.RESUME_OTHER_SERVER)
    require_same(follower, pair.b)
    require_each_once(follower)
