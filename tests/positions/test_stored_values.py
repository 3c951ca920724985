"""Changes of type that leave every stored value as it is: the mirror is widened or rewritten,
and nothing is quarantined. A real server, whose SELECT is what the mirror must show."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import Follower

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


class Shop:
    """A table for each case, with values before and behind its change."""

    def __init__(self, stand: MySqlStand, name: str, cases: Cases):
        self.stand, self.name, self.cases = stand, name, cases
        self.tables = dict(zip(cases, map("t{}".format, count()), strict=False))
        self.follower = Follower(server(stand), [f"{name}.*"], str(head(stand)))
        self.put(
            "create table {table} (id int primary key, v {before})",
            "insert into {table} values {rows}",
        )
        self.follower.run()
        self.put(
            "insert into {table} values (10, {value})",
            "alter table {table} modify v {after}",
            "insert into {table} values (11, {value})",
            "update {table} set id = 12 where id = {last}",
        )
        self.report = self.follower.run()

    def put(self, *statements: str) -> None:
        """In each case's table, one after the other."""
        self.stand.execute(
            *(
                statement.format(
                    table=self.tables[case],
                    before=before,
                    after=after,
                    value=values[0],
                    last=len(values) - 1,
                    rows=", ".join(f"({n}, {v})" for n, v in enumerate(values)),
                )
                for case, (before, after, values) in self.cases.items()
                for statement in statements
            ),
            database=self.name,
        )

    def wrong(self) -> dict[str, list[tuple[Any, ...]]]:
        """The mirrors that are not as the server shows their tables."""
        shown = {
            case: [tuple(row.values()) for row in self.follower.mirror(f"{self.name}.{table}")]
            for case, table in self.tables.items()
        }
        return {case: rows for case, rows in shown.items() if rows != self.rows(case)}

    def rows(self, case: str) -> list[tuple[Any, ...]]:
        return self.stand.rows(f"select * from {self.tables[case]} order by id", self.name)


@pytest.mark.parametrize("of", [("mysql", "database"), ("mariadb", "mariadb_database")])
def test_only_others_are_quarantined(request: pytest.FixtureRequest, of: tuple[str, str]) -> None:
    """Rows of before, of the same run, and behind: all as the server shows them, of tables that are
    read again without a person's word from the next run on. By default others are quarantined:
    `on_rewrite` is a person's choice."""
    stand, name = map(request.getfixturevalue, of)
    shop = Shop(stand, name, KEPT | READ_AGAIN | QUARANTINED)
    reasons = {one.table.name: one.reason for one in shop.report.quarantined}
    assert reasons.keys() == {shop.tables[case] for case in QUARANTINED}
    assert all("stored values of v may have changed" in reason for reason in reasons.values())
    assert shop.wrong().keys() & KEPT.keys() == set()
    shop.follower.run()
    assert shop.wrong().keys() <= QUARANTINED.keys()


def test_a_column_that_comes_again_is_another(mysql: MySqlStand, database: str) -> None:
    """Of the same name, type and place, and no row is written behind it."""
    shop = Shop(mysql, database, {case: (one[0], one[0], one[2]) for case, one in ANOTHER.items()})
    shop.cases = ANOTHER
    shop.put("alter table {table} drop column v, add column v {after}")
    assert shop.follower.run().quarantined == ()
    assert shop.wrong() == {}
