"""A JSON document out of the log reads as SELECT prints it."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

import pytest

from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head, logged

LITERALS = ["'null'", "'true'", "'false'", "'[]'", "'{}'", "null", "'[null, true, false]'"]

NUMBERS = [
    "'0'",
    "'-0'",
    "'-32768'",
    "'32767'",
    "'32768'",
    "'65535'",
    "'-2147483648'",
    "'2147483647'",
    "'4294967295'",
    "'-9223372036854775808'",
    "'9223372036854775807'",
    "'9223372036854775808'",
    "'18446744073709551615'",
    "'18446744073709551616'",
    "'[1, -1, 70000, -70000, 5000000000, 18446744073709551615]'",
    "cast(cast(65535 as unsigned) as json)",
    "json_array(cast(7 as unsigned), cast(40000 as unsigned), cast(3000000000 as unsigned))",
]

DOUBLES = [
    *("'0.1'", "'1e14'", "'1e15'", "'1e16'", "'-1e15'", "'1e-5'", "'1e-14'", "'1e-15'", "'1e-16'"),
    *("'3.0'", "'-0.0'", "'123456789012345680.0'", "'5e-324'", "'1.7976931348623157e308'"),
    *("'2.2250738585072014e-308'", "'-2.5e-300'", "'1e100'", "'1.5e-7'", "'1e22'", "'1e23'"),
    *("'0.30000000000000004'", "'999999999999999.9'", "'1234567890123456.7'", "'2e-44'"),
    *("'-0.000000000000012345678901234567'", "'9007199254740993.0'"),
    "cast(cast(1.1 as float) as json)",
    "cast(cast(1.1 as double) as json)",
]

STRINGS = [
    "'\"\"'",
    "'\"plain\"'",
    "json_array(concat('a', char(0), char(1), char(31), char(127), char(8), char(9)))",
    "json_array('\\n\\r\\f\\b\\t\\\\\\\\ \\\" / \\'')",
    "json_quote('[\"\\\\\"')",
    "json_array('é€😀', '\u2028\u2029', 'ÿ')",
    "json_object('é\\n\"', 1, '', 2, 'aa', 3, 'b', 4, 'ab', 5)",
    *(f"json_array(repeat('x', {length}), 'y')" for length in (7, 8, 9, 127, 128, 129)),
    *(f"json_array(repeat('é\\n', {length}))" for length in (3, 5461, 5462, 70000)),
    "json_array(repeat('x', 16384), repeat(char(1), 20000))",
]

NESTED = [
    "concat(repeat('[', 100), repeat(']', 100))",
    "concat(repeat('{\"a\": [', 50), '1.5', repeat(']}', 50))",
    '\'[[], {}, [[]], [{}], {"a": {}}, {"a": []}]\'',
    "json_object('large', repeat('x', 70000), 'int', 70000, 'n', null, 'neg', -70000, 's', -2)",
    "json_array(repeat('x', 70000), 70000, 3000000000, 1.5, true, json_object('a', 1))",
    "json_array(json_array(repeat('x', 70000), 1), json_array(1), json_object('k', 'v'))",
]

OPAQUE = [
    *(
        f"json_array(cast('{value}' as decimal({size})))"
        for value, size in [
            ("0", "1"),
            ("-9", "1"),
            ("0.5", "1,1"),
            ("-0.05", "5,2"),
            ("-0.0", "5,1"),
            ("12345678901234567890123456789012345.012345678901234567890123456789", "65,30"),
            ("-99999999999999999999999999999999999999999999999999999999999999999", "65,0"),
            ("0.000000000000000000000000000001", "30,30"),
            ("1000000000.000000001", "20,10"),
            ("100000000", "9"),
            ("123.4500", "18,9"),
        ]
    ),
    "json_object('price', 12.30, 'n', 1.0)",
    *(f"cast(date'{day}' as json)" for day in ("2024-02-29", "1000-01-01", "9999-12-31")),
    "cast(cast('0000-00-00' as date) as json)",
    "cast(cast('2024-00-10' as date) as json)",
    *(
        f"cast(cast('{time}' as time(6)) as json)"
        for time in (
            "00:00:00",
            "838:59:59.000000",
            "-838:59:59",
            "-00:00:00.000001",
            "12:13:14.5",
            "-1:2:3.9",
        )
    ),
    *(
        f"cast(cast('{moment}' as datetime(6)) as json)"
        for moment in (
            "1000-01-01 00:00:00",
            "9999-12-31 23:59:59.999999",
            "2024-02-29 12:13:14.000001",
        )
    ),
    "cast(timestamp'2024-02-29 12:13:14.567' as json)",
    "cast(from_unixtime(1700000000.25) as json)",
    "cast(now(3) as json)",
    "json_array(x'00ff', cast('text' as binary), cast(repeat('b', 57) as binary))",
    "json_array(cast(repeat('b', 56) as binary), cast(repeat('b', 200) as binary))",
    "json_array(b'1010', cast(st_geomfromtext('POINT(1 2)') as json))",
    "json_object('b', x'', 'd', 1.10, 'e', 1e0, 'y', cast(2024 as year))",
    "cast(cast(2024 as year) as json)",
]

COLUMNS = {
    "decimal(20, 5)": "-1.5",
    "float": "1.1",
    "double": "1.1",
    "date": "'2024-02-29'",
    "time(3)": "'-10:11:12.345'",
    "datetime(2)": "'2024-02-29 10:11:12.34'",
    "timestamp(4)": "'2024-02-29 10:11:12.3456'",
    "year": "2024",
    "bit(10)": "b'1000000001'",
    "binary(4)": "'ab'",
    "varbinary(4)": "'ab'",
    "blob": "repeat('ab', 100)",
    "enum('x', 'y')": "'y'",
    "set('x', 'y')": "'x,y'",
    "geometry": "st_geomfromtext('LINESTRING(0 0, 1 1)', 4326)",
    "varchar(9) character set latin1": "'é€'",
    "tinyint": "-1",
    "bigint unsigned": "18446744073709551615",
}


JSON = "create table t (id int primary key, j json)"


def require_as_printed(mysql: MySqlStand, database: str, *statements: str) -> None:
    """What these statements write to a column `j` of JSON is in the log as the server prints it."""
    start = head(mysql)
    mysql.execute("set sql_mode = ''", *statements, database=database)
    log = logged(mysql, start, database)[TableName(database, "t")]
    rows = {
        row["id"]: row["j"] for kind in ("insert", "update_postimage") for row in log.rows(kind)
    }
    printed = mysql.rows("select id, cast(j as char character set utf8mb4) from t", database)
    assert rows == dict(printed)


def check(mysql: MySqlStand, database: str, expressions: Sequence[str]) -> None:
    inserts = (f"insert ignore into t values ({i}, {e})" for i, e in enumerate(expressions))
    require_as_printed(mysql, database, JSON, *inserts)


@pytest.mark.since(8, 0, 17)
def test_every_kind_of_value(mysql: MySqlStand, database: str) -> None:
    """Literals, numbers, doubles, strings, nesting and SQL's own values read as printed."""
    check(mysql, database, [*LITERALS, *NUMBERS, *DOUBLES, *STRINGS, *NESTED, *OPAQUE])


@pytest.mark.since(8, 0, 26)
def test_an_empty_document(mysql: MySqlStand, database: str) -> None:
    """A NOT NULL column without a value holds a document of no bytes, printed as null."""
    made = JSON.replace("json", "json not null")
    require_as_printed(mysql, database, made, "insert into t (id) values (1)")
    assert mysql.rows("select length(j), cast(j as char) from t", database) == [(4, "null")]


@pytest.mark.since(8, 0, 26)
def test_every_type_of_column(mysql: MySqlStand, database: str) -> None:
    """A document made of a column of each type reads as printed."""
    columns = ", ".join(f"c{i} {kind} null" for i, kind in enumerate(COLUMNS))
    mysql.execute(
        f"create table s ({columns})",
        f"insert into s values ({', '.join(COLUMNS.values())})",
        database=database,
    )
    made = [f"(select json_array(c{i}) from s)" for i in range(len(COLUMNS))]
    check(mysql, database, [*made, *(f"(select cast(c{i} as json) from s)" for i in range(8))])


@pytest.mark.since(8, 0, 26)
def test_doubles_of_every_size(mysql: MySqlStand, database: str) -> None:
    """Doubles of all exponents and of few digits read as printed."""
    chance = random.Random(7)
    bits = [chance.getrandbits(63) for _ in range(4000)]
    doubles = [d for (d,) in struct.iter_unpack("<d", struct.pack(f"<{len(bits)}Q", *bits))]
    doubles = [d for d in doubles if d - d == 0]
    doubles += [chance.randrange(-(10**9), 10**9) / 10 ** chance.randrange(20) for _ in bits]
    doubles += [2.0**power for power in range(-1074, 1024)]
    check(mysql, database, [f"'[{', '.join(map(repr, doubles))}]'"])


@pytest.mark.since(8, 0, 26)
def test_a_document_changed_in_place(mysql: MySqlStand, database: str) -> None:
    """A document with the holes that an update in place leaves reads as printed."""
    base = """'{"a": "some long text here", "b": [1, 2, 3], "c": {"d": "more text"}}'"""
    change = "json_remove(json_set(j, '$.a', 'x', '$.c.d', 'y'), '$.b[0]')"
    inserted = f"insert into t values (1, {base})"
    updated = f"update t set j = {change}"
    require_as_printed(mysql, database, JSON, inserted, updated, "insert into t select 2, j from t")
