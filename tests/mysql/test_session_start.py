"""Every session of ours has the same variables, whatever the server gives to new sessions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pymysql.cursors import Cursor
from pymysql.err import DatabaseError

from lockstep.pipeline.check.log import set_global_hint
from lockstep.pipeline.snapshot.condition import read_condition
from lockstep.pipeline.values.errors import LockstepError, ServerSettings
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql import connection
from lockstep.resources.mysql.connection import SESSION_VARIABLES, connect
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import rows_read, server, settings
from tests.positions.unusual_variables import holding, unusual_values

KNOWN = ("mysql", "mariadb")
OTHERS = ("mysql80", "mysql57", "mariadb11")
ALL = (*KNOWN, *(pytest.param(name, marks=pytest.mark.soak) for name in OTHERS))


@pytest.fixture
def stand(request: pytest.FixtureRequest) -> MySqlStand:
    """The server that a test names."""
    found: MySqlStand = request.getfixturevalue(request.param)
    return found


@pytest.fixture(autouse=True)
def unlearned() -> Iterator[None]:
    """Nothing is known of any server, and nothing is learned for other tests."""
    connection._session_start.cache_clear()
    yield
    connection._session_start.cache_clear()


def ours(stand: MySqlStand) -> dict[str, str]:
    """The variables of a session of ours, those of the table alone."""
    with connect(settings(stand)) as opened, opened.cursor() as cursor:
        return wanted(cursor)


def wanted(cursor: Cursor) -> dict[str, str]:
    cursor.execute("show session variables")
    return {name: value for name, value in cursor.fetchall() if name in SESSION_VARIABLES}


@pytest.mark.parametrize("stand", ALL, indirect=True)
def test_a_session_is_the_same_beside_any_global_variables(stand: MySqlStand) -> None:
    """All at once, each with a value that it does not have."""
    plain = ours(stand)
    named = unusual_values(stand, {*SESSION_VARIABLES, "init_connect"})
    unusual = {one.name: one for one in named}
    connection._session_start.cache_clear()
    with holding(stand, list(unusual.values())):
        assert ours(stand) == plain
    assert len(unusual) > len(SESSION_VARIABLES) / 2


@pytest.mark.parametrize("stand", KNOWN, indirect=True)
def test_a_session_begins_in_one_round_trip(stand: MySqlStand) -> None:
    """Once the server was asked for its variables; a dump's own are set with them."""
    for expected in (3, 1, 1):
        with (
            connect(settings(stand), extra_assignments=", @a = 1") as opened,
            opened.cursor() as cursor,
        ):
            cursor.execute("show session status like 'questions'")
            [(_, asked)] = cursor.fetchall()
            assert int(asked) - 1 == expected


@pytest.mark.parametrize("stand", KNOWN, indirect=True)
def test_what_init_connect_began_is_over(stand: MySqlStand) -> None:
    """A transaction, no autocommit, other variables; an error of it is named."""
    [(before,)] = stand.rows("select @@global.init_connect")
    begins = "set autocommit = 0, sql_select_limit = 0, sql_mode = 'ansi'"
    try:
        for command in (begins, "start transaction with consistent snapshot"):
            stand.execute(f'set global init_connect = "{command}"')
            with connect(settings(stand)) as opened, opened.cursor() as cursor:
                cursor.execute('select "x" from (select 1 union select 2) y')
                assert cursor.fetchall() == (("x",), ("x",))
                assert not opened.server_status & 1  # type: ignore[attr-defined]
        stand.execute("set global init_connect = 'set no_such_variable = 1'")
        with pytest.raises(LockstepError, match="init_connect"):
            ours(stand)
    finally:
        stand.execute(f"set global init_connect = '{before}'")


@pytest.mark.parametrize("stand", KNOWN, indirect=True)
def test_packets_too_small_for_statements_are_refused(stand: MySqlStand) -> None:
    """No session may set that for itself."""
    [(before,)] = stand.rows("select @@global.max_allowed_packet")
    stand.execute("set global max_allowed_packet = 2048")
    try:
        with pytest.raises(ServerSettings, match="max_allowed_packet is 2048") as told:
            ours(stand)
    finally:
        stand.execute(f"set global max_allowed_packet = {before}")
    assert told.value.hint == set_global_hint("max_allowed_packet", "67108864")


def test_packets_too_small_for_the_statement_that_was_composed_are_refused(
    mysql: MySqlStand,
) -> None:
    """The server closes the connection of a session that sends it."""
    ours(mysql)
    [(packet, buffer)] = mysql.rows(
        "select @@global.max_allowed_packet, @@global.net_buffer_length"
    )
    mysql.execute("set global net_buffer_length = 1024", "set global max_allowed_packet = 1024")
    try:
        more = f", @a = '{'a' * 1000}'"
        with (
            pytest.raises(ServerSettings, match="max_allowed_packet is less than"),
            connect(settings(mysql), extra_assignments=more),
        ):
            pytest.fail("it was sent")
    finally:
        mysql.execute(
            f"set global max_allowed_packet = {packet}", f"set global net_buffer_length = {buffer}"
        )


def test_a_variable_that_an_account_may_not_set_is_named(
    mysql: MySqlStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it has another value; one that is as it should be is left alone."""
    monkeypatch.setitem(connection.SESSION_VARIABLES, "sql_require_primary_key", "0")
    assert ours(mysql)["sql_require_primary_key"] == "OFF"
    connection._session_start.cache_clear()
    mysql.execute("set global sql_require_primary_key = on")
    try:
        with pytest.raises(ServerSettings, match="sql_require_primary_key is 'ON'") as told:
            ours(mysql)
    finally:
        mysql.execute("set global sql_require_primary_key = off")
    assert told.value.hint == set_global_hint("sql_require_primary_key", "0")


@pytest.mark.parametrize("stand", KNOWN, indirect=True)
def test_rows_of_a_condition_are_estimated(stand: MySqlStand) -> None:
    """Whatever form EXPLAIN has by default."""
    with stand.own_database() as name:
        stand.execute(
            "create table t (id int primary key)",
            "insert into t values (1), (2), (3), (4), (5)",
            database=name,
        )
        condition = read_condition("id > 1")
        assert server(stand).estimated_rows_where(TableName(name, "t"), condition) > 1


@pytest.mark.parametrize("stand", KNOWN, indirect=True)
def test_a_virtual_column_is_read_as_everybody_reads_it(stand: MySqlStand) -> None:
    """What its expression comes to may depend on variables of whoever reads: on some of the words
    of sql_mode, and on the language of names of days."""
    with stand.own_database() as name:
        virtual = (
            "y int as (year(cast(t as date))) virtual, "
            "s datetime as (cast(m as datetime)) virtual, "
            "w varchar(20) as (date_format(m, '%W')) virtual"
        )
        stand.execute(
            "set sql_mode = ''",
            f"create table t (id int primary key, t varchar(20), m datetime(6), {virtual})",
            "insert into t (id, t, m) values (1, '2020-00-01', '2023-01-01 00:00:00.9')",
            database=name,
        )
        shown = set()
        for mode in ("", "NO_ZERO_IN_DATE", "TIME_TRUNCATE_FRACTIONAL", "TIME_ROUND_FRACTIONAL"):
            shown |= {_read_alike(stand, name, mode, names="en_US")}
        assert _read_alike(stand, name, "", names="pl_PL") not in shown
        assert len(shown) > 2


def _read_alike(stand: MySqlStand, name: str, mode: str, *, names: str) -> str:
    """What a client reads under these global variables, and we do too."""
    before = stand.rows("select @@global.sql_mode, @@global.lc_time_names")[0]
    with stand.connect() as setter, setter.cursor() as cursor:
        try:
            cursor.execute("set global sql_mode = %s", (mode,))
        except DatabaseError:
            return ""  # the other product's word
        try:
            cursor.execute("set global lc_time_names = %s", (names,))
            theirs = [repr(row) for row in stand.rows("select y, s, w from t", name)]
            connection._session_start.cache_clear()
            source = server(stand)
            with rows_read(source, source.structure(TableName(name, "t"))) as batches:
                rows = [row for batch in batches for row in batch.to_pylist()]
        finally:
            cursor.execute("set global sql_mode = %s, global lc_time_names = %s", before)
    assert [repr((row["y"], row["s"], row["w"])) for row in rows] == theirs
    return theirs[0]
