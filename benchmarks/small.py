"""Merges into small mirrors, done as for many rows and as for few: from which size on the former is
faster (`pipeline.mirror.strategy.FEW`)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter

import pyarrow as pa
from rich.console import Console

from benchmarks.common import Lines, scratch_folder
from benchmarks.mirrors import append, merge, spark_process
from lockstep.pipeline.mirror.strategy import NO_FEW_ROWS, Size
from lockstep.pipeline.ports.mirror_writes import MirrorTarget
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.resources.lake.mirror.mirror import SparkMirrors
from lockstep.resources.lake.spark.session import SparkProcess

SIZES = (100, 1_000, 10_000, 100_000)
CHANGES = 1_000
PAIRS = 5
"""Number of pairs of merges; the first pair warms up. Each has its columns in another order,
because Spark does not compile the same plan twice."""

_ALL_SIZES = Size(1 << 60, 1 << 60)
_COLUMNS = (
    ("number", pa.int32()),
    ("name", pa.string()),
    ("price", pa.decimal128(12, 2)),
    ("at", pa.timestamp("us", tz="UTC")),
    ("share", pa.float64()),
    ("day", pa.date32()),
    ("kind", pa.int16()),
)
_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def measure_small(console: Console) -> None:
    """Print a line for each size: the seconds of the first merge of at most `CHANGES` rows into
    a table, one table after another."""
    columns = ("rows of the mirror", "as many, s", "as few, s", "ratio")
    lines = Lines(console, "Merges into small mirrors", columns, texts=0)
    with scratch_folder() as folder, spark_process(console) as spark:
        for size in SIZES:
            many, few = _median_seconds(folder, spark, size)
            lines.add(f"{size:,}", f"{many:.2f}", f"{few:.2f}", f"{few / many:.2f}")


def _median_seconds(folder: Path, spark: SparkProcess, size: int) -> tuple[float, float]:
    """Return the medians of both, measured in turn."""
    pair = [
        SparkMirrors(folder / name, staging=folder / "staging", spark=spark, few_limit=few)
        for name, few in (("many", NO_FEW_ROWS), ("few", _ALL_SIZES))
    ]
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(PAIRS):
        generator = Random(number)
        schema = pa.schema([("id", pa.int64()), *generator.sample(_COLUMNS, len(_COLUMNS))])
        ids = sorted(generator.sample(range(size), min(size, CHANGES)))
        for mirrors, mirror_seconds in zip(pair, seconds, strict=True):
            mirror = f"of{size}-{number}"
            _write_seconds(mirrors, mirror, schema, "append", range(size))
            mirror_seconds.append(_write_seconds(mirrors, mirror, schema, "merge", ids))
    many, few = (median(second[1:]) for second in seconds)
    return many, few


def _write_seconds(
    mirrors: SparkMirrors, mirror: str, schema: pa.Schema, mode: str, ids: Sequence[int]
) -> float:
    """Return the seconds of one write, without staging its rows."""
    kind = "insert" if mode == "append" else "update_postimage"
    values = {
        "id": ids,
        "number": [row_id % 9 for row_id in ids],
        "name": [f"{mode} {row_id}" for row_id in ids],
        "price": [Decimal(row_id % 1000) / 4 for row_id in ids],
        "at": [_MOMENT] * len(ids),
        "share": [row_id / 3 for row_id in ids],
        "day": [_MOMENT.date()] * len(ids),
        "kind": [row_id % 5 for row_id in ids],
    }
    arrays = [pa.array(values[field.name], field.type) for field in schema]
    changes = pa.table(
        [pa.array([kind] * len(ids)), *arrays], names=["_change_type", *schema.names]
    )
    file = mirrors.stage("small", changes)
    target = MirrorTarget(mirror, schema, "bench", 1 if mode == "append" else 2, "", LakePolicies())
    write = append(target, file) if mode == "append" else merge(target, file, ids)
    timer_start = perf_counter()
    mirrors.write(write)
    return perf_counter() - timer_start
