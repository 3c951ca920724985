"""Many runs of few changes with upkeep between them: whether the lake and the ledger stop growing.

MySQL, the log, the ledger (the embedded Postgres) and the Delta changelogs are real; mirrors are in
memory, because Spark's merges would take most of the time. Time is compressed: a run follows the
other at once, changes are kept for `KEEP` instead of months, and commits older than `LOG_SECONDS`
get the age at which Delta deletes them, so that each of these spans has as many runs as it would
have.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from rich.console import Console

from benchmarks.common import DATABASE, Lines, bench_server, env_number, seconds_of
from lockstep.pipeline.run.acknowledge import acknowledge
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.merge import merge
from lockstep.pipeline.run.upkeep import delete_changes, plan_changes
from lockstep.resources.postgres.connection import LedgerAddress, connect

SECONDS = env_number("BENCH_MONTH_SECONDS", 600)
TABLES = env_number("BENCH_MONTH_TABLES", 10)
RUNS_PER_UPKEEP = 50
LINES = 10
KEEP = timedelta(seconds=60)
VERSION_RETENTION = timedelta(seconds=20)
LOG_SECONDS = 60.0
_DAY = 86_400
_HEADS = (
    *("runs", "files of changes", "KiB", "files of logs", "KiB", "ledger MiB", "batches", "leases"),
    *("s a run", "of our processors", "s of upkeep", "idle"),
)


@dataclass(frozen=True, slots=True)
class _Size:
    files: int
    bytes: int

    @classmethod
    def of(cls, paths: Iterator[Path]) -> _Size:
        sizes = [path.stat().st_size for path in paths if path.is_file()]
        return cls(len(sizes), sum(sizes))


def measure_month(console: Console) -> None:
    """Print a line for each tenth of the time."""
    lines = Lines(console, f"{SECONDS} seconds of runs", _HEADS, texts=0)
    with (
        bench_server() as bench,
        bench.ports("month", f"{DATABASE}.m*") as (ports, project),
    ):
        bench.execute(
            *(f"create table {DATABASE}.m{n} (id int primary key, v int)" for n in range(TABLES)),
            *(f"insert into {DATABASE}.m{n} values (1, 0), (2, 0)" for n in range(TABLES)),
        )
        timer_start, runs, line = perf_counter(), 0, 1
        seconds: list[float] = []
        processor_seconds: list[float] = []
        upkeep_seconds: list[float] = []
        while perf_counter() - timer_start < SECONDS:
            bench.execute(
                *(f"update {DATABASE}.m{n} set v = v + 1 where id = 1" for n in range(TABLES))
            )
            processor_start = process_time()
            seconds.append(seconds_of(lambda: _run(ports)))
            processor_seconds.append(process_time() - processor_start)
            runs += 1
            if runs % RUNS_PER_UPKEEP == 0:
                _age_commits(project / "lake")
                upkeep_seconds.append(seconds_of(lambda: _delete_changes(ports)))
            if perf_counter() - timer_start >= SECONDS * line / LINES and upkeep_seconds:
                line += 1
                idle_seconds = seconds_of(
                    lambda: plan_changes(ports, timedelta(days=1), VERSION_RETENTION)
                )
                lines.add(
                    *_cells(project, runs, seconds, processor_seconds, upkeep_seconds, idle_seconds)
                )
                seconds.clear()
                processor_seconds.clear()
                upkeep_seconds.clear()


def _run(ports: RunPorts) -> None:
    with ports.ledger.lock("bench", "benchmark", None) as lease:
        capture(ports, lease)
        merge(ports, lease)
        acknowledge(ports, lease)


def _delete_changes(ports: RunPorts) -> None:
    delete_changes(ports, plan_changes(ports, KEEP, VERSION_RETENTION), "benchmark")


def _cells(
    project: Path,
    runs: int,
    seconds: list[float],
    processor_seconds: list[float],
    upkeep_seconds: list[float],
    idle_seconds: float,
) -> list[str]:
    lake = project / "lake"
    changes = _Size.of(path for path in lake.rglob("*.parquet") if "_delta_log" not in path.parts)
    logs = _Size.of(path for path in lake.rglob("_delta_log/*"))
    ledger = _Size.of((project / ".lockstep").rglob("base/*/*"))
    batches, leases = _ledger_counts(project)
    counts = (runs, changes.files, changes.bytes >> 10, logs.files, logs.bytes >> 10)
    return [
        *(f"{count:,}" for count in counts),
        f"{ledger.bytes / (1 << 20):.1f}",
        *(f"{count:,}" for count in (batches, leases)),
        *(f"{median(figures):.2f}" for figures in (seconds, processor_seconds, upkeep_seconds)),
        f"{idle_seconds:.3f}",
    ]


def _ledger_counts(project: Path) -> tuple[int, int]:
    """Return the numbers of batches and of leases in the embedded ledger."""
    data = next((project / ".lockstep").rglob("postmaster.pid")).parent
    target = LedgerAddress(f"host='{data}' user=postgres dbname=postgres", "the ledger")
    with closing(connect(target)) as ledger, ledger.cursor() as cursor:
        cursor.execute(
            "select (select count(*) from lockstep.batches), (select count(*) from lockstep.leases)"
        )
        [(batches, leases)] = cursor.fetchall()
    return batches, leases


def _age_commits(lake: Path) -> None:
    """Give older commits the age at which Delta deletes them."""
    now = time.time()
    for path in lake.rglob("_delta_log/*"):
        modified = path.stat().st_mtime
        if LOG_SECONDS < now - modified < _DAY:
            os.utime(path, (modified - 40 * _DAY, modified - 40 * _DAY))
