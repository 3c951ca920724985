"""Tables that cannot be read, locked, decoded or written: each is quarantined alone, and the
others go on. A real server, whose words are told without a row's value."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from lockstep.pipeline.model.table_state import OrderKind
from lockstep.pipeline.values.errors import MirrorRefused, StoppedBy
from lockstep.resources.mysql import connection
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.outside import verify
from tests.positions.paused import Shop, open_shop
from tests.positions.stories import tell
from tests.twins.mirrors import MemoryMirrors

UNREADABLE = {
    "no JSON": ("j json generated always as (info) virtual", "error 3140"),
    "a part of no JSON": ("j int generated always as (info->'$.a') virtual", "error 3141"),
    "no geometry": ("j geometry generated always as (st_geomfromtext(info)) virtual", "error 3037"),
}
"""Columns that MySQL takes over any rows, and then refuses to show for those that are there."""

SECRET = "a secret, it's"


WITH_TEXT = ("alter table a add column info text", f'update a set info = "{SECRET}"')


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    return open_shop(mysql, database, ("a", "b"), *WITH_TEXT)


def goes_on(shop: Shop, number: int, *, rereads: int = 0) -> None:
    """What is written to the other table is in its mirror after the next run."""
    for _ in _goes_on(shop, number, rereads=rereads):
        shop.run()


def _goes_on(shop: Shop, number: int, *, rereads: int = 0) -> Iterator[None]:
    shop.do(f"insert into b values ({number}, {number})")
    yield
    shop.require_whole("b", rereads=rereads)


def test_stories_of_one_table(mysql: MySqlStand) -> None:
    """What MySQL refuses to show, and a pause in every state."""
    refused = [partial(_refused_to_show, *case) for case in UNREADABLE.values()]
    paused = [partial(_pause_fits, state) for state in STATES]
    tell(mysql, [*refused, *paused], ("a", "b"), WITH_TEXT)


def _refused_to_show(column: str, told: str, shop: Shop) -> Iterator[None]:
    """An error packet is an answer: in MySQL's words, the value in them left out."""
    shop.do(f"alter table a add column {column}")
    yield from _goes_on(shop, 2)
    state = shop.state("a")
    assert told in (state.reason or "")
    assert "secret" not in f"{state.reason} {state.hint}"
    yield from _goes_on(shop, 3)
    assert shop.table("a") in {one.table for one in verify(shop.follower.ports()).quarantined}
    shop.do("alter table a drop column j", "update a set v = 9")
    shop.resume("a")
    yield from _goes_on(shop, 4)
    shop.require_whole("a", rereads=1)


STATES = ("active", "paused", "resumed", "quarantined", "quarantined and resumed")


def _pause_fits(state: str, shop: Shop) -> Iterator[None]:
    """What a table lacks is kept; the newest order counts."""
    if state in ("paused", "resumed"):
        shop.pause("a")
    if state == "resumed":
        shop.resume("a")
    if state in ("quarantined", "quarantined and resumed"):
        shop.do("alter table a add column j json generated always as (info) virtual")
        yield
    if state == "quarantined and resumed":
        shop.resume("a")
    shop.do("insert into a (id, v) values (5, 5)")
    shop.order(OrderKind.PAUSE, "a")
    yield from _goes_on(shop, 2)
    assert shop.state("a").stopped_by is StoppedBy.PERSON
    if state in ("quarantined", "quarantined and resumed"):
        shop.do("alter table a drop column j")
    shop.resume("a")
    yield from _goes_on(shop, 3)
    shop.require_whole("a", rereads=state in ("quarantined", "quarantined and resumed"))


def test_a_locked_table_waits_alone(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever holds it keeps its own reading from coming; nobody has to resume it."""
    monkeypatch.setitem(connection.SESSION_VARIABLES, "lock_wait_timeout", "1")
    monkeypatch.setattr(connection, "_session_start", lambda *_: connection.SessionStart())
    shop.do("alter table a modify v int unsigned")
    with shop.stand.connect(shop.name) as holder, holder.cursor() as cursor:
        cursor.execute("lock tables a write")
        shop.run()
        shop.resume("a")
        goes_on(shop, 2)
        assert "error 1205" in (shop.state("a").reason or "")
        goes_on(shop, 3)
    goes_on(shop, 4)
    shop.require_whole("a", rereads=1)


GRANTED = {
    "nothing": ((), "error 1142"),
    "without a column": (
        ("grant select (id, v) on {a} to {u}",),
        "on columns of the table only",
    ),
    "without the key": (("grant select (v) on {a} to {u}",), "on columns of the table only"),
    "to write": (("grant insert, select (id) on {a} to {u}",), "may not read v, w"),
}
"""What an account is granted of a table with the columns id, v and w."""


@pytest.mark.thin
@pytest.mark.parametrize("start", ["snapshot", None])
@pytest.mark.parametrize("metadata", ["MINIMAL", "FULL"])
def test_tables_that_may_not_be_read_as_a_whole_wait_alone(
    mysql: MySqlStand, metadata: str, start: str | None
) -> None:
    """They are there, whatever information_schema shows of them: each is quarantined with the GRANT
    that it lacks, or followed by what the log says of it, and never has fewer columns."""
    name = mysql.fresh_name()
    account = f"'{name}'@'%'"
    mysql.execute(
        f"create user {account} identified by 'x'",
        f"grant replication slave, replication client on *.* to {account}",
    )
    follows = start is None and metadata == "FULL"
    stories = [partial(_lacks, *case, account, start, follows) for case in GRANTED.values()]
    tables = (
        "create table a (id int primary key, v int, w int)",
        "create table b (id int primary key, v int)",
        f"grant select on b to {account}",
    )
    asked = server(mysql, user=name, password="x")
    try:
        with mysql.metadata(metadata):
            tell(mysql, stories, (), tables, opened=False, server=asked, start=start)
    finally:
        mysql.execute(f"drop user {account}")


def _lacks(
    grants: tuple[str, ...], lacks: str, account: str, start: str | None, follows: bool, shop: Shop
) -> Iterator[None]:
    read = int(start is not None)
    a = f"`{shop.name}`.`a`"
    shop.do(*(one.format(a=a, u=account) for one in grants))
    shop.do("insert into a values (1, 2, 3)")
    yield from _goes_on(shop, 1, rereads=read)
    shop.do("alter table a add column x int", "insert into a values (4, 5, 6, 7)")
    yield from _goes_on(shop, 2, rereads=read)
    state = shop.state("a")
    grant = f"GRANT SELECT ON {a} TO {account}"
    if state.is_complete:
        assert follows
        shop.require_whole("a")
        assert shop.table("a") in {one.table for one in shop.follower.partial()}
        told = {one.table: one for one in verify(shop.follower.ports()).not_compared}
        assert lacks in told[shop.table("a")].reason
        assert told[shop.table("a")].hint == grant
        shop.do(grant)
        require_equal(shop)
        return
    assert lacks in (state.reason or "")
    assert (state.hint or "").startswith(grant)
    shop.resume("a")
    yield from _goes_on(shop, 3, rereads=read)
    shop.do(grant)
    shop.resume("a")
    yield from _goes_on(shop, 4, rereads=read)
    shop.require_whole("a", rereads=1)
    require_equal(shop)


def require_equal(shop: Shop) -> None:
    """By a comparison with the server."""
    found = {one.table: one.equal for one in verify(shop.follower.ports()).tables}
    assert found[shop.table("a")]
    assert found[shop.table("b")]


def test_a_comparison_goes_on_without_it(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mirror that cannot be read is told of, with the cure, and the others are compared."""
    rows = MemoryMirrors.rows

    def damaged(self: MemoryMirrors, mirror: str, *rest: object) -> object:
        if mirror.endswith("/a"):
            raise MirrorRefused("a file of it is lost", hint="rewrite the mirror")
        return rows(self, mirror, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(MemoryMirrors, "rows", damaged)
    found = verify(shop.follower.ports())
    assert [(table.table.name, table.equal) for table in found.tables] == [("b", True)]
    assert [one.table.name for one in found.not_compared] == ["a"]
    assert f"lockstep reload {shop.name}.a --reason" in found.not_compared[0].hint
    assert not found.equal
