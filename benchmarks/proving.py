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

from benchmarks.ground import DATABASE, Ground, ground, size
from benchmarks.lines import Lines
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
_PART = 100_000


def measure_proving(console: Console) -> None:
    """Print a line for each side. BENCH_PROOF_ROWS: rows of the table."""
    rows = size("BENCH_PROOF_ROWS", 1_000_000)
    columns = ("what", "seconds", "of our processor", "of the server's", "resident, MiB")
    with ground() as server:
        fill(server, rows)
        source, lake = MySqlServer(server.settings()), server.folder / "lake"
        structure = source.structure(TableName(DATABASE, "t"))
        copy(source, structure, lake)
        hasher = RowHasher(structure, "mysql")
        lines = Lines(console, f"{rows:,} rows", columns)
        for what, measure in {
            "the server counts its rows": lambda: server.execute(
                f"select count(*), sum(length(h)) from {DATABASE}.t"
            ),
            "the server sums its rows": lambda: source.row_sum(structure).sum,
            "we sum the mirror's": lambda: summed(hasher, lake),
            "the server tells hashes row by row": lambda: told(source, structure),
            "all rows are selected, for comparison": lambda: selected(source, structure),
        }.items():
            seconds = timed(measure)
            resident = highest_resident_size() / 2**20
            lines.add(what, *(f"{second:.1f}" for second in seconds), f"{resident:,.0f}")
        if source.row_sum(structure).sum != summed(hasher, lake):
            raise SystemExit("the sums differ")


def fill(server: Ground, rows: int) -> None:
    """Create and fill a table of ten columns."""
    server.execute(f"create table {DATABASE}.t ({_COLUMNS})")
    for first in range(0, rows, _PART):
        last = min(first + _PART, rows) - 1
        server.execute(
            f"set cte_max_recursion_depth = {_PART + 1}",
            f"insert into {DATABASE}.t with recursive s as (select {first} as n union all "
            f"select n + 1 from s where n < {last}) {_ROWS}",
        )


def copy(source: MySqlServer, structure: TableStructure, lake: Path) -> None:
    with source.rows(structure) as batches:
        for batch in batches:
            write_deltalake(lake, pa.Table.from_batches([batch]), mode="append")


def summed(hasher: RowHasher, lake: Path) -> RowSum:
    found = RowSum()
    for batch in scan_rows(lake, hasher.schema.names, _newest(lake)):
        columns = [batch.column(one.name).cast(one.type) for one in hasher.schema]
        found = found + hasher.row_sum(pa.RecordBatch.from_arrays(columns, schema=hasher.schema))
    return found


def _newest(lake: Path) -> int:
    return len(list((lake / "_delta_log").glob("*.json"))) - 1


def told(source: MySqlServer, structure: TableStructure) -> int:
    with source.row_hashes(structure) as found:
        return sum(len(keys) for keys, _ in found.batches)


def selected(source: MySqlServer, structure: TableStructure) -> int:
    with source.rows(structure) as batches:
        return sum(batch.num_rows for batch in batches)


def timed(measure: Callable[[], object]) -> tuple[float, float, float]:
    """Return wall seconds, processor seconds of this process, and those of its children and the
    server."""
    wall, own, all_of_us = perf_counter(), process_time(), processor_seconds(os.getpid())
    measure()
    wall, own = perf_counter() - wall, process_time() - own
    return wall, own, max(processor_seconds(os.getpid()) - all_of_us - own, 0.0)
