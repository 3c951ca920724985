"""A lake whose ledger is lost: a new one goes on from any moment of its history, with each change
once and without reading a table from the source.
"""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest

from pipeline.runs.agreement.recover import Recovery, foresee, recover
from tests.fix_mysql import MySqlStand
from tests.hostile.histories import History, Made, Real, make_history
from tests.hostile.test_restored import require_equal
from tests.positions.fake import FakeServer
from tests.positions.follower import SOURCE, Follower
from tests.positions.one_table import NOBODY
from tests.twins.books import MemoryBooks
from tests.twins.ledger import MemoryLedger


@pytest.fixture
def history() -> History:
    return make_history(Made(FakeServer(NOBODY, 1)))


@pytest.fixture
def real(mysql: MySqlStand, database: str) -> History:
    return make_history(Real(mysql, database))


def without_ledger(history: History, moment: int) -> Follower:
    follower = history.together(moment, moment)
    follower.ledger = MemoryLedger(lambda: datetime.now(UTC), MemoryBooks())
    return follower


def recovered(follower: Follower) -> Recovery:
    foreseen = foresee(follower.work())
    with follower.ledger.lock(SOURCE, "test", None) as lease:
        done = recover(follower.work(), lease, author="somebody")
    assert done == foreseen, "what was shown is what was done"
    return done


def tried(history: History, moment: int) -> None:
    history = history.branched()
    follower = without_ledger(history, moment)
    if not any("/_" not in name for name in follower.lake.tables):
        return
    done = recovered(follower)
    assert not done.reloads
    history.write()
    follower.run()
    require_equal(history, follower)
    follower.ledger = MemoryLedger(lambda: datetime.now(UTC), MemoryBooks())
    assert not recovered(follower).reloads, "lost once more"
    history.write()
    follower.run()
    require_equal(history, follower)


def test_from_every_moment(history: History) -> None:
    for moment in range(len(history.moments)):
        tried(history, moment)


def test_from_every_moment_of_a_real_server(real: History) -> None:
    for moment in Random().sample(range(len(real.moments)), len(real.moments)):
        tried(real, moment)
