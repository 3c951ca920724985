"""What several modules of whole runs begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fix_mysql import MySqlStand


@pytest.fixture(scope="module", autouse=True)
def own_spark(no_spark: None) -> None:
    """A run in this process starts its own, also one that a test cuts short."""


@pytest.fixture(scope="module", autouse=True)
def minimal_metadata(mysql: MySqlStand) -> Iterator[None]:
    """The log has no names of columns, as a server's has by default."""
    with mysql.metadata("MINIMAL"):
        yield
