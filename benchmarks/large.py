"""One transaction of many gigabytes: whether a run captures it, and how much memory it needs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from time import perf_counter

from rich.console import Console

from benchmarks.common import DATABASE, LOCKSTEP, BenchServer, bench_server, run_with_peak_memory
from benchmarks.engine import SERVER_OPTIONS

ROW_BYTES = 1003
"""Bytes of a row in the log: two numbers, 992 bytes and their length, a bitmap."""

_VALUE = "repeat(right(concat('0000000000000000', hex(n * 2654435761)), 16), 62)"


def measure_large(console: Console) -> None:
    """Print the figures of one run. BENCH_LARGE_GB: size of the transaction."""
    rows = int(float(os.environ.get("BENCH_LARGE_GB", "4")) * 1e9 / ROW_BYTES)
    with bench_server(SERVER_OPTIONS) as bench:
        timer_start = perf_counter()
        bench.execute(
            f"create table {DATABASE}.large (id int primary key, v varbinary(1000), w int)"
        )
        project = bench.make_project("large", f"{DATABASE}.large")
        start = bench.log_end()
        _fill(bench, rows)
        size = bench.log_bytes(start, bench.log_end())
        console.print(
            f"one transaction of {rows:,} rows, {size / 1e9:.2f} GB of binlog, written in "
            f"{perf_counter() - timer_start:.0f} s"
        )
        # The size is that of Python: the JVM is another process.
        command = [*LOCKSTEP, "run", "--json"]
        seconds, report, peak = run_with_peak_memory(command, project, bench.secret_variables)
        source = json.loads(report)["sources"]["bench"]
        if source["rows"] != rows:
            raise SystemExit(f"the run read {source['rows']} rows, {rows} were written")
        capture = source["seconds"]["capture"]
        mirror = project / "lake" / "bench" / DATABASE / "large"
        changelog = project / "lake" / "bench" / "_changes" / DATABASE / "large"
        console.print(
            f"run: {seconds:.0f} s, of it capture {capture:.1f} s, "
            f"{size / capture / 1e6:,.0f} MB/s\n"
            f"resident: at most {peak / 2**20:,.0f} MiB\n"
            f"commits with rows: {_commits(changelog)} of the changelog, {_commits(mirror)} of "
            "the mirror"
        )


def _fill(bench: BenchServer, rows: int) -> None:
    with bench.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set cte_max_recursion_depth = 4294967295")
        cursor.execute(
            f"insert into {DATABASE}.large with recursive s as (select 1 n union all "
            f"select n + 1 from s where n < {rows}) select n, {_VALUE}, n from s"
        )


def _commits(table: Path) -> int:
    """Return the commits of a Delta table that add files."""
    logs = [path for path in (table / "_delta_log").glob("*.json") if path.stem.isdigit()]
    return sum('"add":' in path.read_text() for path in logs)
