"""A server that keeps the case of names and ignores it (`lower_case_table_names = 2`), which it is
only on a file system that ignores case, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.mysql_search import Program
from demo.mysqld import ProgramMySql
from lockstep.pipeline.run.status.plan import make_plan
from tests.fix_mysql import MySqlStand, killed_at_last
from tests.lake.caseless import caseless_folder
from tests.mysql.reading import server
from tests.positions.follower import Follower
from tests.positions.paused import Shop
from tests.positions.servers import SMALL, make_account

OPTIONS = (*SMALL, "--server-id=77", "--lower-case-table-names=2")


@pytest.fixture
def stand(mysql_program: Program, tmp_path: Path) -> Iterator[MySqlStand]:
    with caseless_folder(tmp_path, 1 << 30) as folder:
        made = ProgramMySql(mysql_program, folder, folder / "cache", port=0, options=OPTIONS)
        with killed_at_last(made) as running:
            stand = MySqlStand(running)
            make_account(stand)
            yield stand


@pytest.mark.soak
def test_a_table_whose_rows_are_logged_under_another_name_is_not_followed_without_them(
    stand: MySqlStand,
) -> None:
    """It would stay as it was read. In lower case, and under that name, it is followed."""
    assert stand.rows("select @@lower_case_table_names") == [(2,)]
    stand.execute("create database shop")
    shop = Shop(stand, "shop", Follower(server(stand), ["shop.*"], "snapshot"))
    shop.do("create table Orders (id int primary key)", "insert into Orders values (1)")
    shop.do("create table plain (id int primary key)")
    shop.run()
    assert "logs its rows as those of shop.orders" in str(shop.state("Orders").reason)
    shop.do("insert into Orders values (2)", "insert into PLAIN values (2)")
    shop.resume("Orders")
    assert make_plan(shop.follower.ports()).new_quarantines == [shop.table("Orders")]
    shop.run()
    assert shop.state("Orders").has_stopped
    shop.require_same("plain")
    shop.do("rename table Orders to renamed", "insert into renamed values (3)")
    shop.run()
    shop.do("insert into renamed values (4)")
    shop.run()
    shop.require_same("renamed")
