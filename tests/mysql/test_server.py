"""The room's errors, facts and dumps on a real server."""

from __future__ import annotations

import pytest

from pipeline.errors import (
    AccessDenied,
    HostUnknown,
    LockstepError,
    NotAnEventBoundary,
    PositionPurged,
    PrivilegeMissing,
    SourceUnavailable,
    StartUnreachable,
    TlsRefused,
)
from pipeline.position import Coordinates, LogFile
from resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server, settings, transactions


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
        ({"tls": "verify"}, TlsRefused),
    ],
    ids=["password", "user", "port", "host", "tls"],
)
def test_no_connection_is_one_clear_error(
    mysql: MySqlStand, changes: dict[str, object], kind: type[LockstepError]
) -> None:
    """Each has its own type and a cure, and none shows a secret."""
    error = refusal(MySqlServer(settings(mysql, **changes)))
    assert type(error) is kind
    assert error.hint
    assert "wrong-but-secret" not in f"{error} {error.hint} {error.__cause__}"


def test_an_encrypted_connection(mysql: MySqlStand) -> None:
    """`required` encrypts without asking who it is."""
    assert MySqlServer(settings(mysql, tls="required")).facts().server_uuid


def test_a_missing_privilege_says_what_to_grant(mysql: MySqlStand) -> None:
    """Without REPLICATION CLIENT the server does not show its logs."""
    mysql.execute("create user bare identified by 'x'", "grant select on *.* to bare")
    error = refusal(MySqlServer(settings(mysql, user="bare", password="x")))
    assert isinstance(error, PrivilegeMissing)
    assert "replication client" in error.hint


def test_a_dump_needs_replication_slave(mysql: MySqlStand) -> None:
    """The other privilege is asked for by the dump."""
    mysql.execute("create user looks identified by 'x'", "grant replication client on *.* to looks")
    source = MySqlServer(settings(mysql, user="looks", password="x"))
    facts = source.facts()
    with pytest.raises(PrivilegeMissing, match="REPLICATION SLAVE"):
        list(source.dump(Coordinates(facts.binlogs[0].file, 4)))


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
        list(source.dump(Coordinates(file, offset)))
    if offset == 6:
        assert isinstance(caught.value, NotAnEventBoundary | StartUnreachable)


def test_an_offset_beyond_four_gib_is_never_truncated(mysql: MySqlStand) -> None:
    """The command has 32 bits; what does not fit is refused."""
    with pytest.raises(StartUnreachable, match="4 GiB"):
        server(mysql).dump(Coordinates(LogFile("binlog", 1), 1 << 32))


def test_a_stream_crosses_files(mysql: MySqlStand, database: str) -> None:
    """A rotation between transactions loses and repeats none."""
    source = server(mysql)
    start = source.facts().head
    mysql.execute(f"create table {database}.t (id int primary key)")
    for number in range(3):
        mysql.execute(f"insert into {database}.t values ({number})", "flush binary logs")
    read = transactions(source, start)
    assert len(read) == 4
    files = [transaction.end.file.number for transaction in read]
    assert files == [start.file.number, *range(start.file.number, start.file.number + 3)]


def test_big_events_arrive_whole(mysql: MySqlStand, database: str) -> None:
    """A row of 20 MB comes in several packets and is one event."""
    source = server(mysql)
    start = source.facts().head
    mysql.execute(
        f"create table {database}.t (id int primary key, v longblob)",
        f"insert into {database}.t values (1, repeat(x'ab', 20 * 1024 * 1024))",
    )
    _, insert = transactions(source, start)
    assert max(len(event.raw) for event in insert.events) > 20 * 1024 * 1024
