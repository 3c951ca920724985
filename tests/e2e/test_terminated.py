"""Runs that are terminated: what waits is merged later, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.points import Point
from tests.e2e.project import Project, followed
from tests.e2e.warm import TIMEOUT, WarmProcess
from tests.fix_mysql import MySqlStand
from tests.mysql.chunked import until

DATABASE = "waiting"
TABLES = ("a", "b")


@pytest.fixture
def project(mysql: MySqlStand, tmp_path: Path, warm: WarmProcess) -> Iterator[Project]:
    """At the end a run that nothing holds up was right."""
    made = followed(
        mysql,
        DATABASE,
        tmp_path / "project",
        warm,
        *(f"create table {table} (id int primary key, v int)" for table in TABLES),
        *(f"insert into {table} values (0, 0), (1, 0)" for table in TABLES),
    )
    made.run("run")
    yield made
    assert made.unequal(mysql, *(f"{DATABASE}.{table}" for table in TABLES)) == {}
    assert made.status()["open_batches"] == []
    mysql.execute(f"drop database {DATABASE}")


def write(mysql: MySqlStand) -> None:
    """An update of every row, and a new one, in both tables."""
    for table in TABLES:
        mysql.execute(
            f"update {DATABASE}.{table} set v = v + 1",
            f"insert into {DATABASE}.{table} select max(id) + 1, 0 from {DATABASE}.{table}",
        )


def require_terminated(code: int | None, out: str, err: str) -> None:
    assert code == 143, err
    assert err.splitlines()[-2:] == [
        "terminated",
        "hint: nothing is lost: repeat the command, or let the next run repair what was begun",
    ]
    assert json.loads(out)["error"]["kind"] == "Terminated"


def require_nobody_left(session: int) -> None:
    """Java ends because its Python did, so it may end some moments later."""
    until(lambda: session not in _sessions(), seconds=20)


def _sessions() -> set[int]:
    """Of all processes."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            found.add(int(stat.read_text().rpartition(")")[2].split()[3]))
    return found


PLACES = (
    Point.ROWS_TAKEN,
    Point.WRITE_SETTLED,
)
"""While it reads, and behind a table's commit, while Java may be in the middle of the other's."""


@pytest.mark.parametrize(
    ("lend", "places"), [(True, PLACES), pytest.param(False, PLACES[1:], marks=pytest.mark.soak)]
)
def test_sigterm_ends_a_run_as_ctrl_c_does(
    project: Project, mysql: MySqlStand, lend: bool, places: tuple[str, ...]
) -> None:
    """143 and a sentence, no process is left behind, and the next run repairs what was begun. In
    `make soak` Java, which the run started for itself, goes with it; with one that is killed it
    does in `tests/lake/test_session.py`."""
    write(mysql)
    for place in places:
        arguments = (place, "stopped", "1", "--", "run", "--json")
        with project.start("tests.e2e.killer", *arguments, lend=lend) as process:
            said = process.communicate(TIMEOUT)
            require_terminated(process.returncode, *said)
        require_nobody_left(process.pid)
    project.run("run")
    project.require_once(*(f"{DATABASE}.{table}" for table in TABLES))
