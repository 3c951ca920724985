"""A table that was left out of the patterns for a time is known to have been."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from lockstep.commands.tables import table_values
from lockstep.pipeline.run import capture as capture_step
from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.run.status.status import standings_of
from lockstep.pipeline.status.tables import TableHealth
from lockstep.pipeline.status.verdict import State, Verdict, verdict
from lockstep.pipeline.values.errors import StoppedBy
from lockstep.pipeline.values.intent import MissingReason
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.interrupted import Crash, mortal
from tests.positions.paused import Shop, open_shop

_IDLE_RUNS = 10_001
_IDLE = """
insert into lockstep.decisions (source, token, kind, rule, reason, facts, author)
select source, token, 'idle', 'nothing-to-do', 'nothing was written', '{}', ''
from (select source, max(token) as token from lockstep.leases group by source) newest,
    generate_series(1, %s)
"""


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    return open_shop(mysql, database)


def leave_out(shop: Shop, row: int = 2) -> None:
    """`exclude` has no run read table a, while both tables change and after that."""
    shop.follower.tables = [f"{shop.name}.b"]
    shop.run()
    shop.do(*(f"insert into {table} values ({row}, {row})" for table in "ab"))
    shop.run()


def verdict_now(shop: Shop) -> Verdict:
    return verdict(shop.follower.standing(), datetime.now(UTC), None)


def shown_values(shop: Shop, table: str) -> dict[str, Any]:
    """What `lockstep tables` shows of it."""
    ports = shop.follower.ports()
    values = table_values(SOURCE, ports.source.patterns, ports.server, ports.ledger)
    return next(row for row in values if row["table"] == f"{shop.name}.{table}")


def missing(shop: Shop) -> dict[TableName, MissingReason]:
    """What the newest version set lacks."""
    batch = shop.follower.live_batches()[-1].id
    tables = shop.follower.ledger.version_set(SOURCE, batch).missing_tables
    return {table.table: table.reason for table in tables}


def test_it_is_stopped_where_it_was_left_out(shop: Shop) -> None:
    """Version sets lack it from there on, and nothing compares it or asks for anything. Whoever
    retires it deletes its folders then."""
    place, a, b = shop.follower.batches()[0].end, shop.table("a"), shop.table("b")
    assert place is not None
    leave_out(shop)
    state = shop.state("a")
    assert (state.has_stopped, state.stopped_by, state.place_text) == (
        True,
        StoppedBy.RUN,
        str(place.at),
    )
    assert missing(shop) == {a: MissingReason.STOPPED}
    shown = shown_values(shop, "a")
    assert (shown["captured"], shown["state"], shown["place"]) == (
        False,
        "stopped",
        str(place.at),
    )
    ports = shop.follower.ports()
    assert [compared.table for compared in verify(ports).tables] == [b]
    standing = standings_of(ports.ledger, ports.source.name, ports.source.patterns)[a]
    assert (standing.health, standing.hint) == (TableHealth.LEFT_OUT, "")
    assert verdict_now(shop).state is State.FINE
    for folder in [folder for folder in shop.follower.lake.tables if folder.endswith("/a")]:
        del shop.follower.lake.tables[folder]
    shop.do("insert into b values (3, 3)")
    shop.run()
    shop.require_whole("b")
    assert verdict_now(shop).state is State.FINE


@pytest.mark.parametrize("is_written", [False, True])
def test_a_write_that_a_dead_run_left_open_is_settled(shop: Shop, is_written: bool) -> None:
    """Once the table is back: it is found in the lake, or carried out."""
    shop.do("insert into a values (2, 2)")
    step = "settle" if is_written else "intend"
    with mortal(shop.follower, step, after=not is_written), pytest.raises(Crash):
        shop.run()
    leave_out(shop, 3)
    shop.follower.tables = [f"{shop.name}.*"]
    shop.run()
    assert shop.quarantined() == {}
    shop.require_whole("a")
    assert shop.follower.ledger.open_intents(SOURCE) == []


def test_the_next_run_brings_it_back_through_the_log(shop: Shop) -> None:
    """All that it missed is read at once, and it is said beforehand; it needs no person and no
    row of the source, also where its structure changed meanwhile."""
    leave_out(shop)
    shop.do("alter table a add column w int default 7", "insert into a values (3, 3, 3)")
    shop.run()
    shop.follower.tables = [f"{shop.name}.*"]
    assert verdict_now(shop).state is State.BEHIND
    plan = make_plan(shop.follower.ports()).table_plans.plans[shop.table("a")]
    assert plan.span is not None and not plan.reads_all_rows
    shop.run()
    assert shop.quarantined() == {}
    shop.require_whole("a")
    shop.do("insert into a values (4, 4, 4)", "insert into b values (4, 4)")
    shop.run()
    assert shop.quarantined() == {}
    shop.require_whole("a")
    shop.require_whole("b")
    assert missing(shop) == {}
    assert verdict_now(shop).state is State.FINE


def test_where_the_log_is_gone_it_is_read_from_the_source(shop: Shop) -> None:
    leave_out(shop)
    shop.do("flush binary logs", "insert into b values (5, 5)")
    shop.run()
    shop.stand.execute(f"purge binary logs to '{head(shop.stand).file}'")
    shop.follower.tables = [f"{shop.name}.*"]
    shop.run()
    assert shop.state("a").is_complete
    shop.require_same("a")


def test_a_pattern_that_no_run_used_changes_nothing(shop: Shop) -> None:
    """Only a run leaves a table out; before it, commands say what it will find."""
    shop.follower.tables = [f"{shop.name}.b"]
    ports = shop.follower.ports()
    assert make_plan(ports).left_out.keys() == {shop.table("a")}
    assert [compared.table for compared in verify(ports).tables] == [shop.table("b")]
    assert shown_values(shop, "a")["state"] == "stopped"
    shop.follower.tables = [f"{shop.name}.*"]
    shop.do("insert into a values (2, 2)")
    shop.run()
    shop.require_whole("a")
    assert shop.follower.ledger.table_states(SOURCE)[shop.table("a")].is_complete


def test_a_dropped_table_that_was_made_again_meanwhile(shop: Shop) -> None:
    """No run saw how it was made, so it is read from the source."""
    shop.do("drop table a")
    shop.run()
    leave_out_statements = ("create table a (id int primary key)", "insert into a values (9)")
    shop.follower.tables = [f"{shop.name}.b"]
    shop.run()
    shop.do(*leave_out_statements, "insert into b values (9, 9)")
    shop.run()
    shop.follower.tables = [f"{shop.name}.*"]
    shop.run()
    assert shop.follower.mirror(f"{shop.name}.a") == [{"id": 9}]


def test_a_paused_table_waits_on(shop: Shop) -> None:
    """Once it is resumed, its log has no hole, wherever it was left out."""
    shop.pause("a")
    leave_out(shop)
    shop.follower.tables = [f"{shop.name}.*"]
    shop.run()
    assert shop.state("a").stopped_by is StoppedBy.PERSON
    shop.resume("a")
    shop.run()
    shop.do("insert into a values (4, 4)")
    shop.run()
    assert shop.quarantined() == {}
    shop.require_whole("a")


@pytest.fixture
def holed(mysql: MySqlStand, database: str, monkeypatch: pytest.MonkeyPatch) -> Follower:
    """An earlier Lockstep left tables a and b out, did not stop them, and had many runs since;
    now all of them are matched again."""
    tables = [f"{database}.*"]
    follower = Follower(server(mysql), tables, str(head(mysql)))
    mysql.execute(
        *(f"create table {name} (id int primary key)" for name in "abc"),
        *(f"insert into {name} values (1)" for name in "abc"),
        database=database,
    )
    follower.run()
    monkeypatch.setattr(f"{capture_step.__name__}.left_out_now", lambda ports: {})
    follower.tables = [f"{database}.c"]
    mysql.execute(*(f"insert into {name} values (2)" for name in "abc"), database=database)
    follower.run()
    follower.ledger.database.tell(_IDLE, _IDLE_RUNS)
    monkeypatch.undo()
    follower.tables = tables
    return follower


def test_a_hole_is_read_from_the_source(holed: Follower, mysql: MySqlStand, database: str) -> None:
    """The next run does it, and says so beforehand, also where nothing else changed."""
    a, b, c = (TableName(database, name) for name in "abc")
    standing = holed.standing()
    assert [table.table for table in standing.stopped_tables] == [a, b]
    assert "left it out" in standing.stopped_tables[0].reason
    plan = make_plan(holed.ports())
    assert {table for table, steps in plan.table_plans.plans.items() if steps.reads_all_rows} == {
        a,
        b,
    }
    holed.run()
    assert all(state.is_complete for state in holed.states().values())
    for table in (a, b, c):
        assert [row["id"] for row in holed.mirror(str(table))] == [1, 2]
    statements = (f"insert into {name} values (3)" for name in "abc")
    mysql.execute("alter table a add column w int", "truncate b", database=database)
    mysql.execute("insert into a values (3, 3)", *[*statements][1:], database=database)
    batches = len(holed.live_batches())
    holed.run()
    assert len(holed.live_batches()) == batches + 1
    assert all(state.is_complete for state in holed.states().values())
    assert [row["id"] for row in holed.mirror(str(a))] == [1, 2, 3]
    assert [row["id"] for row in holed.mirror(str(b))] == [3]
