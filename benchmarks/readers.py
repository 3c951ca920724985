"""Cost of `readers = "any"`: seconds and bytes of merges into mirrors with and without deletion
vectors, and seconds of reading all rows after them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
from rich.console import Console

from benchmarks.common import Lines, env_number, scratch_folder
from benchmarks.mirrors import append, spark_process
from benchmarks.resident import processor_seconds
from lockstep.pipeline.ports.mirror_writes import FoldedChanges, Merge, MirrorTarget, MirrorWrite
from lockstep.pipeline.values.policies import LakePolicies, Readers
from lockstep.resources.lake.mirror.mirror import SparkMirrors
from lockstep.resources.lake.spark.session import SparkProcess

CHANGES = (("the newest keys", 1_000), ("scattered", 1_000), ("scattered", 100_000))
ROUNDS = 4
"""Number of merges of each kind; the first one warms up."""
_NUMBERS = tuple(f"number_{n}" for n in range(6))
SCHEMA = pa.schema(
    [("id", pa.int64()), ("note", pa.string()), *((name, pa.int64()) for name in _NUMBERS)]
)


def measure_readers(console: Console) -> None:
    """Print a line for each kind of merge and of mirror. BENCH_READERS_ROWS: rows of the mirrors
    (5,000,000)."""
    rows = env_number("BENCH_READERS_ROWS", 5_000_000)
    columns = ("changed keys", "readers", "seconds", "of processors", "MB written")
    lines = Lines(console, f"Merges into {rows:,} rows", columns, texts=2)
    with scratch_folder() as folder, spark_process(console) as spark:
        for readers in Readers:
            for cells in _merge_cells(folder / readers, spark, readers, rows):
                lines.add(*cells)


def _merge_cells(
    folder: Path, spark: SparkProcess, readers: Readers, rows: int
) -> Iterator[list[str]]:
    mirrors = SparkMirrors(folder / "lake", staging=folder / "staging", spark=spark)
    staged = mirrors.stage("all", _changes(np.arange(rows), "insert", 0))
    number = 1
    mirrors.write(append(_target(number, readers), staged))
    generator = np.random.default_rng(1)
    for where, count in CHANGES:
        costs = []
        for _ in range(ROUNDS):
            number += 1
            keys = (
                np.sort(generator.choice(rows, count, replace=False))
                if where == "scattered"
                else np.arange(rows - count, rows)
            )
            changes = _changes(keys, "update_postimage", number)
            file = mirrors.stage(f"changes {number}", changes)
            write = Merge(_target(number, readers), ("id",), FoldedChanges((file,)))
            costs.append(_cost(mirrors, write, folder))
        seconds, processors, written = (
            sum(figures) / (ROUNDS - 1) for figures in zip(*costs[1:], strict=True)
        )
        yield [
            f"{count:,}, {where}",
            readers,
            f"{seconds:.1f}",
            f"{processors:.1f}",
            f"{written / 1e6:.1f}",
        ]
    timer_start, before = perf_counter(), processor_seconds(os.getpid())
    for _ in mirrors.rows("bench", SCHEMA.names, number - 1):
        pass
    seconds, processors = perf_counter() - timer_start, processor_seconds(os.getpid()) - before
    yield ["then all rows are read", readers, f"{seconds:.1f}", f"{processors:.1f}", ""]


def _cost(mirrors: SparkMirrors, write: MirrorWrite, folder: Path) -> tuple[float, float, float]:
    """Return wall seconds, processor seconds and bytes that were written to the lake."""
    bytes_before, before, timer_start = (
        _lake_bytes(folder),
        processor_seconds(os.getpid()),
        perf_counter(),
    )
    mirrors.write(write)
    seconds = perf_counter() - timer_start
    return seconds, processor_seconds(os.getpid()) - before, _lake_bytes(folder) - bytes_before


def _lake_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "lake").rglob("*") if path.is_file())


def _changes(keys: np.ndarray, kind: str, number: int) -> pa.Table:
    notes = pa.array([f"a note about the row {key}" for key in keys])
    values = [pa.array(keys * (place + 7919) + number) for place in range(len(_NUMBERS))]
    table = pa.Table.from_arrays([pa.array(keys), notes, *values], schema=SCHEMA)
    return table.append_column("_change_type", pa.array([kind] * len(keys)))


def _target(number: int, readers: Readers) -> MirrorTarget:
    return MirrorTarget(
        "bench", SCHEMA, "bench", number, f"write {number}", LakePolicies(readers=readers)
    )
