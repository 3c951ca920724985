"""What hostile trials are given: a lake on disk, and histories of which all moments are kept."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import follow
from tests.fix_mysql import MySqlStand
from tests.hostile.histories import History, Made, Real, make_history
from tests.lake.conftest import disk, folder
from tests.positions.fake import FakeServer
from tests.positions.one_table import NOBODY

__all__ = ["disk", "folder", "follow"]


@pytest.fixture(scope="session")
def history() -> History:
    """Whoever goes on with it takes a branch of it (`History.branched`)."""
    return make_history(Made(FakeServer(NOBODY, 1)))


@pytest.fixture
def real(mysql: MySqlStand, database: str) -> History:
    """A test's own: the log of a real server has no branches."""
    return make_history(Real(mysql, database))
