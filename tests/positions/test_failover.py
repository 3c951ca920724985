"""Another server answers: with GTIDs a run goes on behind what it read, or says why not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lockstep.pipeline.start.bounds import Budget
from lockstep.pipeline.start.question import StartRule
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import (
    HistoryUnproven,
    PositionPurged,
    SourceDiverged,
    StartBehindCursor,
)
from lockstep.pipeline.values.position import ServerPeriod
from tests.e2e.project import followed
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.outside import recover, repair, run_to_undo, verify
from tests.positions.follower import SOURCE, Follower
from tests.positions.servers import (
    Pair,
    as_gtid,
    catch_up,
    executed,
    prepare_xa,
    promote,
    purge,
    replicate,
    uuid_of,
)
from tests.positions.shop import (
    TABLE,
    changes,
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


def test_a_promoted_replica_is_read_on_behind_the_set(either_pair: Pair) -> None:
    """Other files and offsets, the same transactions: what was only in the tail of the old
    log comes from the new one, nothing is lost or doubled, and the lineage grows. The old primary
    may come back: A → B → A."""
    pair = either_pair
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
    a, b = uuid_of(pair.a), uuid_of(pair.b)
    assert follower.ledger.server_periods(SOURCE) == (ServerPeriod(a, 1), ServerPeriod(b, 2))
    assert follower.ledger.gaps(SOURCE) == []
    replicate(pair.b, pair.a)
    catch_up(pair.b, pair.a)
    promote(pair.a)
    put(pair.a, 7)
    turn_to(follower, pair.a)
    follower.run()
    require_rule(follower, StartRule.RESUME_OTHER_SERVER)
    require_same(follower, pair.a)
    require_each_once(follower)
    assert [reign.server_uuid for reign in follower.ledger.server_periods(SOURCE)] == [a, b, a]


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
    assert (report.batch_id, report.transactions, report.rows) == (2, 0, 0)
    assert report.end.gtid_set == executed(pair.b)
    assert follower.run().batch_id is None
    require_same(follower, pair.b)


def test_errant_transactions_of_the_new_server_come_out(either_pair: Pair) -> None:
    """What was written to the replica itself, before or after what was read, is a change of
    the new server and is read."""
    pair = either_pair
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
    """Read from the old server and never seen by the new one: SourceDiverged, by name, also those
    of a UUID that is neither server's (the server's own check looks at its own UUID alone and
    would stream); once the new one has them, the run goes on."""
    follower = _read_half(pair)
    put(pair.a, 50)
    as_gtid(pair.a, f"{_THIRD}:7", "insert into shop.t values (51, 1)")
    follower.run()
    missing = executed(pair.a).difference(executed(pair.b))
    turn_to(follower, pair.b)
    names = [str(missing), f"{_THIRD}:7"]
    error = refused(follower, SourceDiverged, StartRule.SOURCE_DIVERGED, names)
    assert uuid_of(pair.b) in error.message
    assert "catch up" in error.hint
    replicate(pair.a, pair.b)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    follower.run()
    require_rule(follower, StartRule.RESUME_OTHER_SERVER)
    require_same(follower, pair.b)
    require_each_once(follower)


def test_runs_that_read_lost_transactions_are_undone(pair: Pair) -> None:
    """The hint names the oldest run that read what the new server never had; once that is undone,
    reading goes on by GTID, and the changelog has nothing that never happened there."""
    follower = _read_half(pair)
    for number in (1, 2):
        follower.run_id = f"lossy-{number}"
        put(pair.a, 50 + number)
        follower.run()
    put(pair.b, 5)
    turn_to(follower, pair.b)
    error = refused(follower, SourceDiverged, StartRule.SOURCE_DIVERGED)
    assert "catch up" in error.hint
    assert "`lockstep undo lossy-1 --source shop`" in error.hint
    run = run_to_undo(follower.ledger, SOURCE, "lossy-1")
    assert run.later_count == 1
    follower.lose_ledger()
    with follower.leased() as lease:
        recover(follower.ports(), lease, author="ada", after_batch=run.previous_batch)
    follower.run()
    require_rule(follower, StartRule.RESUME_OTHER_SERVER)
    require_same(follower, pair.b)
    require_each_once(follower)
    assert {row["id"] for row in changes(follower)}.isdisjoint({51, 52})
    assert verify(follower.ports()).equal


@pytest.mark.acceptance
def test_the_hint_about_lost_transactions_is_typed(
    pair: Pair, warm: WarmProcess, tmp_path: Path
) -> None:
    """With a lake of files, as a person does it: the hint, then with --yes, a run, a comparison."""
    table = "create table t (id int primary key, v int)"
    project = followed(pair.a, "shop", tmp_path / "project", warm, table)
    put(pair.a, 1, 2)
    replicate(pair.a, pair.b)
    project.run("run")
    put(pair.a, 3)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    for key in (50, 51):
        put(pair.a, key)
        project.run("run")
    put(pair.b, 4)
    file = project.folder / "lockstep.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(str(pair.a.port), str(pair.b.port)), encoding="utf-8")
    hint = project.run("run", expect=5).stderr
    (undo,) = re.findall(r"`lockstep (undo [^`]*)`", hint)
    assert "undone: batches 2 to 3;" in project.run(*undo.split()).stdout
    project.alone.run(*undo.split(), "--yes")
    project.run("run")
    assert project.proven() == {TABLE}
    project.require_once(TABLE)


def test_a_start_after_lost_transactions_leaves_them_in_the_changelog(pair: Pair) -> None:
    """A repair brings the mirror to what the new server has; what never happened there stays a
    change, which no later change takes back."""
    follower = _read_half(pair)
    put(pair.a, 50)
    follower.run()
    turn_to(follower, pair.b)
    follower.choose("latest")
    follower.run()
    with follower.leased() as lease:
        repair(follower.ports(), lease, verify(follower.ports()))
    follower.run()
    require_same(follower, pair.b)
    found = [(row["id"], row["_change_type"]) for row in changes(follower)]
    assert found[-2:] == [(50, "insert"), (None, "resnapshot")]


def test_holes_in_a_set_are_read_when_they_are_filled(pair: Pair) -> None:
    """1-3:5-6:8-9 was read; the same server filled 4, and the new one 7: they come out, once.
    A tag is a source of its own: read ones are left out, others come out."""
    a = uuid_of(pair.a)
    open_shop(pair.a)
    replicate(pair.a, pair.b)

    def insert(stand: MySqlStand, gtid: str, key: int) -> None:
        as_gtid(stand, gtid, f"insert into shop.t values ({key}, 0)")

    for number in (1, 2, 3, 5, 6, 8, 9):
        insert(pair.a, f"{_THIRD}:{number}", number)
    insert(pair.a, "AUTOMATIC:billing", 21)
    insert(pair.a, "AUTOMATIC", 22)
    follower = follow(pair.a)
    follower.run()
    insert(pair.a, f"{_THIRD}:4", 4)
    follower.run()
    require_rule(follower, StartRule.RESUME_SAME_SERVER)
    require_same(follower, pair.a)
    insert(pair.a, "AUTOMATIC:billing", 23)
    insert(pair.a, "AUTOMATIC:stock", 24)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    insert(pair.b, f"{_THIRD}:7", 7)
    turn_to(follower, pair.b)
    report = follower.run()
    assert report.transactions == 3
    assert f"{_THIRD}:1-9" in str(report.end.gtid_set)
    assert f"{a}:1-3:billing:1-2:stock:1" in str(report.end.gtid_set)
    require_same(follower, pair.b)
    require_each_once(follower)


def test_a_log_purged_beyond_the_cursor_is_refused_by_name(pair: Pair) -> None:
    """The new server has thrown away what was never read: PositionPurged names it."""
    follower = _read_half(pair)
    cursor = follower.ledger.cursors(SOURCE).acknowledged
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


def test_what_a_mariadb_lacks_is_named(mariadb_pair: Pair) -> None:
    """What was read and it never saw, and what it has thrown away unread; what was read, and is
    purged there, a person vouches for."""
    follower = _read_half(mariadb_pair)
    purge(mariadb_pair.b)
    turn_to(follower, mariadb_pair.b)
    refused(follower, PositionPurged, StartRule.PURGED_ON_OTHER_SERVER, ["0-11-"])
    turn_to(follower, mariadb_pair.a)
    follower.run()
    put(mariadb_pair.b, 9)
    turn_to(follower, mariadb_pair.b)
    error = refused(follower, HistoryUnproven, StartRule.SET_UNPROVEN)
    follower.choose(error.hint.partition("`lockstep start-at ")[2].partition(" --source")[0])
    assert follower.run().transactions == 1
    require_same(follower, mariadb_pair.b)
    turn_to(follower, mariadb_pair.a)
    refused(follower, SourceDiverged, StartRule.SOURCE_DIVERGED, ["0-12-"])


# -- a log in another order, and XA transactions -----------------------------------------------


def _other_order(pair: Pair, choose_after: int | None = None) -> Follower:
    """A committed 1 to 6, B committed them as 2, 6, 4, 1, 3, 5; 1 to 4 were read from A. The next
    start is chosen on B after so many of them."""
    open_shop(pair.a)
    replicate(pair.a, pair.b)
    catch_up(pair.a, pair.b)
    promote(pair.b)
    for number in range(1, 5):
        as_gtid(pair.a, f"{_THIRD}:{number}", f"insert into shop.t values ({number}, 0)")
    follower = follow(pair.a)
    follower.run()
    for done, number in enumerate((2, 6, 4, 1, 3, 5)):
        if done == choose_after:
            follower.choose(str(head(pair.b)))
        as_gtid(pair.b, f"{_THIRD}:{number}", f"insert into shop.t values ({number}, 0)")
    turn_to(follower, pair.b)
    return follower


def test_another_order_of_commits_loses_and_doubles_nothing(pair: Pair) -> None:
    """A replica that commits in an order of its own has new transactions before old ones."""
    follower = _other_order(pair)
    assert follower.run().transactions == 2
    require_same(follower, pair.b)
    require_each_once(follower)


def test_a_place_chosen_among_read_transactions_is_refused_with_the_set_that_doubles_nothing(
    pair: Pair,
) -> None:
    """2 and 6 lie before the place, and 4, 1 and 3 of what was read after it: the set leaves them
    out, too."""
    follower = _other_order(pair, choose_after=2)
    error = refused(follower, StartBehindCursor, StartRule.CHOSEN_START_BEHIND)
    place = re.search(r"start-at (gtid:\S+)", error.hint)
    assert place is not None
    assert f"{_THIRD}:1-4:6" in place[1].split(":", 1)[1].split(",")
    follower.choose(place[1])
    assert follower.run().transactions == 1
    require_each_once(follower)
    assert [row["id"] for row in follower.mirror("shop.t")] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "budget",
    [
        Budget(max_transactions=1),
        *(
            pytest.param(budget, marks=pytest.mark.soak)
            for budget in (Budget(max_bytes=1), Budget(max_seconds=0.0))
        ),
    ],
    ids=str,
)
def test_a_budget_never_cuts_where_read_transactions_lie_ahead(pair: Pair, budget: Budget) -> None:
    """A run that ended among transactions read before would have them read again by the
    next, which goes on by file and offset: a budget counts from where none is left."""
    follower = _other_order(pair)
    follower.budget = budget
    while follower.run().batch_id is not None:
        pass
    require_same(follower, pair.b)
    require_each_once(follower)


def test_until_never_cuts_there_either(pair: Pair) -> None:
    """An end among transactions read before moves behind them."""
    follower = _other_order(pair)
    follower.run(until=f"gtid:{_THIRD}:6")
    follower.run()
    require_same(follower, pair.b)
    require_each_once(follower)


def test_an_xa_transaction_prepared_there_is_committed_here(pair: Pair) -> None:
    """Prepared and read on the old server, committed on the promoted one: its rows come out
    once, at the commit."""
    open_shop(pair.a)
    replicate(pair.a, pair.b)
    prepare_xa(pair.a, "x", "insert into shop.t values (1, 1)")
    follower = follow(pair.a)
    follower.run()
    assert follower.mirror("shop.t") == []
    catch_up(pair.a, pair.b)
    promote(pair.b)
    put(pair.b, 2)
    pair.b.execute("xa commit 'x'")
    turn_to(follower, pair.b)
    follower.run()
    require_same(follower, pair.b)
    assert len(changes(follower)) == 2


def test_an_xa_transaction_that_ended_is_passed_over(pair: Pair) -> None:
    """Prepared and committed before the cursor: in the new log both are left out."""
    open_shop(pair.a)
    replicate(pair.a, pair.b)
    prepare_xa(pair.a, "x", "insert into shop.t values (1, 1)")
    pair.a.execute("xa commit 'x'")
    prepare_xa(pair.a, "y", "insert into shop.t values (2, 1)")
    follower = follow(pair.a)
    follower.run()
    pair.a.execute("xa rollback 'y'")
    prepare_xa(pair.a, "x", "insert into shop.t values (3, 1)")
    catch_up(pair.a, pair.b)
    promote(pair.b)
    turn_to(follower, pair.b)
    follower.run()
    pair.b.execute("xa commit 'x'")
    follower.run()
    require_same(follower, pair.b)
    assert [row["id"] for row in changes(follower)] == [1, 3]
