"""Tables that cannot be read, locked, decoded or written: each is quarantined alone, and the
others go on. A real server, whose words are told without a row's value."""

from __future__ import annotations

import pytest

from pipeline.errors import MirrorRefused
from pipeline.table_state import OrderKind, TableCondition
from resources.mysql import connection
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.outside import verify
from tests.positions.follower import Follower
from tests.positions.paused import Shop, open_shop
from tests.twins.mirrors import MemoryMirrors

UNREADABLE = {
    "no JSON": ("j json generated always as (info) virtual", "error 3140"),
    "a part of no JSON": ("j int generated always as (info->'$.a') virtual", "error 3141"),
    "no geometry": ("j geometry generated always as (st_geomfromtext(info)) virtual", "error 3037"),
}
"""Columns that MySQL takes over any rows, and then refuses to show for those that are there."""

SECRET = "a secret, it's"


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    found = open_shop(mysql, database, ["a", "b"])
    found.do(
        "alter table a add column info text",
        f'update a set info = "{SECRET}"',
    )
    found.run()
    return found


def goes_on(shop: Shop, number: int, *, rereads: int = 0) -> None:
    """What is written to the other table is in its mirror after the next run."""
    shop.do(f"insert into b values ({number}, {number})")
    shop.run()
    shop.require_whole("b", rereads=rereads)


@pytest.mark.parametrize(("column", "told"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_mysql_refuses_to_show_quarantines_its_table(
    shop: Shop, column: str, told: str
) -> None:
    """An error packet is an answer: in MySQL's words, the value in them left out."""
    shop.do(f"alter table a add column {column}")
    goes_on(shop, 2)
    state = shop.state("a")
    assert told in (state.reason or "")
    assert "secret" not in f"{state.reason} {state.hint}"
    goes_on(shop, 3)
    assert [one.table.name for one in verify(shop.follower.work()).quarantined] == ["a"]
    shop.do("alter table a drop column j", "update a set v = 9")
    shop.release("a")
    goes_on(shop, 4)
    shop.require_whole("a", rereads=1)


def test_a_locked_table_waits_alone(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever holds it keeps its own reading from coming; nobody has to release it."""
    monkeypatch.setitem(connection.WANTED, "lock_wait_timeout", "1")
    monkeypatch.setattr(connection, "_start", lambda *_: connection.SessionStart())
    shop.do("alter table a modify v int unsigned")
    with shop.stand.connect(shop.name) as holder, holder.cursor() as cursor:
        cursor.execute("lock tables a write")
        shop.run()
        shop.release("a")
        goes_on(shop, 2)
        assert "error 1205" in (shop.state("a").reason or "")
        goes_on(shop, 3)
    goes_on(shop, 4)
    shop.require_whole("a", rereads=1)


GRANTED = {
    "nothing": ((), "error 1142"),
    "without a column": (
        ("grant select (id, v) on {a} to {u}",),
        "on columns of it, not on the table",
    ),
    "without the key": (("grant select (v) on {a} to {u}",), "on columns of it, not on the table"),
    "to write": (("grant insert, select (id) on {a} to {u}",), "may not read v, w"),
}
"""What an account is granted of a table with the columns id, v and w."""


@pytest.mark.thin
@pytest.mark.parametrize("start", ["snapshot", None])
@pytest.mark.parametrize("metadata", ["MINIMAL", "FULL"])
@pytest.mark.parametrize("granted", GRANTED)
def test_a_table_that_may_not_be_read_as_a_whole_waits_alone(
    mysql: MySqlStand, database: str, granted: str, metadata: str, start: str | None
) -> None:
    """It is there, whatever information_schema shows of it: it is quarantined with the GRANT that
    it lacks, or followed by what the log says of it, and never has fewer columns."""
    grants, lacks = GRANTED[granted]
    account = f"'{database[:20]}'@'%'"
    mysql.execute(
        "create table a (id int primary key, v int, w int)",
        "create table b (id int primary key, v int)",
        f"create user {account} identified by 'x'",
        f"grant replication slave, replication client on *.* to {account}",
        f"grant select on {database}.b to {account}",
        database=database,
    )
    mysql.execute(*(one.format(a=f"{database}.a", u=account) for one in grants))
    try:
        asked = server(mysql, user=database[:20], password="x")
        read = int(start is not None)
        begun = start or str(head(mysql))
        shop = Shop(mysql, database, Follower(asked, [f"{database}.*"], start=begun))
        with mysql.metadata(metadata):
            shop.do("insert into a values (1, 2, 3)")
            goes_on(shop, 1, rereads=read)
            shop.do("alter table a add column x int", "insert into a values (4, 5, 6, 7)")
            goes_on(shop, 2, rereads=read)
        state = shop.state("a")
        grant = f"GRANT SELECT ON `{database}`.`a` TO {account}"
        if state.condition is TableCondition.ACTIVE:
            assert (metadata, start) == ("FULL", None)
            shop.require_whole("a")
            assert shop.table("a") in {one.table for one in shop.follower.partial()}
            [told] = verify(shop.follower.work()).not_compared
            assert lacks in told.reason
            assert told.hint == grant
            mysql.execute(grant)
        else:
            assert verify(shop.follower.work()).equal
            assert lacks in (state.reason or "")
            assert (state.hint or "").startswith(grant)
            shop.release("a")
            goes_on(shop, 3, rereads=read)
            mysql.execute(grant)
            shop.release("a")
            goes_on(shop, 4, rereads=read)
            shop.require_whole("a", rereads=1)
        assert verify(shop.follower.work()).equal
    finally:
        mysql.execute(f"drop user {account}")


def test_a_comparison_goes_on_without_it(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mirror that cannot be read is told of, with the cure, and the others are compared."""
    rows = MemoryMirrors.rows

    def damaged(self: MemoryMirrors, mirror: str, *rest: object) -> object:
        if mirror.endswith("/a"):
            raise MirrorRefused("a file of it is lost", hint="rewrite the mirror")
        return rows(self, mirror, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(MemoryMirrors, "rows", damaged)
    found = verify(shop.follower.work())
    assert [(table.table.name, table.equal) for table in found.tables] == [("b", True)]
    assert [one.table.name for one in found.not_compared] == ["a"]
    assert f"lockstep reload {shop.name}.a --reason" in found.not_compared[0].hint
    assert not found.equal


@pytest.mark.parametrize("kind", ["active", "paused", "resumed", "quarantined", "released"])
def test_a_pause_fits_every_state(shop: Shop, kind: str) -> None:
    """What a table lacks is kept; the newest order counts."""
    if kind in ("paused", "resumed"):
        shop.pause("a")
    if kind == "resumed":
        shop.resume("a")
    if kind in ("quarantined", "released"):
        shop.do("alter table a add column j json generated always as (info) virtual")
        shop.run()
    if kind == "released":
        shop.release("a")
    shop.do("insert into a (id, v) values (5, 5)")
    shop.order(OrderKind.PAUSE, "a")
    goes_on(shop, 2)
    assert shop.state("a").condition is TableCondition.PAUSED
    if kind in ("quarantined", "released"):
        shop.do("alter table a drop column j")
    shop.resume("a")
    goes_on(shop, 3)
    shop.require_whole("a", rereads=kind in ("quarantined", "released"))
