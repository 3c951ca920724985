"""The first run of a source, and the ones that go on where it ended."""

from __future__ import annotations

import pytest

from pipeline.places import Earliest, Latest
from pipeline.runs.expect import expected_log
from pipeline.start.question import StartRule
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
    assert follower.last_rule() == StartRule.RESUME_SAME_SERVER
    stand.execute(f"update {name}.t set v = 3 where id = 1", f"delete from {name}.t where id = 2")
    follower.run()
    assert follower.mirror(f"{name}.t") == [{"id": 1, "v": 3}]
    cursor = follower.ledger.acknowledged_cursor(SOURCE)
    assert cursor is not None
    assert cursor.by_gtid
    assert follower.run().batch is None
    stand.execute(f"drop database {name}")


def test_java_is_begun_early_where_it_will_probably_be_needed(
    mysql: MySqlStand, database: str
) -> None:
    """After a run with rows, once the log went on; not for a log full of other tables; and
    always for what was captured and waits. It is begun for as much of the log as was written."""
    mysql.execute(
        "create table t (id int primary key)", "create table u (id int)", database=database
    )
    follower = Follower(server(mysql), [f"{database}.t"])
    expected = []

    def ask() -> int | None:
        log_bytes = expected_log(follower.ledger, SOURCE, follower.server, Latest())
        expected.append(log_bytes is not None)
        return log_bytes

    facts = follower.server.facts()
    whole = sum(log.size for log in facts.binlogs)
    assert expected_log(follower.ledger, SOURCE, follower.server, Earliest()) == whole
    ask()
    follower.run()
    mysql.execute("insert into t values (1)", database=database)
    ask()
    follower.capture()
    assert ask() == follower.batches()[0].log_bytes
    follower.run()
    ask()
    mysql.execute("insert into u values (1)", database=database)
    ask()
    follower.run()
    mysql.execute("insert into t values (2)", database=database)
    ask()
    assert expected == [False, False, True, False, True, False]
