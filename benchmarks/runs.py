"""Cold runs beside their floors (`floor`): the cost of a whole `lockstep run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common import (
    DATABASE,
    BenchServer,
    Lines,
    bench_server,
    env_number,
    plain_spark_settings,
    product_spark_settings,
)

CHANGES = 10

COLUMNS = "(id int primary key, a bigint, b decimal(12,2), c varchar(20), d datetime(3), e double)"
_NUMBERS = (
    "with recursive s as (select {first} n union all select n + 1 from s where n < {last}) "
    "select n, n * 7, n / 3, concat('row ', n), '2026-01-01' + interval n second, n / 7 from s"
)


def insert_rows(bench: BenchServer, table: str, first: int, last: int) -> None:
    """Insert the rows first to last in transactions of 100,000."""
    with bench.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set cte_max_recursion_depth = 4294967295")
        for start in range(first, last + 1, 100_000):
            end = min(start + 99_999, last)
            numbers = _NUMBERS.format(first=start, last=end)
            cursor.execute(f"insert into {DATABASE}.{table} {numbers}")


def big_table(bench: BenchServer, rows: int) -> list[dict[str, Any]]:
    """Measure inserts, then as many scattered updates, each by a cold run beside the floors;
    before the inserts' run measure their capture alone, into another lake."""
    bench.execute(f"create table {DATABASE}.big {COLUMNS}")
    folder = bench.make_project("big", f"{DATABASE}.big")
    alone = bench.make_project("alone", f"{DATABASE}.big")
    insert_rows(bench, "big", 1, rows)
    capture_cost = bench.measure_capture(alone)
    lines = [_run_beside_floors(bench, folder, "big", f"{rows:,} inserts", "append")]
    lines[0]["alone"] = capture_cost["seconds"]
    # Every second row of twice as many, so that no file of the mirror is left out.
    insert_rows(bench, "big", rows + 1, 2 * rows)
    _run_beside_floors(bench, folder, "big", "", "append")
    bench.execute(f"update {DATABASE}.big set a = a + 1 where id % 2 = 0")
    title = f"{rows:,} scattered updates"
    lines.append(_run_beside_floors(bench, folder, "big", title, "merge"))
    return lines


def _run_beside_floors(
    bench: BenchServer, folder: Path, table: str, title: str, mode: str
) -> dict[str, Any]:
    """Measure a run, then both floors on its newest segments, each with a table of its own."""
    seconds, report = bench.measure_run(folder)
    changelog = folder / "lake" / "bench" / "_changes" / DATABASE / table
    newest = max(int(path.name.split("-")[1]) for path in changelog.glob("batch-*.parquet"))
    floors = _floor_seconds(bench, table, mode, f"{changelog}/batch-{newest:012d}-*.parquet")
    return {"title": title, "seconds": seconds, **floors, **_report_figures(report)}


def _floor_seconds(bench: BenchServer, table: str, mode: str, segments: str) -> dict[str, float]:
    seconds = {}
    for name, conf in (
        ("plain", plain_spark_settings()),
        ("tuned", product_spark_settings(bench.folder)),
    ):
        twin = bench.folder / f"{name}-{table}"
        seconds[name] = bench.floor_seconds(conf, mode, segments, twin, "id")
    return seconds


def _report_figures(report: dict[str, Any]) -> dict[str, Any]:
    (source,) = report["sources"].values()
    return {
        "capture": source["seconds"]["capture"],
        "rows": source["rows"],
        "bytes": source["bytes"],
    }


def many_tables(bench: BenchServer, tables: int) -> dict[str, Any]:
    """Measure 10 changes in 1 of many tables, all of which have a mirror."""
    bench.execute(*(f"create table {DATABASE}.t{n} {COLUMNS}" for n in range(tables)))
    folder = bench.make_project("many", f"{DATABASE}.t*")
    with bench.connect() as connection, connection.cursor() as cursor:
        for number in range(tables):
            cursor.execute(f"insert into {DATABASE}.t{number} (id) values (1)")
    bench.measure_run(folder)
    # A warm-up of the table that counts: a merge of its own, so that both sides merge.
    bench.execute(f"insert into {DATABASE}.t0 (id) values {_values(100, 200)}")
    bench.measure_run(folder)
    changelog = folder / "lake" / "bench" / "_changes" / DATABASE / "t0"
    _floor_seconds(bench, "t0", "append", f"{changelog}/batch-*.parquet")
    bench.execute(f"update {DATABASE}.t0 set a = 5 where id between 100 and {99 + CHANGES}")
    title = f"{CHANGES} changes in 1 of {tables} tables"
    return _run_beside_floors(bench, folder, "t0", title, "merge")


def _values(first: int, last: int) -> str:
    return ", ".join(f"({number})" for number in range(first, last))


def measure_runs(console: Console) -> None:
    """Perform the runs, then print their table. BENCH_ROWS, BENCH_TABLES: sizes."""
    rows, tables = env_number("BENCH_ROWS", 1_000_000), env_number("BENCH_TABLES", 500)
    with bench_server() as bench:
        lines = [*big_table(bench, rows), many_tables(bench, tables)]
    columns = ("workload", "run", "capture", "rest", "plain", "x plain", "tuned", "x tuned")
    table = Lines(console, "Seconds of wall time", columns)
    for line in lines:
        rest = line["seconds"] - line["capture"]
        figures = (line["seconds"], line["capture"], rest)
        table.add(
            line["title"],
            *(f"{figure:.1f}" for figure in figures),
            f"{line['plain']:.1f}",
            f"{line['seconds'] / line['plain']:.2f}",
            f"{line['tuned']:.1f}",
            f"{line['seconds'] / line['tuned']:.2f}",
        )
    first = lines[0]
    console.print(
        f"capture: {first['rows'] / first['capture']:,.0f} rows/s, "
        f"{first['bytes'] / first['capture'] / 1e6:.1f} MB/s of binlog\n"
        f"alone, with nobody starting Spark beside it: {first['alone']:.2f} s, "
        f"{first['alone'] / first['seconds']:.1%} of the run's wall"
    )
