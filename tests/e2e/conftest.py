"""What several modules of whole runs begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.project import Project, followed
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand

Follow = Callable[..., Project]


@pytest.fixture(scope="module", autouse=True)
def minimal_metadata(mysql: MySqlStand) -> Iterator[None]:
    """The log has no names of columns, as a server's has by default."""
    with mysql.metadata("MINIMAL"):
        yield


@pytest.fixture
def follow(mysql: MySqlStand, database: str, tmp_path: Path, warm: WarmProcess) -> Follow:
    """Make the project that follows the test's database (`tests.e2e.project.followed`)."""
    return partial(followed, mysql, database, tmp_path / "project", warm)
