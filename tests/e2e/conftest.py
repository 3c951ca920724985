"""What several modules of whole runs begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fix_mysql import MySqlStand


@pytest.fixture(scope="module")
def minimal(mysql: MySqlStand) -> Iterator[MySqlStand]:
    """The server, whose log names no columns: only a history tells what rows mean."""
    mysql.execute("set global binlog_row_metadata = MINIMAL")
    yield mysql
    mysql.execute("set global binlog_row_metadata = FULL")
