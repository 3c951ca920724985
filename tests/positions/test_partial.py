"""Tables that had rows before their log begins are called partial until they are whole."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lockstep.commands import rebuild as show
from lockstep.pipeline.run.dump.table_extents import partial_tables, record_complete
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.run.rebuild import RebuildReport, origin_at, rebuild_as_of
from lockstep.pipeline.start.bounds import Budget
from lockstep.pipeline.status.verdict import State, verdict
from lockstep.pipeline.values.places import parse_place
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.twins.copies import MemoryCopies

DATABASE = "partial"


def partial(follower: Follower) -> dict[str, str]:
    """Each partial table, and where it begins."""
    found = partial_tables(follower.ledger, SOURCE, follower.ports().source.patterns)
    return {one.table.name: str(one.begins) for one in found}


@pytest.fixture
def tables(mysql: MySqlStand) -> MySqlStand:
    """Tables with and without rows, before anybody follows them."""
    names = ("full", "quiet", "cut", "anew", "moved", "other", "drained", "empty")
    mysql.execute(
        f"drop database if exists {DATABASE}",
        f"create database {DATABASE}",
        *(f"create table {DATABASE}.{name} (id int primary key, v int)" for name in names),
        *(f"insert into {DATABASE}.{name} values (1, 1)" for name in names[:-1]),
    )
    return mysql


def test_the_run_that_first_reads_names_them(tables: MySqlStand) -> None:
    """Also those that nobody has changed since; not those that are empty, came later, or are
    not followed. What the log tells to have been empty once is whole."""
    begin = str(head(tables))
    tables.execute(
        f"delete from {DATABASE}.drained",
        f"create table {DATABASE}.late (id int primary key)",
        f"insert into {DATABASE}.late values (1)",
        f"insert into {DATABASE}.full values (2, 2)",
    )
    follower = Follower(server(tables), [f"{DATABASE}.*"], start=begin)
    follower.tables = [f"{DATABASE}.[!o]*"]
    follower.run()
    names = ("anew", "cut", "full", "moved", "quiet")
    assert partial(follower) == dict.fromkeys(names, begin)
    told = verdict(follower.standing(), datetime.now(UTC), None)
    assert (told.state, "5 tables are partial" in told.sentence) == (State.PARTIAL, True)
    tables.execute(
        f"truncate {DATABASE}.cut",
        f"drop table {DATABASE}.anew",
        f"create table {DATABASE}.anew (id int primary key)",
        f"rename table {DATABASE}.moved to {DATABASE}.there",
        f"alter table {DATABASE}.full drop primary key, add primary key (id, v)",
    )
    follower.run()
    assert partial(follower) == {"quiet": begin}, "a new name and a new key were read whole"
    follower.tables = [f"{DATABASE}.*"]
    assert partial(follower) == {"other": begin, "quiet": begin}
    follower.tables = [f"{DATABASE}.[!o]*"]
    found = verify(follower.ports(), [TableName(DATABASE, "quiet")])
    assert [table.equal for table in found.tables] == [False]
    with follower.leased() as lease:
        record_complete(follower.ports(), lease, found)
    assert partial(follower) == {"quiet": begin}
    tables.execute(f"update {DATABASE}.quiet set v = 2")
    follower.run()
    with follower.leased() as lease:
        record_complete(follower.ports(), lease, verify(follower.ports()))
    assert partial(follower) == {}
    assert verdict(follower.standing(), datetime.now(UTC), None).state is State.FINE


def test_a_table_that_becomes_empty_later_is_whole_there(tables: MySqlStand) -> None:
    """A run that ends before the place where it was seen empty has a part of it."""
    begin = str(head(tables))
    tables.execute(f"insert into {DATABASE}.full values (3, 3)", f"delete from {DATABASE}.drained")
    follower = Follower(server(tables), [f"{DATABASE}.drained"], start=begin)
    follower.budget = Budget(max_transactions=1)
    follower.run()
    assert partial(follower) == {"drained": begin}
    follower.budget = Budget()
    follower.run()
    assert partial(follower) == {}


def test_a_log_that_begins_with_its_tables_has_all_of_them(tables: MySqlStand) -> None:
    """However they were altered and renamed since."""
    begin = str(head(tables))
    copied = f"create table {DATABASE}.copied as select * from {DATABASE}.named"
    tables.execute(
        f"create table {DATABASE}.made (id int primary key)",
        f"insert into {DATABASE}.made values (1)",
        f"rename table {DATABASE}.made to {DATABASE}.named",
        f"alter table {DATABASE}.named add column v int, engine = innodb",
        *([copied] if tables.version >= (8, 0, 21) else []),
    )
    follower = Follower(server(tables), [f"{DATABASE}.[mn]a*"], start=begin)
    follower.run()
    follower.run()
    assert partial(follower) == {}
    assert follower.mirror(f"{DATABASE}.named") == [{"id": 1, "v": None}]


def test_a_table_of_the_past_is_as_partial_as_it_was(tables: MySqlStand) -> None:
    """Whatever it became later: at the end of a run, and before a TRUNCATE inside one."""
    begin, name = str(head(tables)), TableName(DATABASE, "full")
    tables.execute(f"insert into {name} values (2, 2)")
    follower = Follower(server(tables), [f"{DATABASE}.*"], start=begin)
    places = [str(follower.run().end.at)]
    tables.execute(f"insert into {name} values (3, 3)")
    places.append(str(head(tables)))
    tables.execute(f"truncate table {name}", f"insert into {name} values (4, 4)")
    places.append(str(head(tables)))
    tables.execute(f"insert into {name} values (5, 5)")
    follower.run()
    tables.execute(f"drop table {name}")
    follower.run()
    ports = follower.ports()
    copies = MemoryCopies(follower.lake)
    lines = []
    for number, text in enumerate(places):
        origin = origin_at(ports, name, parse_place(text))
        for is_planned in (True, False):
            report = RebuildReport(origin, f"/past/{number}")
            if not is_planned:
                report = rebuild_as_of(ports, copies, origin, f"/past/{number}")
            [*_, told] = show.report_lines(report, is_planned=is_planned)
            lines.append(told)
            extent = origin.extent
            assert show.report_values(report)["begins"] == (extent and extent.begins)
    sentence = (
        f"{name} is partial: begins at {begin}, and older rows are missing unless they changed"
    )
    assert [line == sentence for line in lines] == [True] * 4 + [False] * 2
