"""Structures read beside sessions that change them, and beside what the log says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

from pymysql.cursors import Cursor

from lockstep.pipeline.ports.source import Baseline
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.chunked import Sliced
from tests.mysql.logged import head
from tests.mysql.reading import Read, server, transactions
from tests.mysql.writers import beside

NUMBER = re.compile(r"table c(\d+)")


@contextmanager
def creating(stand: MySqlStand, database: str) -> Iterator[None]:
    """A session that makes one table after the other while the body runs."""
    ready = Event()

    def create(cursor: Cursor, stop: Event) -> None:
        number = 0
        while not stop.is_set():
            cursor.execute(f"create table c{number} (id int primary key)")
            number += 1
            ready.set()
            stop.wait(0.005)

    with beside(stand, database, create):
        ready.wait()
        yield


def test_what_is_before_low_is_there_and_what_is_behind_high_is_not(place: Sliced) -> None:
    """Beside a session that makes tables; the statements between are in the log."""
    stand, database, source = place.stand, place.table.database, place.source
    start = head(stand)
    with creating(stand, database):
        baselines = [source.baseline() for _ in range(6)]
    made = [read for read in transactions(source, start) if read.statements]
    assert made
    for baseline in baselines:
        assert start <= baseline.low <= baseline.high
        found = {table.name for table in baseline.tables if table.name.database == database}
        before, after = _sure(made, baseline, database)
        assert before <= found
        assert not after & found


def _sure(
    made: list[Read], baseline: Baseline, database: str
) -> tuple[set[TableName], set[TableName]]:
    """Tables that must be there, and such that can't."""
    before, after = set(), set()
    for read in made:
        numbers = NUMBER.findall(read.statements[0].text)
        tables = {TableName(database, f"c{number}") for number in numbers}
        if read.end <= baseline.low:
            before |= tables
        if read.begin >= baseline.high:
            after |= tables
    return before, after


def test_nothing_between_is_one_place(mysql: MySqlStand, database: str) -> None:
    """On a server at rest both marks are the log's end, by GTIDs too."""
    mysql.execute("create table t (id int primary key)", database=database)
    source = server(mysql)
    baseline = source.baseline([TableName(database, "t")])
    facts = source.facts()
    assert (baseline.low, baseline.high) == (facts.head, facts.head)
    assert baseline.low_set == facts.gtid_executed
