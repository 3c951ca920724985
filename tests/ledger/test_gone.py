"""The ledger's Postgres goes away at any call of a run: exit code 3, and the next run is right.

A server that is its log, a lake in memory, a ledger in a database that refuses connections
from a call on, ends them once, or carries a call out and loses its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, cast

import pytest

from assets.sessions import RunRecord, RunSession
from pipeline.batch import BatchState
from pipeline.errors import LedgerUnavailable, LockstepError
from pipeline.ports.consumers import Consumers
from pipeline.ports.ledger import Ledger
from pipeline.ports.source import SourceServer
from pipeline.retries import STEP
from pipeline.runs.acknowledge import acknowledge
from pipeline.runs.capture import capture
from pipeline.runs.context import Progress, Unwatched, Workplace
from pipeline.runs.merge import merge
from resources.postgres.ledger import PostgresLedger, open_ledger
from tests.ledger.servers import embedded_server, run
from tests.positions.fake import FakeServer
from tests.positions.follower import Follower

UUID = "1aaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
DATABASE = "lockstep_gone"
WRITES = frozenset(
    {
        "lock",
        "decide",
        "begin_batch",
        "record_capture",
        "open_intent",
        "settle",
        "mark_merged",
        "acknowledge",
    }
)


@dataclass(frozen=True)
class Postgres:
    """A database of the tests' server that can be gone while the server serves others."""

    server: str

    @property
    def dsn(self) -> str:
        return self.server.replace("dbname=postgres", f"dbname={DATABASE}")

    def go(self) -> None:
        """It takes no connections any more, and ends those it has."""
        run(self.server, f"alter database {DATABASE} allow_connections false")
        self.drop()

    def drop(self) -> None:
        """It ends all connections; new ones are welcome."""
        statement = (
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = %s"
        )
        run(self.server, statement, DATABASE)

    def come_back(self) -> None:
        run(self.server, f"alter database {DATABASE} allow_connections true")


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A server of its own."""
    with embedded_server(tmp_path_factory.mktemp("gone")) as dsn:
        run(dsn, f"create database {DATABASE}")
        yield Postgres(dsn)


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
class Site:
    """What a session asks for; its ledger is opened anew when the session wants that."""

    follower: Follower
    postgres: Postgres
    due: int
    act: Act
    calls: list[str] = field(default_factory=list)
    opened: PostgresLedger | None = None

    def ledger(self) -> Ledger:
        if self.opened is None:
            self.opened = open_ledger(self.postgres.dsn, Path())
        return cast("Ledger", Counted(self.opened, self.calls, self.due, self.act))

    def consumers(self) -> Consumers:
        raise AssertionError("no step asks for them")

    def reopen_ledger(self) -> None:
        if self.opened is not None:
            self.opened.close()
        self.opened = None

    def workplace(self, source: str, progress: Progress) -> Workplace:
        plan = replace(self.follower.work().source, name=source)
        return replace(self.follower.work(), source=plan, ledger=self.ledger())


@dataclass
class Shop:
    """A source of its own on the shared database."""

    source: str
    postgres: Postgres
    server: FakeServer
    follower: Follower

    def run(self, due: int, act: Act) -> tuple[LockstepError | None, list[str]]:
        """A run, whose error and calls are given back."""
        adapters = Site(self.follower, self.postgres, due, act)
        session = RunSession(
            adapters=adapters,
            source=self.source,
            holder="test",
            run_id="run",
            progress=Unwatched(),
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
            adapters.reopen_ledger()
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
        with open_ledger(self.postgres.dsn, Path()) as ledger:
            states = {batch.state for batch in ledger.batches(self.source, limit=100)}
        assert states <= {BatchState.ACKNOWLEDGED, BatchState.ABANDONED}

    def write(self) -> None:
        """Inserts, updates and a delete, each a transaction."""
        for key in (1, 2, 3):
            self.server.write(key, self.server.number)
        self.server.write(2, None)


@pytest.fixture
def shop(request: pytest.FixtureRequest, postgres: Postgres) -> Shop:
    """A source after its first run."""
    server = FakeServer(UUID, 1)
    follower = Follower(cast("SourceServer", server), ["shop.*"], start="earliest")
    made = Shop(str(request.node.name), postgres, server, follower)
    made.write()
    assert made.run(0, _never)[0] is None
    return made


def _never(call: Callable[[], Any]) -> Any:
    raise AssertionError("no call has this number")


Chosen = Callable[[Sequence[str]], Iterator[int]]


def _every(calls: Sequence[str]) -> Iterator[int]:
    yield from range(1, len(calls) + 1)


def _writing(calls: Sequence[str]) -> Iterator[int]:
    yield from (number for number in _every(calls) if calls[number - 1] in WRITES)


def _each_kind(calls: Sequence[str]) -> Iterator[int]:
    """Each call that writes, the one behind it, and each question once: asked again in between,
    it meets the same books."""
    kinds = set[str]()
    for number, (before, name) in enumerate(pairwise(["", *calls]), start=1):
        if name not in kinds or {name, before} & WRITES:
            yield number
        kinds.add(name)


KINDS: Final = [_each_kind, pytest.param(_every, marks=pytest.mark.soak)]
"""Which calls of a run: a sample, and with the soak all of them."""


def _calls(shop: Shop, chosen: Chosen) -> Iterator[int]:
    """The number of each call of a run that is chosen; there is something to read each time."""
    shop.write()
    error, calls = shop.run(0, _never)
    assert error is None
    assert set(calls) >= WRITES
    for number in chosen(calls):
        shop.write()
        shop.follower.pauses.clear()
        yield number


@pytest.mark.parametrize("chosen", KINDS)
def test_postgres_is_gone_before_any_call(shop: Shop, chosen: Chosen) -> None:
    """Tried three times, then exit code 3; once it is back the next run ends with all there,
    nothing doubled."""

    def go(call: Callable[[], Any]) -> Any:
        shop.postgres.go()
        return call()

    for due in _calls(shop, chosen):
        try:
            error, calls = shop.run(due, go)
        finally:
            shop.postgres.come_back()
        assert isinstance(error, LedgerUnavailable), (calls, error)
        assert error.recovery.exit_code == 3
        assert tuple(shop.follower.pauses) == STEP.pauses
        assert shop.run(0, _never)[0] is None
        shop.require_right()


def test_postgres_is_gone_behind_any_write(shop: Shop) -> None:
    """It is carried out and its answer is lost: nobody knows whether it was, and the next run
    is right all the same."""

    def go(call: Callable[[], Any]) -> Any:
        call()
        shop.postgres.go()
        raise LedgerUnavailable("The answer is lost.", hint="run again")

    for due in _calls(shop, _writing):
        try:
            error, _ = shop.run(due, go)
        finally:
            shop.postgres.come_back()
        assert isinstance(error, LedgerUnavailable)
        assert shop.run(0, _never)[0] is None
        shop.require_right()


@pytest.mark.parametrize("chosen", [_writing, *KINDS[1:]])
def test_postgres_drops_every_connection_before_any_call(shop: Shop, chosen: Chosen) -> None:
    """A restart, or an administrator's hand: the run itself goes on. (That every kind of question
    is asked again is seen where Postgres stays away.)"""

    def drop(call: Callable[[], Any]) -> Any:
        shop.postgres.drop()
        return call()

    for due in _calls(shop, chosen):
        error, calls = shop.run(due, drop)
        assert error is None, (calls, error)
        shop.require_right()


def test_postgres_drops_every_connection_behind_any_write(shop: Shop) -> None:
    """The answer goes with them: the run takes a new lease and finds out what was done."""

    def drop(call: Callable[[], Any]) -> Any:
        call()
        shop.postgres.drop()
        raise LedgerUnavailable("The answer is lost.", hint="run again")

    for due in _calls(shop, _writing):
        error, calls = shop.run(due, drop)
        assert error is None, (calls, error)
        shop.require_right()
