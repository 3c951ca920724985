"""What a run may expect before it reads anything."""

from __future__ import annotations

from lockstep.pipeline.run.expected_log import expected_log_bytes
from lockstep.pipeline.values.places import Earliest, Latest
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower


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
        log_bytes = expected_log_bytes(follower.ledger, SOURCE, follower.server, Latest())
        expected.append(log_bytes is not None)
        return log_bytes

    facts = follower.server.facts()
    whole = sum(log.size for log in facts.binlogs)
    assert expected_log_bytes(follower.ledger, SOURCE, follower.server, Earliest()) == whole
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
