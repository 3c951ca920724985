"""A start of Spark that creates the class-data archive; `java.make_archive` runs it.

`python -m lockstep.resources.lake.rehearsal SCRATCH ARCHIVE` creates, appends to and merges into a
small mirror, which loads the classes that every run needs; Java dumps these classes when it ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

from lockstep.pipeline.mirror.strategy import FEW, NOTHING
from lockstep.pipeline.ports.mirror_writes import (
    Append,
    FoldedChanges,
    Merge,
    MirrorTarget,
    PartColumn,
    StagedFiles,
)
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

_LEAVING = 600
"""Timeout in seconds for Java's end, at which it dumps the archive; on a busy machine that takes
minutes."""


def rehearse(scratch: Path, archive: Path) -> None:
    """Write a mirror in `scratch` as runs do; when Java ends, it creates `archive`."""
    conf = {"spark.driver.extraJavaOptions": f'"-XX:ArchiveClassesAtExit={archive}"'}
    spark = SparkProcess(conf, archive=False, on_warning=print)
    for few in (NOTHING, FEW):
        folder = scratch / f"lake{few.rows}"
        _write(SparkMirrors(folder, staging=scratch / "staging", spark=spark, few=few))
    spark.stop()
    JAVA.end(patience=_LEAVING)


def _write(mirrors: SparkMirrors) -> None:
    own = tuple(PartColumn(field.name, field.type) for field in _COLUMNS)
    for number, change in enumerate(("insert", "insert", "update_postimage"), start=1):
        ids = list(range(100))
        empty = [pa.nulls(len(ids), field.type) for field in list(_COLUMNS)[1:]]
        changes = pa.table(
            [pa.array([change] * len(ids)), pa.array(ids, pa.int64()), *empty],
            names=["_change_type", *_COLUMNS.names],
        )
        target = MirrorTarget("rehearsal", _COLUMNS, "rehearsal", number, "")
        files = (mirrors.stage("rehearsal", changes),)
        if change == "insert":
            mirrors.write(Append(target, (StagedFiles(files, own),)))
        else:
            bounds = (("id", "0", "99"),)
            mirrors.write(Merge(target, ("id",), FoldedChanges(files), bounds))


if __name__ == "__main__":
    rehearse(Path(sys.argv[1]), Path(sys.argv[2]))
