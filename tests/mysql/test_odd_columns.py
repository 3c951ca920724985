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
    """my_row_id stands first in the images, in information_schema and in a SELECT by name."""
    start = head(mysql)
    with mysql.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("set sql_generate_invisible_primary_key = on")
        cursor.execute("create table t (v varchar(5), w int)")
        cursor.execute("insert into t values ('a', 1), ('b', null)")
    table = TableName(database, "t")
    source = server(mysql)
    structure = source.structure(table)
    with rows_read(source, structure) as batches:
        rows = [row for batch in batches for row in batch.to_pylist()]
    log = logged(mysql, start, database)[table]
    assert structure.primary_key == ("my_row_id",)
    assert (log.structure, log.rows("insert")) == (structure, rows)
    assert rows == [{"my_row_id": 1, "v": "a", "w": 1}, {"my_row_id": 2, "v": "b", "w": None}]


@pytest.mark.parametrize(
    ("kind", "value"), [("date", "2024-02-31"), ("datetime", "2023-02-29 1:1")]
)
def test_invalid_dates_quarantine_the_table(
    mysql: MySqlStand, database: str, kind: str, value: str
) -> None:
    """What ALLOW_INVALID_DATES lets in is refused on the log's path too."""
    start = head(mysql)
    with mysql.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("set sql_mode = 'ALLOW_INVALID_DATES'")
        cursor.execute(f"create table t (id int primary key, d {kind})")
        cursor.execute(f"insert into t values (1, '{value}')")
    log = logged(mysql, start, database)[TableName(database, "t")]
    with pytest.raises(TableError, match="an invalid date"):
        log.rows("insert")


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
