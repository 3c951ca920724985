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

from benchmarks.cold import Cold
from benchmarks.common import DATABASE, Ground, Lines, ground, timed
from benchmarks.reader import read_all
from benchmarks.tables import throw_away
from benchmarks.workloads import Sizes, Workload, Written, series, workloads, write
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
    with ground(SERVER_OPTIONS) as place:
        lines = []
        for number, workload in enumerate(workloads(sizes), 1):
            if choice.workloads is None or number in choice.workloads:
                lines.append(_line(place, workload, sizes, choice, console))
        table = Lines(console, "Reading the log", _COLUMNS)
        for line in lines:
            table.add(*_cells(line))
        if OURS in choice.contestants:
            logs = series(place, sizes)
            _print_flat(console, place, logs, sizes.best_of)
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
        _best(sizes.best_of, lambda: receive_dump(place.settings(), log))
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
        found = read_by_library(place.settings(), log, sizes.oracle_seconds)
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
    *("workload", "rows", "transactions", "MB of binlog", "rows/s", "trx/s", "MB/s"),
    *("socket MB/s", "of it", "mysql-replication rows/s", "ratio", "at least", "aim"),
)


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


def _print_flat(console: Console, place: Ground, logs: list[Written], times: int) -> None:
    columns = ("rows", "MB of binlog", "seconds", "ns/row")
    table = Lines(console, "Cost per row, 6 columns", columns, texts=0)
    for log in logs:
        seconds = _best_of_ours(place, f"{DATABASE}.flat", log, times)
        figures = (f"{log.rows:,}", f"{log.size / 1e6:,.1f}", f"{seconds:.3f}")
        table.add(*figures, f"{seconds / log.rows * 1e9:,.0f}")


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


_LIBRARYS_SERVER_ID = 4_000_000_002


@dataclass(frozen=True, slots=True)
class Pass:
    """Rows and transactions that were read in `seconds`, including connecting. `whole`: false if
    the time was over before the log ended."""

    rows: int
    transactions: int
    seconds: float
    whole: bool


def read_by_library(settings: ConnectionSettings, log: Written, seconds: float) -> Pass:
    """Read from `log.start` to `log.end`, or until `seconds` have passed."""
    clock = perf_counter()
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
    spent, whole = 0.0, False
    try:
        for event in stream:
            if isinstance(event, XidEvent):
                transactions += 1
            else:
                rows += len(event.rows)
            spent = perf_counter() - clock
            whole = (stream.log_file, stream.log_pos) == end
            if whole or spent > seconds:
                break
    finally:
        stream.close()
    return Pass(rows, transactions, spent, whole)


_COM_BINLOG_DUMP = 0x12
_NON_BLOCK = 0x01
_COMMAND = struct.Struct("<IHI")
_SERVER_ID = 4_000_000_001


def receive_dump(settings: ConnectionSettings, log: Written) -> float:
    """Return the seconds in which the same dump is received from the socket and discarded: the
    limit of every reader. They run from connecting to the end of the server's log, which must be
    `log.end`. Protocol: MySQL manual, "COM_BINLOG_DUMP"."""
    clock = perf_counter()
    with connect(settings) as connection:
        with connection.cursor() as cursor:
            cursor.execute("set @source_binlog_checksum = 'CRC32'")
        # PyMySQL has no public call for a command of one's own, nor for its socket.
        stream: Any = connection
        name = str(log.start.file).encode()
        command = _COMMAND.pack(log.start.offset, _NON_BLOCK, _SERVER_ID)
        stream._execute_command(_COM_BINLOG_DUMP, command + name)
        throw_away(stream._sock, log.size)
    return perf_counter() - clock
