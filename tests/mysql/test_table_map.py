"""A TABLE_MAP with full metadata says what information_schema says."""

from __future__ import annotations

import pytest

from lockstep.pipeline.binlog.rows.table_map import read_structure
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server, table_maps

pytestmark = pytest.mark.servers("newest", "8.0")

TABLE = """
create table {database}.`odd ``name` (
  `a b` int unsigned not null,
  y year,
  n decimal(12,3) unsigned,
  b bit(10),
  t tinyint,
  g varchar(20) character set latin1,
  u varchar(20) character set utf8mb4 collate utf8mb4_bin not null,
  v {vector},
  e enum('x','y') character set latin1,
  s set('p','q'),
  m mediumtext,
  z varbinary(7),
  f float, d double,
  ts timestamp(3) null,
  big bigint unsigned not null,
  primary key (u, `a b`)
) character set utf8mb4
"""


def _vector(mysql: MySqlStand) -> str:
    """A column of the type VECTOR, which MySQL 9.0 has first."""
    return "vector(2)" if mysql.version >= (9, 0) else "varbinary(8)"


def test_slots_of_optional_metadata(mysql: MySqlStand, database: str) -> None:
    """YEAR counts in signedness, but on MySQL 8.0.15, BIT does not; VECTOR takes a slot in
    character sets."""
    source = server(mysql)
    start = source.facts().head
    table = TableName(database, "odd `name")
    mysql.execute(
        TABLE.format(database=database, vector=_vector(mysql)),
        f"insert into {database}.`odd ``name` (`a b`, u, big) values (1, 'x', 1 << 63)",
    )
    (mapped,) = table_maps(source, start, table)
    assert read_structure(mapped) == source.structure(table)


@pytest.mark.parametrize("collation", ["latin1_swedish_ci", "utf8mb4_bin", "binary"])
def test_a_default_character_set_and_each_its_own(
    mysql: MySqlStand, database: str, collation: str
) -> None:
    """The log names one default with exceptions, or each column's; both read the same."""
    source = server(mysql)
    start = source.facts().head
    columns = ", ".join(f"c{n} varchar(9)" for n in range(6))
    mysql.execute(
        f"create table {database}.t (id int primary key, {columns}, "
        f"x varchar(9) character set ascii) collate `{collation}`",
        f"insert into {database}.t (id) values (1)",
    )
    table = TableName(database, "t")
    (mapped,) = table_maps(source, start, table)
    assert read_structure(mapped) == source.structure(table)


def test_a_key_of_prefixes_is_its_whole_columns(mysql: MySqlStand, database: str) -> None:
    """PRIMARY KEY (v(3)) makes v unique as a whole."""
    source = server(mysql)
    start = source.facts().head
    mysql.execute(
        f"create table {database}.t (id int, v varchar(20), primary key (v(3), id))",
        f"insert into {database}.t values (1, 'abcdef')",
    )
    (mapped,) = table_maps(source, start, TableName(database, "t"))
    assert read_structure(mapped).primary_key == ("v", "id")


def test_an_index_is_no_key(mysql: MySqlStand, database: str) -> None:
    """One that is not unique: the table has none."""
    source = server(mysql)
    start = source.facts().head
    mysql.execute(
        f"create table {database}.t (id int not null, key (id))",
        f"insert into {database}.t values (1)",
    )
    (mapped,) = table_maps(source, start, TableName(database, "t"))
    assert read_structure(mapped).primary_key == ()


def test_a_unique_key_over_not_null_columns_is_a_key(mysql: MySqlStand, database: str) -> None:
    """Where there is no PRIMARY KEY the server names such a key in its place."""
    source = server(mysql)
    start = source.facts().head
    mysql.execute(
        f"create table {database}.t (id int not null unique)",
        f"insert into {database}.t values (1)",
    )
    (mapped,) = table_maps(source, start, TableName(database, "t"))
    assert read_structure(mapped).primary_key == ("id",)


def test_minimal_metadata_is_said(mysql: MySqlStand, database: str) -> None:
    """Rows logged before binlog_row_metadata=FULL have no names, and nobody guesses any."""
    source = server(mysql)
    mysql.execute(f"create table {database}.t (id int primary key)")
    start = source.facts().head
    mysql.execute("set global binlog_row_metadata = minimal")
    try:
        mysql.execute(f"insert into {database}.t values (1)")
    finally:
        mysql.execute("set global binlog_row_metadata = full")
    (mapped,) = table_maps(source, start, TableName(database, "t"))
    with pytest.raises(TableError, match="MINIMAL"):
        read_structure(mapped)
