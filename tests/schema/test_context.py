"""A QUERY event's status variables, by hand and as real servers write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lockstep.pipeline.schema.context import (
    ANSI_QUOTES,
    NO_BACKSLASH_ESCAPES,
    ServerDialect,
    StatementContext,
    read_context,
    zone_of,
)
from lockstep.pipeline.values.errors import DamagedEvent, UnsupportedEvent
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.schema.logged_items import Logged, facts_of, logged

_MYSQL = ServerDialect(90704, "mysql")
_MARIADB = ServerDialect(101118, "mariadb")


def _read(status: str, facts: ServerDialect = _MYSQL) -> StatementContext:
    return read_context(bytes.fromhex(status.replace(" ", "")), facts, "shop")


def test_all_of_mysql() -> None:
    """Variables that say what a statement means are read, and the others stepped over."""
    context = _read(
        "00 00000000"  # flags2
        "01 0400100000000000"  # sql_mode
        "06 03 737464"  # catalog
        "03 01000100"  # auto_increment
        "04 0800 ff00 2f00"  # client, connection, server
        "05 06 2b30303a3030"  # time zone
        "07 0000 08 0800 09 0000000000000000 0a 00000000"
        "0b 01 61 01 62"  # invoker
        "0c 02 6100 6200"  # updated databases
        "0d 40e201"  # microseconds
        "0e 0000000000000000 0f 0000000000000000"
        "10 00"  # explicit defaults
        "11 0100000000000000"  # xid
        "12 2d00"  # default collation for utf8mb4
        "13 00 14 00"
        "15 01"  # triggers that cascades fire
    )
    expected = StatementContext(
        _MYSQL,
        "shop",
        1 << 2 | 1 << 20,
        "latin1",
        "utf8mb4_0900_ai_ci",
        "latin1_bin",
        "utf8mb4_general_ci",
        {},
        explicit_timestamps=False,
        time_zone="+00:00",
        microseconds=123456,
        database_collation="latin1_swedish_ci",
        ddl_xid=True,
    )
    assert expected == context
    assert context.has_mode(ANSI_QUOTES) and context.has_mode(NO_BACKSLASH_ESCAPES)


def test_too_many_databases() -> None:
    """254 databases stand for too many to name, and none is."""
    assert _read("0c fe 0d 010000").microseconds == 1


def test_all_of_mariadb() -> None:
    """MariaDB has codes of its own, and its flags in another place."""
    context = _read(
        "00 00000001 80 40e201 81 0100000000000000 82 04 050000000000000083 01 2d00 e800",
        _MARIADB,
    )
    assert context.explicit_timestamps
    assert (context.microseconds, context.alter_phase) == (123456, "commit")
    assert dict(context.charset_collations) == {"utf8mb4": "utf8mb4_swedish_ci"}


@pytest.mark.parametrize(
    ("flags", "phase"), [("00", None), ("02", "start"), ("08 0000000000000000", "rollback")]
)
def test_two_phases(flags: str, phase: str | None) -> None:
    """An ALTER in two phases says which it is."""
    assert phase == _read(f"82 {flags}", _MARIADB).alter_phase


def test_nothing() -> None:
    """Without variables a server's own defaults hold."""
    assert _read("").explicit_timestamps
    for explicit in (False, True):
        facts = ServerDialect(50744, "mysql", explicit_timestamps=explicit)
        assert read_context(b"", facts).explicit_timestamps is explicit
    assert read_context(b"", _MARIADB).utf8mb4_collation == "utf8mb4_general_ci"


@pytest.mark.parametrize("status", ["63", "0d 000000 63 00", "16 00"])
def test_unknown_codes(status: str) -> None:
    """A code that nobody knows stops the reading: what is behind it is not guessed."""
    with pytest.raises(UnsupportedEvent):
        _read(status)


def test_unknown_collations() -> None:
    """A collation that nobody knows stops the reading too."""
    with pytest.raises(UnsupportedEvent):
        _read("04 0800 0800 fe03")


@pytest.mark.parametrize("status", ["01 00", "05 06 2b", "0c 01 61", "12", "82 04 00"])
def test_cut_off(status: str) -> None:
    """Variables that end within a value are damage."""
    with pytest.raises(DamagedEvent):
        _read(status, _MARIADB)


_SESSION = (
    "set binlog_format = 'STATEMENT'",
    "set time_zone = '+02:00', lc_time_names = 'en_GB', timestamp = 1700000000.123456",
    "set auto_increment_increment = 3, auto_increment_offset = 2, foreign_key_checks = 0",
)
_LOGGED = (
    "create table p (id int auto_increment primary key, v timestamp(6) null)",
    "create table c (id int primary key, p int, foreign key (p) references p (id) "
    "on delete cascade)",
    "insert into p (v) values (now(6))",
    "update p, c set p.v = null, c.p = null",
    "delete from p",
)


@pytest.mark.parametrize("name", ["mysql", "mysql80", "mysql57", "mariadb", "mariadb11"])
def test_statements_of_a_real_session(request: pytest.FixtureRequest, name: str) -> None:
    """What a session in statement format logs is read to the end of its status variables."""
    stand: MySqlStand = request.getfixturevalue(name)
    with stand.own_database() as database:
        start = head(stand)
        stand.execute(*_SESSION, *_LOGGED, database=database)
        found = [one for one in logged(stand, start, facts_of(stand)) if isinstance(one, Logged)]
    assert tuple(one.text for one in found) == _LOGGED
    assert found[2].context.microseconds == 123456


# -- zones ----------------------------------------------------------------------------------

MOMENT = datetime(2024, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "minutes"),
    [
        ("UTC", 0),
        ("+02:00", 120),
        ("-3:30", -210),
        ("+14:00", 840),
        ("America/St_Johns", -150),
    ],
)
def test_a_name_that_tells_its_zone(name: str, minutes: int) -> None:
    """An offset, or a name of the time zone database with what held at the moment."""
    zone = zone_of(name)
    assert zone is not None
    assert MOMENT.astimezone(zone).utcoffset() == timedelta(minutes=minutes)


@pytest.mark.parametrize("name", ["", "SYSTEM", "Nowhere/Town", "../etc/passwd", "MET+1"])
def test_a_name_that_does_not(name: str) -> None:
    """The server's own zone is nobody's to guess, and no file outside is opened."""
    assert zone_of(name) is None
