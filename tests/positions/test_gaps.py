"""What was never read: each table that it may have touched is named, until it is whole again."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.commands.versions import version_set_values
from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.model.table_state import OrderKind, TableEventKind
from lockstep.pipeline.run.dump.table_extents import record_complete
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.run.status.version_sets import version_set_at
from lockstep.pipeline.values.errors import PastRefused
from lockstep.pipeline.values.places import parse_place
from lockstep.pipeline.values.table import TableName
from tests.mysql.logged import head
from tests.outside import recover
from tests.positions.follower import SOURCE, Follower
from tests.positions.servers import Pair, purge
from tests.positions.shop import put, read_shop, require_same, take

T, U, V = (TableName("shop", name) for name in "tuv")


def _gap(follower: Follower) -> Gap:
    [gap] = follower.ledger.gaps(SOURCE)
    return gap


def test_a_gap_names_tables_that_only_the_server_knows_and_closes_with_the_last(pair: Pair) -> None:
    """`u` and `v` have their first rows in what was purged: they are named beside `t`, which
    the lake has; another database's table is not. A table's part closes once it is read
    from the source, emptied or dropped behind the gap, under whichever name it has by then; the
    gap is open until the last."""
    follower = read_shop(pair.a, 1)
    follower.order(OrderKind.PAUSE, T)
    pair.a.execute(
        "create table shop.u (id int primary key, v int)",
        "create table shop.v like shop.u",
        "create database other",
        "create table other.w like shop.u",
        "insert into shop.u values (1, 1)",
    )
    put(pair.a, 2)
    purge(pair.a)
    follower.choose(str(head(pair.a)))
    follower.run()
    assert _gap(follower).tables == ("shop.t", "shop.u", "shop.v")
    assert _gap(follower).open_tables == _gap(follower).tables
    follower.order(OrderKind.RESUME, T)
    follower.capture()
    assert _gap(follower).closed == {}, "not before it is acknowledged"
    follower.run()
    require_same(follower, pair.a)
    assert _gap(follower).closed["shop.t"].kind is TableEventKind.REREAD
    pair.a.execute("insert into shop.u values (2, 2)", "insert into shop.v values (2, 2)")
    follower.run()
    pair.a.execute("truncate shop.u")
    follower.run()
    assert _gap(follower).open_tables == ("shop.v",)
    pair.a.execute("create table shop.x like shop.u")
    follower.run()
    pair.a.execute(
        "drop table shop.x",
        "rename table shop.v to shop.x",
        "rename table shop.x to shop.y, shop.u to shop.x, shop.y to shop.u",
        "rename table shop.x to shop.y, shop.u to shop.x, shop.y to shop.u",
    )
    follower.run()
    assert _gap(follower).open_tables == ("shop.v",), "the rows of `v` are in `x`"
    pair.a.execute("truncate shop.u")
    follower.run()
    assert _gap(follower).open_tables == ("shop.v",)
    pair.a.execute("drop table shop.x")
    follower.run()
    gap = _gap(follower)
    assert (gap.is_open, gap.closed["shop.v"].kind) == (False, TableEventKind.DROPPED)
    assert gap.closed["shop.u"].batch < gap.closed["shop.v"].batch


def test_the_past_of_a_table_that_lacks_a_gap_is_refused(pair: Pair) -> None:
    """From the gap up to the batch as of which it was found equal; the hint names a place on either
    side. Version sets between say what they may lack."""
    follower = read_shop(pair.a, 1, 2)
    before = _end(follower)
    take(pair.a, 2)
    purge(pair.a)
    follower.choose("earliest", "lost")
    put(pair.a, 3, 4)
    inside = str(head(pair.a))
    put(pair.a, 5)
    follower.run()
    after = _end(follower)
    _record_verified(follower)
    for place in (inside, after, "latest"):
        with pytest.raises(PastRefused, match="was never read") as refused:
            _rebuilt(follower, place)
        assert before in refused.value.hint
        assert "`lockstep verify shop.t`" in refused.value.hint
    assert _rebuilt(follower, before) == [1, 2]
    assert version_set_at(follower.ledger, SOURCE, parse_place(before)).gaps == ()
    newest = version_set_at(follower.ledger, SOURCE, None)
    [line], [values] = newest.lines_on_gaps(), version_set_values(newest, Path("/lake"))["gaps"]
    assert values["open"] == ("shop.t",)
    assert "was never read (somebody chose earliest: lost); rows of shop.t may be wrong" in line
    put(pair.a, 2)
    follower.run()
    take(pair.a, 2)
    follower.run()
    equal = _end(follower)
    _record_verified(follower)
    put(pair.a, 6)
    follower.run()
    _record_verified(follower)
    assert _gap(follower).open_tables == ()
    assert _rebuilt(follower, equal) == [1, 3, 4, 5]
    assert _rebuilt(follower, "latest") == [1, 3, 4, 5, 6]
    with pytest.raises(PastRefused) as refused:
        _rebuilt(follower, after)
    assert (before in refused.value.hint, equal in refused.value.hint) == (True, True)
    assert version_set_at(follower.ledger, SOURCE, None).gaps == ()
    assert version_set_at(follower.ledger, SOURCE, parse_place(after)).lines_on_gaps() == [line]


def test_a_place_inside_the_batch_that_empties_the_table_is_right_from_there_on(pair: Pair) -> None:
    follower = read_shop(pair.a, 1, 2)
    take(pair.a, 2)
    purge(pair.a)
    follower.choose("earliest")
    put(pair.a, 3)
    lacking = str(head(pair.a))
    pair.a.execute("truncate shop.t")
    put(pair.a, 4)
    right = str(head(pair.a))
    put(pair.a, 5)
    follower.run()
    assert _rebuilt(follower, right) == [4]
    assert _rebuilt(follower, "latest") == [4, 5]
    with pytest.raises(PastRefused) as refused:
        _rebuilt(follower, lacking)
    assert f"right again as of {_end(follower)}" in refused.value.hint


def _end(follower: Follower) -> str:
    return str(follower.live_batches()[-1].captured_end.at)


def _record_verified(follower: Follower) -> None:
    """What `lockstep verify` records."""
    with follower.leased() as lease:
        record_complete(follower.ports(), lease, verify(follower.ports()))


def _rebuilt(follower: Follower, place: str) -> list[int]:
    """The keys of `t` as of a place."""
    return sorted(row["id"] for row in follower.rebuilt(T, place))


def test_a_ledger_from_the_lake_appends_no_key_that_a_gap_left(pair: Pair) -> None:
    """It does not know the gap, in which the row was deleted."""
    follower = read_shop(pair.a, 1, 2)
    take(pair.a, 2)
    purge(pair.a)
    follower.choose("earliest")
    put(pair.a, 3)
    follower.run()
    follower.lose_ledger()
    with follower.leased() as lease:
        recover(follower.ports(), lease, author="ada")
    for value in (1, 2):
        put(pair.a, 4 + value)
        follower.run()
    put(pair.a, 2, v=2)
    follower.run()
    require_same(follower, pair.a)
