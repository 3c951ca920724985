"""A failover to a log in another order, and one in the middle of XA transactions."""

from __future__ import annotations

import re

import pytest

from lockstep.pipeline.start.bounds import Budget
from lockstep.pipeline.start.question import StartRule
from lockstep.pipeline.values.errors import StartBehindCursor
from tests.mysql.logged import head
from tests.positions.follower import Follower
from tests.positions.servers import (
    Pair,
    as_gtid,
    catch_up,
    prepare_xa,
    promote,
    replicate,
)
from tests.positions.shop import (
    changes,
    follow,
    open_shop,
    put,
    refused,
    require_each_once,
    require_same,
    turn_to,
)

_THIRD = "33333333-3333-3333-3333-333333333333"


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
