"""Native ALGORITHM=INSTANT on a table under a writer: the mirror is the table."""

from __future__ import annotations

from tests.fix_mysql import MySqlStand
from tests.online.load import Load
from tests.online.made import Shop

INSTANT = (
    "add column last varchar(10) not null default 'new'",
    "add column ahead int default 7 first",
    "add column amid date after id",
    "add column kind enum('a', 'b') not null default 'b', add column spare int default 3",
    "modify kind enum('a', 'b', 'c') not null default 'c'",
    "alter column last set default 'newer'",
    "rename column spare to renamed",
    "drop column ahead",
    "change column renamed once_more int default 4",
    "drop column amid, add column ahead varchar(5) default 'again' first",
)
"""https://dev.mysql.com/doc/refman/9.7/en/innodb-online-ddl-operations.html: what InnoDB does
without touching a row."""


def test_a_run_behind_each_and_one_over_all(mysql: MySqlStand, database: str) -> None:
    """A table that is followed statement by statement, and one that has all of them in one
    run: writers stop for none, no table is read again, and both end as the source has them."""
    shop = Shop.made(mysql, database, ["stepwise", "at_once"])
    with Load(mysql, shop.names) as load:
        for change in INSTANT:
            mysql.execute(f"alter table {database}.stepwise {change}, algorithm=instant")
            load.go_on()
            shop.run()
        for change in INSTANT:
            mysql.execute(f"alter table {database}.at_once {change}, algorithm=instant")
            load.go_on(1)
    shop.run()
    assert shop.read_anew() == []
    shop.require_followed()
