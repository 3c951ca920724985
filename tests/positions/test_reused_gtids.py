"""GTIDs that were given anew: a server that was reset and written to again, also under
another UUID. The numbers say that everything read is there; the log says that it is not.
"""

from __future__ import annotations

import pytest

from lockstep.pipeline.start.question import StartRule
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import HistoryRewritten, HistoryUnproven
from tests.positions.follower import SOURCE
from tests.positions.servers import (
    Pair,
    catch_up,
    fresh,
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
    require_rule,
    require_same,
    turn_to,
)


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
