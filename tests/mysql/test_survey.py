"""What a survey sees of real servers, and what the rules say of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lockstep.pipeline.check import Finding, SourceEvidence, preflight
from lockstep.pipeline.source_plan import SourcePlan
from lockstep.pipeline.values.errors import SourceUnavailable
from lockstep.pipeline.values.survey import Channel, SessionOverride, Survey, SurveyedForeignKey
from lockstep.pipeline.values.table import TableName, TablePatterns
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server, settings

SHOP = (
    "create table parts (id int primary key, n int) partition by hash (id) partitions 2",
    "create table orders (id int primary key)",
    "create table items (id int primary key, o int, constraint fk_{name} foreign key (o) "
    "references orders (id) on delete cascade)",
    "create table old (id int primary key) engine = MyISAM",
    "create table fleeting (id int primary key) engine = MEMORY",
    "create table hole (id int primary key) engine = BLACKHOLE",
    "create table spaced (id int primary key, `unit price` int)",
)

REPLICA_RULES = (
    "log_replica_updates",
    "replica state",
    "replica_preserve_commit_order",
    "writable replica",
)


def filled(stand: MySqlStand, name: str, *more: str) -> str:
    """The shop's tables in the database."""
    available = {row[0] for row in stand.rows("show engines") if row[1] in ("YES", "DEFAULT")}
    wanted = [one for one in SHOP if "BLACKHOLE" in available or "BLACKHOLE" not in one]
    stand.execute(*(one.format(name=name) for one in (*wanted, *more)), database=name)
    return name


def findings(source: MySqlServer, name: str) -> dict[str, Finding]:
    """By subject; of a rule that speaks of several tables, each of them."""
    found = preflight(
        source,
        SourceEvidence(source.survey(), SourcePlan("shop", TablePatterns((f"{name}.*",)), None)),
        {},
    )
    return {finding.subject: finding for finding in found}


def levels(found: dict[str, Finding], name: str) -> dict[str, str]:
    """Of the tables there is something to say of: name → level."""
    start = f"{name}."
    return {
        subject.removeprefix(start).split(" (")[0]: finding.level
        for subject, finding in found.items()
        if subject.startswith(start) and ", " not in subject
    }


def look(stand: MySqlStand, **changes: object) -> Survey:
    return MySqlServer(settings(stand, **changes)).survey()


@pytest.fixture
def bare(mysql: MySqlStand) -> Iterator[str]:
    """An account that may do nothing."""
    name = mysql.fresh_name()
    mysql.execute(f"create user {name} identified by 'x'")
    yield name
    mysql.execute(f"drop user {name}")


def test_a_server_is_who_it_says(mysql: MySqlStand) -> None:
    """Both connections reach one server, with nothing between, in the clear, in time."""
    survey = look(mysql)
    assert (survey.flavour, survey.version) == ("mysql", mysql.rows("select @@version")[0][0])
    assert survey.account == f"{mysql.account}@%"
    assert len({answering.identity for answering in survey.answering_servers}) == 1
    assert all(one.greeting_connection_id == one.connection_id for one in survey.answering_servers)
    assert all(one.greeting_version == one.version for one in survey.answering_servers)
    assert survey.is_loopback
    assert not survey.is_encrypted
    assert abs(survey.clock_ahead.total_seconds()) < 5
    assert look(mysql, tls="required").is_encrypted


def test_a_source_as_it_should_be_has_no_refusal(mysql: MySqlStand, database: str) -> None:
    """An account with the privileges of the manual lacks XA_RECOVER_ADMIN alone."""
    mysql.execute("create table t (id int primary key)", database=database)
    with mysql.durable():
        found = findings(server(mysql), database)
    told = {subject: finding.level for subject, finding in found.items()}
    assert {subject for subject, level in told.items() if level != "ok"} == {"xa"}
    assert len(told) > 30


def test_each_table_is_looked_at(mysql: MySqlStand, database: str) -> None:
    """Engines, partitions, names and foreign keys, with both actions; a cascade that MySQL logs
    itself is fine."""
    found, survey = findings(server(mysql), filled(mysql, database)), look(mysql)
    child, parent = TableName(database, "items"), TableName(database, "orders")
    key = SurveyedForeignKey(f"fk_{database}", child, parent, "NO ACTION", "CASCADE")
    assert [one for one in survey.foreign_keys if one.child == child] == [key]
    native = survey.settings.get("innodb_native_foreign_keys") != "OFF"
    assert levels(found, database) == {
        **({"items": "warning"} if native else {}),
        "fleeting": "refusal",
        "hole": "refusal",
        "old": "warning",
        "parts": "warning",
    }
    assert native or found["foreign keys"].level == "ok"


def test_an_account_without_privileges_gets_its_grant(mysql: MySqlStand, bare: str) -> None:
    """What it may not ask is named as unanswered, and running the GRANT mends it."""
    source = MySqlServer(settings(mysql, user=bare, password="x"))
    assert source.survey().unanswered_fields >= {"channels", "replicas", "filters"}
    found = findings(source, "nowhere")
    grant = found["replication privileges"].hint
    assert grant == f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{bare}'@'%';"
    xa = found["xa"].hint
    assert xa is not None
    mysql.execute(grant, xa)
    mended = findings(source, "nowhere")
    assert [mended[name].level for name in ("replication privileges", "xa")] == ["ok", "ok"]
    assert source.survey().unanswered_fields <= {"session_overrides"}


def test_a_role_s_privileges_count(mysql: MySqlStand, bare: str) -> None:
    """An active role is in SHOW GRANTS."""
    mysql.execute(
        f"create role r_{bare}",
        f"grant xa_recover_admin on *.* to r_{bare}",
        f"grant r_{bare} to {bare}",
        f"set default role r_{bare} to {bare}",
    )
    source = MySqlServer(settings(mysql, user=bare, password="x"))
    assert findings(source, "nowhere")["xa"].level == "ok"
    mysql.execute(f"drop role r_{bare}")


def test_a_lost_server_is_no_unanswered_question(mysql: MySqlStand) -> None:
    """Nothing is taken for a refusal that is none."""
    with pytest.raises(SourceUnavailable):
        look(mysql, port=1)


@pytest.fixture
def asked(odd: MySqlStand) -> MySqlServer:
    """What may ask it everything."""
    running = odd.server
    return MySqlServer(settings(odd, user=running.user, password=running.password))


def test_sessions_that_differ_are_seen(odd: MySqlStand, asked: MySqlServer) -> None:
    """With performance_schema: who logs nothing, and who logs statements."""
    stand, source = odd, asked
    with stand.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set sql_log_bin = 0, binlog_format = 'STATEMENT'")
        cursor.execute("set global sync_binlog = 0")
        cursor.execute("create database shop")
        filled(stand, "shop")
        survey = source.survey()
        found = findings(source, "shop")
        cursor.execute("set global sync_binlog = 1")
    assert set(survey.session_overrides) == {
        SessionOverride("binlog_format", "STATEMENT", 1),
        SessionOverride("sql_log_bin", "OFF", 1),
    }
    warned = {s.split(" (")[0] for s, finding in found.items() if finding.level == "warning"}
    assert warned >= {"session sql_log_bin", "session binlog_format", "sync_binlog", "shop.items"}
    assert found["session binlog_row_image"].level == "ok"


def test_a_server_that_leaves_databases_out(odd: MySqlStand, asked: MySqlServer) -> None:
    """Log filters, a log without checksums, no GTIDs: each is named, one is refused."""
    stand, source = odd, asked
    stand.execute("create database left_out", "create table left_out.t (id int primary key)")
    found = findings(source, "left_out")
    assert {
        subject: finding.level for subject, finding in found.items() if finding.level != "ok"
    } == {
        "log filters": "refusal",
        "gtid_mode": "warning",
        "binlog_checksum": "warning",
    }


def test_a_replica_is_asked_about_itself(odd: MySqlStand, asked: MySqlServer) -> None:
    """It does not log what it is sent, stands still, and may be written to."""
    stand, source = odd, asked
    stand.execute("change replication source to source_host = '127.0.0.1', source_port = 1")
    found = findings(source, "shop")
    (channel,) = source.survey().channels
    stand.execute("reset replica all")
    assert channel == Channel("127.0.0.1", is_receiving=False, is_applying=False, lag=None)
    told = {name: found[name].level for name in REPLICA_RULES if name in found}
    assert told == {
        "log_replica_updates": "refusal",
        "replica state": "warning",
        "replica_preserve_commit_order": "warning",
        "writable replica": "warning",
    }


def test_a_mariadb_replica_is_asked_about_itself(mariadb: MySqlStand) -> None:
    """In MariaDB's words; an account without SLAVE MONITOR does not see it."""
    running = mariadb.server
    source = MySqlServer(settings(mariadb, user=running.user, password=running.password))
    mariadb.execute("change master to master_host = '127.0.0.1', master_port = 1")
    try:
        found = findings(source, "shop")
        unseen = look(mariadb)
    finally:
        mariadb.execute("reset slave all")
    told = {name: found[name].level for name in REPLICA_RULES if name in found}
    assert told == {
        "log_replica_updates": "refusal",
        "replica state": "warning",
        "writable replica": "warning",
    }
    assert (unseen.channels, "channels" in unseen.unanswered_fields) == ((), True)


def test_a_mariadb_is_surveyed(mariadb: MySqlStand, mariadb_database: str) -> None:
    """Sequences and system-versioned tables, which no list of base tables shows; what its account
    may not see is granted by name, and one that may see it is told which action is not logged; no
    hash of a password is kept."""
    name = filled(
        mariadb,
        mariadb_database,
        "create sequence numbers",
        "create table kept (id int primary key) with system versioning",
    )
    survey = look(mariadb)
    found = findings(server(mariadb), name)
    told = levels(found, name)
    told.pop("hole", None)
    assert told == {
        "fleeting": "refusal",
        "items": "warning",
        "kept": "refusal",
        "numbers": "warning",
        "old": "warning",
        "parts": "warning",
    }
    assert (
        found[f"{name}.items (fk_{name})"].hint
        == f"GRANT REFERENCES ON `{name}`.`items` TO 'lockstep'@'%';"
    )
    running = mariadb.server
    root = MySqlServer(settings(mariadb, user=running.user, password=running.password))
    assert findings(root, name)[f"{name}.items (fk_{name})"].sentence.endswith(
        "CASCADE, SET NULL or SET DEFAULT changes rows with no row events"
    )
    assert survey.flavour == "mariadb"
    assert not any("PASSWORD" in line for line in survey.grants)
    assert found["replication privileges"].level == "ok"
    assert found["proxy"].level == "ok"


def test_a_newer_mariadb_is_no_proxy(mariadb11: MySqlStand) -> None:
    """It greets as what it is, and its log needs nothing more."""
    found = findings(server(mariadb11), "nowhere")
    refused = {subject for subject, finding in found.items() if finding.level == "refusal"}
    assert (refused, found["proxy"].level) == ({"nowhere.*"}, "ok")
