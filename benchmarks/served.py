"""Runs of few changes, with a Java of each run's own and with a server that stays.

Belongs here: the two side by side. Does not: where else the seconds of a small run go (`runs`).
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.ground import DATABASE, Ground, environment, ground
from benchmarks.runs import CHANGES, COLUMNS
from pipeline.retries import SPARK

_RUNS: Final = 5


def measure_served(console: Console) -> None:
    """Each run brings as many changes to one table; the first ones make Java fast."""
    table = Table(title="Seconds of a run", title_justify="left", box=box.MARKDOWN)
    for column in ("Spark", "first", "best", "of it merging", "best without changes"):
        table.add_column(column, justify="left" if column == "Spark" else "right")
    with (
        tempfile.TemporaryDirectory(prefix="lockstep-bench-") as folder,
        ground(Path(folder)) as place,
    ):
        table.add_row("a Java of its own", *_runs(place, "own"))
        project = place.project("served", f"{DATABASE}.served")
        with _served(place, project):
            table.add_row("`lockstep spark serve`", *_runs(place, "served", project))
    console.print(table)


def _runs(place: Ground, name: str, folder: Path | None = None) -> list[str]:
    folder = folder or place.project(name, f"{DATABASE}.{name}")
    place.execute(f"create table {DATABASE}.{name} {COLUMNS}")
    found = []
    for number in range(_RUNS):
        rows = ", ".join(f"({number * CHANGES + one})" for one in range(CHANGES))
        place.execute(f"insert into {DATABASE}.{name} (id) values {rows}")
        seconds, report = place.run(folder)
        (source,) = report["sources"].values()
        found.append((seconds, source["seconds"]["merge"]))
    idle = min(place.run(folder)[0] for _ in range(2))
    best = min(found)
    return [f"{one:.1f}" for one in (found[0][0], *best, idle)]


@contextmanager
def _served(place: Ground, folder: Path) -> Iterator[None]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "token").write_text(os.urandom(16).hex())
    with (folder / "lockstep.toml").open("a") as file:
        file.write(f'[spark]\nremote = "sc://127.0.0.1:{port}"\ntoken = "file:token"\n')
    command = [sys.executable, "-m", "lockstep.cli", "spark", "serve"]
    variables = environment({"BENCH_PASSWORD": place.server.password})
    process = subprocess.Popen(command, cwd=folder, env=variables, stderr=subprocess.DEVNULL)
    try:
        for _ in SPARK.tries():
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
        yield
    finally:
        process.terminate()
        process.wait()
