"""What several modules of whole runs begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fix_mysql import MySqlStand


@pytest.fixture(scope="module", autouse=True)
def minimal_metadata(mysql: MySqlStand) -> Iterator[None]:
    """The log has no names of columns, as a server's has by default."""
    with mysql.metadata("MINIMAL"):
        yield
