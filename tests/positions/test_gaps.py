"""What was never read: each table that it may have touched is named, until it is whole again."""

from __future__ import annotations

from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.model.table_state import OrderKind, TableEventKind
from lockstep.pipeline.values.table import TableName
from tests.positions.follower import SOURCE, Follower
from tests.positions.servers import Pair, head, purge
from tests.positions.shop import put, read_shop, require_same

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
    name, offset = head(pair.a)
    follower.choose(f"{name}:{offset}")
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
