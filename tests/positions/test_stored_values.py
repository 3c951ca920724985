"""Changes of type that leave every stored value as it is: the mirror is widened or rewritten,
and nothing is quarantined. A real server, whose SELECT is what the mirror must show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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

Cases = Mapping[str, tuple[str, str, tuple[str, ...]]]


@pytest.mark.parametrize("nameless", ["mysql", "mariadb"], indirect=True)
def test_only_others_are_quarantined(nameless: MySqlStand) -> None:
    """Rows of before, of the same run, and behind: all as the server shows them, of tables that are
    read again without a person's word from the next run on. By default others are quarantined:
    `on_rewrite` is a person's choice."""
    tell(nameless, [_are_kept, _are_read_again, _are_quarantined], ["a"])


def test_a_column_that_comes_again_is_another(mysql: MySqlStand) -> None:
    """Of the same name, type and place, and no row is written behind it."""
    tell(mysql, [_come_again], ["a"])


def put(shop: Shop, cases: Cases, *statements: str) -> list[str]:
    """In a table of each case, one after the other; the tables."""
    tables = [f"t{number}" for number in range(len(cases))]
    shop.do(
        *(
            statement.format(
                table=table,
                before=before,
                after=after,
                value=values[0],
                last=len(values) - 1,
                rows=", ".join(f"({n}, {v})" for n, v in enumerate(values)),
            )
            for table, (before, after, values) in zip(tables, cases.values(), strict=True)
            for statement in statements
        )
    )
    return tables


MADE = (
    "create table {table} (id int primary key, v {before})",
    "insert into {table} values {rows}",
)


def _altered(shop: Shop, cases: Cases) -> Iterator[None]:
    put(shop, cases, *MADE)
    yield
    put(
        shop,
        cases,
        "insert into {table} values (10, {value})",
        "alter table {table} modify v {after}",
        "insert into {table} values (11, {value})",
        "update {table} set id = 12 where id = {last}",
    )
    yield


def _are_kept(shop: Shop) -> Iterator[None]:
    yield from _altered(shop, KEPT)
    assert shop.quarantined() == {}
    for table in put(shop, KEPT):
        shop.require_same(table)


def _are_read_again(shop: Shop) -> Iterator[None]:
    yield from _altered(shop, READ_AGAIN)
    assert shop.quarantined() == {}
    yield
    for table in put(shop, READ_AGAIN):
        shop.require_same(table)


def _are_quarantined(shop: Shop) -> Iterator[None]:
    yield from _altered(shop, QUARANTINED)
    reasons = {table: stopped.reason for table, stopped in shop.quarantined().items()}
    assert sorted(reasons) == put(shop, QUARANTINED)
    assert all("stored values of v may have changed" in reason for reason in reasons.values())


def _come_again(shop: Shop) -> Iterator[None]:
    put(shop, ANOTHER, *MADE)
    yield
    put(shop, ANOTHER, "alter table {table} drop column v, add column v {after}")
    yield
    assert shop.quarantined() == {}
    for table in put(shop, ANOTHER):
        shop.require_same(table)
