"""Logs recorded once per session, for as many processes as read them damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fix_mysql import MySqlStand
from tests.fuzz.recorded import record


def _recorded(stand: MySqlStand, flavour: str, folder: Path) -> Path:
    name = stand.fresh_name()
    stand.execute(f"create database `{name}` character set utf8mb4")
    path = folder / f"{flavour}.corpus"
    with stand.metadata("FULL"):
        record(stand, name, flavour).save(path)
    stand.execute(f"drop database `{name}`")
    return path


@pytest.fixture(scope="session")
def mysql_corpus(mysql: MySqlStand, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MySQL's log of everything, recorded."""
    return _recorded(mysql, "mysql", tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def mariadb_corpus(mariadb: MySqlStand, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MariaDB's log of everything, recorded."""
    return _recorded(mariadb, "mariadb", tmp_path_factory.mktemp("corpus"))
