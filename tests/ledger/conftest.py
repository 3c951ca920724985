"""Stands, each made once; every test has a source of its own on them.

An embedded Postgres tries the contract with every change, a server of Debian's with the soak.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from lockstep.pipeline.ports.ledger import Consumers, Ledger
from lockstep.pipeline.values.decisions import Lease
from lockstep.resources.postgres.embedded import account_of, executable_programs, programs_folder
from tests.ledger.consuming import NAME, acknowledged
from tests.ledger.made import ORDERS, STOCK
from tests.ledger.servers import (
    EACH_POSTGRES,
    Stand,
    debian_programs,
    debian_server,
    postgres_stand,
)

_SOURCES = count(1)


@pytest.fixture(scope="session")
def server_dsn() -> Iterator[str]:
    programs_folder = debian_programs()
    if programs_folder is None:
        pytest.skip("no Postgres of Debian's packages on this machine")
    with debian_server(programs_folder) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def tcp_dsn() -> Iterator[str]:
    """A server over TCP of the embedded programs: on every machine."""
    found = programs_folder()
    with debian_server(executable_programs(account_of(found / "none"), found)) as dsn:
        yield dsn


@pytest.fixture(scope="session", params=EACH_POSTGRES)
def stand(request: pytest.FixtureRequest) -> Iterator[Stand]:
    with postgres_stand(request.getfixturevalue(request.param)) as stand:
        yield stand


@pytest.fixture
def ledger(stand: Stand) -> Ledger:
    return stand.ledger


@pytest.fixture
def consumers(stand: Stand) -> Consumers:
    return stand.consumers


@pytest.fixture
def source() -> str:
    return f"source {next(_SOURCES)}"


@pytest.fixture
def lease(ledger: Ledger, source: str) -> Iterator[Lease]:
    with ledger.lock(source, "a test", "run-1") as held:
        yield held


@pytest.fixture
def batches(ledger: Ledger, lease: Lease) -> list[int]:
    """Four acknowledged batches: orders and stock, nothing, stock, orders."""
    tables = ((ORDERS, STOCK), (), (STOCK,), (ORDERS,))
    return [acknowledged(ledger, lease, *some) for some in tables]


@pytest.fixture
def billing(consumers: Consumers, source: str, batches: list[int]) -> str:
    """The source, with a consumer that begins before its four batches."""
    assert batches
    consumers.make_consumer(source, NAME, "earliest")
    return source
