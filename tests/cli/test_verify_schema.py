"""The history is what its statements make, and what the server has; or it is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from lockstep.commands.schema import verification_lines, verification_values
from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.run.proof.verify_schema import verify_schema
from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.history import Knowledge, SchemaVersion
from lockstep.pipeline.schema.history_check import read_stored_context
from lockstep.pipeline.schema.model import ColumnSchema, schema_to_json
from lockstep.pipeline.values.errors import NothingMatches
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower

STATEMENTS = (
    "alter table orders add note varchar(20) default 'x', add key (note)",
    "create table others like orders",
    "rename table orders to old, others to orders",
    "alter table orders modify note varchar(30) character set latin1",
    "create table made (id int primary key, u char(36) default (uuid()), v int as (id + 1), "
    "f float default 1.50, t timestamp default now(), e enum('a','b') default 'b')",
    "truncate table old",
    "create table gone (id int)",
    "drop table gone, old",
)


def statements(stand: MySqlStand) -> tuple[str, ...]:
    """MySQL 5.7 has no defaults that are expressions; there the column is without one."""
    if stand.version >= (8,):
        return STATEMENTS
    return tuple(one.replace(" default (uuid())", "") for one in STATEMENTS)


def newest(follower: Follower, table: TableName) -> SchemaVersion:
    """The newest version that a statement made."""
    versions = follower.ledger.schema_versions(SOURCE, table)
    return [version for version in versions if version.statement_number is not None][-1]


def follower_of(mysql: MySqlStand, database: str) -> Follower:
    """A table of two columns that a first capture is to find."""
    mysql.execute("create table orders (id int primary key, v int)", database=database)
    found = Follower(server(mysql), [f"{database}.*"], start=str(head(mysql)))
    mysql.execute("insert into orders values (1, 1)", database=database)
    return found


def altered(mysql: MySqlStand, database: str) -> Follower:
    """A baseline, and statements over two runs."""
    found = follower_of(mysql, database)
    found.capture()
    mysql.execute(*statements(mysql)[:4], database=database)
    found.capture()
    mysql.execute(*statements(mysql)[4:], database=database)
    found.capture()
    return found


@pytest.fixture(scope="module")
def follower(mysql: MySqlStand) -> Iterator[Follower]:
    """`altered`, for those who leave it as it is."""
    with mysql.own_database() as name:
        yield altered(mysql, name)


@pytest.fixture
def shop(follower: Follower) -> str:
    """Its database."""
    (pattern,) = follower.tables
    return pattern.partition(".")[0]


def test_what_was_followed_is_what_the_server_has(follower: Follower) -> None:
    """Nothing folded otherwise, nothing else on the server; expressions count as there."""
    found = verify_schema(follower.ports())
    assert (found.history_disagreements, found.server_disagreements, found.unknown_versions) == (
        (),
        (),
        (),
    )
    assert found.statement_count == len(STATEMENTS)
    assert found.equal
    told = to_json(verification_values(found))
    assert (told["equal"], told["folded_otherwise"], told["statement_count"]) == (True, [], 8)


@pytest.mark.parametrize("table", ["orders", "left_out.kept"])
def test_a_transaction_that_an_earlier_batch_read_prepared(
    mysql: MySqlStand, database: str, table: str
) -> None:
    """Its XA COMMIT lies between the last batch and the server's head; captured or not."""
    found = follower_of(mysql, database)
    other = mysql.fresh_name()
    mysql.execute(
        f"create database {other}", f"create table {other}.kept (id int primary key, v int)"
    )
    name = f"{other}.kept" if table != "orders" else f"{database}.orders"
    xid = f"'{database}'"
    with mysql.connect() as session, session.cursor() as cursor:
        for one in (f"xa start {xid}", f"insert into {name} values (7, 7)", f"xa end {xid}"):
            cursor.execute(one)
        cursor.execute(f"xa prepare {xid}")
    found.capture()
    mysql.execute(f"xa commit {xid}", "alter table orders add w int", database=database)
    try:
        assert verify_schema(found.ports()).equal
    finally:
        mysql.execute(f"drop database {other}")


def test_mariadb_prints_its_structures_otherwise(mariadb: MySqlStand) -> None:
    """And they are the same: defaults as expressions, names of character sets, JSON."""
    name = mariadb.fresh_name()
    mariadb.execute(f"create database {name} character set utf8mb4")
    found = follower_of(mariadb, name)
    found.capture()
    mariadb.execute(
        *STATEMENTS,
        "create table more (id int primary key, j json, u uuid, b varchar(9) default 'it''s', "
        "n int default null, d decimal(9,2) default 1.5, z int zerofill default 7)",
        "create or replace table others (id int primary key, t text, unique key (t))",
        "create table versioned (id int primary key) with system versioning",
        database=name,
    )
    found.capture()
    report = verify_schema(found.ports())
    assert (report.history_disagreements, report.server_disagreements, report.unknown_versions) == (
        (),
        (),
        (),
    )
    mariadb.execute(f"drop database {name}")


def test_statements_behind_the_last_batch_are_followed_first(
    mysql: MySqlStand, database: str
) -> None:
    """The comparison is at the log's present end; nothing is recorded by it. Behind a gap that was
    chosen the server is asked for its structures once more: there they begin."""
    follower = altered(mysql, database)
    before = follower.ledger.last_versions(SOURCE)
    mysql.execute(
        "alter table orders add w int", "create table another (id int)", database=database
    )
    found = verify_schema(follower.ports())
    assert found.equal
    assert found.at == head(mysql)
    mysql.execute("drop table another", database=database)
    assert verify_schema(follower.ports()).compared_count == found.compared_count - 1
    assert follower.ledger.last_versions(SOURCE) == before
    follower.choose(str(head(mysql)))
    mysql.execute("alter table orders add z int", database=database)
    follower.capture()
    mysql.execute("alter table orders drop w", database=database)
    follower.capture()
    found = verify_schema(follower.ports())
    assert (found.history_disagreements, found.server_disagreements) == ((), ())


def test_what_the_log_never_had_is_told(mysql: MySqlStand, database: str) -> None:
    """Altered, made and dropped with sql_log_bin=0: three tables, both sides shown. One that is
    not captured may be hidden, by a privilege that is missing: it is named, and no difference."""
    follower = altered(mysql, database)
    with mysql.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("set sql_log_bin = 0")
        cursor.execute("drop table made")
        narrow = verify_schema(replace(follower, tables=[f"{database}.orders"]).ports())
        cursor.execute("alter table orders modify note varchar(40) character set latin1")
        cursor.execute("create table hidden (id int)")
    assert narrow.equal
    assert narrow.unseen_tables == (TableName(database, "made"),)
    found = verify_schema(follower.ports())
    assert not found.equal
    assert found.history_disagreements == ()
    assert {
        str(one.table).partition(".")[2]: one.differences for one in found.server_disagreements
    } == {
        "hidden": ("the server has it, and the history does not",),
        "made": ("it is in the history, and the server does not show it",),
        "orders": ("column note length: 30, 40",),
    }
    lines = list(verification_lines(SOURCE, found))
    assert "    column note length: 30, 40" in lines
    assert any(line.startswith("  hint: ") for line in lines)


@contextmanager
def tampered(follower: Follower, table: TableName, change: SchemaVersion) -> Iterator[None]:
    """The ledger with another version in place of the one with its number, meanwhile."""
    before = follower.ledger.schema_version(SOURCE, table, change.version)
    for version in (change, before):
        schema = None if version.schema is None else json.dumps(schema_to_json(version.schema))
        fingerprint = None if version.schema is None else version.fingerprint
        columns = None if version.columns_from is None else list(version.columns_from)
        follower.ledger.database.tell(
            "update lockstep.table_versions set knowledge = %s, origin = %s, schema = %s,"
            " fingerprint = %s, columns_from = %s, statement = %s, reason = %s, generation = %s"
            " where (source, database, name, version) = (%s, %s, %s, %s)",
            *(version.knowledge.value, version.origin.value, schema, fingerprint, columns),
            *(version.statement_number, version.reason, version.generation),
            *(SOURCE, table.database, table.name, version.version),
        )
        if version is change:
            yield


def test_a_version_that_no_statement_makes_is_told_once(follower: Follower, shop: str) -> None:
    """At its place, by its number, with both sides; what follows from it is not. Where values come
    from is as much a part of a version as its columns."""
    orders = TableName(shop, "orders")
    versions = follower.ledger.schema_versions(SOURCE, orders)
    (wrong,) = [version for version in versions if version.version == 2]
    assert wrong.schema is not None
    columns = (*wrong.schema.columns, ColumnSchema("more", "int"))
    more = replace(wrong, schema=replace(wrong.schema, columns=columns))
    with tampered(follower, orders, more):
        (one,) = verify_schema(follower.ports()).history_disagreements
    assert (one.table, one.version, one.position) == (orders, 2, wrong.since)
    assert any("more" in sentence for sentence in one.differences)
    elsewhere = replace(newest(follower, orders), columns_from=("id", "note", "v"))
    with tampered(follower, orders, elsewhere):
        (one,) = verify_schema(follower.ports()).history_disagreements
    assert one.differences == (
        "columns come from: (id note v) as recorded, (id v note) when followed again",
    )


def test_a_structure_that_is_unknown_is_listed(follower: Follower, shop: str) -> None:
    """With its reason; neither the server's nor what its statement makes is held against it: the
    settings of that time may not have been possible for it."""
    made = TableName(shop, "made")
    lost = replace(
        newest(follower, made),
        knowledge=Knowledge.UNKNOWN,
        schema=None,
        columns_from=None,
        reason="nobody could follow it",
    )
    with tampered(follower, made, lost):
        found = verify_schema(follower.ports())
    assert [(one.table, one.reason) for one in found.unknown_versions] == [(made, lost.reason)]
    assert found.server_disagreements == ()
    assert found.history_disagreements == ()


@pytest.mark.since(8, 0)  # before, the log has no column names, and its rows are refused
def test_a_history_that_began_in_the_past(mysql: MySqlStand, database: str) -> None:
    """What was unknown until its last statement, and known from there on by the server, is
    taken as it is recorded."""
    found = follower_of(mysql, database)
    mysql.execute(*statements(mysql), database=database)
    found.capture()
    orders = TableName(database, "orders")
    versions = found.ledger.schema_versions(SOURCE, orders)
    assert versions[0].knowledge is Knowledge.UNKNOWN
    assert newest(found, orders).knowledge is Knowledge.KNOWN
    report = verify_schema(found.ports())
    assert (report.history_disagreements, report.server_disagreements, report.unknown_versions) == (
        (),
        (),
        (),
    )


def test_the_first_capture_comes_first(mysql: MySqlStand, database: str) -> None:
    """Without a history there is nothing to prove."""
    with pytest.raises(NothingMatches, match="no history"):
        verify_schema(Follower(server(mysql), [f"{database}.*"]).ports())


def test_a_stored_context_is_read_back() -> None:
    """As JSON has it; what another version wrote besides is passed."""
    context = StatementContext(database="shop", sql_mode=4, charset_collations={"utf8": "x"})
    stored = {
        "database": "shop",
        "sql_mode": 4,
        "charset_collations": {"utf8": "x"},
        "facts": {"version": 90704, "later": 1},
        "later": 1,
    }
    assert read_stored_context(stored) == context
