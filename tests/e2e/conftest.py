"""What several modules of whole runs begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand


@pytest.fixture(scope="module")
def minimal(mysql: MySqlStand) -> Iterator[MySqlStand]:
    """The server, whose log names no columns: only a history tells what rows mean."""
    mysql.execute("set global binlog_row_metadata = MINIMAL")
    yield mysql
    mysql.execute("set global binlog_row_metadata = FULL")


@pytest.fixture(scope="package")
def warm() -> Iterator[WarmProcess]:
    """One process and one Spark for the commands around what a test is about."""
    process = WarmProcess()
    yield process
    process.stop()
