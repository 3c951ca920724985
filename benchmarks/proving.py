"""Cost of a comparison: checksums of a table's rows by the server and by us, and rows compared
one by one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import pyarrow as pa
from deltalake import write_deltalake
from rich.console import Console

from benchmarks.common import DATABASE, BenchServer, Lines, bench_server, env_number
from benchmarks.resident import highest_resident_size, processor_seconds
from lockstep.pipeline.proof.hashes import RowHasher, RowSum
from lockstep.pipeline.values.table import TableName, TableStructure
from lockstep.resources.lake.delta.versions import scan_rows
from lockstep.resources.mysql.server import MySqlServer

_COLUMNS = (
    "id int primary key, a int, b bigint, c varchar(50), d double, e decimal(12,2), "
    "f datetime(3), g date, h text, i timestamp null"
)
_ROWS = (
    "select n, n % 1000, n * 123456789, concat('text ', n), n / 7e0, n / 13, "
    "'2024-01-01 00:00:00.5' + interval n second, '2024-01-01' + interval n % 3000 day, "
    "concat('some longer text ', n), '2024-01-01 00:00:00' + interval n second from s"
)
_ROWS_PER_INSERT = 100_000


def measure_proving(console: Console) -> None:
    """Print a line for each side. BENCH_PROOF_ROWS: rows of the table."""
    rows = env_number("BENCH_PROOF_ROWS", 1_000_000)
    columns = ("what", "seconds", "of our processor", "of the server's", "resident, MiB")
    with bench_server() as bench:
        fill(bench, rows)
        source, lake = MySqlServer(bench.connection_settings()), bench.folder / "lake"
        structure = source.structure(TableName(DATABASE, "t"))
        copy_rows(source, structure, lake)
        hasher = RowHasher(structure, "mysql")
        lines = Lines(console, f"{rows:,} rows", columns)
        for title, measure in {
            "the server counts its rows": lambda: bench.execute(
                f"select count(*), sum(length(h)) from {DATABASE}.t"
            ),
            "the server sums its rows": lambda: source.row_sum(structure).sum,
            "we sum the mirror's": lambda: sum_mirror(hasher, lake),
            "the server tells hashes row by row": lambda: count_hashes(source, structure),
            "all rows are selected, for comparison": lambda: count_rows(source, structure),
        }.items():
            seconds = measure_seconds(measure)
            resident = highest_resident_size() / 2**20
            lines.add(title, *(f"{second:.1f}" for second in seconds), f"{resident:,.0f}")
        if source.row_sum(structure).sum != sum_mirror(hasher, lake):
            raise SystemExit("the sums differ")


def fill(bench: BenchServer, rows: int) -> None:
    """Create and fill a table of ten columns."""
    bench.execute(f"create table {DATABASE}.t ({_COLUMNS})")
    for first in range(0, rows, _ROWS_PER_INSERT):
        last = min(first + _ROWS_PER_INSERT, rows) - 1
        bench.execute(
            f"set cte_max_recursion_depth = {_ROWS_PER_INSERT + 1}",
            f"insert into {DATABASE}.t with recursive s as (select {first} as n union all "
            f"select n + 1 from s where n < {last}) {_ROWS}",
        )


def copy_rows(source: MySqlServer, structure: TableStructure, lake: Path) -> None:
    with source.snapshot(structure) as snapshot:
        for batch in snapshot.batches:
            write_deltalake(lake, pa.Table.from_batches([batch]), mode="append")


def sum_mirror(hasher: RowHasher, lake: Path) -> RowSum:
    total = RowSum()
    for batch in scan_rows(lake, hasher.schema.names, _newest_version(lake)):
        columns = [batch.column(field.name).cast(field.type) for field in hasher.schema]
        total = total + hasher.row_sum(pa.RecordBatch.from_arrays(columns, schema=hasher.schema))
    return total


def _newest_version(lake: Path) -> int:
    return len(list((lake / "_delta_log").glob("*.json"))) - 1


def count_hashes(source: MySqlServer, structure: TableStructure) -> int:
    with source.row_hashes(structure) as hashes:
        return sum(len(keys) for keys, _ in hashes.batches)


def count_rows(source: MySqlServer, structure: TableStructure) -> int:
    with source.snapshot(structure) as snapshot:
        return sum(batch.num_rows for batch in snapshot.batches)


def measure_seconds(measure: Callable[[], object]) -> tuple[float, float, float]:
    """Return wall seconds, processor seconds of this process, and those of its children and the
    server."""
    timer_start, own_start = perf_counter(), process_time()
    all_start = processor_seconds(os.getpid())
    measure()
    wall, own = perf_counter() - timer_start, process_time() - own_start
    return wall, own, max(processor_seconds(os.getpid()) - all_start - own, 0.0)
