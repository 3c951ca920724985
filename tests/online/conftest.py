"""The tools, found or fetched, and a server whose log names no columns."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from demo.mysql_search import cache_folder
from lockstep.pipeline.values.errors import SetupIncomplete
from tests.fix_mysql import MySqlStand
from tests.online.toolkit import PerconaToolkit


@pytest.fixture(scope="session")
def toolkit() -> PerconaToolkit:
    """Percona Toolkit, fetched once into the user's cache folder."""
    try:
        return PerconaToolkit(cache_folder(os.environ))
    except SetupIncomplete as missing:
        pytest.skip(f"{missing}: {missing.hint}")


@pytest.fixture(scope="module", autouse=True)
def minimal_metadata(mysql: MySqlStand) -> Iterator[None]:
    """The log has no names of columns, as a server's has by default."""
    with mysql.metadata("MINIMAL"):
        yield
