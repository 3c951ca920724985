"""One ledger for the test session, in which each test has a source of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import lockstep
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.resources.postgres.ledger import open_ledger
from tests.consumers.shop import Shop, opened_shop
from tests.fix_ledger import Database

_SHOPS = count(1)


@pytest.fixture(scope="session")
def ledger_dsn() -> Iterator[str]:
    database = Database()
    yield database.dsn


@pytest.fixture(scope="session")
def ledger(ledger_dsn: str) -> Iterator[Ledger]:
    with open_ledger(ledger_dsn, Path()) as opened:
        yield opened


@pytest.fixture
def shop(
    ledger: Ledger, ledger_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    """A source that nothing was captured of."""
    monkeypatch.setenv("LOCKSTEP_TEST_LEDGER", ledger_dsn)
    with opened_shop(tmp_path, f"shop{next(_SHOPS)}", ledger) as opened:
        yield opened


@pytest.fixture
def billing(shop: Shop) -> Shop:
    """The shop, and a consumer that begins before its first batch."""
    lockstep.make_consumer(shop.source, "billing", start="earliest", config=shop.config)
    return shop
