"""Short questions share a session while they follow each other, and never another's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lockstep.pipeline.values.errors import SourceRefused
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.server import Questions
from tests.fix_mysql import MySqlStand
from tests.mysql.chunked import until
from tests.mysql.reading import server, settings


@pytest.fixture
def asking(mysql: MySqlStand) -> Iterator[Questions]:
    made = Questions(lambda: settings(mysql))
    yield made
    made.close()


def asked(asking: Questions, question: str = "select connection_id()") -> int:
    """What the server answers; by default, in which session."""
    with asking.cursor() as cursor:
        cursor.execute(question)
        ((answer,),) = cursor.fetchall()
        return int(answer)


def sessions(mysql: MySqlStand) -> set[int]:
    return {row[0] for row in mysql.rows("select id from information_schema.processlist")}


def test_questions_share_a_session_while_the_server_keeps_it(
    mysql: MySqlStand, asking: Questions
) -> None:
    """One that it ended is noticed before it is asked; nobody has to ask twice."""
    first = asked(asking)
    assert asked(asking) == first
    mysql.execute(f"kill {first}")
    until(lambda: first not in sessions(mysql))
    second = asked(asking)
    assert asked(asking) == second != first
    asking.close()
    until(lambda: second not in sessions(mysql))
    assert asked(asking) not in (first, second)


def test_a_session_that_was_idle_for_long_is_not_used_again(
    asking: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Privileges of before would hold in it."""
    first = asked(asking)
    monkeypatch.setattr("lockstep.resources.mysql.server.KEPT_SECONDS", 0.0)
    assert asked(asking) != first


def test_who_asks_has_the_session_alone(mysql: MySqlStand, asking: Questions) -> None:
    """A second one, as of another thread, has its own; one of both is kept."""
    with asking.cursor() as one, asking.cursor() as other:
        ids = set()
        for cursor in (one, other):
            cursor.execute("select connection_id()")
            ids |= {row[0] for row in cursor.fetchall()}
    assert len(ids) == 2
    until(lambda: len(ids & sessions(mysql)) == 1)
    assert ids & sessions(mysql) == {asked(asking)}


def test_a_session_in_which_a_question_failed_is_left(asking: Questions) -> None:
    """Nobody knows what of its answer is still to come."""
    first = asked(asking)
    with pytest.raises(SourceRefused):
        asked(asking, "select nothing")
    assert asked(asking) != first


def test_none_is_kept_beside_a_read(mysql: MySqlStand, database: str) -> None:
    """An account may be allowed as many sessions as a read needs."""
    mysql.execute("create table t (id int primary key)", database=database)
    source = server(mysql)
    (schema,) = source.baseline([TableName(database, "t")]).tables
    source.facts()
    kept = asked(source._questions)
    assert kept in sessions(mysql)
    with source.snapshot(schema):
        until(lambda: kept not in sessions(mysql))
