"""MariaDB for the tests: one server of a version per session, one database per test.

`mariadb` is MariaDB 10.11 and `mariadb11` is 11.4, each with row format, full images and
metadata and checksums, an account that may do everything and the account `lockstep`
with just the privileges a source needs. They have the face of `mysql`. Where one cannot
be fetched its tests are skipped, and the reason says why.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.mysql_search import Program, cache_folder
from lockstep.pipeline.values.errors import JavaMissing, SetupIncomplete
from lockstep.resources.lake.spark.java import require_java
from tests.fix_mysql import ACCOUNT, PASSWORD, MySqlStand, killed_at_last
from tests.mariadb.programs import mariadb_10_11, mariadb_11_4
from tests.mariadb.server import mariadb_server

UNHURRIED = ("--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=OFF", "--sync-frm=OFF")
"""As MySQL's. MariaDB leaves its binlog to the system by default."""

# https://mariadb.com/kb/en/grant/: "binlog monitor" is what MySQL calls replication client.
_ACCOUNT = (
    f"create user if not exists {ACCOUNT} identified by '{PASSWORD}'",
    f"grant replication slave, binlog monitor, select on *.* to {ACCOUNT}",
)


@pytest.fixture(scope="session")
def mariadb_program() -> Program:
    """MariaDB 10.11, fetched once into the user's cache folder."""
    try:
        return mariadb_10_11(cache_folder(os.environ))
    except SetupIncomplete as missing:
        pytest.skip(f"{missing}: {missing.hint}")


@pytest.fixture(scope="session")
def mariadb11_program() -> Program:
    """MariaDB 11.4, fetched once into the user's cache folder."""
    try:
        java = require_java(os.environ)
        return mariadb_11_4(cache_folder(os.environ), java.program)
    except (JavaMissing, SetupIncomplete) as missing:
        pytest.skip(f"{missing}: {missing.hint}")


@pytest.fixture(scope="session")
def mariadb(
    mariadb_program: Program, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MySqlStand]:
    """The session's MariaDB 10.11."""
    yield from _stand(mariadb_program, tmp_path_factory.mktemp("mariadb"))


@pytest.fixture(scope="session")
def mariadb11(
    mariadb11_program: Program, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MySqlStand]:
    """The session's MariaDB 11.4."""
    yield from _stand(mariadb11_program, tmp_path_factory.mktemp("mariadb11"))


@pytest.fixture
def mariadb_database(mariadb: MySqlStand) -> Iterator[str]:
    """A database of the test's own on MariaDB 10.11, dropped afterwards."""
    mariadb.begin_file()
    with mariadb.own_database() as name:
        yield name


@pytest.fixture
def mariadb11_database(mariadb11: MySqlStand) -> Iterator[str]:
    """A database of the test's own on MariaDB 11.4, dropped afterwards."""
    mariadb11.begin_file()
    with mariadb11.own_database() as name:
        yield name


def _stand(program: Program, folder: Path) -> Iterator[MySqlStand]:
    cache = cache_folder(os.environ)
    with killed_at_last(mariadb_server(program, folder, cache, options=UNHURRIED)) as server:
        stand = MySqlStand(server)
        stand.execute(*_ACCOUNT)
        yield stand
