"""Changes of type that leave every stored value as it is: the mirror is widened or rewritten,
and nothing is set aside. A real server, whose SELECT is what the mirror must show."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fix_mysql import MySqlStand
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

ASIDE = {
    "time gets microseconds": ("time", "time(3)", ("'-838:59:59'", "null")),
    "binary grows": ("binary(2)", "binary(4)", ("'a'", "null")),
    "a long decimal gets digits": ("decimal(40,1)", "decimal(42,3)", ("1.5", "null")),
}
"""What SELECT shows is another text, or other bytes."""


class Shop:
    """A table with values before and behind its change."""

    def __init__(self, stand: MySqlStand, name: str, case: tuple[str, str, tuple[str, ...]]):
        self.stand, self.name = stand, name
        before, after, values = case
        self.put(f"create table t (id int primary key, v {before})")
        self.follower = Follower(server(stand), [f"{name}.t"])
        self.follower.run()
        self.put(*(f"insert into t values ({n}, {v})" for n, v in enumerate(values)))
        self.follower.run()
        self.put(
            f"insert into t values (10, {values[0]})",
            f"alter table t modify v {after}",
            f"insert into t values (11, {values[0]})",
            f"update t set id = 12 where id = {len(values) - 1}",
        )
        self.report = self.follower.run()

    def put(self, *statements: str) -> None:
        self.stand.execute(*statements, database=self.name)

    def mirror(self) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.follower.mirror(f"{self.name}.t")]

    def rows(self) -> list[tuple[Any, ...]]:
        return self.stand.rows("select * from t order by id", self.name)


@pytest.mark.parametrize("server_of", ["mysql", "mariadb"])
@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_they_are_followed(
    request: pytest.FixtureRequest, server_of: str, case: tuple[str, str, tuple[str, ...]]
) -> None:
    """Rows of before, of the same run, and behind: all as the server shows them."""
    databases = {"mysql": "database", "mariadb": "mariadb_database"}
    stand = request.getfixturevalue(server_of)
    shop = Shop(stand, request.getfixturevalue(databases[server_of]), case)
    assert shop.report.set_aside == ()
    assert shop.mirror() == shop.rows()


@pytest.mark.parametrize("case", READ_AGAIN.values(), ids=READ_AGAIN)
def test_they_are_read_again(
    mysql: MySqlStand, database: str, case: tuple[str, str, tuple[str, ...]]
) -> None:
    """Without a person's word."""
    shop = Shop(mysql, database, case)
    shop.follower.run()
    assert shop.mirror() == shop.rows()


@pytest.mark.parametrize("case", ASIDE.values(), ids=ASIDE)
def test_others_are_set_aside(
    mysql: MySqlStand, database: str, case: tuple[str, str, tuple[str, ...]]
) -> None:
    """By default: `on_rewrite` is a person's choice."""
    shop = Shop(mysql, database, case)
    (aside,) = shop.report.set_aside
    assert "stored values of v may have changed" in aside.reason


@pytest.mark.parametrize("kind", ["bigint", "varchar(4)"])
@pytest.mark.parametrize("added", ["default 7", "not null", "null"])
def test_a_column_that_comes_again_is_another(
    mysql: MySqlStand, database: str, kind: str, added: str
) -> None:
    """Of the same name, type and place, and no row is written behind it."""
    shop = Shop(mysql, database, (kind, kind, ("1", "2")))
    shop.put(f"alter table t drop column v, add column v {kind} {added}")
    assert shop.follower.run().set_aside == ()
    assert shop.mirror() == shop.rows()
