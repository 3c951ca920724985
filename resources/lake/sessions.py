"""Spark sessions that are used again, each for tables of its size.

Belongs here: which session a write gets. Does not: Spark's life (`session`), its settings
(`settings`), what is done with it (`mirror`).

Spark makes Java of each plan and compiles it, once for each order of types. That pays for many
rows; a run that merges many small tables spends a good part of its time on it. Without, the first
merge into a mirror of up to 10,000 rows takes 0.7 to 0.9 of the time, into larger ones as much or
more (`python -m benchmarks small`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from resources.lake.session import SparkProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW_ROWS: Final = 10_000
"""Rows of a mirror and of what is written to it, up to which nothing is compiled."""

_INTERPRETED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
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
            session = self._spark.session(_INTERPRETED if few else {})
        yield session
        with self._lock:
            self._idle[few].append(session)


def rows_in(files: Iterable[str]) -> int | None:
    """How many rows Parquet files have; None where one cannot be read, which whoever reads
    them all will say."""
    try:
        told: int = sum(pq.read_metadata(file).num_rows for file in files)
    except (pa.ArrowException, OSError):
        return None
    return told


def rows_of(table: DeltaTable) -> int | None:
    """How many rows lie in its files, deleted ones too; None where they do not tell."""
    try:
        actions = pa.table(table.get_add_actions(flatten=True))
    except (DeltaError, pa.ArrowException):
        return None
    if "num_records" not in actions.column_names:
        return 0 if actions.num_rows == 0 else None
    told: list[int | None] = actions["num_records"].to_pylist()
    counts = [count for count in told if count is not None]
    return sum(counts) if len(counts) == len(told) else None
