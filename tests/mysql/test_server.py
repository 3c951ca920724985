"""The room's errors, facts and dumps on a real server; and short questions, which share a session
while they follow each other, and never another's."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import certifi
import pytest
from pymysql import OperationalError

from lockstep.pipeline.binlog.stream.framing import FIRST_OFFSET
from lockstep.pipeline.binlog.stream.intake import dump_events
from lockstep.pipeline.values.errors import (
    AccessDenied,
    HostUnknown,
    LockstepError,
    NotAnEventBoundary,
    PositionPurged,
    PrivilegeMissing,
    SourceRefused,
    SourceUnavailable,
    StartUnreachable,
    TlsRefused,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql import connection
from lockstep.resources.mysql.connection import ConnectionSettings
from lockstep.resources.mysql.receiving import MySqlDump, offset_command, wide_offset_command
from lockstep.resources.mysql.server import MySqlServer, QuerySessions
from tests.fix_mysql import MySqlStand
from tests.mysql.chunked import until
from tests.mysql.reading import changes, server, settings


def refusal(asked: MySqlServer) -> LockstepError:
    with pytest.raises(LockstepError) as caught:
        asked.facts()
    return caught.value


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"password": "wrong-but-secret"}, AccessDenied),
        ({"user": "nobody"}, AccessDenied),
        ({"port": 1}, SourceUnavailable),
        ({"host": "no-such-host.invalid"}, HostUnknown),
        ({"host": "no..host"}, HostUnknown),
        ({"tls": "verify"}, TlsRefused),
    ],
    ids=["password", "user", "port", "host", "no host's name", "tls"],
)
def test_no_connection_is_one_clear_error(
    mysql: MySqlStand, changes: dict[str, object], kind: type[LockstepError]
) -> None:
    """Each has its own type and a cure, and none shows a secret."""
    error = refusal(MySqlServer(settings(mysql, **changes)))
    assert type(error) is kind
    assert error.hint
    assert "wrong-but-secret" not in f"{error} {error.hint} {error.__cause__}"


def test_a_connection_that_is_closed_already_is_told_so(mysql: MySqlStand) -> None:
    """The driver has no text for it: a first answer was lost, and something else is asked."""
    chosen = settings(mysql)
    with (
        pytest.raises(SourceUnavailable, match="cannot be reached: the connection was closed"),
        connection.connect(chosen) as session,
        session.cursor() as cursor,
    ):
        connection.shut_down_socket(session)
        with suppress(OperationalError):
            cursor.execute("select 1")
        cursor.execute("select 1")


def test_a_node_that_is_not_ready_is_asked_again() -> None:
    """A node of a Galera cluster refuses every statement by this number until it has all rows."""
    error = OperationalError(1047, "WSREP has not yet prepared node for application use")
    address = ConnectionSettings("localhost", 3306, "reader", "")
    with pytest.raises(SourceUnavailable), connection.translate_errors(address):
        raise error


def test_a_server_that_stops_in_the_handshake_is_asked_again(mysql: MySqlStand) -> None:
    """Its certificate is not to blame, nor what the settings say of TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def stop() -> None:
            client, _ = listening.accept()
            with client, socket.create_connection((mysql.host, mysql.port)) as at_server:
                client.sendall(at_server.recv(4096))  # the greeting, which offers TLS
                client.recv(4096)
                client.shutdown(socket.SHUT_WR)
                while client.recv(4096):
                    continue

        thread = threading.Thread(target=stop)
        thread.start()
        port = listening.getsockname()[1]
        error = refusal(MySqlServer(settings(mysql, port=port, tls="required")))
        thread.join()
    assert type(error) is SourceUnavailable
    assert "EOF" in error.message


def test_a_certificate_that_a_server_made_for_itself(mysql: MySqlStand) -> None:
    """The message says so, in words instead of OpenSSL's."""
    error = refusal(MySqlServer(settings(mysql, tls="verify")))
    assert str(error) == (
        f"no secured connection to {mysql.host}:{mysql.port} with tls = 'verify': no authority "
        "that this machine trusts has signed the server's certificate; a server makes such a "
        "certificate for itself at its first start"
    )


def test_a_certificate_for_another_name(mysql: MySqlStand) -> None:
    """Its CA is known: that is not what is missing. An unknown CA is named as what was given."""
    ((folder,),) = mysql.rows("select @@datadir")
    error = refusal(MySqlServer(settings(mysql, tls="verify", tls_ca=f"{folder}ca.pem")))
    assert isinstance(error, TlsRefused)
    assert error.message.endswith("the server's certificate is not for the name or address in host")
    assert "tls_ca" not in error.hint
    assert "set host to a name that the certificate has" in error.hint
    error = refusal(MySqlServer(settings(mysql, tls="verify", tls_ca=certifi.where())))
    assert f"set tls_ca, which is {certifi.where()}, to the server's CA" in error.hint


def test_an_account_that_requires_tls(mysql: MySqlStand) -> None:
    """MySQL calls its password wrong: the hint names TLS, unless the connection was encrypted."""
    name = mysql.fresh_name()
    mysql.execute(f"create user {name} identified by 'x' require ssl")
    words = "or the account requires TLS: set tls ="
    for tls, password, is_named in (("off", "x", True), ("required", "wrong", False)):
        error = refusal(MySqlServer(settings(mysql, user=name, password=password, tls=tls)))
        assert (type(error), words in error.hint) == (AccessDenied, is_named)
    mysql.execute(f"drop user {name}")


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ("password expire", AccessDenied, "password expire never"),
        ("account lock", AccessDenied, "account unlock"),
        ("with max_queries_per_hour 1", SourceUnavailable, "raise that limit of the account"),
    ],
)
def test_an_account_that_is_mended_at_the_server(
    mysql: MySqlStand, change: str, kind: type[LockstepError], words: str
) -> None:
    """lockstep.toml is right: the hint has the statement to type there."""
    name = mysql.fresh_name()
    mysql.execute(f"create user {name} identified by 'x' {change}")
    error = refusal(MySqlServer(settings(mysql, user=name, password="x", tls="required")))
    assert type(error) is kind
    assert words in error.hint
    mysql.execute(f"drop user {name}")


def test_a_ca_that_is_a_folder_is_named(mysql: MySqlStand, tmp_path: Path) -> None:
    """The server is not asked, so it is not to blame."""
    error = refusal(MySqlServer(settings(mysql, tls="verify", tls_ca=str(tmp_path))))
    assert isinstance(error, TlsRefused)
    assert f"set tls_ca, which is {tmp_path}, to the server's CA" in error.hint


def test_certificates_are_read_once(tmp_path: Path) -> None:
    """For each file of them as it is: whoever renews it restarts nothing."""
    file = Path(shutil.copy(certifi.where(), tmp_path))
    given = ConnectionSettings("127.0.0.1", 1, "nobody", "", tls_ca=str(file))
    first, again = (connection._tls_options(given)["ssl"] for _ in range(2))
    os.utime(file, (1, 1))
    assert (again is first, connection._tls_options(given)["ssl"] is first) == (True, False)


def test_a_missing_privilege_says_what_to_grant(mysql: MySqlStand) -> None:
    """Without REPLICATION CLIENT the server does not show its logs."""
    mysql.execute("create user bare identified by 'x'", "grant select on *.* to bare")
    error = refusal(MySqlServer(settings(mysql, user="bare", password="x")))
    assert isinstance(error, PrivilegeMissing)
    assert error.hint.startswith(
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'bare'@'%'; "
    )


def test_a_dump_needs_replication_slave(mysql: MySqlStand) -> None:
    """The other privilege is asked for by the dump."""
    mysql.execute("create user looks identified by 'x'", "grant replication client on *.* to looks")
    source = MySqlServer(settings(mysql, user="looks", password="x"))
    facts = source.facts()
    with pytest.raises(PrivilegeMissing, match="REPLICATION SLAVE"):
        list(dump_events(source.dump(Coordinates(facts.binlogs[0].file, 4))))


def test_facts_are_the_servers(mysql: MySqlStand) -> None:
    """Identity, GTIDs, logs and head as SQL shows them."""
    facts = server(mysql).facts()
    ((uuid, executed),) = mysql.rows("select @@server_uuid, @@global.gtid_executed")
    assert (facts.server_uuid, facts.gtid_executed) == (uuid, executed.replace("\n", ""))
    assert (facts.flavour, facts.gtid_mode) == ("mysql", "ON")
    assert facts.head == Coordinates(facts.binlogs[-1].file, facts.binlogs[-1].size)
    assert facts.settings["binlog_row_metadata"] == "FULL"


@pytest.mark.parametrize(
    ("offset", "number", "kind"),
    [(4, 99, PositionPurged), (1 << 30, None, StartUnreachable), (6, None, LockstepError)],
    ids=["no such file", "beyond the end", "inside an event"],
)
def test_a_refused_dump_is_a_typed_error(
    mysql: MySqlStand, offset: int, number: int | None, kind: type[LockstepError]
) -> None:
    """Errno 1236 is told apart by what it says."""
    source = server(mysql)
    head = source.facts().head.file
    file = head if number is None else LogFile(head.base, number)
    with pytest.raises(kind) as caught:
        list(dump_events(source.dump(Coordinates(file, offset))))
    if offset == 6:
        assert isinstance(caught.value, NotAnEventBoundary | StartUnreachable)


def test_an_offset_beyond_four_gib_is_never_truncated(mysql: MySqlStand) -> None:
    """The old command has 32 bits; the one with GTIDs takes 64, and the server looks there."""
    file = server(mysql).facts().head.file
    with pytest.raises(StartUnreachable):
        list(dump_events(server(mysql).dump(Coordinates(file, (1 << 32) + 4))))


def test_mariadb_dumps_a_file_beyond_four_gib_from_its_beginning(mariadb: MySqlStand) -> None:
    """It has GTIDs, but not the command that takes 64 bits."""
    source = server(mariadb)
    file = source.facts().head.file
    dump = source.dump(Coordinates(file, (1 << 32) + 4))
    assert dump.begins == Coordinates(file, FIRST_OFFSET)
    assert list(dump_events(dump))
    dump.close()


def test_a_dump_by_wide_offset_is_the_same_dump(mysql: MySqlStand, database: str) -> None:
    """COM_BINLOG_DUMP_GTID with a file, an offset and no set leaves nothing out."""
    start = server(mysql).facts().head
    mysql.execute(f"create table {database}.t (id int primary key)")
    mysql.execute(*(f"insert into {database}.t values ({n})" for n in range(3)))
    found = []
    for command in (offset_command(start), wide_offset_command(start)):
        dump = MySqlDump(settings(mysql), *command, begins=start)
        found.append([event for event in dump_events(dump) if event[4] not in (4, 15)])
        dump.close()
    assert found[0] == found[1]
    assert len(found[0]) == 2 + 3 * 5


@pytest.mark.since(8, 3)
def test_a_dump_after_a_set_leaves_that_set_out(mysql: MySqlStand, database: str) -> None:
    """Tagged GTIDs are named in the set's own coding."""
    mysql.execute(f"create table {database}.t (id int primary key)")
    with mysql.connect() as connection, connection.cursor() as cursor:
        for tag in ("AUTOMATIC:blue", "AUTOMATIC", "AUTOMATIC:red"):
            cursor.execute(f"set gtid_next = '{tag}'")
            cursor.execute(f"insert into {database}.t select count(*) from {database}.t")
        cursor.execute("set gtid_next = 'AUTOMATIC'")
    source = server(mysql)
    executed = GtidSet.parse(source.facts().gtid_executed)
    mysql.execute(f"insert into {database}.t values (100)")
    dump = source.dump_after(executed)
    kinds = [event[4] for event in dump_events(dump) if event[4] in (16, 33, 42)]
    dump.close()
    assert kinds == [33, 16]


def test_big_events_arrive_whole(mysql: MySqlStand, database: str) -> None:
    """A row of 20 MB comes in several packets and is one event."""
    source = server(mysql)
    start = source.facts().head
    mysql.execute(
        f"create table {database}.t (id int primary key, v longblob)",
        f"insert into {database}.t values (1, repeat(x'ab', 20 * 1024 * 1024))",
    )
    (found,) = changes(source, start, TableName(database, "t"))
    assert found[2]["v"] == b"\xab" * (20 * 1024 * 1024)


@pytest.fixture
def asking(mysql: MySqlStand) -> Iterator[QuerySessions]:
    made = QuerySessions(lambda: settings(mysql))
    yield made
    made.close()


def asked(asking: QuerySessions, question: str = "select connection_id()") -> int:
    """What the server answers; by default, in which session."""
    with asking.cursor() as cursor:
        cursor.execute(question)
        ((answer,),) = cursor.fetchall()
        return int(answer)


def sessions(mysql: MySqlStand) -> set[int]:
    return {row[0] for row in mysql.rows("select id from information_schema.processlist")}


def test_questions_share_a_session_while_the_server_keeps_it(
    mysql: MySqlStand, asking: QuerySessions
) -> None:
    """One that it ended is noticed before it is asked; nobody has to ask twice."""
    first = asked(asking)
    assert asked(asking) == first
    mysql.execute(f"kill {first}")
    until(lambda: first not in sessions(mysql))
    second = asked(asking)
    assert asked(asking) == second != first
    asking.close()
    until(lambda: second not in sessions(mysql))
    assert asked(asking) not in (first, second)


def test_a_session_that_was_idle_for_long_is_not_used_again(
    asking: QuerySessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Privileges of before would hold in it."""
    first = asked(asking)
    monkeypatch.setattr("lockstep.resources.mysql.server.MAX_IDLE_SECONDS", 0.0)
    assert asked(asking) != first


def test_who_asks_has_the_session_alone(mysql: MySqlStand, asking: QuerySessions) -> None:
    """A second one, as of another thread, has its own; one of both is kept."""
    with asking.cursor() as one, asking.cursor() as other:
        ids = set()
        for cursor in (one, other):
            cursor.execute("select connection_id()")
            ids |= {row[0] for row in cursor.fetchall()}
    assert len(ids) == 2
    until(lambda: len(ids & sessions(mysql)) == 1)
    assert ids & sessions(mysql) == {asked(asking)}


def test_a_session_in_which_a_question_failed_is_left(asking: QuerySessions) -> None:
    """Nobody knows what of its answer is still to come."""
    first = asked(asking)
    with pytest.raises(SourceRefused):
        asked(asking, "select nothing")
    assert asked(asking) != first


def test_none_is_kept_beside_a_read(mysql: MySqlStand, database: str) -> None:
    """An account may be allowed as many sessions as a read needs."""
    mysql.execute("create table t (id int primary key)", database=database)
    source = server(mysql)
    (schema,) = source.baseline([TableName(database, "t")]).tables
    source.facts()
    kept = asked(source._query_sessions)
    assert kept in sessions(mysql)
    with source.snapshot(schema):
        until(lambda: kept not in sessions(mysql))
