"""A TABLE_MAP with full metadata says what information_schema says."""

from __future__ import annotations

import pytest

from lockstep.pipeline.binlog.rows.table_map import TableMap, read_structure
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


def mapped(mysql: MySqlStand, table: TableName, *statements: str) -> TableMap:
    """The table map that these statements leave in the log."""
    start = server(mysql).facts().head
    mysql.execute(*statements, database=table.database)
    (found,) = table_maps(server(mysql), start, table)
    return found


def test_slots_of_optional_metadata(mysql: MySqlStand, database: str) -> None:
    """YEAR counts in signedness, but on MySQL 8.0.15, BIT does not; VECTOR takes a slot in
    character sets."""
    table = TableName(database, "odd `name")
    found = mapped(
        mysql,
        table,
        TABLE.format(database=database, vector=_vector(mysql)),
        "insert into `odd ``name` (`a b`, u, big) values (1, 'x', 1 << 63)",
    )
    assert read_structure(found) == server(mysql).structure(table)


@pytest.mark.parametrize("collation", ["latin1_swedish_ci", "utf8mb4_bin", "binary"])
def test_a_default_character_set_and_each_its_own(
    mysql: MySqlStand, database: str, collation: str
) -> None:
    """The log names one default with exceptions, or each column's; both read the same."""
    columns, table = ", ".join(f"c{n} varchar(9)" for n in range(6)), TableName(database, "t")
    found = mapped(
        mysql,
        table,
        f"create table t (id int primary key, {columns}, "
        f"x varchar(9) character set ascii) collate `{collation}`",
        "insert into t (id) values (1)",
    )
    assert read_structure(found) == server(mysql).structure(table)


KEYS = {
    "PRIMARY KEY (v(3)) makes v unique as a whole": (
        "id int, v varchar(20), primary key (v(3), id)",
        ("v", "id"),
    ),
    "an index that is not unique is no key": ("id int not null, v varchar(20), key (id)", ()),
    "the server names a UNIQUE key over NOT NULL in place of a PRIMARY KEY": (
        "id int not null unique, v varchar(20)",
        ("id",),
    ),
}


@pytest.mark.parametrize("what", KEYS)
def test_keys(mysql: MySqlStand, database: str, what: str) -> None:
    columns, key = KEYS[what]
    found = mapped(
        mysql,
        TableName(database, "t"),
        f"create table t ({columns})",
        "insert into t values (1, 'abcdef')",
    )
    assert read_structure(found).primary_key == key


def test_minimal_metadata_is_said(mysql: MySqlStand, database: str) -> None:
    """Rows logged before binlog_row_metadata=FULL have no names, and nobody guesses any."""
    with mysql.metadata("MINIMAL"):
        found = mapped(
            mysql,
            TableName(database, "t"),
            "create table t (id int primary key)",
            "insert into t values (1)",
        )
    with pytest.raises(TableError, match="MINIMAL"):
        read_structure(found)
