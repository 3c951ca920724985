"""Dumps that are left before their end, one beside another, and connections that fall silent."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest

from lockstep.pipeline.values.errors import SourceUnavailable
from lockstep.pipeline.values.position import Coordinates
from lockstep.resources.mysql.receiving import Receiver
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server, transactions

Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """A connection: this side's end and the server's."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as near,
        listener.accept()[0] as far,
    ):
        yield near, far


def test_a_silent_peer_is_an_error_within_its_timeout(ends: Ends) -> None:
    """Nothing comes, not even a heartbeat."""
    near, _ = ends
    near.settimeout(0.2)
    with closing(Receiver(near)) as receiver, pytest.raises(TimeoutError):
        next(receiver.pieces())


def test_a_connection_cut_in_the_middle_is_told(ends: Ends) -> None:
    """What came before is handed out, then the end is an error."""
    near, far = ends
    far.sendall(b"abc")
    far.close()
    with closing(Receiver(near)) as receiver:
        pieces = receiver.pieces()
        first = next(pieces)
        assert bytes(first.data[first.begin : first.end]) == b"abc"
        with pytest.raises(SourceUnavailable, match="closed"):
            next(pieces)


def test_the_peer_of_a_closed_receiver_is_told_so(ends: Ends) -> None:
    """By a reset, also where all that came was read: after a mere end it could send on, and
    wait for somebody who never reads."""
    near, far = ends
    far.sendall(b"abc")
    with closing(Receiver(near)) as receiver:
        next(receiver.pieces())
    near.close()
    with pytest.raises(ConnectionError):
        far.send(b"d")


@dataclass(frozen=True)
class LongLog:
    """A server, and a place of its log behind which more stands than fits between a server
    and one who does not read."""

    stand: MySqlStand
    start: Coordinates

    def dumps(self) -> dict[int, str]:
        """The server's threads that dump its log, and what each is doing."""
        rows = self.stand.rows("show processlist")
        return {row[0]: str(row[6]) for row in rows if str(row[4]).startswith("Binlog Dump")}


@pytest.fixture(scope="module", params=["mysql", "mariadb", "mariadb11"])
def long_log(request: pytest.FixtureRequest) -> Iterator[LongLog]:
    stand: MySqlStand = request.getfixturevalue(request.param)
    start = head(stand)
    with stand.own_database() as database:
        stand.execute(
            "create table t (id int primary key auto_increment, a mediumblob)",
            *["insert into t (a) values (repeat('x', 4000000))"] * 8,
            database=database,
        )
        yield LongLog(stand, start)


def test_dumps_that_are_left_end_on_the_server(long_log: LongLog) -> None:
    """At once, wherever they are left, and not when the server finds out that nobody reads:
    until then it would keep its log files."""
    chance, others = random.Random(1), long_log.dumps()
    for _ in range(10):
        wanted = chance.randrange(28_000_000)
        with closing(server(long_log.stand).dump(long_log.start)) as dump:
            for received in dump:
                wanted -= received.end - received.begin
                if wanted <= 0:
                    break
    until = time.monotonic() + 10
    while (left := long_log.dumps()).keys() - others and time.monotonic() < until:
        time.sleep(0.05)
    assert not left.keys() - others, left


def test_one_dump_ends_no_other(long_log: LongLog) -> None:
    """A second dump begins and ends while the server still has most of the first to send."""
    stand, start = long_log.stand, long_log.start
    with closing(server(stand).dump(start)) as first:
        read = 0
        for received in first:
            if read == 0:
                assert len(transactions(server(stand), start)) >= 8
            read += received.end - received.begin
            if read > 32_000_000:
                break
