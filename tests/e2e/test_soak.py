"""Minutes of traffic and power cuts: whatever moment a run dies at, the end is equal."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lockstep.demo import shop
from tests.e2e.project import Project, environment, head
from tests.fix_mysql import MySqlStand

KILLS = int(os.environ.get("SOAK_KILLS", "20"))
LONGEST_RUN = 9.0
"""Seconds; a run with these changes takes about that long, so kills fall all over it."""


@pytest.mark.soak
def test_kills_at_random_moments(mysql: MySqlStand, tmp_path: Path) -> None:
    """Under write load, run after run is killed; the last one is not, and all is there."""
    start = head(mysql)
    connection = mysql.connect()
    shop.create(connection, "soak")
    connection.close()
    project = Project.made(tmp_path / "project", port=mysql.port, tables=["soak.*"], start=start)
    chance = random.Random(20260101)
    with shop.Traffic(lambda: mysql.connect("soak"), 3, 7, pause=0.05) as traffic:
        for _ in range(KILLS):
            traffic.check()
            _killed_after(project, chance.uniform(0.5, LONGEST_RUN))
    project.run("run")
    verified = project.json("verify")["sources"]["shop"]["tables"]
    assert {name: table["equal"] for name, table in verified.items()} == {
        f"soak.{table}": True for table in shop.TABLES
    }
    for table in shop.TABLES:
        transactions = project.transactions(f"soak.{table}")
        assert len(transactions) == len(set(transactions))


def _killed_after(project: Project, seconds: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "lockstep.cli", "run"],
        cwd=project.folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
