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

from benchmarks.common import (
    DATABASE,
    LOCKSTEP,
    BenchServer,
    Lines,
    bench_server,
    env_number,
    process_environment,
)
from benchmarks.runs import CHANGES, COLUMNS
from lockstep.pipeline.values.retries import SPARK

_RUNS: Final = env_number("BENCH_SERVED_RUNS", 5)


def measure_served(console: Console) -> None:
    """Print a line for each kind of run. Each run has as many changes of one table; the first
    runs warm Java up."""
    columns = ("Spark", "first", "best", "of it merging", "processors, first", "best")
    table = Lines(console, "Seconds of a run", columns)
    with bench_server() as bench:
        own = bench.make_project("own", f"{DATABASE}.own")
        table.add("a Java of its own", *_runs(bench, "own", own))
        table.add("none: without changes", *_idle(bench, own))
        project = bench.make_project("served", f"{DATABASE}.served")
        with served(bench, project) as server:
            table.add("`lockstep spark serve`", *_runs(bench, "served", project, server))
            without = "`lockstep spark serve`, without changes"
            table.add(without, *_idle(bench, project, server))


def _runs(bench: BenchServer, name: str, folder: Path, *server_pids: int) -> list[str]:
    bench.execute(f"create table {DATABASE}.{name} {COLUMNS}")
    costs = []
    for number in range(_RUNS):
        rows = ", ".join(f"({number * CHANGES + offset})" for offset in range(CHANGES))
        bench.execute(f"insert into {DATABASE}.{name} (id) values {rows}")
        costs.append(_measure_run(bench, folder, *server_pids))
    return _figures(costs)


def _idle(bench: BenchServer, folder: Path, *server_pids: int) -> list[str]:
    return _figures([_measure_run(bench, folder, *server_pids) for _ in range(_RUNS)])


def _measure_run(bench: BenchServer, folder: Path, *server_pids: int) -> tuple[float, float, float]:
    """Return wall seconds, seconds of the merge, and processor seconds."""
    seconds_before = processor_seconds_of(*server_pids)
    seconds, report = bench.measure_run(folder)
    (source,) = report["sources"].values()
    return seconds, source["seconds"]["merge"], processor_seconds_of(*server_pids) - seconds_before


def processor_seconds_of(*pids: int) -> float:
    """Return the processor seconds of processes that ended, and of those that keep running."""
    ended_children = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = ended_children.ru_utime + ended_children.ru_stime
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        seconds += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return seconds


def _figures(costs: Sequence[tuple[float, float, float]]) -> list[str]:
    first, best = costs[0], min(costs)
    least_processors = min(processors for _, _, processors in costs)
    return [f"{figure:.1f}" for figure in (first[0], best[0], best[1], first[2], least_processors)]


@contextmanager
def served(bench: BenchServer, folder: Path) -> Iterator[int]:
    """Yield the process of the server, which is Java's."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "token").write_text(os.urandom(16).hex())
    with (folder / "lockstep.toml").open("a") as file:
        file.write(f'[spark]\nremote = "sc://127.0.0.1:{port}"\ntoken = "file:token"\n')
    command, variables = [*LOCKSTEP, "spark", "serve"], process_environment(bench.secret_variables)
    process = subprocess.Popen(command, cwd=folder, env=variables, stderr=subprocess.DEVNULL)
    try:
        for _ in SPARK.tries():
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
        yield process.pid
    finally:
        process.terminate()
        process.wait()
