"""The engine beside mysql-replication and the bare socket, on the same spans of one log.

Each workload is written and then read at once, so that it ends where the log ends, and the bare
socket need not decode anything to know where to stop.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent
from rich.console import Console

from benchmarks.cold import ColdCost
from benchmarks.common import DATABASE, BenchServer, Lines, bench_server, run_timed
from benchmarks.reader import read_all
from benchmarks.tables import discard_answer
from benchmarks.workloads import LogSpan, Sizes, Workload, series, workloads, write
from lockstep.pipeline.values.table import TablePatterns
from lockstep.resources.mysql.connection import ConnectionSettings, connect

OURS, SOCKET, LIBRARY = "ours", "socket", "mysql-replication"

# Filling is not what is measured; the log that comes out is the same.
SERVER_OPTIONS = (
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=1G",
    "--innodb-redo-log-capacity=1G",
)


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of one workload: seconds of the best passes, and the library's rows per second;
    None if a contestant was left out."""

    workload: Workload
    log: LogSpan
    our_seconds: float | None
    socket_seconds: float | None
    library_rows_per_second: float | None


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
    with bench_server(SERVER_OPTIONS) as bench:
        results = []
        for number, workload in enumerate(workloads(sizes), 1):
            if choice.workloads is None or number in choice.workloads:
                results.append(_measure_workload(bench, workload, sizes, choice, console))
        table = Lines(console, "Reading the log", _COLUMNS)
        for result in results:
            table.add(*_cells(result))
        if OURS in choice.contestants:
            logs = series(bench, sizes)
            _print_flat(console, bench, logs, sizes.passes)
            console.print(_cold_text(_cold_cost(bench, logs), logs[-1].rows))


def _measure_workload(
    bench: BenchServer, workload: Workload, sizes: Sizes, choice: Choice, console: Console
) -> Result:
    timer_start = perf_counter()
    log = write(bench, workload)
    console.print(
        f"{workload.name}: {log.size / 1e6:.1f} MB in {perf_counter() - timer_start:.0f} s"
    )
    chosen = choice.contestants
    return Result(
        workload,
        log,
        _best_of_ours(bench, workload.tables, log, sizes.passes) if OURS in chosen else None,
        _best(sizes.passes, lambda: receive_dump(bench.connection_settings(), log))
        if SOCKET in chosen
        else None,
        _library(bench, log, sizes, console) if LIBRARY in chosen else None,
    )


def _best(times: int, measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(times))


def _best_of_ours(bench: BenchServer, tables: str, log: LogSpan, times: int) -> float:
    """Return the seconds of the best pass, without the first one, which loads the compiled code."""
    _our_seconds(bench, tables, log)
    return _best(times, lambda: _our_seconds(bench, tables, log))


def _our_seconds(bench: BenchServer, tables: str, log: LogSpan) -> float:
    timer_start = perf_counter()
    counts = read_all(bench.connection_settings(), log.start, log.end, TablePatterns((tables,)))
    seconds = perf_counter() - timer_start
    _check(OURS, counts, log)
    return seconds


def _library(bench: BenchServer, log: LogSpan, sizes: Sizes, console: Console) -> float:
    """Return the rows per second of the better of two passes over the log or a sample of it."""
    best = 0.0
    for _ in range(2):
        result = read_by_library(bench.connection_settings(), log, sizes.oracle_seconds)
        if result.is_complete:
            _check(LIBRARY, (result.rows, result.transactions), log)
        best = max(best, result.rows / result.seconds)
    part = "all" if result.is_complete else f"a sample of {result.rows / log.rows:.0%}"
    console.print(f"  {LIBRARY} read {part} of the rows in {result.seconds:.1f} s")
    return best


def _check(contestant: str, counts: tuple[int, int], log: LogSpan) -> None:
    written = (log.rows, log.transactions)
    if counts != written:
        raise SystemExit(
            f"{contestant} read {counts} rows and transactions, {written} were written"
        )


_COLUMNS = (
    *("workload", "rows", "transactions", "MB of binlog", "rows/s", "trx/s", "MB/s"),
    *("socket MB/s", "of it", "mysql-replication rows/s", "ratio", "at least", "aim"),
)


def _cells(result: Result) -> tuple[str, ...]:
    log, megabytes = result.log, result.log.size / 1e6
    ratio = (
        result.our_seconds
        and result.library_rows_per_second
        and log.rows / result.our_seconds / result.library_rows_per_second
    )
    share = (
        result.our_seconds and result.socket_seconds and result.socket_seconds / result.our_seconds
    )
    return (
        result.workload.name,
        f"{log.rows:,}",
        f"{log.transactions:,}",
        f"{megabytes:,.1f}",
        _figure(result.our_seconds and log.rows / result.our_seconds),
        _figure(result.our_seconds and log.transactions / result.our_seconds),
        _figure(result.our_seconds and megabytes / result.our_seconds),
        _figure(result.socket_seconds and megabytes / result.socket_seconds),
        "-" if share is None else f"{share:.0%}",
        _figure(result.library_rows_per_second),
        "-" if ratio is None else f"{ratio:.0f} x",
        f"{result.workload.min_ratio} x",
        f"{result.workload.aim_ratio} x",
    )


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _print_flat(console: Console, bench: BenchServer, logs: list[LogSpan], times: int) -> None:
    columns = ("rows", "MB of binlog", "seconds", "ns/row")
    table = Lines(console, "Cost per row, 6 columns", columns, texts=0)
    for log in logs:
        seconds = _best_of_ours(bench, f"{DATABASE}.flat", log, times)
        figures = (f"{log.rows:,}", f"{log.size / 1e6:,.1f}", f"{seconds:.3f}")
        table.add(*figures, f"{seconds / log.rows * 1e9:,.0f}")


def _cold_cost(bench: BenchServer, logs: list[LogSpan]) -> ColdCost:
    small, large = logs[0], logs[-1]
    settings = bench.connection_settings()
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
    _, output = run_timed(command, bench.folder, {}, json.dumps(request))
    return ColdCost(**json.loads(output))


def _cold_text(cost: ColdCost, rows: int) -> str:
    start = cost.import_seconds + cost.first_seconds - cost.second_seconds
    return (
        f"a new process: {start:.2f} s more than a warm one, {cost.import_seconds:.2f} s of it "
        "imports and the rest loading compiled code\n"
        f"resident: {cost.resident_before / 2**20:.0f} MiB before reading, at most "
        f"{cost.resident_peak / 2**20:.0f} MiB over {rows:,} rows"
    )


_LIBRARYS_SERVER_ID = 4_000_000_002


@dataclass(frozen=True, slots=True)
class LibraryPass:
    """Rows and transactions that were read in `seconds`, including connecting. `is_complete`: false
    if the time was over before the log ended."""

    rows: int
    transactions: int
    seconds: float
    is_complete: bool


def read_by_library(settings: ConnectionSettings, log: LogSpan, seconds: float) -> LibraryPass:
    """Read from `log.start` to `log.end`, or until `seconds` have passed."""
    timer_start = perf_counter()
    stream = BinLogStreamReader(
        connection_settings={
            "host": settings.host,
            "port": settings.port,
            "user": settings.user,
            "passwd": settings.password,
            "ssl_disabled": True,
        },
        ctl_connection_settings=None,
        server_id=_LIBRARYS_SERVER_ID,
        resume_stream=True,
        blocking=False,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent, XidEvent],
        log_file=str(log.start.file),
        log_pos=log.start.offset,
        enable_logging=False,
    )
    end = (str(log.end.file), log.end.offset)
    rows = transactions = 0
    spent, is_complete = 0.0, False
    try:
        for event in stream:
            if isinstance(event, XidEvent):
                transactions += 1
            else:
                rows += len(event.rows)
            spent = perf_counter() - timer_start
            is_complete = (stream.log_file, stream.log_pos) == end
            if is_complete or spent > seconds:
                break
    finally:
        stream.close()
    return LibraryPass(rows, transactions, spent, is_complete)


_COM_BINLOG_DUMP = 0x12
_NON_BLOCK = 0x01
_COMMAND = struct.Struct("<IHI")
_SERVER_ID = 4_000_000_001


def receive_dump(settings: ConnectionSettings, log: LogSpan) -> float:
    """Return the seconds in which the same dump is received from the socket and discarded: the
    limit of every reader. They run from connecting to the end of the server's log, which must be
    `log.end`. Protocol: MySQL manual, "COM_BINLOG_DUMP"."""
    timer_start = perf_counter()
    with connect(settings) as connection:
        with connection.cursor() as cursor:
            cursor.execute("set @source_binlog_checksum = 'CRC32'")
        # PyMySQL has no public call for a command of one's own, nor for its socket.
        stream: Any = connection
        name = str(log.start.file).encode()
        command = _COMMAND.pack(log.start.offset, _NON_BLOCK, _SERVER_ID)
        stream._execute_command(_COM_BINLOG_DUMP, command + name)
        discard_answer(stream._sock, log.size)
    return perf_counter() - timer_start
