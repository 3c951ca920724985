"""A whole table read from the server by us, beside the bare socket, ConnectorX and a cursor
(`tables`)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from shutil import which

from rich.console import Console

from benchmarks.common import DATABASE, Ground, Lines, ground, size, timed
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
_SLOW = "cursor, written"
_SLOW_ROWS = 1_000_000
"""Number of rows for a reader that reads only some ten thousand rows a second."""


PASSES = 2
"""Number of passes of a process; the first one loads compiled code."""


def measure_reading(console: Console) -> None:
    """Print a line for each reader. BENCH_READING_ROWS: number of rows; BENCH_BEST_OF: how often
    each reader reads them."""
    most = size("BENCH_READING_ROWS", 1_000_000)
    with ground(SERVER_OPTIONS) as place:
        fill(place, "large", most)
        fill(place, "small", few := min(most // 5, _SLOW_ROWS))
        readers = [reader for reader in READERS if _at_hand(reader, console)]
        tables = {"small": few, "large": most}
        passes: dict[str, list[Pass]] = {reader: [] for reader in readers}
        for _ in range(size("BENCH_BEST_OF", 3)):
            for reader in readers:
                table, count = ("small", 1) if reader == _SLOW else ("large", PASSES)
                passes[reader].append(_read(place, reader, table, tables[table], count))
        flat = {n: _read(place, "ours", table, n, 1) for table, n in tables.items()}
    best = {
        reader: min(each, key=lambda measured: measured.seconds) for reader, each in passes.items()
    }
    _print(console, best, most, few)
    for rows, measured in flat.items():
        console.print(
            f"ours, once over {rows:,} rows: {measured.peak / 2**20:,.0f} MiB resident at most"
        )


def _at_hand(reader: str, console: Console) -> bool:
    if reader == "mysqldump" and not (which("mysqldump") or which("mariadb-dump")):
        console.print("mysqldump is not on the PATH: left out")
        return False
    return True


def fill(place: Ground, table: str, rows: int) -> None:
    """Create and fill a table of ten columns with that many rows."""
    place.execute(f"create table {DATABASE}.{table} {_CREATE}")
    with place.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set cte_max_recursion_depth = 4294967295, time_zone = '+00:00'")
        for first in range(1, rows + 1, 500_000):
            last = min(first + 499_999, rows)
            numbers = _NUMBERS.format(first=first, last=last)
            cursor.execute(f"insert into {DATABASE}.{table} {numbers}")
        cursor.execute(f"analyze table {DATABASE}.{table}")


def _read(place: Ground, reader: str, table: str, rows: int, passes: int) -> Pass:
    with place.connect() as connection, connection.cursor() as cursor:
        cursor.execute("select @@pid_file")
        ((file,),) = cursor.fetchall()
    server = place.server
    given = {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
        "reader": reader,
        "database": DATABASE,
        "table": table,
        "folder": str(place.folder),
        "rows": rows,
        "passes": passes,
        "pid": int(Path(file).read_text()),
    }
    command = [sys.executable, "-m", "benchmarks.tables"]
    return Pass(**json.loads(timed(command, place.folder, {}, json.dumps(given))[1]))


def _print(console: Console, best: dict[str, Pass], rows: int, few: int) -> None:
    columns = ("reader", "rows/s", "MB/s", "µs/row: reader", "server", "peak MiB", "of socket")
    lines = Lines(console, "A table read whole", columns)
    socket = best["socket"]
    for reader, measured in best.items():
        count = few if reader == _SLOW else rows
        rate = count / measured.seconds
        lines.add(
            reader,
            f"{rate:,.0f}",
            f"{rate * socket.received / rows / 1e6:,.0f}",
            f"{measured.processor / count * 1e6:.2f}",
            f"{measured.server / count * 1e6:.2f}",
            f"{measured.peak / 2**20:,.0f}",
            f"{rate / (rows / socket.seconds):.2f}",
        )
