"""A mirror of many rows into which a million changes are merged: how much is read and rewritten.

Changes of the newest keys and of scattered keys are merged in a folder by a Spark of one process,
and in an object store by executors elsewhere. `large` measures one large transaction.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Final

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from rich.console import Console

from benchmarks.common import Lines, env_number, scratch_folder
from benchmarks.mirrors import append, merge, spark_process
from benchmarks.resident import processor_seconds, read_bytes, resident_sizes
from benchmarks.store import object_store
from lockstep.pipeline.ports.mirror_writes import MirrorTarget
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.resources.lake.mirror.mirror import SparkMirrors
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import delta_options

CHANGES: Final = 1_000_000
_ROWS_PER_FILE: Final = 1_000_000
"""Number of rows of a staged file."""

SCHEMA: Final = pa.schema(
    [("id", pa.int64()), ("customer", pa.int64()), ("amount", pa.int64()), ("note", pa.string())]
)
_CLUSTER: Final = {"spark.master": "local-cluster[2,1,1536]", "spark.executor.memory": "1536m"}
_CHANGED_FILES_METRICS: Final = (
    "numTargetFilesRemoved",
    "numTargetDeletionVectorsAdded",
    "numTargetDeletionVectorsUpdated",
)


@dataclass(frozen=True, slots=True)
class _Stand:
    name: str
    lake: LakePath
    conf: Mapping[str, str]
    rows: int


def measure_large_mirror(console: Console) -> None:
    """Print a line for each stand and kind of keys. BENCH_MIRROR_ROWS: rows in the folder
    (100,000,000); BENCH_MIRROR_STORE_ROWS: rows in the store, which keeps them in memory
    (10,000,000)."""
    rows = env_number("BENCH_MIRROR_ROWS", 100_000_000)
    store_rows = env_number("BENCH_MIRROR_STORE_ROWS", 10_000_000)
    with scratch_folder() as folder, object_store(folder) as store:
        stands = (
            _Stand("a folder, one process", folder / "lake", {}, rows),
            _Stand("a store, `local-cluster[2,1,…]`", store.lake("mirror"), _CLUSTER, store_rows),
        )
        # A process starts one Java, whose class path has what its lake needs.
        for stand in stands:
            process = get_context("fork").Process(
                target=_measure, args=(console, stand, folder / "staging")
            )
            process.start()
            process.join()
            if process.exitcode:
                raise SystemExit(f"{stand.name}: ended with {process.exitcode}")


def _measure(console: Console, stand: _Stand, staging: Path) -> None:
    title = f"{CHANGES:,} changes of {stand.rows:,} rows: {stand.name}"
    columns = ("keys", "seconds", "of processors", "resident, MiB", "MB read", "of")
    with spark_process(console, stand.conf, lake=stand.lake, staging=staging) as spark:
        mirrors = SparkMirrors(stand.lake, staging=staging, spark=spark)
        timer_start = perf_counter()
        _fill(mirrors, stand.rows)
        console.print(f"{stand.rows:,} rows written in {perf_counter() - timer_start:.0f} s")
        lines = Lines(console, title, (*columns, "files", "changed", "new"))
        for number, (title, keys) in enumerate(_keys(stand.rows), start=2):
            lines.add(title, *_merge_cells(mirrors, stand, number, keys))


def _fill(mirrors: SparkMirrors, rows: int) -> None:
    """Insert rows in the order of their keys, as a table grows."""
    staged = []
    for first in range(0, rows, _ROWS_PER_FILE):
        keys = np.arange(first, min(first + _ROWS_PER_FILE, rows))
        staged.append(mirrors.stage(f"all {first}", _rows(keys, "insert", 0)))
    mirrors.write(append(_target(1), *staged))
    for file in staged:
        mirrors.unstage(file)


def _keys(rows: int) -> Iterator[tuple[str, np.ndarray]]:
    """Return the keys that change, among those of a table of `rows` rows."""
    count, tenth = min(CHANGES, rows), rows // 10
    generator = np.random.default_rng(1)
    yield "the newest", np.arange(rows - count, rows)
    yield "in the first tenth", np.sort(generator.choice(tenth, min(count, tenth), replace=False))
    yield "scattered", np.sort(generator.choice(rows, count, replace=False))


def _merge_cells(mirrors: SparkMirrors, stand: _Stand, number: int, keys: np.ndarray) -> list[str]:
    file = mirrors.stage(f"changes {number}", _rows(keys, "update_postimage", number))
    write = merge(_target(number), file, keys.tolist())
    mirror = DeltaTable(str(stand.lake / "bench"), storage_options=delta_options(stand.lake))
    sizes = pa.table(mirror.get_add_actions())["size_bytes"].to_pylist()
    pid = os.getpid()
    processor_start, read_start = processor_seconds(pid), read_bytes(pid)
    timer_start = perf_counter()
    mirrors.write(write)
    seconds = perf_counter() - timer_start
    processors, read = processor_seconds(pid) - processor_start, read_bytes(pid) - read_start
    mirrors.unstage(file)
    resident = sum(resident_sizes(pid)[1:]) / 2**20
    mirror.update_incremental()
    metrics = mirror.history(1)[0]["operationMetrics"]
    added_count = int(metrics["numTargetFilesAdded"])
    changed_count = sum(int(metrics.get(name, 0)) for name in _CHANGED_FILES_METRICS)
    return [
        f"{seconds:.0f}",
        f"{processors:.0f}",
        f"{resident:,.0f}",
        f"{read / 1e6:,.0f}"
        if isinstance(stand.lake, Path)
        else "",  # bytes from the store are not counted
        f"{sum(sizes) / 1e6:,.0f}",
        *map(str, (len(sizes), changed_count, added_count)),
    ]


def _rows(keys: np.ndarray, kind: str, number: int) -> pa.Table:
    notes = pa.array(np.char.add("a note about row ", keys.astype("U10")))
    values = (pa.array(keys), pa.array(keys % 1_000_003), pa.array(keys * 7919 + number), notes)
    table = pa.Table.from_arrays(list(values), schema=SCHEMA)
    return table.append_column("_change_type", pa.array([kind] * len(keys)))


def _target(number: int) -> MirrorTarget:
    return MirrorTarget("bench", SCHEMA, "bench", number, f"write {number}", LakePolicies())
