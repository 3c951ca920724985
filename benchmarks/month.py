"""Many runs of few changes with upkeep between them: whether the lake and the ledger stop growing.

MySQL, the log, the ledger (the embedded Postgres) and the Delta changelogs are real; mirrors are in
memory, because Spark's merges would take most of the time. Time is compressed: a run follows the
other at once, changes are kept for `KEEP` instead of months, and commits older than `LOG` get the
age at which Delta deletes them, so that each of these spans has as many runs as it would have.
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

from benchmarks.common import DATABASE, Lines, ground, seconds_of, size
from lockstep.pipeline.run.acknowledge import acknowledge
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.merge import merge
from lockstep.pipeline.run.upkeep.changes import delete_changes, plan_changes
from lockstep.resources.postgres.connection import LedgerAddress, connect

SECONDS = size("BENCH_MONTH_SECONDS", 600)
TABLES = size("BENCH_MONTH_TABLES", 10)
EVERY = 50
LINES = 10
KEEP = timedelta(seconds=60)
PROMISED = timedelta(seconds=20)
LOG = 60.0
_DAY = 86_400
_COLUMNS = (
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
    lines = Lines(console, f"{SECONDS} seconds of runs", _COLUMNS, texts=0)
    with (
        ground() as place,
        place.workplace("month", f"{DATABASE}.m*") as (work, project),
    ):
        place.execute(
            *(f"create table {DATABASE}.m{n} (id int primary key, v int)" for n in range(TABLES)),
            *(f"insert into {DATABASE}.m{n} values (1, 0), (2, 0)" for n in range(TABLES)),
        )
        begun, runs, line = perf_counter(), 0, 1
        seconds: list[float] = []
        spent: list[float] = []
        upkeeps: list[float] = []
        while perf_counter() - begun < SECONDS:
            place.execute(
                *(f"update {DATABASE}.m{n} set v = v + 1 where id = 1" for n in range(TABLES))
            )
            before = process_time()
            seconds.append(seconds_of(lambda: _run(work)))
            spent.append(process_time() - before)
            runs += 1
            if runs % EVERY == 0:
                _aged(project / "lake")
                upkeeps.append(seconds_of(lambda: _keep(work)))
            if perf_counter() - begun >= SECONDS * line / LINES and upkeeps:
                line += 1
                idle = seconds_of(lambda: plan_changes(work, timedelta(days=1), PROMISED))
                lines.add(*_cells(project, runs, seconds, spent, upkeeps, idle))
                seconds.clear()
                spent.clear()
                upkeeps.clear()


def _run(work: Workplace) -> None:
    with work.ledger.lock("bench", "benchmark", None) as lease:
        capture(work, lease)
        merge(work, lease)
        acknowledge(work, lease)


def _keep(work: Workplace) -> None:
    delete_changes(work, plan_changes(work, KEEP, PROMISED), "benchmark")


def _cells(
    project: Path,
    runs: int,
    seconds: list[float],
    spent: list[float],
    upkeeps: list[float],
    idle: float,
) -> list[str]:
    lake = project / "lake"
    changes = _Size.of(path for path in lake.rglob("*.parquet") if "_delta_log" not in path.parts)
    logs = _Size.of(path for path in lake.rglob("_delta_log/*"))
    ledger = _Size.of((project / ".lockstep").rglob("base/*/*"))
    batches, leases = _rows(project)
    counts = (runs, changes.files, changes.bytes >> 10, logs.files, logs.bytes >> 10)
    return [
        *(f"{count:,}" for count in counts),
        f"{ledger.bytes / (1 << 20):.1f}",
        *(f"{count:,}" for count in (batches, leases)),
        *(f"{median(figures):.2f}" for figures in (seconds, spent, upkeeps)),
        f"{idle:.3f}",
    ]


def _rows(project: Path) -> tuple[int, int]:
    """Return the numbers of batches and of leases in the embedded ledger."""
    data = next((project / ".lockstep").rglob("postmaster.pid")).parent
    target = LedgerAddress(f"host='{data}' user=postgres dbname=postgres", "the ledger")
    with closing(connect(target)) as ledger, ledger.cursor() as cursor:
        cursor.execute(
            "select (select count(*) from lockstep.batches), (select count(*) from lockstep.leases)"
        )
        [(batches, leases)] = cursor.fetchall()
    return batches, leases


def _aged(lake: Path) -> None:
    """Give older commits the age at which Delta deletes them."""
    now = time.time()
    for path in lake.rglob("_delta_log/*"):
        modified = path.stat().st_mtime
        if LOG < now - modified < _DAY:
            os.utime(path, (modified - 40 * _DAY, modified - 40 * _DAY))
