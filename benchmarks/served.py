"""Runs of few changes, each with a Java of its own, beside runs with a Spark that keeps running.

Processor seconds are those of the run, of its own Java, and of the server meanwhile: on a busy host
they say more than wall seconds. `runs` measures the other parts of a small run.
"""

from __future__ import annotations

import os
import resource
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.common import DATABASE, LOCKSTEP, Ground, Lines, environment, ground, size
from benchmarks.runs import CHANGES, COLUMNS
from lockstep.pipeline.values.retries import SPARK

_RUNS: Final = size("BENCH_SERVED_RUNS", 5)


def measure_served(console: Console) -> None:
    """Print a line for each kind of run. Each run has as many changes of one table; the first
    runs warm Java up."""
    columns = ("Spark", "first", "best", "of it merging", "processors, first", "best")
    table = Lines(console, "Seconds of a run", columns)
    with ground() as place:
        own = place.project("own", f"{DATABASE}.own")
        table.add("a Java of its own", *_runs(place, "own", own))
        table.add("none: without changes", *_idle(place, own))
        project = place.project("served", f"{DATABASE}.served")
        with served(place, project) as server:
            table.add("`lockstep spark serve`", *_runs(place, "served", project, server))
            without = "`lockstep spark serve`, without changes"
            table.add(without, *_idle(place, project, server))


def _runs(place: Ground, name: str, folder: Path, *stay: int) -> list[str]:
    place.execute(f"create table {DATABASE}.{name} {COLUMNS}")
    found = []
    for number in range(_RUNS):
        rows = ", ".join(f"({number * CHANGES + offset})" for offset in range(CHANGES))
        place.execute(f"insert into {DATABASE}.{name} (id) values {rows}")
        found.append(_one(place, folder, *stay))
    return _figures(found)


def _idle(place: Ground, folder: Path, *stay: int) -> list[str]:
    return _figures([_one(place, folder, *stay) for _ in range(_RUNS)])


def _one(place: Ground, folder: Path, *stay: int) -> tuple[float, float, float]:
    """Return wall seconds, seconds of the merge, and processor seconds."""
    before = spent(*stay)
    seconds, report = place.run(folder)
    (source,) = report["sources"].values()
    return seconds, source["seconds"]["merge"], spent(*stay) - before


def spent(*stay: int) -> float:
    """Return the processor seconds of processes that ended, and of those that keep running."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = ended.ru_utime + ended.ru_stime
    for process in stay:
        told = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        spent += sum(map(int, told[11:15])) / os.sysconf("SC_CLK_TCK")
    return spent


def _figures(found: Sequence[tuple[float, float, float]]) -> list[str]:
    first, best = found[0], min(found)
    least = min(processors for _, _, processors in found)
    return [f"{figure:.1f}" for figure in (first[0], best[0], best[1], first[2], least)]


@contextmanager
def served(place: Ground, folder: Path) -> Iterator[int]:
    """Yield the process of the server, which is Java's."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "token").write_text(os.urandom(16).hex())
    with (folder / "lockstep.toml").open("a") as file:
        file.write(f'[spark]\nremote = "sc://127.0.0.1:{port}"\ntoken = "file:token"\n')
    command, variables = [*LOCKSTEP, "spark", "serve"], environment(place.secret)
    process = subprocess.Popen(command, cwd=folder, env=variables, stderr=subprocess.DEVNULL)
    try:
        for _ in SPARK.tries():
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
        yield process.pid
    finally:
        process.terminate()
        process.wait()
