"""A plan tells what the next run then does, and nothing is another after it; an operator's choice
is recorded if a run can carry it out."""

from __future__ import annotations

import copy
from dataclasses import fields

import pytest

from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.run.status.plan import Choice, RunPlan, choose_start, make_plan
from lockstep.pipeline.run.status.plan_reading import PlannedReading, bytes_per_second
from lockstep.pipeline.shape.shape import ShapeRules
from lockstep.pipeline.start.bounds import Budget
from lockstep.pipeline.start.question import StartRule
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import (
    LockstepError,
    NotYet,
    SourceUnavailable,
    StartUnreachable,
)
from lockstep.pipeline.values.places import parse_start
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server, settings
from tests.positions.follower import SOURCE, Follower
from tests.shape.follower import ShapedFollower


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Follower:
    """Three captured tables and one that is not, followed from now on."""
    mysql.execute(
        f"create table {database}.orders (id int primary key, note varchar(20))",
        f"create table {database}.users (id int primary key)",
        f"create table {database}.wide (id int primary key, v longblob)",
        f"create table {database}.log_1 (id int primary key)",
    )
    names = ("orders", "users", "wide")
    follower = Follower(server(mysql), [f"{database}.{name}" for name in names])
    follower.run()
    return follower


def everything(follower: Follower) -> dict[str, object]:
    """What the ledger, the lake and the spool hold; their values never change."""
    lake = follower.lake
    held = {one.name: getattr(lake, one.name) for one in fields(lake) if one.name != "lock"}
    return {
        **{name: copy.copy(content) for name, content in held.items()},
        "ledger": follower.ledger.content(),
        "prepared files": dict(follower.spool.files),
        "scratch files": len(follower.spool.made),
    }


def planned(follower: Follower, until: str | None = None) -> RunPlan:
    """The plan; everything is as it was before."""
    before = everything(follower)
    plan = make_plan(follower.ports(until))
    assert everything(follower) == before
    return plan


def reading_of(plan: RunPlan) -> PlannedReading:
    assert plan.reading is not None
    return plan.reading


def test_a_plan_says_what_the_run_does(mysql: MySqlStand, database: str, shop: Follower) -> None:
    """Start, end, transactions, rows by operation, bytes; what is not captured apart."""
    mysql.execute(
        f"insert into {database}.orders values (1, 'a'), (2, 'b'), (3, 'c')",
        f"update {database}.orders set note = 'x' where id < 3",
        f"delete from {database}.orders where id = 3",
        f"insert into {database}.users values (1)",
        f"insert into {database}.log_1 values (1), (2)",
    )
    plan = planned(shop)
    told = reading_of(plan)
    assert told.tallies[TableName(database, "orders")].counts == RowCounts(3, 2, 1)
    assert told.tallies[TableName(database, "users")].counts == RowCounts(1, 0, 0)
    assert told.tallies[TableName(database, "orders")].event_count == 3
    assert told.merge_sentences == {
        TableName(database, "orders"): "merge: the log updates or deletes rows",
        TableName(database, "users"): (
            "append: the log only inserts rows, and none of them is there yet"
        ),
    }
    assert (told.transaction_count, told.foreign_transaction_count) == (5, 1)
    assert told.largest_transaction is not None
    assert told.largest_transaction.rows == 2  # the update has two images of each row
    assert told.end_reason == "the log ends there"
    report = shop.run()
    assert plan.start is not None
    assert (plan.start.rule, plan.start.position) == (report.rule, report.start)
    assert told.end == report.end
    assert (told.transaction_count, told.log_bytes) == (report.transactions, report.log_bytes)
    assert {name: one.counts for name, one in told.tallies.items()} == report.counts


def test_mariadbs_log_is_planned_alike(mariadb: MySqlStand, mariadb_database: str) -> None:
    """Its GTIDs, and a CREATE TABLE … SELECT with its rows. A statement that nobody understands
    stands instead of rows and may change any table: what a run refuses there, a plan tells, and
    what comes after it, too."""
    name = mariadb_database
    mariadb.execute(
        "create table t (id int primary key, v text)",
        "create function f() returns int deterministic return 7",
        database=name,
    )
    follower = Follower(server(mariadb), [f"{name}.*"])
    follower.run()
    mariadb.execute(
        "insert into t values (1, repeat('x', 1000)), (2, repeat('y', 1000))",
        "update t set v = 'z'",
        "create table u (primary key (id)) select id from t",
        database=name,
    )
    told = reading_of(planned(follower))
    report = follower.run()
    assert {table: one.counts for table, one in told.tallies.items()} == report.counts
    assert report.counts[TableName(name, "t")] == RowCounts(2, 2, 0)
    assert told.end == report.end
    mariadb.execute(
        "set binlog_format = statement",
        "insert into t (id) values (length('hush') + f())",
        "set binlog_format = row",
        "insert into t (id) values (3)",
        database=name,
    )
    plan = planned(follower)
    told = reading_of(plan)
    assert plan.refusal is told.refusal
    assert plan.refusal is not None
    assert "it calls f" in plan.refusal.message
    assert "hush" not in plan.refusal.message
    assert told.tallies[TableName(name, "t")].counts.inserted == 1


def test_a_budget_and_until_end_a_plan(mysql: MySqlStand, database: str, shop: Follower) -> None:
    """As they end a run; what is left is told in runs like this one."""
    for number in range(10):
        mysql.execute(f"insert into {database}.users values ({number})")
    shop.budget = Budget(max_transactions=4)
    told = reading_of(planned(shop))
    assert (told.transaction_count, told.run_count) == (4, 3)
    assert told.end_reason == "max_transactions = 4"
    shop.budget = Budget()
    place = str(told.end)
    told = reading_of(planned(shop, until=place))
    assert (told.transaction_count, str(told.end.at)) == (4, place)
    assert told.end_reason == f"--until {place}"


def test_statements_are_told_without_their_literals(
    mysql: MySqlStand, database: str, shop: Follower
) -> None:
    """Where they stand and what a run does there; what comes behind them is told too."""
    mysql.execute(
        f"create table {database}.log_2 (id int primary key) comment 'hush'",
        f"alter table {database}.orders add column secret varchar(5) default 'hush'",
        f"insert into {database}.users values (1)",
    )
    plan = planned(shop)
    told = reading_of(plan)
    assert plan.refusal is None
    created, altered = told.statements
    assert not created.stops_the_run
    assert not altered.stops_the_run
    assert created.effect == "passed: no captured table"
    assert created.is_passed
    assert altered.effect.startswith(f"{database}.orders: follow, ")
    assert altered.text.startswith(f"alter table {database}.orders add column secret varchar")
    assert "hush" not in created.text + altered.text
    assert told.tallies[TableName(database, "users")].counts.inserted == 1


def test_repairs_and_what_waits_are_told(mysql: MySqlStand, database: str, shop: Follower) -> None:
    """A capture that did not finish would go; one that is captured waits for its merge."""
    mysql.execute(f"insert into {database}.users values (1)")
    captured = shop.capture()
    assert captured.batch_id is not None
    with shop.ledger.lock(SOURCE, "dead", None) as lease:
        shop.ledger.begin_batch(
            lease, captured.end, continued_batch=captured.batch_id, start_decision=None
        )
    plan = planned(shop)
    assert plan.waiting_batches == {captured.batch_id: (TableName(database, "users"),)}
    assert len(plan.abandoned_sentences) == 1
    assert "its capture did not finish" in plan.abandoned_sentences[0]
    assert plan.start is not None
    assert plan.start.position == captured.end
    shop.run()
    states = [batch.state for batch in shop.ledger.batches(SOURCE, limit=2)]
    assert BatchState.ABANDONED in states


def test_a_damaged_batch_moves_the_start_back(
    mysql: MySqlStand, database: str, shop: Follower
) -> None:
    """The run begins where the abandoned batch began, and so does the plan."""
    mysql.execute(f"insert into {database}.users values (1)")
    captured = shop.capture()
    shop.lake.files.clear()
    plan = planned(shop)
    assert len(plan.abandoned_sentences) == 1
    assert plan.start is not None
    assert plan.start.position == captured.start
    assert reading_of(plan).tallies[TableName(database, "users")].counts.inserted == 1


def test_a_chosen_start_and_its_gap_are_told(
    mysql: MySqlStand, database: str, shop: Follower
) -> None:
    """By whose choice, and which tables would miss changes."""
    mysql.execute(f"insert into {database}.users values (1)")
    shop.run()
    mysql.execute(f"insert into {database}.users values (2)")
    shop.choose("latest", "row 2 is of no use")
    plan = planned(shop)
    assert plan.start is not None
    assert plan.start.rule == StartRule.CHOSEN_START.value
    assert plan.start.continuity is Continuity.GAP
    matching = ("orders", "users", "wide")
    assert plan.start.gap_tables == tuple(f"{database}.{name}" for name in matching)


def test_xa_rows_are_told_where_they_come_out(
    mysql: MySqlStand, database: str, shop: Follower
) -> None:
    """At the XA COMMIT; a prepared transaction that an earlier batch recorded too."""
    mysql.execute(
        "xa start 'a'",
        f"insert into {database}.users values (1), (2)",
        "xa end 'a'",
        "xa prepare 'a'",
    )
    shop.run()
    mysql.execute("xa commit 'a'")
    told = reading_of(planned(shop))
    assert told.tallies[TableName(database, "users")].counts == RowCounts(2, 0, 0)
    assert shop.run().rows == 2


def test_a_table_that_would_be_quarantined_is_told(
    mysql: MySqlStand, database: str, shop: Follower
) -> None:
    """Partial documents of one session; the other tables' rows are counted."""
    mysql.execute(
        f"alter table {database}.orders add j json",
        f"insert into {database}.orders values (1, 'a', json_object('a', 1, 'b', repeat('x', 50)))",
    )
    shop.run()
    mysql.execute(
        "set session binlog_row_value_options = PARTIAL_JSON",
        f"update {database}.orders set j = json_set(j, '$.a', 2)",
        f"insert into {database}.users values (7)",
    )
    told = reading_of(planned(shop))
    assert [one.table for one in told.quarantines] == [TableName(database, "orders")]
    assert told.tallies.keys() == {TableName(database, "users")}


def test_speed_is_that_of_batches_of_some_size(shop: Follower) -> None:
    """Small ones say nothing, so nothing is said of the time."""
    assert bytes_per_second(shop.ledger.batches(SOURCE)) is None


def test_a_statement_of_a_database_called_passed_is_listed(mysql: MySqlStand) -> None:
    name = f"passed_{mysql.fresh_name()}"
    mysql.execute(f"create database {name}", f"create table {name}.t (id int primary key)")
    try:
        follower = Follower(server(mysql), [f"{name}.*"])
        follower.run()
        mysql.execute(f"alter table {name}.t add v int")
        (altered,) = reading_of(planned(follower)).statements
        assert altered.effect.startswith(f"{name}.t: follow, ")
        assert not altered.is_passed
    finally:
        mysql.execute(f"drop database {name}")


def test_a_hidden_column_takes_no_name_of_a_stamp(mysql: MySqlStand, database: str) -> None:
    """As the write decides it, from the columns that the lake shows."""
    mysql.execute(f"create table {database}.t (id int primary key, _gtid int)")
    follower = ShapedFollower(
        mysql,
        [f"{database}.t"],
        {f"{database}.t": ShapeRules(exclude_columns=("_gtid",))},
        lake_policies=LakePolicies(stamps=("_gtid",)),
    )
    follower.run()
    mysql.execute(f"insert into {database}.t values (1, 1)")
    sentences = reading_of(planned(follower)).merge_sentences
    assert "quarantined" not in sentences[TableName(database, "t")]


class Silent(MySqlServer):
    """A server that does not answer."""

    def facts(self) -> ServerFacts:
        raise SourceUnavailable("MySQL cannot be reached", hint="start it")


def choose(follower: Follower, place: str) -> Choice:
    with follower.leased() as lease:
        return choose_start(follower.ports(), lease, parse_start(place), "because", "ann")


def refused(follower: Follower, place: str) -> LockstepError:
    """What a choice is refused with; nothing is recorded then."""
    before = follower.ledger.open_override(SOURCE)
    with pytest.raises(LockstepError) as caught:
        choose(follower, place)
    assert follower.ledger.open_override(SOURCE) == before
    return caught.value


def test_a_place_that_is_not_there_is_refused_at_once(
    mysql: MySqlStand, database: str, shop: Follower
) -> None:
    """A typing error makes no run fail. A snapshot is no place in the log: `lockstep reload`
    reads tables again; exit code 2."""
    for place in ("binlog.999999:4", "run:nobody"):
        assert isinstance(refused(shop, place), StartUnreachable)
    for number, run in enumerate(("0f3c-1", "0f3c-2")):
        shop.run_id = run
        mysql.execute(f"insert into {database}.users values ({number})")
        shop.run()
    assert "the ids of 2 runs begin with '0f3c'" in refused(shop, "run:0f3c").message
    choose(shop, "run:0f3c-2")
    error = refused(shop, "snapshot")
    assert isinstance(error, NotYet)
    assert "only a source's first run starts that way" in error.message
    assert "`lockstep reload TABLE --from source --reason …`" in error.hint


def test_latest_is_the_end_of_when_it_was_chosen(
    mysql: MySqlStand, database: str, shop: Follower
) -> None:
    """What is written before the next run is not given up with the rest."""
    mysql.execute(f"insert into {database}.users values (1)")
    choose(shop, "latest")
    mysql.execute(f"insert into {database}.users values (2)")
    assert shop.run().rows == 1


def test_a_silent_server_keeps_nobody_from_choosing(mysql: MySqlStand, shop: Follower) -> None:
    """It is recorded, and said that nobody looked."""
    shop.server = Silent(settings(mysql))
    choice = choose(shop, "earliest")
    assert isinstance(choice.server_error, SourceUnavailable)
    assert choice.position is None
    assert shop.ledger.open_override(SOURCE) == choice.override
