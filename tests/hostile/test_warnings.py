"""Values that the source makes something else of with a warning and no error, on real servers:
never taken for the table's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.server_errors import (
    HARMLESS_WARNINGS,
    LIMIT_WARNINGS,
    SourceWarning,
    require_harmless,
)
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.outside import verify
from tests.positions.paused import open_shop

LIMIT = 4096


@contextmanager
def packets(stand: MySqlStand, size: int) -> Iterator[None]:
    """Sessions that begin meanwhile take no packet beyond that."""
    [(before,)] = stand.rows("select @@global.max_allowed_packet")
    stand.execute(f"set global max_allowed_packet = {size}")
    try:
        yield
    finally:
        stand.execute(f"set global max_allowed_packet = {before}")


LONG = {
    "a JSON document": ("j json", "json_array(repeat('x', 10000))"),
    "a generated text": (
        "t varchar(100), j mediumtext generated always as (repeat(t, 1000)) virtual",
        "default",
    ),
}


@pytest.mark.parametrize(("column", "value"), LONG.values(), ids=LONG)
def test_a_value_beyond_a_limit(mysql: MySqlStand, database: str, column: str, value: str) -> None:
    """It is read as an empty text or NULL, and the table is quarantined with what helps; a
    comparison tells the same. The others go on."""
    shop = open_shop(mysql, database, ["a", "b"])
    shop.do(f"alter table a add column ({column})")
    shop.run()
    if "varchar" in column:
        shop.do("update a set t = repeat('y', 10)")
    else:
        shop.do(f"update a set j = {value}")
    shop.run()
    shop.require_whole("a", rereads=0)
    with packets(mysql, LIMIT):
        (found,) = verify(shop.follower.ports()).not_compared
        assert "error 1301" in found.reason
    shop.do("alter table a modify v int unsigned", "insert into b values (2, 2)")
    shop.run()
    with packets(mysql, LIMIT):
        shop.resume("a")
        shop.run()
        shop.require_whole("b")
        state = shop.state("a")
        assert state.has_stopped
        assert "error 1301" in (state.reason or "")
        assert "raise max_allowed_packet" in (state.hint or "")
    shop.resume("a")
    shop.run()
    shop.require_whole("a", rereads=1)


def test_what_a_table_s_own_expression_warns_of(mysql: MySqlStand, database: str) -> None:
    """The source shows the same to everybody: read as it is."""
    shop = open_shop(mysql, database, ["a"])
    shop.do(
        "alter table a add column t varchar(10) default 'none'",
        "insert into a (id, v, t) values (2, 0, '7 apples')",
        "alter table a add column (n int generated always as (t + 0) virtual)",
    )
    shop.run()
    shop.require_whole("a")


TABLE = TableName("shop", "t")


def test_the_table_of_warnings() -> None:
    """A number that nobody knows, one of a limit, and more than are shown: refused. No number
    is both, and no message holds a value."""
    assert not HARMLESS_WARNINGS.keys() & LIMIT_WARNINGS.keys()
    for number in HARMLESS_WARNINGS:
        require_harmless(TABLE, 1, [SourceWarning("Warning", number, "x")])
    require_harmless(TABLE, 1, [SourceWarning("Note", 9999, "x")])
    for number in (*LIMIT_WARNINGS, 1300, 9999):
        with pytest.raises(TableError) as caught:
            warning = SourceWarning("Warning", number, "of 'my secret' in 'c' at row 1")
            require_harmless(TABLE, 2, [SourceWarning("Warning", 1292, "x"), warning], ["c"])
        assert "secret" not in caught.value.reason
        assert "lockstep reload shop.t --reason" in caught.value.hint
    with pytest.raises(TableError, match="warned 3 times"):
        require_harmless(TABLE, 3, [SourceWarning("Warning", 1292, "x")] * 2)
