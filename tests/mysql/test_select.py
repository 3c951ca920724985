"""What a SELECT of each type gives, in words: the values that the log is compared with."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import rows_read, server

TINY = struct.unpack("<f", b"\x01\0\0\0")[0]
POINT = "0101000000000000000000f03f0000000000000040"
PLACED = "0101000020110f0000000000000000f03f0000000000000040"
NESTED = "010700000001000000" + POINT
HALF = datetime(2024, 1, 1, 2, 3, 4, 500000)
MOMENT = datetime(2024, 1, 1, 2, 3, 4, tzinfo=UTC)
MANY = "st_geomfromtext('geometrycollection(point(1 2))')"

# column definition, SQL literal → Arrow's type and value
BOTH: list[tuple[str, str, pa.DataType, Any]] = [
    ("tinyint(1)", "2", pa.int8(), 2),
    ("bigint unsigned", "~0", pa.decimal128(20, 0), Decimal(2**64 - 1)),
    ("int(9) zerofill", "7", pa.int64(), 7),
    ("decimal(38,2)", "-0.5", pa.decimal128(38, 2), Decimal("-0.50")),
    ("decimal(39,2)", "-0.5", pa.string(), "-0.50"),
    ("decimal(39,2) zerofill", "0.5", pa.string(), "0.50"),
    ("decimal(40,0) zerofill", "0", pa.string(), "0"),
    ("float", "1.4e-45", pa.float32(), TINY),
    ("float(9,2)", "12345.67", pa.float32(), struct.unpack("<f", struct.pack("<f", 12345.67))[0]),
    ("double(20,1)", "0.1 + 0.2", pa.float64(), 0.3),
    ("bit(1)", "b'1'", pa.bool_(), True),
    ("bit(63)", "~0 >> 1", pa.int64(), 2**63 - 1),
    ("bit(64)", "~0", pa.decimal128(20, 0), Decimal(2**64 - 1)),
    ("year", "0", pa.int16(), 0),
    ("time", "'-838:59:59'", pa.string(), "-838:59:59"),
    ("time(6)", "'-0:0:0.000001'", pa.string(), "-00:00:00.000001"),
    ("time(1)", "'7:8:9'", pa.string(), "07:08:09.0"),
    ("date", "'0001-01-01'", pa.date32(), date(1, 1, 1)),
    ("date", "'0000-01-01'", pa.date32(), None),
    ("datetime(1)", "'2024-01-01 02:03:04.5'", pa.timestamp("us"), HALF),
    ("datetime", "'2024-00-01 02:03:04'", pa.timestamp("us"), None),
    ("timestamp null", "'2024-01-01 02:03:04'", pa.timestamp("us", tz="UTC"), MOMENT),
    ("timestamp null", "0", pa.timestamp("us", tz="UTC"), None),
    ("char(5)", "'a  '", pa.string(), "a"),
    ("varchar(5) character set cp1251", "'ж '", pa.string(), "ж "),
    ("enum('a','b')", "0", pa.string(), ""),
    ("set('b','a','c')", "'c,b'", pa.string(), "b,c"),
    ("binary(3)", "'a'", pa.binary(), b"a\0\0"),
    ("varbinary(3)", "x'6100'", pa.binary(), b"a\0"),
    ("geometry", "st_geomfromtext('point(1 2)')", pa.binary(), bytes.fromhex(POINT)),
    ("point", "st_geomfromwkb(x'" + POINT + "', 3857)", pa.binary(), bytes.fromhex(PLACED)),
    ("geometrycollection", MANY, pa.binary(), bytes.fromhex(NESTED)),
]
MYSQL: list[tuple[str, str, pa.DataType, Any]] = [
    ("float", "-0e0", pa.float32(), -0.0),
    ("json", """'{"b": 1.0, "a": "é"}'""", pa.string(), '{"a": "é", "b": 1.0}'),
    ("vector(3)", "to_vector('[1, -0.0]')", pa.list_(pa.float32()), [1.0, -0.0]),
]
MARIADB: list[tuple[str, str, pa.DataType, Any]] = [
    ("json", """'{"b":1.0}'""", pa.string(), '{"b":1.0}'),
    ("inet6", "'1::'", pa.binary(), b"\0\1" + bytes(14)),
    ("inet4", "'1.2.3.0'", pa.binary(), b"\1\2\3\0"),
    (
        "uuid",
        "'00112233-4455-6677-8899-aabbccddee00'",
        pa.binary(),
        bytes(range(0, 240, 17)) + b"\0",
    ),
    ("year(2)", "69", pa.int16(), 2069),
]


@pytest.mark.parametrize(
    ("flavour", "more"),
    [pytest.param("mysql", MYSQL, marks=pytest.mark.since(9, 0)), ("mariadb", MARIADB)],
)
def test_a_select_gives_these_values(
    request: pytest.FixtureRequest, flavour: str, more: list[tuple[str, str, pa.DataType, Any]]
) -> None:
    """One table with a column of each case, one row; types, values and bits of floats."""
    stand: MySqlStand = request.getfixturevalue(flavour)
    database = request.getfixturevalue("database" if flavour == "mysql" else "mariadb_database")
    cases = BOTH + more
    columns = ", ".join(f"c{number} {case[0]}" for number, case in enumerate(cases))
    values = ", ".join(case[1] for case in cases)
    with stand.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("set sql_mode = '', time_zone = '+00:00'")
        cursor.execute(f"create table t ({columns}) character set utf8mb4")
        cursor.execute(f"insert into t values ({values})")
    source = server(stand)
    with rows_read(source, source.structure(TableName(database, "t"))) as batches:
        (batch,) = batches
    found = [
        (*case[:2], *_shown(column)) for case, column in zip(cases, batch.columns, strict=True)
    ]
    assert found == [(*case[:2], *_shown(pa.array([case[3]], case[2]))) for case in cases]


def _shown(array: pa.Array) -> tuple[pa.DataType, str]:
    """The one value's type and its `repr`, which shows a zero's sign."""
    return array.type, repr(array[0].as_py())


def test_padding_is_not_selected(mysql: MySqlStand, database: str) -> None:
    """A server whose sessions pad CHAR to its full length gives what the log holds."""
    mysql.execute(
        f"create table {database}.t (id int primary key, c char(9))",
        f"insert into {database}.t values (1, 'a')",
        "set global sql_mode = concat(@@global.sql_mode, ',PAD_CHAR_TO_FULL_LENGTH')",
    )
    source = server(mysql)
    try:
        with rows_read(source, source.structure(TableName(database, "t"))) as batches:
            assert [batch.to_pylist() for batch in batches] == [[{"id": 1, "c": "a"}]]
    finally:
        mysql.execute(
            "set global sql_mode = replace(@@global.sql_mode, 'PAD_CHAR_TO_FULL_LENGTH', '')"
        )
