"""A whole table read from the server by us, beside the bare socket, ConnectorX and a cursor
(`tables`)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from shutil import which

from rich.console import Console

from benchmarks.common import DATABASE, BenchServer, Lines, bench_server, env_number, run_timed
from benchmarks.engine import SERVER_OPTIONS
from benchmarks.tables import READERS, Pass

_CREATE = (
    "(id int primary key, big bigint, num int, amount decimal(12,2), name varchar(20),"
    " note varchar(60), made datetime(3), seen timestamp null, ratio double, flag tinyint)"
)
_NUMBERS = (
    "with recursive s as (select {first} n union all select n + 1 from s where n < {last})"
    " select n, n * 7919 * 1000003 % 9000000000000, crc32(n) >> 1, (n * 37 % 1000000000) / 100,"
    " concat('name ', n % 100000), concat('a note about the row number ', n,"
    " repeat('x', n % 20)), timestamp'2024-01-01 00:00:00.123' + interval n * 1001000 microsecond,"
    " timestamp'2023-01-01 00:00:00' + interval n second, sqrt(n), n % 127 from s"
)
_SLOW_READER = "cursor, written"
_SLOW_READER_ROWS = 1_000_000
"""Number of rows for a reader that reads only some ten thousand rows a second."""


PASSES = 2
"""Number of passes of a process; the first one loads compiled code."""


def measure_reading(console: Console) -> None:
    """Print a line for each reader. BENCH_READING_ROWS: number of rows; BENCH_BEST_OF: how often
    each reader reads them."""
    rows = env_number("BENCH_READING_ROWS", 1_000_000)
    with bench_server(SERVER_OPTIONS) as bench:
        fill(bench, "large", rows)
        fill(bench, "small", few_rows := min(rows // 5, _SLOW_READER_ROWS))
        readers = [reader for reader in READERS if _is_available(reader, console)]
        tables = {"small": few_rows, "large": rows}
        passes: dict[str, list[Pass]] = {reader: [] for reader in readers}
        for _ in range(env_number("BENCH_BEST_OF", 3)):
            for reader in readers:
                table, count = ("small", 1) if reader == _SLOW_READER else ("large", PASSES)
                passes[reader].append(_read(bench, reader, table, tables[table], count))
        single_passes = {
            count: _read(bench, "ours", table, count, 1) for table, count in tables.items()
        }
    best = {
        reader: min(its_passes, key=lambda measured: measured.seconds)
        for reader, its_passes in passes.items()
    }
    _print_table(console, best, rows, few_rows)
    for count, measured in single_passes.items():
        peak = measured.peak_bytes / 2**20
        console.print(f"ours, once over {count:,} rows: {peak:,.0f} MiB resident at most")


def _is_available(reader: str, console: Console) -> bool:
    if reader == "mysqldump" and not (which("mysqldump") or which("mariadb-dump")):
        console.print("mysqldump is not on the PATH: left out")
        return False
    return True


def fill(bench: BenchServer, table: str, rows: int) -> None:
    """Create and fill a table of ten columns with that many rows."""
    bench.execute(f"create table {DATABASE}.{table} {_CREATE}")
    with bench.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set cte_max_recursion_depth = 4294967295, time_zone = '+00:00'")
        for first in range(1, rows + 1, 500_000):
            last = min(first + 499_999, rows)
            numbers = _NUMBERS.format(first=first, last=last)
            cursor.execute(f"insert into {DATABASE}.{table} {numbers}")
        cursor.execute(f"analyze table {DATABASE}.{table}")


def _read(bench: BenchServer, reader: str, table: str, rows: int, passes: int) -> Pass:
    with bench.connect() as connection, connection.cursor() as cursor:
        cursor.execute("select @@pid_file")
        ((file,),) = cursor.fetchall()
    server = bench.server
    task = {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
        "reader": reader,
        "database": DATABASE,
        "table": table,
        "folder": str(bench.folder),
        "rows": rows,
        "passes": passes,
        "pid": int(Path(file).read_text()),
    }
    command = [sys.executable, "-m", "benchmarks.tables"]
    return Pass(**json.loads(run_timed(command, bench.folder, {}, json.dumps(task))[1]))


def _print_table(console: Console, best: dict[str, Pass], rows: int, few_rows: int) -> None:
    columns = ("reader", "rows/s", "MB/s", "µs/row: reader", "server", "peak MiB", "of socket")
    lines = Lines(console, "A table read whole", columns)
    socket = best["socket"]
    for reader, measured in best.items():
        count = few_rows if reader == _SLOW_READER else rows
        rate = count / measured.seconds
        lines.add(
            reader,
            f"{rate:,.0f}",
            f"{rate * socket.received_bytes / rows / 1e6:,.0f}",
            f"{measured.processor_seconds / count * 1e6:.2f}",
            f"{measured.server_seconds / count * 1e6:.2f}",
            f"{measured.peak_bytes / 2**20:,.0f}",
            f"{rate / (rows / socket.seconds):.2f}",
        )
