"""Another server without GTIDs, or after transactions without one were possible: refused, unless
time may tell where to go on; file and offset carry a source through switches of GTIDs."""

from __future__ import annotations

import time

import pytest

from lockstep.pipeline.model.batch import Cursor
from lockstep.pipeline.model.table_state import TableCondition
from lockstep.pipeline.start.bounds import Budget
from lockstep.pipeline.start.question import StartRule
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import (
    MomentOutOfRange,
    PositionPurged,
    SourceChanged,
    TransactionsWithoutGtid,
)
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.positions.follower import SOURCE, Follower, by_time
from tests.positions.servers import (
    Pair,
    catch_up,
    promote,
    purge,
    replicate,
    switch_gtids,
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
    require_rule,
    require_same,
    take,
    turn_to,
)


@pytest.fixture
def bare(bare_pair: Pair) -> Pair:
    """Without GTIDs B follows A, which has a shop, by file and offset."""
    open_shop(bare_pair.a)
    replicate(bare_pair.a, bare_pair.b, by_gtid=False)
    return bare_pair


def _promoted(bare: Pair, follower: Follower) -> None:
    catch_up(bare.a, bare.b)
    promote(bare.b)
    turn_to(follower, bare.b)


def test_without_gtids_another_server_is_refused(bare: Pair) -> None:
    """Both servers are named, and the two ways out; one of them is to choose a place."""
    follower = follow(bare.a)
    put(bare.a, 1)
    follower.run()
    put(bare.a, 2)
    _promoted(bare, follower)
    names = [uuid_of(bare.a), uuid_of(bare.b), "its gtid_mode is OFF"]
    error = refused(follower, SourceChanged, StartRule.SOURCE_CHANGED, names)
    assert "on_source_changed = 'timestamp'" in error.hint
    follower.choose("earliest")
    follower.run()
    require_rule(follower, StartRule.CHOSEN_START)
    require_same(follower, bare.b)


_INTERVAL = 0.5


def _half_read(bare: Pair) -> Follower:
    """1 was committed longer ago than the interval before the cursor, 2 within it; the cursor is
    at 3."""
    follower = follow(bare.a, policies=by_time(_INTERVAL))
    put(bare.a, 1)
    time.sleep(_INTERVAL + 0.1)
    put(bare.a, 2, 3)
    follower.run()
    return follower


def test_time_finds_where_to_go_on(bare: Pair) -> None:
    """From `fallback_interval` before the last commit that was read: what was in between
    comes twice and is recorded as an overlap, whose rows were committed no later than the cursor;
    the mirror is exact."""
    follower = _half_read(bare)
    cursor = follower.ledger.cursors(SOURCE).acknowledged
    assert cursor is not None
    last = cursor.position.committed_at
    assert last is not None
    take(bare.a, 2)
    put(bare.a, 3, v=1)
    _promoted(bare, follower)
    put(bare.b, 4)
    assert follower.run().transactions == 5
    require_rule(follower, StartRule.SEARCH_BY_TIME)
    decision = newest(follower).decision
    assert (decision.continuity, decision.previous_batch) == (Continuity.OVERLAP, 1)
    assert decision.gap_tables == ()
    batch = follower.ledger.batches(SOURCE, limit=1)[0]
    own = [row for row in changes(follower) if row["_batch"] == batch.id]
    assert [row["id"] for row in own if row["_committed_at"] <= last] == [2, 3]
    assert f"{_INTERVAL} s before" in decision.reason
    require_same(follower, bare.b)
    assert follower.ledger.gaps(SOURCE) == []
    put(bare.b, 5)
    follower.run()
    require_rule(follower, StartRule.RESUME_SAME_SERVER)
    require_same(follower, bare.b)


def test_an_overlap_of_several_batches_doubles_no_row(bare: Pair) -> None:
    """A budget ends the batch that began it: those behind are still among what was read. One that
    holds nothing but inserts is not appended."""
    follower = _half_read(bare)
    put(bare.a, 4)
    _promoted(bare, follower)
    follower.budget = Budget(max_transactions=1)
    assert [follower.run().rows for _ in range(4)] == [1, 1, 1, 0]
    require_same(follower, bare.b)


def test_an_overlap_counts_no_copy_twice(bare: Pair) -> None:
    """Of a table without a key nothing tells which changes its mirror has: the next run reads it
    from the source, and goes on from there."""
    bare.a.execute("create table shop.k (id int)", "insert into shop.k values (1), (1)")
    follower = _half_read(bare)
    bare.a.execute("insert into shop.k values (2), (3)", "delete from shop.k where id = 1 limit 1")
    follower.run()
    _promoted(bare, follower)
    put(bare.b, 4)
    assert follower.run().continuity is Continuity.OVERLAP
    follower.run()
    bare.b.execute("insert into shop.k values (3)")
    follower.run()
    assert [row["id"] for row in follower.mirror("shop.k")] == [1, 2, 3, 3]
    assert all(state.is_complete for state in follower.states().values())


def test_an_overlap_counts_no_copy_of_a_created_table_twice(bare: Pair) -> None:
    """The run that read its CREATE was killed before it wrote the mirror."""
    follower = follow(bare.a, policies=by_time(_INTERVAL))
    bare.a.execute("create table shop.k (id int)")
    time.sleep(_INTERVAL + 0.1)
    bare.a.execute("insert into shop.k values (1)")
    follower.capture()
    _promoted(bare, follower)
    put(bare.b, 4)
    assert follower.run().continuity is Continuity.OVERLAP
    follower.run()
    assert [row["id"] for row in follower.mirror("shop.k")] == [1]
    assert all(state.is_complete for state in follower.states().values())


def test_a_table_of_an_overlap_that_was_dropped_ends_without_its_changes(bare: Pair) -> None:
    """It has no key, and cannot be read again."""
    bare.a.execute("create table shop.k (id int)", "insert into shop.k values (1), (1)")
    follower = _half_read(bare)
    bare.a.execute("insert into shop.k values (2)", "delete from shop.k where id = 1 limit 1")
    _promoted(bare, follower)
    put(bare.b, 4)
    follower.capture()
    bare.b.execute("alter table shop.k add v int", "drop table shop.k")
    follower.run()
    follower.run()
    state = follower.states()[TableName("shop", "k")]
    assert state.condition is TableCondition.DROPPED, state.reason
    assert [row["id"] for row in follower.mirror("shop.k")] == [1, 1]
    assert follower.ledger.pending_batches(SOURCE) == {}


def test_a_log_that_begins_within_the_interval_is_read_from_its_beginning(bare: Pair) -> None:
    """The new server's oldest file begins before the last commit that was read: all that
    came since stands in its log, however far the interval goes back."""
    follower = follow(bare.a, policies=by_time(24 * 3600))
    time.sleep(1.1)
    put(bare.a, 1)
    follower.run()
    put(bare.a, 2)
    _promoted(bare, follower)
    follower.run()
    require_rule(follower, StartRule.SEARCH_BY_TIME)
    assert newest(follower).decision.continuity is Continuity.OVERLAP
    require_same(follower, bare.b)


def test_a_log_that_begins_later_is_refused(bare: Pair) -> None:
    """What came between the last commit read and its oldest file is nowhere: recorded as a
    refusal that names both, and the command that accepts it."""
    follower = follow(bare.a, policies=by_time(60))
    put(bare.a, 1)
    follower.run()
    catch_up(bare.a, bare.b)
    time.sleep(1.1)
    purge(bare.b)
    put(bare.a, 2)
    _promoted(bare, follower)
    error = refused(follower, MomentOutOfRange, StartRule.SEARCH_BY_TIME, ["reaches from"])
    assert f"`lockstep start-at earliest --source {SOURCE} --reason " in error.hint
    follower.choose("earliest")
    follower.run()
    require_same(follower, bare.b)


def test_a_lapsed_cursor_goes_on_by_time(pair: Pair) -> None:
    """Transactions without a GTID were possible: the set is not trusted, time is. With an interval
    of nothing only the transactions of the last moment come again."""
    open_shop(pair.a)
    replicate(pair.a, pair.b)
    put(pair.a, 1)
    follower = follow(pair.a, policies=by_time(0))
    follower.run()
    put(pair.a, 2)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    switch_gtids(pair.a, "ON_PERMISSIVE")
    follower.run()
    put(pair.b, 3)
    turn_to(follower, pair.b)
    assert follower.run().rows == 2
    require_rule(follower, StartRule.SEARCH_BY_TIME)
    require_same(follower, pair.b)


# -- GTIDs that are switched on, off and on again ----------------------------------------------


def _cursor(follower: Follower) -> Cursor:
    cursor = follower.ledger.cursors(SOURCE).acknowledged
    assert cursor is not None
    return cursor


def _resumable(follower: Follower) -> tuple[bool, bool]:
    cursor = _cursor(follower)
    return cursor.by_gtid, cursor.was_by_gtid


NEVER, YES, LAPSED = (False, False), (True, False), (False, True)


def test_a_source_that_switches_on_may_fail_over(bare_pair: Pair) -> None:
    """Step by step, a run at each: from the first batch begun with ON its set counts, and
    not before."""
    pair = bare_pair
    open_shop(pair.a)
    replicate(pair.a, pair.b, by_gtid=False)
    follower = follow(pair.a)
    for number, mode in enumerate(("OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE")):
        switch_gtids(pair.b, mode)
        switch_gtids(pair.a, mode)
        put(pair.a, number)
        follower.run()
        assert _resumable(follower) == NEVER
    catch_up(pair.a, pair.b)
    switch_gtids(pair.b, "ON")
    switch_gtids(pair.a, "ON")
    put(pair.a, 10)
    follower.run()
    require_rule(follower, StartRule.RESUME_SAME_SERVER)
    assert _resumable(follower) == YES
    put(pair.a, 11)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    turn_to(follower, pair.b)
    follower.run()
    require_rule(follower, StartRule.RESUME_OTHER_SERVER)
    require_same(follower, pair.b)


def _anonymous(stand: MySqlStand, *keys: int) -> None:
    """Transactions without a GTID, on a server that goes back to ON afterwards."""
    switch_gtids(stand, "OFF_PERMISSIVE")
    put(stand, *keys)
    switch_gtids(stand, "ON")


def test_transactions_without_a_gtid_end_the_trust_in_sets(pair: Pair) -> None:
    """ON, off, ON again with a run at each step: file and offset go on through all of it,
    the cursor has lapsed for good, and a failover is refused."""
    open_shop(pair.a)
    replicate(pair.a, pair.b)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    follower = follow(pair.a)
    follower.run()
    assert _resumable(follower) == YES
    for number, mode in enumerate(("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")):
        switch_gtids(pair.a, mode)
        put(pair.a, number)
        follower.run()
        require_rule(follower, StartRule.RESUME_SAME_SERVER)
        require_same(follower, pair.a)
        assert _resumable(follower) == LAPSED
    turn_to(follower, pair.b)
    refused(follower, SourceChanged, StartRule.SOURCE_CHANGED, ["without a GTID"])


def test_a_mode_found_by_an_idle_run_is_enough(pair: Pair) -> None:
    """Nothing anonymous was read, but it could have been: the cursor lapses, and does not survive
    a purge: the file is gone and the set cannot be trusted, although all that was purged is in
    it."""
    open_shop(pair.a)
    follower = follow(pair.a)
    follower.run()
    switch_gtids(pair.a, "ON_PERMISSIVE")
    follower.run()
    assert follower.run().batch_id is None
    switch_gtids(pair.a, "ON")
    assert _resumable(follower) == LAPSED
    put(pair.a, 1)
    follower.run()
    assert _resumable(follower) == LAPSED
    require_same(follower, pair.a)
    purge(pair.a)
    refused(follower, PositionPurged, StartRule.POSITION_PURGED, ["without a GTID"])


def test_unread_transactions_without_a_gtid_are_not_passed_over(pair: Pair) -> None:
    """Off and on again without a run in between: the server does not send them while the
    mode is ON, which is said; by way of ON_PERMISSIVE they are read."""
    follower = read_shop(pair.a, 1)
    _anonymous(pair.a, 2)
    put(pair.a, 3)
    with pytest.raises(TransactionsWithoutGtid) as caught:
        follower.run()
    assert "ON_PERMISSIVE" in caught.value.hint
    assert follower.lake.tables["shop/shop/t"][-1].rows.num_rows == 1
    switch_gtids(pair.a, "ON_PERMISSIVE")
    follower.run()
    require_same(follower, pair.a)
    switch_gtids(pair.a, "ON")
    put(pair.a, 4)
    follower.run()
    require_same(follower, pair.a)
    assert _resumable(follower) == LAPSED


def test_a_failover_passes_none_over_either(pair: Pair) -> None:
    """The same, and then the replica is promoted, in whose log they stand in a file whose
    successor holds everything that was read: they are noticed there, not lost. A person who
    knows where they begin has them read."""
    open_shop(pair.a)
    put(pair.a, 1)
    replicate(pair.a, pair.b)
    follower = follow(pair.a)
    follower.run()
    catch_up(pair.a, pair.b)
    promote(pair.b)
    place = str(head(pair.b))
    _anonymous(pair.b, 2)
    put(pair.b, 3)
    turn_to(follower, pair.b)
    names = [uuid_of(pair.b), "without a GTID"]
    rule = StartRule.RESUME_OTHER_SERVER
    error = refused(follower, TransactionsWithoutGtid, rule, names)
    assert "gtid_mode = ON_PERMISSIVE" in error.hint
    switch_gtids(pair.b, "ON_PERMISSIVE")
    follower.choose(place)
    follower.run()
    require_rule(follower, StartRule.CHOSEN_START)
    require_same(follower, pair.b)


def test_a_mode_that_nobody_used_is_harmless(pair: Pair) -> None:
    """Off and on again without a transaction and without a run: nothing happened."""
    open_shop(pair.a)
    replicate(pair.a, pair.b)
    follower = follow(pair.a)
    follower.run()
    catch_up(pair.a, pair.b)
    promote(pair.b)
    _anonymous(pair.a)
    put(pair.a, 1)
    follower.run()
    assert _resumable(follower) == YES
