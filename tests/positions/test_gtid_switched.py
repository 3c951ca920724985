"""A source that switches GTIDs on, off and on again: file and offset carry it on, and a
failover is refused once transactions without a GTID were possible."""

from __future__ import annotations

import pytest

from lockstep.pipeline.model.batch import Cursor
from lockstep.pipeline.start.question import StartRule
from lockstep.pipeline.values.errors import PositionPurged, SourceChanged, TransactionsWithoutGtid
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.positions.follower import SOURCE, Follower
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
    follow,
    open_shop,
    put,
    read_shop,
    refused,
    require_rule,
    require_same,
    turn_to,
)


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
