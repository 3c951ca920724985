"""What mysql-replication 1.0.17 says of values, where that is not what MySQL says.

Each test shows one fault, beside what the engine says. One that fails tells that a version
mended it: its rule then goes from `oracle` or `oracle_faults` too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any, Final

import pytest

from pipeline.position import Coordinates
from pipeline.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.oracle import heard
from tests.mysql.reading import changes, server


@dataclass(frozen=True, slots=True)
class Fault:
    """A column and a value of it; what it says, what the engine says."""

    name: str
    column: str
    value: str
    said: Any
    ours: Any


FAULTS: Final = (
    Fault(
        "a zero TIMESTAMP is the epoch",
        "timestamp null",
        "'0000-00-00 00:00:00'",
        datetime(1970, 1, 1),
        None,
    ),
    Fault("the year 0000 is 1900", "year", "0", 1900, 0),
    Fault(
        "the fraction of a negative TIME is its complement",
        "time(2)",
        "'-00:00:01.25'",
        -timedelta(seconds=1, milliseconds=750),
        "-00:00:01.25",
    ),
    Fault("a SET has no order", "set('b','a')", "'a,b'", {"a", "b"}, "b,a"),
    Fault("BINARY ends before its zeros", "binary(4)", "x'61000000'", b"a", b"a\0\0\0"),
    Fault("no bytes are text", "varbinary(4)", "''", "", b""),
    Fault("JSON is made of bytes", "json", '\'{"a": ["b"]}\'', {b"a": [b"b"]}, '{"a": ["b"]}'),
    Fault("JSON's null is None", "json", "'null'", None, "null"),
    Fault(
        "bytes in JSON are text with the undecodable left out",
        "json",
        "cast(x'c361ff' as json)",
        "a",
        '"base64:type15:w2H/"',
    ),
    Fault(
        "utf16 is read from the wrong end",
        "varchar(5) character set utf16",
        "'AZ'",
        "\u4100\u5a00",
        "AZ",
    ),
    Fault(
        "character sets that Python does not know stay bytes",
        "varchar(5) character set keybcs2",
        "'\u010d'",
        b"\x87",
        "\u010d",
    ),
    Fault(
        "members that are not UTF-8 are empty",
        "enum('\u00e4','b') character set latin1",
        "'\u00e4'",
        "",
        "\u00e4",
    ),
    Fault(
        "members are UTF-8, whatever they are",
        "enum('a') character set ucs2",
        "'a'",
        "\0a",
        "a",
    ),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_value_is_another(mysql: MySqlStand, database: str, fault: Fault) -> None:
    """Its value is not the server's."""
    table, start = _filled(mysql, database, fault.column, fault.value)
    said = [image["v"] for _, _, image in heard(mysql, start)]
    ours = [image["v"] for _, _, image in changes(server(mysql), start, table)]
    assert (said, ours) == ([fault.said], [fault.ours])


UNREADABLE: Final = {
    "utf32": ("varchar(5) character set utf32", "'a'", UnicodeDecodeError, "code point"),
    "codes that Python's cp1252 lacks": (
        "varchar(5) character set latin1",
        "_binary x'81'",
        UnicodeDecodeError,
        "undefined",
    ),
    "a VECTOR, in its table map": (
        "vector(1)",
        "to_vector('[1]')",
        ValueError,
        "not a valid MetadataFieldType",
    ),
}


@pytest.mark.parametrize(
    ("column", "value", "error", "words"),
    [
        pytest.param(*case, id=name, marks=pytest.mark.since(9, 0) if "VECTOR" in name else ())
        for name, case in UNREADABLE.items()
    ],
)
def test_a_value_is_refused(
    mysql: MySqlStand, database: str, column: str, value: str, error: type[ValueError], words: str
) -> None:
    """It raises what Python raises, and whoever reads on loses the rows."""
    table, start = _filled(mysql, database, column, value)
    with pytest.raises(error, match=words):
        list(heard(mysql, start))
    assert len(list(changes(server(mysql), start, table))) == 1


def test_a_time_in_json_has_no_sign(mysql: MySqlStand, database: str) -> None:
    """-12:34:56 in a document is 12:34:56."""
    value = "cast(time'-12:34:56' as json)"
    table, start = _filled(mysql, database, "json", value)
    assert [image["v"] for _, _, image in heard(mysql, start)] == [time(12, 34, 56)]
    ours = [image["v"] for _, _, image in changes(server(mysql), start, table)]
    assert ours == ['"-12:34:56.000000"']


@pytest.mark.parametrize("value", ["0000-00-00", "2024-00-10", "2024-10-00", "0000-01-01"])
@pytest.mark.parametrize("column", ["date", "datetime"])
def test_what_is_no_date_is_none(mysql: MySqlStand, database: str, column: str, value: str) -> None:
    """No fault: zero and partial dates are NULL by our policy too."""
    table, start = _filled(mysql, database, column, f"'{value}'")
    said = [image["v"] for _, _, image in heard(mysql, start)]
    ours = [image["v"] for _, _, image in changes(server(mysql), start, table)]
    assert (said, ours) == ([None], [None])


def test_without_metadata_names_and_signs_are_lost(mysql: MySqlStand, database: str) -> None:
    """Logged with binlog_row_metadata=MINIMAL a column is UNKNOWN_COL0, and its set empty."""
    mysql.execute("create table t (v set('a') primary key)", database=database)
    start = head(mysql)
    mysql.execute("set global binlog_row_metadata = minimal")
    try:
        mysql.execute("insert into t values ('a')", database=database)
    finally:
        mysql.execute("set global binlog_row_metadata = full")
    (image,) = [image for _, _, image in heard(mysql, start)]
    assert image == {"UNKNOWN_COL0": None}


def _filled(
    mysql: MySqlStand, database: str, column: str, value: str
) -> tuple[TableName, Coordinates]:
    """A table of one row with such a value in `v`, and where the log tells of it."""
    start = head(mysql)
    with mysql.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("set sql_mode = '', time_zone = '+00:00'")
        cursor.execute(f"create table t (id int primary key, v {column})")
        cursor.execute(f"insert into t values (1, {value})")
    return TableName(database, "t"), start
