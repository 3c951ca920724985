"""Writes of many runs to mirrors, with and without upkeep between them: the lake's files and bytes,
and the seconds of each write.

Time is compressed: versions are promised for `KEEP` instead of days, and upkeep follows every so
many rounds, so that the promise and the time between two upkeeps have as many rounds as they would
have.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from statistics import median
from time import perf_counter

import pyarrow as pa
from rich.console import Console

from benchmarks.common import Lines, env_number, scratch_folder
from benchmarks.mirrors import append, merge, spark_process
from lockstep.pipeline.mirror.strategy import FEW
from lockstep.pipeline.ports.mirror_writes import MirrorTarget, MirrorWrite
from lockstep.pipeline.upkeep.decide import UpkeepPolicy, decide
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.resources.lake.mirror.mirror import SparkMirrors
from lockstep.resources.lake.mirror.upkeep import SparkUpkeep
from lockstep.resources.lake.spark.session import SparkProcess

ROUNDS = env_number("BENCH_UPKEEP_ROUNDS", 60)
TABLES = env_number("BENCH_UPKEEP_TABLES", 2)
ROUNDS_PER_UPKEEP = 20
ROWS = 100
KEEP = timedelta(seconds=20)

_SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


_HEADS = ("upkeep", "rounds", "files", "KiB", "files listed", "s a round", "s of upkeep")


def measure_upkeep(console: Console) -> None:
    """Print a line for each `ROUNDS_PER_UPKEEP` rounds of both lakes. A round writes to each table:
    half of the tables get rows, in the other tables rows change."""
    lines = Lines(console, "Rounds of writes", _HEADS)
    with scratch_folder() as folder, spark_process(console) as spark:
        for name, has_upkeep in (("without", False), ("with", True)):
            for cells in _lake_cells(folder / name, spark, has_upkeep=has_upkeep):
                lines.add(name, *cells)


def _lake_cells(lake: Path, spark: SparkProcess, *, has_upkeep: bool) -> Iterator[list[str]]:
    mirrors = SparkMirrors(lake, staging=lake / "staging", spark=spark, few_limit=FEW, keep=KEEP)
    upkeep = SparkUpkeep(lake, spark=spark, keep=KEEP)
    names = [f"t{number}" for number in range(TABLES)]
    seconds: list[float] = []
    for number in range(1, ROUNDS + 1):
        timer_start = perf_counter()
        for position, name in enumerate(names):
            mirrors.write(_write(mirrors, name, number, inserts=position % 2 == 0))
        seconds.append(perf_counter() - timer_start)
        if number % ROUNDS_PER_UPKEEP == 0:
            timer_start = perf_counter()
            if has_upkeep:
                for name in names:
                    _carry_out_upkeep(upkeep, mirrors, name)
            upkeep_seconds = perf_counter() - timer_start
            files = [file for name in names for file in (lake / name).glob("*.parquet")]
            listed_count = sum(len(upkeep.files(name).sizes) for name in names)
            kilobytes = sum(file.stat().st_size for file in files) >> 10
            counts = (number, len(files), kilobytes, listed_count)
            yield [*(f"{n:,}" for n in counts), f"{median(seconds):.2f}", f"{upkeep_seconds:.1f}"]
            seconds.clear()


def _carry_out_upkeep(upkeep: SparkUpkeep, mirrors: SparkMirrors, name: str) -> None:
    for step in decide(upkeep.files(name), UpkeepPolicy()).steps:
        newest = mirrors.version(name)
        assert newest is not None
        if step.kind.makes_commit:
            upkeep.carry_out(name, step, "", newest)
        else:
            upkeep.vacuum(name)


def _write(mirrors: SparkMirrors, name: str, number: int, *, inserts: bool) -> MirrorWrite:
    first = number * ROWS if inserts else 0
    ids = range(first, first + ROWS)
    values = {"id": ids, "name": [f"{number} {row_id}" for row_id in ids]}
    rows = pa.table(
        {
            "_change_type": ["insert" if inserts or number == 1 else "update_postimage"] * ROWS,
            **values,
        }
    )
    file = mirrors.stage("upkeep", rows)
    target = MirrorTarget(name, _SCHEMA, "bench", number, "", LakePolicies())
    if inserts or number == 1:
        return append(target, file)
    return merge(target, file, ids)
