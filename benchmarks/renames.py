"""Two tables swap their names: a run that copies their rows inside the lake, beside one that
reads as many rows from MySQL."""

from __future__ import annotations

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
    run_timed,
)
from benchmarks.runs import COLUMNS, insert_rows

_STATUS_NAMES: Final = ("Innodb_rows_read", "Bytes_sent")


def measure_renames(console: Console) -> None:
    """Print a line for each of the two. BENCH_RENAMES_ROWS: rows of each table (200,000)."""
    rows = env_number("BENCH_RENAMES_ROWS", 200_000)
    columns = ("their rows", "s", "of it merging", "rows read by MySQL", "MB that it sent")
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
        lines.add("are copied inside the lake", *_run(bench, project))
        bench.execute(f"update {a} set a = 1 where id % 100 = 0")
        order = ("reload", a, b, "--from", "source", "--reason", "to compare")
        run_timed([*LOCKSTEP, *order], project, bench.secret_variables)
        lines.add("are read from MySQL", *_run(bench, project))


def _run(bench: BenchServer, project: Path) -> list[str]:
    status_before = _server_status(bench)
    seconds, report = bench.measure_run(project)
    rows, sent = (
        now - then for now, then in zip(_server_status(bench), status_before, strict=True)
    )
    (source,) = report["sources"].values()
    merging = source["seconds"]["merge"]
    return [f"{seconds:.1f}", f"{merging:.1f}", f"{rows:,}", f"{sent / 1e6:.1f}"]


def _server_status(bench: BenchServer) -> list[int]:
    """Return what the server has read and sent since it started."""
    with bench.connect() as connection, connection.cursor() as cursor:
        cursor.execute("show global status")
        status = dict(cursor.fetchall())
    return [int(status[name]) for name in _STATUS_NAMES]
