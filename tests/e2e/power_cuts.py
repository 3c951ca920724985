"""Power cuts at moments of chance: a run under write load, killed, again and again.

Belongs here: spreading the kills over a run, and what must be true at the end. Does not:
how many, and when that is worth the time (`test_crash`, `test_soak`).
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from deltalake import DeltaTable

from demo import shop
from tests.e2e.project import Project, environment, head
from tests.e2e.warm import TIMEOUT, StartedProcess, WarmProcess
from tests.fix_mysql import MySqlStand

WORKERS = 3
_OF_THE_SOURCE = ("_ddl", "_transactions")
PAUSE = 0.05
"""Seconds that each worker rests between two transactions: some fifty of them a second."""

FIRST = 30
"""Transactions before the first run: with so many, somebody has bought something."""


def kill_runs(
    mysql: MySqlStand,
    folder: Path,
    database: str,
    *,
    kills: int,
    seed: int,
    warm: WarmProcess | None = None,
    after_each: Callable[[Project], None] = lambda project: None,
) -> Project:
    """Runs of a shop that is written to, killed all over their length; the last one is not, and
    MySQL and the lake are equal, with one commit for each write. Without a `warm` process their
    Java dies with them."""
    start = head(mysql)
    connection = mysql.connect()
    shop.create(connection, database)
    connection.close()
    project = Project.made(
        folder, port=mysql.port, tables=[f"{database}.*"], start=start, warm=warm
    )
    project.run("run")
    chance = random.Random(seed)
    with shop.Traffic(lambda: mysql.connect(database), WORKERS, seed, pause=PAUSE) as traffic:
        while traffic.counts.committed < FIRST:
            traffic.check()
            time.sleep(PAUSE)
        began = time.monotonic()
        project.run("run")
        length = time.monotonic() - began
        cut = 0
        for moment in _moments(chance, kills, length):
            traffic.check()
            cut += _killed_after(project, moment)
            after_each(project)
    print(f"{cut} of {kills} runs were killed, the others were done before")
    assert cut
    project.run("run")
    _require_whole(project, database)
    return project


def _moments(chance: random.Random, kills: int, length: float) -> Iterator[float]:
    """Seconds after the beginning: one in each part of a run, in any order."""
    parts = list(range(kills))
    chance.shuffle(parts)
    for part in parts:
        yield (part + chance.random()) / kills * length


def _killed_after(project: Project, seconds: float) -> bool:
    """Whether the run was still going on; one that ended by itself ended well."""
    with _begun(project) as process:
        try:
            said = process.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            code = process.wait(TIMEOUT)
            assert code in (-signal.SIGKILL, 0), f"neither killed nor well: {code}"
            return code != 0
    assert process.returncode == 0, f"after a kill: {process.returncode}\n{said}"
    return False


def _begun(project: Project) -> subprocess.Popen[str] | StartedProcess:
    if project.warm is not None:
        return project.start("lockstep.cli", "run")
    return subprocess.Popen(
        [sys.executable, "-m", "lockstep.cli", "run"],
        cwd=project.folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _require_whole(project: Project, database: str) -> None:
    """Equal, no write twice, nothing open, no file that belongs to nothing."""
    tables = [f"{database}.{table}" for table in shop.TABLES]
    assert project.proven() == set(tables)
    appended = [*(f"_changes.{name}" for name in tables), *_OF_THE_SOURCE]
    project.require_once(*tables, *appended)
    for folder in appended:
        path = project.lake / "shop" / folder.replace(".", "/")
        published = {Path(uri).name for uri in DeltaTable(path).file_uris()}
        assert {file.name for file in path.glob("*.parquet")} == published
    read = DeltaTable(project.lake / "shop" / "_transactions").to_pyarrow_table()["_gtid"]
    assert len(read) == len(set(read.to_pylist()))
    assert project.status()["open_batches"] == []
