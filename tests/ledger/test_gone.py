"""The ledger goes away at any call of a run: exit code 3, and the next run is right.

A server that is its log, a lake in memory, and a Postgres that from a call on refuses connections,
ends them once, or carries a call out and whose answer is lost: at calls of some kinds. Which calls
is drawn anew each time. The soak takes every call there is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import psycopg2
import pytest
from psycopg2.extensions import connection as Connection

from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.ports.ledger import Consumers, Ledger
from lockstep.pipeline.ports.mirrors import MirrorUpkeep
from lockstep.pipeline.ports.source import SourceServer
from lockstep.pipeline.run.acknowledge import acknowledge
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.merge import merge
from lockstep.pipeline.run.progress import Progress, SilentProgress
from lockstep.pipeline.run.run import RunRecord, RunSession
from lockstep.pipeline.values.errors import LedgerUnavailable, LockstepError
from lockstep.pipeline.values.retries import STEP
from lockstep.resources.postgres.ledger import PostgresLedger, open_ledger
from tests.chance import by_chance
from tests.positions.fake import FakeServer
from tests.positions.follower import Follower
from tests.positions.interrupted import STEPS

UUID = "1aaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
DATABASE = "lockstep_gone"
WRITES = frozenset({"lock", *STEPS})


@dataclass(frozen=True)
class Postgres:
    """A database of the tests' server that can be gone while the server serves others."""

    server: str
    admin: Connection

    def open(self) -> PostgresLedger:
        dsn = self.server.replace("dbname=postgres", f"dbname={DATABASE}")
        return open_ledger(dsn, Path())

    def go(self) -> None:
        """It takes no connections any more, and ends those it has."""
        self._tell(f"alter database {DATABASE} allow_connections false")
        self.drop()

    def drop(self) -> None:
        """It ends all connections; new ones are welcome."""
        those = f"from pg_stat_activity where datname = '{DATABASE}'"
        self._tell(f"select pg_terminate_backend(pid) {those}")
        while self._tell(f"select 1 {those}"):
            time.sleep(0.002)

    def come_back(self) -> None:
        self._tell(f"alter database {DATABASE} allow_connections true")

    def _tell(self, statement: str) -> list[tuple[Any, ...]]:
        with self.admin.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="module")
def postgres(embedded_dsn: str) -> Iterator[Postgres]:
    admin = psycopg2.connect(embedded_dsn)
    admin.autocommit = True
    made = Postgres(embedded_dsn, admin)
    made._tell(f"create database {DATABASE}")
    yield made
    made._tell(f"drop database {DATABASE} with (force)")
    admin.close()


class Counted:
    """The ledger of a run; `act` happens in its call number `due`, from 1."""

    def __init__(self, ledger: Ledger, calls: list[str], due: int, act: Act) -> None:
        self._ledger = ledger
        self._calls = calls
        self._due = due
        self._act = act

    def __getattr__(self, name: str) -> Any:
        call: Callable[..., Any] = getattr(self._ledger, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self._calls.append(name)
            if len(self._calls) == self._due:
                return self._act(lambda: call(*args, **kwargs))
            return call(*args, **kwargs)

        return counted


Act = Callable[[Callable[[], Any]], Any]


@dataclass
class Adapters:
    """What a session asks for; its ledger is opened anew when the session wants that."""

    follower: Follower
    database: Postgres
    due: int
    act: Act
    calls: list[str] = field(default_factory=list)
    opened: PostgresLedger | None = None

    def ledger(self) -> Ledger:
        if self.opened is None:
            self.opened = self.database.open()
        return cast("Ledger", Counted(self.opened, self.calls, self.due, self.act))

    def consumers(self) -> Consumers:
        raise AssertionError("no step asks for them")

    def upkeep(self) -> MirrorUpkeep:
        raise AssertionError("no step asks for it")

    def close_ledger(self) -> None:
        if self.opened is not None:
            self.opened.close()
        self.opened = None

    def ports(self, source: str, progress: Progress) -> RunPorts:
        plan = replace(self.follower.ports().source, name=source)
        return replace(self.follower.ports(), source=plan, ledger=self.ledger())


@dataclass
class Shop:
    """A source of its own on the shared database."""

    source: str
    database: Postgres
    server: FakeServer
    follower: Follower

    def run(self, due: int, act: Act) -> tuple[LockstepError | None, list[str]]:
        """A run, whose error and calls are given back."""
        adapters = Adapters(self.follower, self.database, due, act)
        session = RunSession(
            adapters=adapters,
            source=self.source,
            holder="test",
            run_id="run",
            progress=SilentProgress(),
            pause=self.follower.pauses.append,
            on_lease=lambda lease, before: None,
            record=RunRecord(self.source),
        )
        try:
            for step in (capture, merge, acknowledge):
                session.run(step)
        except LockstepError as error:
            assert session.record.error is error
            return error, adapters.calls
        finally:
            session.close()
            adapters.close_ledger()
        return None, adapters.calls

    def require_right(self) -> None:
        """The mirror is the table, each change stands once, each commit has its own version,
        every batch is acknowledged or abandoned."""
        lake = self.follower.lake.tables
        mirror = lake[f"{self.source}/shop/t"]
        assert {row["id"]: row["v"] for row in mirror[-1].rows.to_pylist()} == self.server.rows
        versions = [commit.txn_version for commit in mirror]
        assert versions == sorted(set(versions))
        changes = lake[f"{self.source}/_changes/shop/t"][-1].rows.to_pylist()
        marks = [(row["_gtid"], row["_row"], row["_change_type"]) for row in changes]
        assert len(marks) == len(set(marks))
        assert len({gtid for gtid, *_ in marks}) == self.server.number
        ledger = self.database.open()
        states = {batch.state for batch in ledger.batches(self.source, limit=1000)}
        ledger.close()
        assert states <= {BatchState.ACKNOWLEDGED, BatchState.ABANDONED}

    def write(self) -> None:
        """Inserts, updates and a delete, each a transaction."""
        for key in (1, 2, 3):
            self.server.write(key, self.server.number)
        self.server.write(2, None)


def _never(call: Callable[[], Any]) -> Any:
    raise AssertionError("no call has this number")


@pytest.fixture
def shop(request: pytest.FixtureRequest, postgres: Postgres) -> Shop:
    """A source after its first run."""
    server = FakeServer(UUID, 1)
    follower = Follower(cast("SourceServer", server), ["shop.*"], start="earliest")
    made = Shop(str(request.node.name), postgres, server, follower)
    made.write()
    assert made.run(0, _never)[0] is None
    return made


Chosen = Callable[[Sequence[str]], Iterator[int]]


def _every(calls: Sequence[str]) -> Iterator[int]:
    yield from range(1, len(calls) + 1)


def _writing(calls: Sequence[str]) -> Iterator[int]:
    yield from (number for number in _every(calls) if calls[number - 1] in WRITES)


def _some_kinds(calls: Sequence[str]) -> Iterator[int]:
    kinds = {name: number for number, name in enumerate(calls, 1)}
    yield from sorted(by_chance().sample([*kinds.values()], 5))


def _some_writing(calls: Sequence[str]) -> Iterator[int]:
    yield from sorted(by_chance().sample(list(_writing(calls)), 3))


def _calls(shop: Shop, chosen: Chosen) -> list[int]:
    """The number of each call of a run that is chosen."""
    shop.write()
    error, calls = shop.run(0, _never)
    assert error is None
    assert set(calls) >= WRITES
    return list(chosen(calls))


def _gone(shop: Shop, due: int, *, behind: bool) -> None:
    """At that call, of a run that has something to read."""

    def go(call: Callable[[], Any]) -> Any:
        if behind:
            call()
        shop.database.go()
        if behind:
            raise LedgerUnavailable("The answer is lost.", hint="run again")
        return call()

    shop.write()
    shop.follower.pauses.clear()
    try:
        error, calls = shop.run(due, go)
    finally:
        shop.database.come_back()
    assert isinstance(error, LedgerUnavailable), (calls, error)
    assert error.recovery.exit_code == 3
    assert tuple(shop.follower.pauses) == STEP.pauses
    assert shop.run(0, _never)[0] is None
    shop.require_right()


@pytest.mark.parametrize(
    ("chosen", "behind"),
    [
        (_some_kinds, False),
        (_some_writing, True),
        pytest.param(_every, False, marks=pytest.mark.soak),
        pytest.param(_every, True, marks=pytest.mark.soak),
    ],
)
def test_the_ledger_is_gone_at_any_call(shop: Shop, chosen: Chosen, behind: bool) -> None:
    """Tried three times, then exit code 3; once it is back the next run ends with all there,
    nothing doubled. Also where a call that writes is carried out and its answer is lost: nobody
    knows whether it was."""
    for due in _calls(shop, chosen):
        _gone(shop, due, behind=behind)


@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
@pytest.mark.parametrize("chosen", [_some_writing, pytest.param(_every, marks=pytest.mark.soak)])
def test_postgres_drops_every_connection_at_a_write(
    shop: Shop, postgres: Postgres, chosen: Chosen, behind: bool
) -> None:
    """A restart, or an administrator's hand: the run itself goes on. Where the answer goes with
    them, it takes a new lease and finds out what was done."""

    def drop(call: Callable[[], Any]) -> Any:
        if behind:
            call()
        postgres.drop()
        if behind:
            raise LedgerUnavailable("The answer is lost.", hint="run again")
        return call()

    for due in _calls(shop, chosen):
        shop.write()
        error, calls = shop.run(due, drop)
        assert error is None, (calls, error)
        shop.require_right()
