"""Two tables swap their names: a run that copies their rows inside the lake, beside one that
reads as many rows from MySQL. An application writes to both tables meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final

from rich.console import Console

from benchmarks.common import (
    DATABASE,
    LOCKSTEP,
    BenchServer,
    Lines,
    bench_server,
    env_number,
    run_timed,
)
from benchmarks.runs import COLUMNS, insert_rows

_PAUSE_SECONDS: Final = 0.001
"""The application's pause behind each transaction: it is no test of how many MySQL can do."""

_STATUS_NAMES: Final = ("Innodb_rows_read", "Bytes_sent")


def measure_renames(console: Console) -> None:
    """Print a line for each of the two. BENCH_RENAMES_ROWS: rows of each table (200,000)."""
    rows = env_number("BENCH_RENAMES_ROWS", 200_000)
    columns = (
        "their rows",
        "s",
        "of it merging",
        "rows read by MySQL",
        "MB that it sent",
        "transactions/s of the application",
    )
    lines = Lines(console, f"Two tables of {rows:,} rows change their names", columns)
    with bench_server() as bench:
        bench.execute(*(f"create table {DATABASE}.{name} {COLUMNS}" for name in "ab"))
        project = bench.make_project("renames", f"{DATABASE}.*")
        for name in "ab":
            insert_rows(bench, name, 1, rows)
        bench.measure_run(project)
        a, b, t = (f"{DATABASE}.{name}" for name in "abt")
        bench.execute(f"update {a} set a = 1 where id % 100 = 0", f"rename table {a} to {t}")
        bench.execute(f"rename table {b} to {a}, {t} to {b}")
        lines.add("are copied inside the lake", *_run(bench, project, rows))
        bench.execute(f"update {a} set a = 1 where id % 100 = 0")
        order = ("reload", a, b, "--from", "source", "--reason", "to compare")
        run_timed([*LOCKSTEP, *order], project, bench.secret_variables)
        lines.add("are read from MySQL", *_run(bench, project, rows))


def _run(bench: BenchServer, project: Path, rows_each: int) -> list[str]:
    status_before = _server_status(bench)
    with _application(bench, rows_each) as transactions:
        seconds, report = bench.measure_run(project)
    own_rows = sum(transactions)
    rows, sent = (
        now - then for now, then in zip(_server_status(bench), status_before, strict=True)
    )
    (source,) = report["sources"].values()
    merging = source["seconds"]["merge"]
    return [
        f"{seconds:.1f}",
        f"{merging:.1f}",
        f"{rows - own_rows:,}",
        f"{sent / 1e6:.1f}",
        f"{own_rows / seconds:,.0f}",
    ]


@contextmanager
def _application(bench: BenchServer, rows_each: int) -> Iterator[list[int]]:
    """Write to both tables, a row in each transaction, each transaction committed before the
    next. Yield a list which has the number of transactions afterwards; each reads one row."""
    stop, transactions = Event(), list[int]()

    def write() -> None:
        with bench.connect() as connection, connection.cursor() as cursor:
            number = 0
            while not stop.is_set():
                number += 1
                key = number * 7919 % rows_each + 1
                cursor.execute(
                    f"update {DATABASE}.{'ab'[number % 2]} set a = a + 1 where id = {key}"
                )
                connection.commit()
                stop.wait(_PAUSE_SECONDS)
            transactions.append(number)

    thread = Thread(target=write)
    thread.start()
    try:
        yield transactions
    finally:
        stop.set()
        thread.join()


def _server_status(bench: BenchServer) -> list[int]:
    """Return what the server has read and sent since it started."""
    with bench.connect() as connection, connection.cursor() as cursor:
        cursor.execute("show global status")
        status = dict(cursor.fetchall())
    return [int(status[name]) for name in _STATUS_NAMES]
