"""The first run of a source, and the ones that go on where it ended."""

from __future__ import annotations

import pytest

from pipeline.start.question import Rule
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower


@pytest.mark.parametrize("fixture", ["mysql", "mariadb"])
def test_a_run_goes_on_where_the_last_one_ended(
    request: pytest.FixtureRequest, fixture: str
) -> None:
    """From the head on, then from the cursor, by file and offset; then nothing is new."""
    stand: MySqlStand = request.getfixturevalue(fixture)
    name = stand.fresh_name()
    stand.execute(f"create database {name}", f"create table {name}.t (id int primary key, v int)")
    follower = Follower(server(stand), [f"{name}.*"])
    follower.run()
    stand.execute(f"insert into {name}.t values (1, 1), (2, 2)")
    follower.run()
    assert follower.last_rule() == Rule.RESUME_SAME_SERVER
    stand.execute(f"update {name}.t set v = 3 where id = 1", f"delete from {name}.t where id = 2")
    follower.run()
    assert follower.mirror(f"{name}.t") == [{"id": 1, "v": 3}]
    cursor = follower.ledger.acknowledged_cursor(SOURCE)
    assert cursor is not None
    assert cursor.by_gtid
    assert follower.run().batch is None
    stand.execute(f"drop database {name}")
