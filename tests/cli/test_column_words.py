"""Structures in the words of the server they come from."""

from __future__ import annotations

import pytest

from lockstep.pipeline.schema.model import ColumnSchema, TableSchema
from lockstep.pipeline.schema.sql_text import (
    default_in_sql,
    further_properties,
    key_in_sql,
    key_kinds,
    options_in_sql,
    reference_in_sql,
    type_in_sql,
)
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server

TYPES = (
    "create table types (a tinyint, b smallint unsigned, c mediumint, d int unsigned, e bigint, "
    "f decimal(10,2), g decimal(9,0) unsigned, h float, i double, j float(7,2), k bit(9), l year, "
    "m date, n datetime, o datetime(6), p timestamp(3) null, q time(2), r char(3), s varchar(20), "
    "t binary(4), u varbinary(9), v tinytext, w text, x mediumblob, y longtext, z json, "
    "aa enum('a','b''c'), ab set('x','y z') character set latin1, ac point, ad geometry, "
    "ae char(0), af varchar(0))"
)
PARENTS = "create table parents (id int primary key)"
ORDERS = (
    "create table orders (id bigint unsigned not null auto_increment primary key, "
    "note varchar(20) character set latin1 default 'it''s', made datetime(3) default now(3) "
    "on update now(3), n int not null default 7, token char(36) default (uuid()), "
    "twice int as (n * 2) stored, secret int invisible, parent int, "
    "unique key u (note(5), n desc), key k (n), "
    "constraint f foreign key (parent) references parents (id) on delete cascade)"
)


@pytest.fixture
def read(mysql: MySqlStand, database: str) -> TableSchema:
    mysql.execute(PARENTS, ORDERS, database=database)
    (found,) = server(mysql).baseline([TableName(database, "orders")]).tables
    return found


def column(table: TableSchema, name: str) -> ColumnSchema:
    found = table.column(name)
    assert found is not None
    return found


def test_types_are_written_as_the_server_writes_them(mysql: MySqlStand, database: str) -> None:
    """information_schema's column_type, for every type."""
    mysql.execute(TYPES, database=database)
    (table,) = server(mysql).baseline([TableName(database, "types")]).tables
    told = mysql.rows(
        "select column_name, column_type from information_schema.columns "
        f"where table_schema = '{database}' and table_name = 'types'"
    )
    assert {one.name: type_in_sql(one) for one in table.columns} == dict(told)


def test_defaults_are_those_of_the_statement(read: TableSchema) -> None:
    """A literal in quotes, an expression in parentheses, none for a column without."""
    told = {one.name: default_in_sql(one) for one in read.columns}
    assert told["note"] == "'it''s'"
    assert told["made"] == "CURRENT_TIMESTAMP(3)"
    assert told["token"] == "(uuid())"
    assert (told["id"], told["twice"], told["parent"]) == (None, None, "NULL")


def test_a_text_that_looks_like_bytes_is_quoted(mysql: MySqlStand, database: str) -> None:
    """Only of a column without characters is 0x… not a text."""
    mysql.execute(
        "create table codes (a varchar(9) default '0xff', b enum('b''1') default 'b''1', "
        "c varbinary(9) default 0xff, d bit(3) default b'101')",
        database=database,
    )
    (table,) = server(mysql).baseline([TableName(database, "codes")]).tables
    assert list(map(default_in_sql, table.columns)) == ["'0xff'", "'b''1'", "0xFF", "b'101'"]


def test_what_else_there_is_to_say(read: TableSchema) -> None:
    """How a column is made, and a character set other than the table's."""
    assert further_properties(column(read, "id"), read) == "auto_increment"
    assert further_properties(column(read, "note"), read) == "latin1_swedish_ci"
    assert further_properties(column(read, "made"), read) == "on update CURRENT_TIMESTAMP"
    assert further_properties(column(read, "twice"), read).endswith("stored")
    assert further_properties(column(read, "secret"), read) == "invisible"
    assert further_properties(column(read, "n"), read) == ""
    assert options_in_sql(read).startswith("InnoDB, utf8mb4_")


def test_keys_are_told_beside_their_columns_and_whole(read: TableSchema, database: str) -> None:
    """Prefixes, descending parts and what a foreign key does."""
    assert key_kinds(column(read, "id"), read) == ("primary",)
    assert sorted(key_kinds(column(read, "n"), read)) == ["index", "unique"]
    assert [key_in_sql(key) for key in read.keys if key.name in ("PRIMARY", "u")] == [
        "primary key (id)",
        "unique index u (note(5), n desc)",
    ]
    assert [reference_in_sql(key) for key in read.foreign_keys] == [
        f"foreign key f (parent) references {database}.parents (id) on delete CASCADE"
    ]
