"""A start of Spark that creates the class-data archive, a file of loaded classes that
makes later starts of Java faster. `java.make_archive` runs this module.

`python -m lockstep.resources.lake.rehearsal SCRATCH ARCHIVE` creates a small mirror
(the Delta table with a table's current rows), appends to it and merges into it. This
loads the classes that every run needs; Java dumps them to the archive when it ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

from lockstep.pipeline.mirror.strategy import FEW, NO_FEW_ROWS
from lockstep.pipeline.ports.mirror_writes import (
    Append,
    ColumnOrigin,
    FoldedChanges,
    Merge,
    MirrorTarget,
    StagedFiles,
)
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.resources.lake.mirror.mirror import SparkMirrors
from lockstep.resources.lake.spark.session import JAVA, SparkProcess

_COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("made_at", pa.timestamp("us")),
        ("seen_at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
    ]
)

_DUMP_SECONDS = 600
"""Longest time in seconds to wait for Java to end. It dumps the archive first, which
takes minutes on a busy machine."""


def rehearse(scratch: Path, archive: Path) -> None:
    """Write mirrors in `scratch` as runs do, with Spark's settings for many rows and
    for few; when Java ends, it creates `archive`."""
    settings = {"spark.driver.extraJavaOptions": f'"-XX:ArchiveClassesAtExit={archive}"'}
    spark = SparkProcess(settings, use_archive=False, on_warning=print)
    for few_limit in (NO_FEW_ROWS, FEW):
        lake, staging = scratch / f"lake{few_limit.rows}", scratch / "staging"
        _write_mirror(SparkMirrors(lake, staging=staging, spark=spark, few_limit=few_limit))
    spark.stop()
    JAVA.end(timeout_seconds=_DUMP_SECONDS)


def _write_mirror(mirrors: SparkMirrors) -> None:
    ids = pa.array(range(100), pa.int64())
    nulls = [pa.nulls(len(ids), field.type) for field in _COLUMNS if field.name != "id"]
    rows = pa.table([ids, *nulls], schema=_COLUMNS)
    origins = tuple(ColumnOrigin(field.name, field.type) for field in _COLUMNS)
    for number, change_type in enumerate(("insert", "insert", "update_postimage"), start=1):
        changes = rows.add_column(0, "_change_type", pa.array([change_type] * len(ids)))
        files = (mirrors.stage("rehearsal", changes),)
        target = MirrorTarget("rehearsal", _COLUMNS, "rehearsal", number, "", LakePolicies())
        if change_type == "insert":
            mirrors.write(Append(target, (StagedFiles(files, origins),)))
        else:
            bounds = (("id", "0", "99"),)
            mirrors.write(Merge(target, ("id",), FoldedChanges(files), bounds))


if __name__ == "__main__":
    rehearse(Path(sys.argv[1]), Path(sys.argv[2]))
