"""Columns that the cases of values cannot make: hidden keys, refused types, bare logs."""

from __future__ import annotations

import pytest

from lockstep.pipeline.schema.types import arrow_schema
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head, logged
from tests.mysql.reading import rows_read, server


@pytest.mark.since(8, 0, 30)
def test_a_generated_invisible_key_is_a_column(mysql: MySqlStand, database: str) -> None:
    """my_row_id stands first in the images, in information_schema, even if the server is to show it
    nowhere, and in a SELECT by name."""
    start = head(mysql)
    mysql.execute(
        "set sql_generate_invisible_primary_key = on",
        "create table t (v varchar(5), w int)",
        "insert into t values ('a', 1), ('b', null)",
        "set global show_gipk_in_create_table_and_information_schema = off",
        database=database,
    )
    table = TableName(database, "t")
    source = server(mysql)
    try:
        structure = source.structure(table)
        (schema,) = source.baseline([table]).tables
    finally:
        mysql.execute("set global show_gipk_in_create_table_and_information_schema = on")
    with rows_read(source, structure) as batches:
        rows = [row for batch in batches for row in batch.to_pylist()]
    log = logged(mysql, start, database)[table]
    assert structure.primary_key == schema.primary_key == ("my_row_id",)
    assert (log.structure, log.rows("insert")) == (structure, rows)
    assert rows == [{"my_row_id": 1, "v": "a", "w": 1}, {"my_row_id": 2, "v": "b", "w": None}]


@pytest.mark.parametrize(
    ("kind", "value"), [("date", "2024-02-31"), ("datetime", "2023-02-29 1:1")]
)
def test_invalid_dates_quarantine_the_table(
    mysql: MySqlStand, database: str, kind: str, value: str
) -> None:
    """ALLOW_INVALID_DATES lets days in that no calendar has; no Arrow type holds them, whether they
    come from the log or from a SELECT."""
    start, table, source = head(mysql), TableName(database, "t"), server(mysql)
    mysql.execute(
        "set sql_mode = 'ALLOW_INVALID_DATES'",
        f"create table t (id int primary key, d {kind})",
        f"insert into t values (1, '{value}')",
        database=database,
    )
    with pytest.raises(TableError, match="an invalid date"):
        logged(mysql, start, database)[table].rows("insert")
    with (
        rows_read(source, source.structure(table)) as batches,
        pytest.raises(TableError, match=f"'d' holds a value that is not a valid {kind}"),
    ):
        list(batches)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("varchar(90) compressed", "COMPRESSED VARCHAR"),
        ("text compressed", "COMPRESSED TEXT"),
        ("blob compressed", "COMPRESSED BLOB"),
    ],
)
def test_compressed_columns_are_refused_by_name(
    mariadb: MySqlStand, mariadb_database: str, kind: str, name: str
) -> None:
    """MariaDB's column compression is unpacked by neither path."""
    start, table = head(mariadb), TableName(mariadb_database, "t")
    mariadb.execute(
        f"create table {table} (id int primary key, v {kind})",
        f"insert into {table} values (1, 'v')",
    )
    with pytest.raises(TableError, match=name):
        arrow_schema(server(mariadb).structure(table))
    with pytest.raises(TableError):
        logged(mariadb, start, mariadb_database)[table].rows("insert")


@pytest.mark.parametrize("kind", ["time(3)", "datetime", "timestamp(6) null"])
def test_old_times_of_mariadb_are_refused(
    mariadb: MySqlStand, mariadb_database: str, kind: str
) -> None:
    """Their width in the log depends on digits that the log does not tell."""
    start, table = head(mariadb), TableName(mariadb_database, "t")
    mariadb.execute("set global mysql56_temporal_format = off")
    try:
        mariadb.execute(f"create table {table} (id int primary key, v {kind})")
    finally:
        mariadb.execute("set global mysql56_temporal_format = on")
    mariadb.execute(f"insert into {table} values (1, '2024-01-01 01:02:03')")
    with pytest.raises(TableError, match="OLD"):
        arrow_schema(server(mariadb).structure(table))
    with pytest.raises(TableError):
        logged(mariadb, start, mariadb_database)[table].rows("insert")


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


@pytest.mark.servers("newest", "8.0")
@pytest.mark.parametrize("what", KEYS)
def test_keys_that_a_log_names(mysql: MySqlStand, database: str, what: str) -> None:
    start, (columns, key) = head(mysql), KEYS[what]
    statements = f"create table t ({columns})", "insert into t values (1, 'abcdef')"
    mysql.execute(*statements, database=database)
    structure = logged(mysql, start, database)[TableName(database, "t")].structure
    assert structure is not None and structure.primary_key == key
