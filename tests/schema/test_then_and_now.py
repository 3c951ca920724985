"""A log that is decoded only after all of it happened is decoded as it happened.

The log has MySQL's default metadata, which names no column: by the time it is read, the
server's tables are built otherwise, and only the history tells what its rows meant.
"""

from __future__ import annotations

import pytest

from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.schema.mixed_log import minimal_log
from tests.schema.reader import Reader
from tests.schema.two_readers import wrong


def _check(mysql: MySqlStand, seed: int, statements: int) -> None:
    with minimal_log(mysql) as name:
        along, later = (Reader(server(mysql), [f"{name}_*.*"]) for _ in range(2))
        assert wrong(mysql, name, seed, along, later, statements=statements) == []


def test_later_is_as_along(mysql: MySqlStand) -> None:
    """15 statements of chance between rows: both changelogs, both histories and the server
    agree."""
    _check(mysql, 1, 15)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 42))
def test_later_is_as_along_for_long(mysql: MySqlStand, seed: int) -> None:
    """50 of them, with other seeds."""
    _check(mysql, seed, 50)
