"""An address that leads to another server while a run reads: nothing of the other one is taken.

A DNS name, a virtual address or a proxy does that at a failover. Without GTIDs, a place of one
server's log may be a place of another's.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.progress import Progress
from lockstep.pipeline.start.question import StartRule
from lockstep.pipeline.values.errors import SourceMoving
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import settings
from tests.outside import acknowledge, capture, merge
from tests.positions.follower import Follower
from tests.positions.servers import Pair, catch_up, replicate
from tests.positions.shop import TABLE, open_shop, put, require_rule, require_same
from tests.positions.test_whole_logs import Adapters, session


@dataclass
class Address:
    """An address of loopback that leads each new connection to the server of the moment; those
    that are open stay where they are."""

    leads_to: MySqlStand
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    ends: list[socket.socket] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                near = self.listener.accept()[0]
                far = socket.create_connection((self.leads_to.host, self.leads_to.port))
                self.ends += (near, far)
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=_hand_on, args=pair, daemon=True).start()


def _hand_on(giver: socket.socket, taker: socket.socket) -> None:
    with suppress(OSError):
        while data := giver.recv(1 << 16):
            taker.sendall(data)
    for end in (giver, taker):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def address_of(stand: MySqlStand) -> Iterator[Address]:
    address = Address(stand)
    thread = threading.Thread(target=address.serve, daemon=True)
    thread.start()
    try:
        yield address
    finally:
        address.listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        address.listener.close()
        for end in address.ends:
            end.close()


class Failing(MySqlServer):
    """A server whose address leads to another one before a call of that name."""

    def __init__(self, address: Address, call: str, other: MySqlStand, **options: Any) -> None:
        super().__init__(replace(settings(address.leads_to), port=address.port), **options)
        self._address, self._call, self._other = address, call, other

    def _fail_over(self, call: str) -> None:
        if call == self._call:
            self._address.leads_to = self._other

    def dump(self, *arguments: Any) -> Any:
        self._fail_over("dump")
        return super().dump(*arguments)

    def chunk(self, *arguments: Any, **options: Any) -> Any:
        self._fail_over("chunk")
        return super().chunk(*arguments, **options)


class FailingReplica(MySqlServer):
    """A server whose replica is another one once the first was asked for a bound."""

    fail_over: Callable[[], None]

    def next_bound(self, *arguments: Any, **options: Any) -> Any:
        bound = super().next_bound(*arguments, **options)
        self.fail_over()
        return bound


@dataclass
class Renewing(Adapters):
    """What a session asks for, with another server each time."""

    servers: Iterator[MySqlServer]

    def ports(self, source: str, progress: Progress) -> RunPorts:
        return replace(self.follower.ports(), server=next(self.servers))


@pytest.fixture(params=["bare_pair", "mariadb_pair"])
def twins(request: pytest.FixtureRequest) -> Pair:
    """Two servers without a GTID in common, in whose logs the same offsets are places."""
    pair: Pair = request.getfixturevalue(request.param)
    for stand in (pair.a, pair.b):
        stand.execute("create database shop", "create table shop.t (id int primary key, v int)")
        put(stand, 1)
    return pair


def _follow(server: MySqlServer, start: str = "earliest") -> Follower:
    return Follower(server, ["shop.*"], start=start)


def test_the_log_of_another_server_is_not_read(twins: Pair) -> None:
    """The start was decided by the log of A; B has another transaction at the same offset."""
    with address_of(twins.a) as address:
        follower = _follow(MySqlServer(replace(settings(twins.a), port=address.port)))
        follower.run()
        put(twins.a, 2, v=3)
        put(twins.b, 2, 3, v=4)
        follower.server = Failing(address, "dump", twins.b)
        with pytest.raises(SourceMoving, match="leads to another server now") as told:
            follower.run()
        assert "address of one server" in told.value.hint
        assert follower.mirror(TABLE) == [{"id": 1, "v": 0}]
        address.leads_to = twins.a
        follower.server = MySqlServer(replace(settings(twins.a), port=address.port))
        follower.run()
        require_same(follower, twins.a)


def test_the_rows_of_another_server_are_not_read(twins: Pair) -> None:
    """The place before a table's rows is one of A's log, and B has other rows."""
    twins.b.execute("update shop.t set v = 9")
    with address_of(twins.a) as address:
        follower = _follow(Failing(address, "chunk", twins.b), start="snapshot")
        with pytest.raises(SourceMoving):
            follower.run()
        assert follower.mirror(TABLE) == []
        address.leads_to = twins.a
        follower.server = MySqlServer(replace(settings(twins.a), port=address.port))
        follower.run()
        require_same(follower, twins.a)


def test_the_rows_of_another_replica_are_not_read(pair: Pair) -> None:
    """The address of replicas leads to one that has not executed what was waited for."""
    pair.a.execute("create database shop", "create table shop.t (id int primary key, v int)")
    replicate(pair.a, pair.b)
    put(pair.a, 1)
    catch_up(pair.a, pair.b)
    pair.b.execute("stop replica sql_thread")
    put(pair.a, 1, v=5)
    with address_of(pair.a) as address:
        replicas = replace(settings(pair.a), port=address.port)
        server = FailingReplica(settings(pair.a), read_from=replicas)
        server.fail_over = lambda: setattr(address, "leads_to", pair.b)
        follower = _follow(server, start="snapshot")
        with pytest.raises(SourceMoving):
            follower.run()
    follower.server = MySqlServer(settings(pair.a))
    follower.run()
    require_same(follower, pair.a)


def test_the_next_try_of_a_run_uses_the_server_that_answers_then(pair: Pair) -> None:
    """It decides its start by what that one has, and ends the run as any other."""
    open_shop(pair.a)
    replicate(pair.a, pair.b)
    put(pair.a, 1)
    with address_of(pair.a) as address:
        moved = replace(settings(pair.a), port=address.port)
        follower = _follow(MySqlServer(moved))
        follower.run()
        put(pair.a, 2)
        catch_up(pair.a, pair.b)
        servers = iter([Failing(address, "dump", pair.b), MySqlServer(moved)])
        run = session(follower)
        run.adapters = Renewing(follower, servers)
        for step in (capture, merge, acknowledge):
            run.run(step)
        run.close()
        require_rule(follower, StartRule.RESUME_OTHER_SERVER)
        require_same(follower, pair.b)
        assert next(servers, None) is None
