"""Spark sessions that are used again, each for tables of its size.

Belongs here: which session a write gets. Does not: Spark's life (`session`), its settings
(`settings`), what is done with it (`mirror`).

What pays for many rows is most of the work for a few (`python -m benchmarks small`): Spark makes
Java of each plan and compiles it, once for each order of types; Delta looks for the files that it
can pass over, and marks rows of a file as deleted in a file of its own, in as many queries again
as it takes to write the file anew.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from resources.lake.session import SparkProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Extent:
    """How many rows some files hold, and the files' bytes."""

    rows: int
    bytes: int

    def __add__(self, other: Extent) -> Extent:
        return Extent(self.rows + other.rows, self.bytes + other.bytes)

    def within(self, limit: Extent) -> bool:
        return self.rows <= limit.rows and self.bytes <= limit.bytes


FEW: Final = Extent(10_000, 1 << 20)
"""Up to which the rows of a mirror, and of what is written to it, are few. The bytes bound what
each run leaves behind: the file that it replaced is kept for a month."""

NOTHING: Final = Extent(-1, -1)
"""The limit that makes any number of rows many."""

_FOR_FEW: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.merge.deletionVectors.persistent": "false",
    "spark.databricks.delta.stats.skipping": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


class Sessions:
    """Those of one Spark that no thread uses at the moment."""

    def __init__(self, spark: SparkProcess) -> None:
        self._spark = spark
        self._idle: dict[bool, list[SparkSession]] = {False: [], True: []}
        self._lock = threading.Lock()

    @contextmanager
    def one(self, *, few: bool = False) -> Iterator[SparkSession]:
        """A session that no other thread uses meanwhile, for few rows or for any number.
        Sessions are kept for later, since each pays once for its own catalog and optimizer;
        one that saw an error is not."""
        with self._lock:
            idle = self._idle[few]
            session = idle.pop() if idle else None
        if session is None:
            session = self._spark.session(_FOR_FEW if few else {})
        yield session
        with self._lock:
            self._idle[few].append(session)


def extent_in(files: Iterable[str]) -> Extent | None:
    """Of Parquet files; None where one cannot be read, which whoever reads them all will
    say."""
    found = Extent(0, 0)
    try:
        for file in files:
            found += Extent(pq.read_metadata(file).num_rows, Path(file).stat().st_size)
    except (pa.ArrowException, OSError):
        return None
    return found


def extent_of(table: DeltaTable) -> Extent | None:
    """Of a table's files, deleted rows among it; None where they do not tell."""
    try:
        actions = pa.table(table.get_add_actions(flatten=True))
    except (DeltaError, pa.ArrowException):
        return None
    if "num_records" not in actions.column_names:
        return Extent(0, 0) if actions.num_rows == 0 else None
    rows: list[int | None] = actions["num_records"].to_pylist()
    counts = [count for count in rows if count is not None]
    if len(counts) < len(rows):
        return None
    return Extent(sum(counts), sum(actions["size_bytes"].to_pylist()))
