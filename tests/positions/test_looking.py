"""How a source stands, asked of a real server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lockstep.commands.status import exit_code, status_lines
from lockstep.commands.tables import table_values
from lockstep.pipeline.check import SourceEvidence, preflight
from lockstep.pipeline.model.table_state import OrderKind, TableCondition
from lockstep.pipeline.run.acknowledge import acknowledge
from lockstep.pipeline.run.orders import OrderRequest, give_order
from lockstep.pipeline.run.status import plan_reading
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.run.status.status import log_state
from lockstep.pipeline.snapshot.log_retention import log_retention, week_setting, week_statement
from lockstep.pipeline.start.question import Start, StartRule
from lockstep.pipeline.status.facts import Standing
from lockstep.pipeline.status.verdict import State, verdict
from lockstep.pipeline.values.errors import NothingMatches
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server, settings
from tests.positions.follower import SOURCE, Follower


@pytest.fixture
def follower(mysql: MySqlStand, database: str) -> Follower:
    mysql.execute(f"create table {database}.t (id int primary key)")
    made = Follower(server(mysql), [f"{database}.*"])
    made.run()
    return made


def test_a_plan_lists_what_concerns_a_captured_table_after_much_that_does_not(
    mysql: MySqlStand, database: str, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many statements of others come before it."""
    monkeypatch.setattr(plan_reading, "STATEMENTS", 2)
    for user in "abc":
        mysql.execute(f"create user {database}_{user}", f"drop user {database}_{user}")
    mysql.execute(f"alter table {database}.t add column v int")
    reading = make_plan(follower.ports()).reading
    assert reading is not None
    effects = [statement.effect.partition(":")[0] for statement in reading.statements]
    assert effects == ["passed", "passed", f"{database}.t"]
    assert reading.unlisted_statement_count == 4


@pytest.fixture
def kept_a_week(mysql: MySqlStand) -> Iterator[timedelta]:
    """The server keeps its log for that long, by a variable that its version has."""
    settings = server(mysql).facts().settings
    name, _ = week_setting(settings)
    mysql.execute(week_statement(settings))
    yield timedelta(days=7)
    mysql.execute(f"set global {name} = {settings[name]}")


@pytest.mark.parametrize("name", ["mysql80", "mariadb"])
def test_a_server_that_counts_days_takes_the_statement_to_keep_its_log_for_a_week(
    request: pytest.FixtureRequest, name: str
) -> None:
    """MySQL 8.0 refuses a number of seconds while it counts days."""
    stand = request.getfixturevalue(name)
    before = server(stand).facts().settings
    stand.execute("set global binlog_expire_logs_seconds = 0", "set global expire_logs_days = 3")
    try:
        stand.execute(week_statement(server(stand).facts().settings))
        assert log_retention(server(stand).facts().settings) == timedelta(days=7)
    finally:
        stand.execute("set global expire_logs_days = 0")
        seconds = before["binlog_expire_logs_seconds"]
        stand.execute(f"set global binlog_expire_logs_seconds = {seconds}")


@pytest.mark.parametrize("name", ["mysql80", "mysql57"])
def test_a_replica_of_an_older_version_is_read(request: pytest.FixtureRequest, name: str) -> None:
    """MySQL has SHOW REPLICA STATUS since 8.0.22."""
    old = settings(request.getfixturevalue(name))
    looked = MySqlServer(old, read_from=old).survey().read_replica
    assert looked is not None and looked.reason_unusable is None


def state(found: Standing) -> State:
    return verdict(found, datetime.now(UTC), timedelta(minutes=10)).state


def test_a_source_in_step(
    mysql: MySqlStand, database: str, follower: Follower, kept_a_week: timedelta
) -> None:
    """Where it stands, what the next run would do, how long the log lasts."""
    mysql.execute(f"insert into {database}.t values (1)")
    follower.run()
    found = follower.standing()
    assert state(found) is State.FINE
    assert (found.lag.seconds, found.lag.transactions) == (0.0, 0)
    assert isinstance(found.start, Start)
    assert found.start.rule is StartRule.RESUME_SAME_SERVER
    assert found.headroom is not None
    assert found.headroom.remaining == found.headroom.retention == kept_a_week
    mysql.execute("flush binary logs", f"insert into {database}.t values (2)")
    found = follower.standing()
    assert found.lag.transactions == 1
    assert found.headroom is not None
    assert found.headroom.remaining is not None
    assert found.headroom.remaining < kept_a_week


def test_another_server_does_not_say_how_long_the_log_that_was_read_is_kept(
    follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log has files of the same names, with other content."""
    ports = follower.ports()
    facts = replace(ports.server.facts(), server_uuid="another")
    assert log_state(ports, datetime.now(UTC))[2] is not None
    monkeypatch.setattr(MySqlServer, "facts", lambda _: facts)
    assert log_state(ports, datetime.now(UTC))[2] is None


def test_an_excluded_table_is_no_trouble(
    mysql: MySqlStand, database: str, follower: Follower
) -> None:
    """Whatever it had: neither a stop, nor an order that was recorded before, nor a difference;
    and nobody resumes it until a pattern matches it again."""
    mysql.execute(
        f"create table {database}.kept (id int primary key)",
        *(f"insert into {database}.{name} values (1)" for name in ("t", "kept")),
    )
    follower.run()
    mysql.execute(
        f"alter table {database}.t engine = MEMORY", f"insert into {database}.t values (2)"
    )
    follower.run()
    assert state(follower.standing()) is State.QUARANTINED
    table = TableName(database, "t")
    follower.order(OrderKind.RESUME, table)
    assert state(follower.standing()) is State.BEHIND
    follower.tables = [f"{database}.kept"]
    found = follower.standing()
    assert (state(found), exit_code(found, datetime.now(UTC), None)) == (State.FINE, 0)
    with follower.leased() as lease:
        assert acknowledge(follower.ports(), lease).quarantined == ()
    follower.order(OrderKind.PAUSE, table)
    assert state(follower.standing()) is State.FINE
    with follower.leased() as lease, pytest.raises(NothingMatches, match="no run follows"):
        request = OrderRequest(table, "ada", "because")
        give_order(follower.ports(), lease, OrderKind.RESUME, request)
    assert follower.ledger.open_orders(SOURCE) == []
    follower.tables = [f"{database}.*"]
    assert state(follower.standing()) is State.PAUSED


@pytest.fixture
def account(mysql: MySqlStand, follower: Follower, database: str) -> Iterator[str]:
    """The follower's account from now on: it may read the log, and no table."""
    name = mysql.fresh_name()
    mysql.execute(f"insert into {database}.t values (1)")
    follower.run()
    mysql.execute(
        f"create user {name} identified by 'x'",
        f"grant replication slave, replication client on *.* to {name}",
    )
    follower.server = server(mysql, user=name, password="x")
    yield name
    mysql.execute(f"drop user {name}")


def test_a_table_that_the_account_cannot_see(
    mysql: MySqlStand, database: str, follower: Follower, account: str
) -> None:
    """It was not dropped: its changes come, and the GRANT is named everywhere."""
    table = TableName(database, "t")
    grant = f"GRANT SELECT ON `{database}`.`t` TO '{account}'@'%';"
    found = follower.standing()
    told = verdict(found, datetime.now(UTC), None)
    assert (told.state, told.hint) == (State.INVISIBLE, grant)
    assert f"{table}: the account cannot see it" in told.sentence
    lines = [*status_lines(found, told, datetime.now(UTC))]
    assert f"    hint: {grant}" in lines
    follower.run()
    assert any(note.startswith(f"{table}: ") and note.endswith(grant) for note in follower.notes)
    ports = follower.ports()
    (listed,) = table_values(SOURCE, ports.source.patterns, ports.server, follower.ledger)
    assert (listed["captured"], listed["why_not"], listed["hint"]) == (True, None, grant)
    evidence = SourceEvidence(ports.server.survey(), ports.source)
    findings = preflight(ports.server, evidence, follower.states())
    assert ("warning", str(table), grant) in {
        (one.level, one.subject, one.hint) for one in findings
    }
    mysql.execute(f"grant select on {database}.* to {account}")
    assert state(follower.standing()) is State.FINE


def test_a_dropped_table_is_not_invisible(
    mysql: MySqlStand, database: str, follower: Follower, account: str
) -> None:
    """Neither before its DROP was read nor after it, and a run is silent about it."""
    mysql.execute(f"grant select on {database}.* to {account}", f"drop table {database}.t")
    assert follower.standing().invisible_tables == ()
    mysql.execute(f"revoke select on {database}.* from {account}")
    follower.run()
    assert follower.states()[TableName(database, "t")].condition is TableCondition.DROPPED
    assert not any("cannot see" in note for note in follower.notes)
    found = follower.standing()
    assert (state(found), found.invisible_tables) == (State.FINE, ())


def test_what_waits_is_named(mysql: MySqlStand, database: str, follower: Follower) -> None:
    """A captured batch and the table whose merge it waits for."""
    mysql.execute(f"insert into {database}.t values (1)")
    follower.capture()
    found = follower.standing()
    assert state(found) is State.BEHIND
    (one,) = found.waiting_batches
    assert [str(table) for table in one.tables] == [f"{database}.t"]
