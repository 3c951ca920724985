"""Many changes of one table: folded in buckets of keys, and merged, by a process of its
own (`python -m benchmarks.folding FOLDER`). `small` measures few changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from benchmarks.common import Lines, env_number, process_environment, scratch_folder
from benchmarks.resident import processor_seconds, resident_sizes
from lockstep.pipeline.mirror.fold import Fold
from lockstep.pipeline.mirror.layout import MARKS
from lockstep.pipeline.mirror.strategy import buckets_for
from lockstep.pipeline.ports.mirror_writes import (
    Append,
    ColumnOrigin,
    Merge,
    MirrorTarget,
    StagedFiles,
)
from lockstep.pipeline.run.write.staged_fold import SegmentPart, staged_fold
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.pipeline.values.segment import SegmentFile
from lockstep.resources.lake.lake import Lake

FOLDER = "bench/_changes/bench/t"
MIRROR = "bench/bench/t"
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("number", pa.int32()),
        ("price", pa.decimal128(12, 2)),
        ("name", pa.string()),
        ("at", pa.timestamp("us")),
        ("share", pa.float64()),
    ]
)
STAGED_COLUMNS = tuple(ColumnOrigin(field.name, field.type) for field in SCHEMA)
ROWS_PER_WRITE = 500_000
_POLL_SECONDS = 0.1


def measure_folding(console: Console) -> None:
    """Print a line of updates of random keys with both images. BENCH_FOLD_CHANGES:
    their number; BENCH_FOLD_KEYS: rows of the mirror. Processor seconds are in
    brackets."""
    changes = env_number("BENCH_FOLD_CHANGES", 10_000_000)
    keys = env_number("BENCH_FOLD_KEYS", 5_000_000)
    columns = ("changes", "keys", "buckets", "fold s", "merge s", "resident, MiB", "of it Python")
    with scratch_folder() as folder:
        make_changes(folder, changes, keys)
        output, total_bytes, own_bytes = run_with_resident_sizes(
            [sys.executable, "-m", "benchmarks.folding", str(folder)]
        )
        Lines(console, "Changes of one table", columns, texts=0).add(
            f"{changes:,}",
            f"{keys:,}",
            str(output["buckets"]),
            "{:.1f} ({:.1f})".format(*output["fold"]),
            "{:.1f} ({:.1f})".format(*output["merge"]),
            f"{total_bytes / 2**20:,.0f}",
            f"{own_bytes / 2**20:,.0f}",
        )


def make_changes(folder: Path, changes: int, keys: int) -> None:
    """Write segments of inserts and of updates, listed in `files.json`."""
    lake = _open_lake(folder)
    generator = np.random.default_rng(1)
    inserts = lake.segments.open(FOLDER, batch=1, schema_version=1, schema=_segment_schema())
    for first in range(0, keys, ROWS_PER_WRITE):
        ids = np.arange(first, min(first + ROWS_PER_WRITE, keys))
        inserts.write(_images(ids, ids, ["insert"], first + 1))
    updates = lake.segments.open(FOLDER, batch=2, schema_version=1, schema=_segment_schema())
    for first in range(0, changes, ROWS_PER_WRITE):
        ids = np.repeat(generator.integers(0, keys, min(ROWS_PER_WRITE, changes - first)), 2)
        values = generator.integers(0, 1 << 31, len(ids))
        kinds = ["update_preimage", "update_postimage"]
        updates.write(_images(ids, values, kinds, keys + 2 * first + 1))
    files = [
        [[file.path, file.images, file.size, file.sha256] for file in writer.close()]
        for writer in (inserts, updates)
    ]
    (folder / "files.json").write_text(json.dumps(files))
    lake.close()


def _segment_schema() -> pa.Schema:
    return pa.schema([*MARKS, *SCHEMA])


def _images(ids: Any, values: Any, kinds: list[str], first: int) -> pa.Table:
    count = len(ids)
    numbers = pa.array(values % 1000)
    columns = {
        "_change_type": pa.array(kinds * (count // len(kinds))),
        "_sequence": pa.array(np.arange(first, first + count)),
        "id": pa.array(ids),
        "number": numbers.cast(pa.int32()),
        "price": numbers.cast(pa.int32()).cast(pa.decimal128(12, 2)),
        "name": pc.binary_join_element_wise("name", pa.array(values).cast(pa.string()), " "),
        "at": pa.array(values * 1000).cast(pa.timestamp("us")),
        "share": pa.array(values / 3),
    }
    schema = _segment_schema()
    return pa.table(
        [columns.get(field.name, pa.nulls(count, field.type)) for field in schema], schema=schema
    )


def run_with_resident_sizes(command: list[str]) -> tuple[dict[str, Any], int, int]:
    """Return a process's output, and the highest resident sizes of it with its children
    and of it alone."""
    total_bytes = own_bytes = 0
    with subprocess.Popen(
        command, env=process_environment({}), stdout=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None:
            sizes = resident_sizes(process.pid)
            total_bytes = max(total_bytes, sum(sizes))
            own_bytes = max(own_bytes, sizes[0] if sizes else 0)
            time.sleep(_POLL_SECONDS)
        assert process.stdout is not None
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
        return dict(json.loads(process.stdout.read())), total_bytes, own_bytes


def _warn(sentence: str) -> None:
    print(sentence, file=sys.stderr)


def _open_lake(folder: Path) -> Lake:
    return Lake(folder / "lake", staging=folder / "staging", spark_conf={}, on_warning=_warn)


def fold_and_merge(folder: Path) -> dict[str, Any]:
    """Fill a mirror, then fold the updates and merge them; return the seconds of both."""
    lake = _open_lake(folder)
    inserts, updates = (
        tuple(SegmentFile(*file) for file in files)
        for files in json.loads((folder / "files.json").read_text())
    )
    paths = tuple(lake.mirrors.path(f"{FOLDER}/{file.path}") for file in inserts)
    lake.mirrors.write(
        Append(
            MirrorTarget(MIRROR, SCHEMA, "bench", 1, "", LakePolicies()),
            (StagedFiles(paths, STAGED_COLUMNS),),
        )
    )
    part = StagedFiles((), STAGED_COLUMNS)
    buckets = buckets_for(
        sum(file.images for file in updates), lake.segments.unpacked_bytes(FOLDER, updates)
    )
    fold = Fold(SCHEMA, ("id",), (part,))
    parts = [SegmentPart(FOLDER, updates, part)]
    begin = _clocks()
    with staged_fold(lake, "bench", fold, parts, buckets) as staged:
        middle = _clocks()
        target = MirrorTarget(MIRROR, SCHEMA, "bench", 2, "", LakePolicies())
        lake.mirrors.write(Merge(target, ("id",), staged.changes, staged.bounds))
        end = _clocks()
    lake.close()
    return {"buckets": buckets, "fold": list(middle - begin), "merge": list(end - middle)}


def _clocks() -> Any:
    """Return wall and processor seconds."""
    return np.array([time.perf_counter(), processor_seconds(os.getpid())])


if __name__ == "__main__":
    print(json.dumps(fold_and_merge(Path(sys.argv[1]))))
