"""Tables' lives as Postgres keeps them: the state of each is what its events make of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg2
import pytest
from psycopg2.extensions import make_dsn
from psycopg2.extras import RealDictCursor

from pipeline.life.step import replayed
from pipeline.table import TableName
from pipeline.table_state import TableState
from resources.postgres.ledger import open_ledger
from resources.postgres.life_events import event_of
from tests.ledger.kept import tell
from tests.ledger.servers import run


@pytest.fixture(scope="module")
def told(embedded_dsn: str) -> Iterator[str]:
    """A ledger to which most happened that can."""
    run(embedded_dsn, "create database lives")
    dsn = make_dsn(embedded_dsn, dbname="lives")
    with open_ledger(dsn, Path()) as ledger:
        tell(ledger)
    yield dsn
    run(embedded_dsn, "drop database lives")


def _replayed(dsn: str, source: str) -> dict[TableName, TableState | None]:
    connection = psycopg2.connect(dsn)
    try:
        with connection.cursor(cursor_factory=RealDictCursor) as cursor:
            cursor.execute(
                "select * from lockstep.table_life where source = %s order by id", [source]
            )
            rows = cursor.fetchall()
    finally:
        connection.close()
    names = {TableName(row["database"], row["name"]) for row in rows}
    return {
        name: replayed(
            name,
            [
                (row["batch"], event_of(row))
                for row in rows
                if (row["database"], row["name"]) == (name.database, name.name)
            ],
            {},
        )
        for name in names
    }


@pytest.mark.parametrize("source", ["shop", "till", "mill"])
def test_a_state_is_what_its_events_make_of_it(told: str, source: str) -> None:
    with open_ledger(told, Path()) as ledger:
        states = ledger.table_states(source)
    assert _replayed(told, source) == {
        name: replace(state, behind=None) for name, state in states.items()
    }


def test_every_event_says_who_told_it_and_the_life_behind_it(told: str) -> None:
    asked = (
        "select count(*), count(*) filter (where token is null),"
        " count(distinct life), max(at) <= clock_timestamp() from lockstep.table_life"
    )
    [(events, nobody, lives, past)] = run(told, asked)
    assert isinstance(events, int)
    assert (events > 10, nobody, lives, past) == (True, 0, 4, True)
