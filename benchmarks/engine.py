"""The engine beside mysql-replication and the bare socket, on the same spans of one log.

Each workload is written and then read at once, so that it ends where the log ends, and the bare
socket need not decode anything to know where to stop.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import oracle, wire
from benchmarks.cold import Cold
from benchmarks.ground import DATABASE, Ground, ground, timed
from benchmarks.reader import read_all
from benchmarks.workloads import Sizes, Workload, Written, series, workloads, write
from lockstep.pipeline.values.table import TablePatterns

OURS, SOCKET, LIBRARY = "ours", "socket", "mysql-replication"

# Filling is not what is measured; the log that comes out is the same.
SERVER_OPTIONS = (
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=1G",
    "--innodb-redo-log-capacity=1G",
)


@dataclass(frozen=True, slots=True)
class Line:
    """The figures of one workload: seconds of the best pass, and the library's rows per second;
    None if a contestant was left out."""

    workload: Workload
    log: Written
    ours: float | None
    socket: float | None
    library: float | None


@dataclass(frozen=True, slots=True)
class Choice:
    """The contestants and the workloads (numbered from 1) that are measured."""

    contestants: frozenset[str]
    workloads: frozenset[int] | None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Choice:
        """Read BENCH_CONTESTANTS (ours,socket,mysql-replication) and BENCH_WORKLOADS (1,3)."""
        names = environment.get("BENCH_CONTESTANTS", f"{OURS},{SOCKET},{LIBRARY}")
        numbers = environment.get("BENCH_WORKLOADS")
        return cls(
            frozenset(names.split(",")),
            frozenset(map(int, numbers.split(","))) if numbers else None,
        )


def measure_engine(console: Console) -> None:
    """Print each workload's line as soon as it is measured, then the tables."""
    sizes, choice = Sizes.of(os.environ), Choice.of(os.environ)
    with (
        tempfile.TemporaryDirectory(prefix="lockstep-bench-") as folder,
        ground(Path(folder), SERVER_OPTIONS) as place,
    ):
        lines = []
        for number, workload in enumerate(workloads(sizes), 1):
            if choice.workloads is None or number in choice.workloads:
                lines.append(_line(place, workload, sizes, choice, console))
        console.print(_table(lines))
        if OURS in choice.contestants:
            logs = series(place, sizes)
            console.print(_flat_table(place, logs, sizes.best_of))
            console.print(_cold_text(_cold(place, logs), logs[-1].rows))


def _line(
    place: Ground, workload: Workload, sizes: Sizes, choice: Choice, console: Console
) -> Line:
    clock = perf_counter()
    log = write(place, workload)
    console.print(f"{workload.name}: {log.size / 1e6:.1f} MB in {perf_counter() - clock:.0f} s")
    chosen = choice.contestants
    return Line(
        workload,
        log,
        _best_of_ours(place, workload.tables, log, sizes.best_of) if OURS in chosen else None,
        _best(sizes.best_of, lambda: wire.receive(place.settings(), log))
        if SOCKET in chosen
        else None,
        _library(place, log, sizes, console) if LIBRARY in chosen else None,
    )


def _best(times: int, measured: Callable[[], float]) -> float:
    return min(measured() for _ in range(times))


def _best_of_ours(place: Ground, tables: str, log: Written, times: int) -> float:
    """Return the seconds of the best pass, without the first one, which loads the compiled code."""
    _ours(place, tables, log)
    return _best(times, lambda: _ours(place, tables, log))


def _ours(place: Ground, tables: str, log: Written) -> float:
    clock = perf_counter()
    found = read_all(place.settings(), log.start, log.end, TablePatterns((tables,)))
    seconds = perf_counter() - clock
    _check(OURS, found, log)
    return seconds


def _library(place: Ground, log: Written, sizes: Sizes, console: Console) -> float:
    """Return the rows per second of the better of two passes over the log or a sample of it."""
    best = 0.0
    for _ in range(2):
        found = oracle.read(place.settings(), log, sizes.oracle_seconds)
        if found.whole:
            _check(LIBRARY, (found.rows, found.transactions), log)
        best = max(best, found.rows / found.seconds)
    part = "all" if found.whole else f"a sample of {found.rows / log.rows:.0%}"
    console.print(f"  {LIBRARY} read {part} of the rows in {found.seconds:.1f} s")
    return best


def _check(who: str, counts: tuple[int, int], log: Written) -> None:
    written = (log.rows, log.transactions)
    if counts != written:
        raise SystemExit(f"{who} read {counts} rows and transactions, {written} were written")


_COLUMNS = (
    "workload",
    "rows",
    "transactions",
    "MB of binlog",
    "rows/s",
    "trx/s",
    "MB/s",
    "socket MB/s",
    "of it",
    "mysql-replication rows/s",
    "ratio",
    "at least",
    "aim",
)


def _table(lines: list[Line]) -> Table:
    table = Table(title="Reading the log", title_justify="left", box=box.MARKDOWN)
    for column in _COLUMNS:
        left = column == "workload"
        table.add_column(column, justify="left" if left else "right", no_wrap=left)
    for line in lines:
        table.add_row(*_cells(line))
    return table


def _cells(line: Line) -> tuple[str, ...]:
    log, megabytes = line.log, line.log.size / 1e6
    ratio = line.ours and line.library and log.rows / line.ours / line.library
    share = line.ours and line.socket and line.socket / line.ours
    return (
        line.workload.name,
        f"{log.rows:,}",
        f"{log.transactions:,}",
        f"{megabytes:,.1f}",
        _figure(line.ours and log.rows / line.ours),
        _figure(line.ours and log.transactions / line.ours),
        _figure(line.ours and megabytes / line.ours),
        _figure(line.socket and megabytes / line.socket),
        "-" if share is None else f"{share:.0%}",
        _figure(line.library),
        "-" if ratio is None else f"{ratio:.0f} x",
        f"{line.workload.at_least} x",
        f"{line.workload.aim} x",
    )


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _flat_table(place: Ground, logs: list[Written], times: int) -> Table:
    table = Table(title="Cost per row, 6 columns", title_justify="left", box=box.MARKDOWN)
    for column in ("rows", "MB of binlog", "seconds", "ns/row"):
        table.add_column(column, justify="right")
    for log in logs:
        seconds = _best_of_ours(place, f"{DATABASE}.flat", log, times)
        figures = (f"{log.rows:,}", f"{log.size / 1e6:,.1f}", f"{seconds:.3f}")
        table.add_row(*figures, f"{seconds / log.rows * 1e9:,.0f}")
    return table


def _cold(place: Ground, logs: list[Written]) -> Cold:
    small, large = logs[0], logs[-1]
    settings = place.settings()
    request = {
        "host": settings.host,
        "port": settings.port,
        "user": settings.user,
        "password": settings.password,
        "tables": f"{DATABASE}.flat",
        "small": (str(small.start), str(small.end)),
        "large": (str(large.start), str(large.end)),
    }
    command = [sys.executable, "-m", "benchmarks.cold"]
    _, output = timed(command, place.folder, {}, json.dumps(request))
    return Cold(**json.loads(output))


def _cold_text(cold: Cold, rows: int) -> str:
    start = cold.imported + cold.first - cold.second
    return (
        f"a new process: {start:.2f} s more than a warm one, {cold.imported:.2f} s of it imports "
        "and the rest loading compiled code\n"
        f"resident: {cold.resident_before / 2**20:.0f} MiB before reading, at most "
        f"{cold.resident_peak / 2**20:.0f} MiB over {rows:,} rows"
    )
