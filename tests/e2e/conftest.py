"""What several modules of whole runs begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand


@pytest.fixture(scope="package")
def warm() -> Iterator[WarmProcess]:
    """One process and one Spark for the commands around what a test is about."""
    process = WarmProcess()
    yield process
    process.stop()


@pytest.fixture(scope="module", autouse=True)
def minimal_metadata(mysql: MySqlStand) -> Iterator[None]:
    """The log has no names of columns, as a server's has by default."""
    with mysql.metadata("MINIMAL"):
        yield
