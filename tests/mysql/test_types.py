"""For each type: what the log gives is what SELECT gives, by paths that share no code."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pipeline.binlog.table_map import read_structure
from pipeline.errors import TableError
from pipeline.schema.types import arrow_schema
from pipeline.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import changes, server, table_maps

# column definition → literals, the extremes first
CASES: dict[str, list[str]] = {
    "tinyint": ["-128", "127", "0", "null"],
    "tinyint unsigned": ["255", "0"],
    "smallint": ["-32768", "32767"],
    "smallint unsigned": ["65535"],
    "mediumint": ["-8388608", "8388607", "-1"],
    "mediumint unsigned": ["16777215"],
    "int": ["-2147483648", "2147483647"],
    "int unsigned": ["4294967295"],
    "int zerofill": ["7"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "bigint unsigned": ["18446744073709551615", "0"],
    "decimal(1,0)": ["-9", "9", "0"],
    "decimal(10,2)": ["-12345678.90", "0.01", "-0.01", "99999999.99"],
    "decimal(9,9)": ["0.123456789", "-0.999999999"],
    "decimal(38,10)": ["-1234567890123456789012345678.0123456789", "0"],
    "decimal(39,0)": ["999999999999999999999999999999999999999", "-1"],
    "decimal(65,30)": ["-12345678901234567890123456789012345.012345678901234567890123456789"],
    "float": ["1.1", "-3.4028235e38", "1.17549435e-38", "0.1", "16777217", "null"],
    "double": ["1.7976931348623157e308", "-2.2250738585072014e-308", "0.1", "-1e-300"],
    "char(5)": ["'é€'", "''", "'ab   '", "null"],
    "char(255)": ["repeat('€', 255)"],
    "varchar(300)": ["'😀'", "repeat('x', 300)", "''"],
    "varchar(10) character set latin1": ["'€ÿ'", "_binary x'818d8f909d'", "'ß'"],
    "varchar(10) character set ascii": ["'~ abc'"],
    "varchar(10) character set utf8mb3": ["'łódź'"],
    "tinytext": ["'t'"],
    "text": ["repeat('ab', 30000)", "''"],
    "mediumtext": ["repeat('é', 70000)"],
    "longtext": ["'l'"],
    "binary(6)": ["x'6162'", "x'610000000000'", "x'000000000000'"],
    "varbinary(300)": ["x'00ff'", "x''", "repeat(x'00', 300)"],
    "blob": ["x'00ff'", "repeat(x'ff', 60000)"],
    "longblob": ["x''"],
    "date": ["'1000-01-01'", "'9999-12-31'", "'2024-02-29'", "'0000-00-00'", "'2024-00-10'"],
    "datetime": ["'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'0000-00-00 00:00:00'"],
    "datetime(1)": ["'2024-02-29 12:13:14.5'"],
    "datetime(3)": ["'2024-02-29 12:13:14.567'"],
    "datetime(6)": ["'9999-12-31 23:59:59.999999'", "'2024-02-29 00:00:00.000001'"],
    "timestamp null": ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'0000-00-00 00:00:00'"],
    "timestamp(2) null": ["'2024-02-29 12:13:14.56'", "null"],
    "timestamp(6) null": ["'2024-02-29 12:13:14.567891'"],
    "enum('a','b€','c''d')": ["'a'", "'b€'", "'c''d'", "''", "null"],
    "enum('ä','b') character set latin1": ["'ä'", "'b'"],
}


@pytest.fixture(scope="module")
def filled(mysql: MySqlStand) -> Any:
    """A table per case, filled without strictness, and the place before it all."""
    source = server(mysql)
    start = source.facts().head
    name = mysql.fresh_name()
    statements = [f"create database {name} character set utf8mb4", "set sql_mode = ''"]
    with mysql.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        cursor.execute("set time_zone = '+00:00'")
        for number, (kind, literals) in enumerate(CASES.items()):
            table = f"{name}.t{number}"
            cursor.execute(f"create table {table} (id int primary key, v {kind})")
            for row, literal in enumerate(literals):
                cursor.execute(f"insert into {table} values ({row}, {literal})")
            cursor.execute(f"update {table} set id = id + 1000")
    return source, start, name


@pytest.mark.parametrize("kind", CASES)
def test_the_log_says_what_select_says(filled: Any, kind: str) -> None:
    """Inserted, both images of an update, and the row as it stands are one value."""
    source, start, name = filled
    table = TableName(name, f"t{list(CASES).index(kind)}")
    found = list(changes(source, start, table))
    logged: dict[str, list[dict[str, Any]]] = {change: [] for _, change, _ in found}
    for _, change, row in found:
        logged[change].append(row)
    structure = source.structure(table)
    with source.rows(structure) as batches:
        selected = pa.Table.from_batches(batches, arrow_schema(structure)).to_pylist()
    assert logged["update_postimage"] == selected
    before = [{"id": row["id"] - 1000, "v": row["v"]} for row in selected]
    assert logged["insert"] == logged["update_preimage"] == before
    assert arrow_schema(found[0][0]) == arrow_schema(structure)


def test_extremes_are_not_null_by_mistake(filled: Any) -> None:
    """Only NULL, zero dates and partial dates are NULL."""
    source, start, name = filled
    wrong = []
    for number, (kind, literals) in enumerate(CASES.items()):
        rows = [
            r for _, c, r in changes(source, start, TableName(name, f"t{number}")) if c == "insert"
        ]
        for literal, row in zip(literals, rows, strict=True):
            nothing = literal == "null" or "0000-00-00" in literal or "-00-" in literal
            if (row["v"] is None) != nothing:
                wrong.append((kind, literal))
    assert wrong == []


REFUSED = {
    "json": "JSON",
    "bit(3)": "BIT",
    "set('a','b')": "SET",
    "time": "TIME",
    "year": "YEAR",
    "point": "GEOMETRY",
    "vector(3)": "VECTOR",
    "varchar(5) character set gbk": "gbk",
}


@pytest.mark.parametrize("kind", REFUSED)
def test_other_types_are_refused_by_name(mysql: MySqlStand, database: str, kind: str) -> None:
    """The TABLE_MAP of any table can be read; a type not listed is named."""
    source = server(mysql)
    start = source.facts().head
    mysql.execute(
        f"create table {database}.t (id int primary key, v {kind})",
        f"insert into {database}.t (id) values (1)",
    )
    (raw,) = table_maps(source, start, TableName(database, "t"))
    with pytest.raises(TableError, match=REFUSED[kind]):
        arrow_schema(read_structure(raw))
