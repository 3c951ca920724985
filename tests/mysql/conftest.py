"""What the tests of the log itself begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fix_mysql import MySqlStand


@pytest.fixture(scope="module", autouse=True)
def full_metadata(mysql: MySqlStand) -> Iterator[None]:
    """Decoders are told structures by the log here, and not by a history: it has names."""
    with mysql.metadata("FULL"):
        yield
