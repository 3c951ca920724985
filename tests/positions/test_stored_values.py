"""Changes of type that leave every stored value as it is: the mirror is widened or rewritten,
and nothing is quarantined. A real server, whose SELECT is what the mirror must show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from tests.fix_mysql import MySqlStand
from tests.positions.paused import Shop
from tests.positions.stories import tell

KEPT = {
    "binary to varbinary": ("binary(4)", "varbinary(4)", ("'a'", "x'61620000'", "''", "null")),
    "binary to blob": ("binary(3)", "blob", ("'a'", "x'000001'", "null")),
    "tinyint to decimal": ("tinyint", "decimal(3,0)", ("-128", "127", "null")),
    "int to decimal": ("int", "decimal(12,2)", ("-2147483648", "2147483647", "null")),
    "bigint to decimal": ("bigint", "decimal(19,0)", ("-9223372036854775808", "7", "null")),
    "unsigned to decimal": ("bigint unsigned", "decimal(20,0)", ("18446744073709551615", "0")),
    "unsigned to unsigned": ("int unsigned", "decimal(22,1) unsigned", ("4294967295", "0")),
}
"""Before, after, and values."""

READ_AGAIN = {
    "smallint unsigned to decimal": ("smallint unsigned", "decimal(5,0)", ("65535", "0")),
    "int unsigned to decimal": ("int unsigned", "decimal(10,0) unsigned", ("4294967295", "0")),
    "mediumint to decimal": ("mediumint", "decimal(7,0)", ("-8388608", "null")),
}
"""The lake's own type holds more than the server's: the table is read again at once."""

QUARANTINED = {
    "time gets microseconds": ("time", "time(3)", ("'-838:59:59'", "null")),
    "binary grows": ("binary(2)", "binary(4)", ("'a'", "null")),
    "a long decimal gets digits": ("decimal(40,1)", "decimal(42,3)", ("1.5", "null")),
}
"""What SELECT shows is another text, or other bytes."""


ANOTHER = {
    f"{kind} {added}": (kind, f"{kind} {added}", ("1", "2"))
    for kind in ("bigint", "varchar(4)")
    for added in ("default 7", "not null", "null")
}
"""Columns that go and come again."""

Case = tuple[str, str, tuple[str, ...]]


@pytest.mark.parametrize("nameless", ["mysql", "mariadb"], indirect=True)
def test_only_others_are_quarantined(nameless: MySqlStand) -> None:
    """Rows of before, of the same run, and behind: all as the server shows them, of tables that are
    read again without a person's word from the next run on. By default others are quarantined:
    `on_rewrite` is a person's choice."""
    stories = [partial(_is_kept, case) for case in KEPT.values()]
    stories += [partial(_is_kept, case, runs=2) for case in READ_AGAIN.values()]
    stories += [partial(_is_quarantined, case) for case in QUARANTINED.values()]
    tell(nameless, stories, ["a"])


def test_a_column_that_comes_again_is_another(mysql: MySqlStand) -> None:
    """Of the same name, type and place, and no row is written behind it."""
    tell(mysql, [partial(_comes_again, case) for case in ANOTHER.values()], ["a"])


def _made(shop: Shop, before: str, values: Sequence[str]) -> Iterator[None]:
    rows = ", ".join(f"({number}, {value})" for number, value in enumerate(values))
    shop.do(f"create table t (id int primary key, v {before})", f"insert into t values {rows}")
    yield


def _altered(case: Case, shop: Shop) -> Iterator[None]:
    before, after, values = case
    yield from _made(shop, before, values)
    shop.do(
        f"insert into t values (10, {values[0]})",
        f"alter table t modify v {after}",
        f"insert into t values (11, {values[0]})",
        f"update t set id = 12 where id = {len(values) - 1}",
    )
    yield


def _is_kept(case: Case, shop: Shop, runs: int = 1) -> Iterator[None]:
    yield from _altered(case, shop)
    assert shop.quarantined() == {}
    for _ in range(runs - 1):
        yield
    shop.require_same("t")


def _is_quarantined(case: Case, shop: Shop) -> Iterator[None]:
    yield from _altered(case, shop)
    assert "stored values of v may have changed" in shop.quarantined()["t"].reason


def _comes_again(case: Case, shop: Shop) -> Iterator[None]:
    before, after, values = case
    yield from _made(shop, before, values)
    shop.do(f"alter table t drop column v, add column v {after}")
    yield
    assert shop.quarantined() == {}
    shop.require_same("t")
