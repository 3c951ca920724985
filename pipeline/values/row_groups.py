"""Grouping a table's rows, which arrive in small Arrow batches, into Parquet row
groups.

Not here: reading the rows (`SourceServer.snapshot`, `Mirrors.rows`), writing them
(`ports.segments`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

GROUP_ROWS: Final = 128 * 1024
"""Number of rows of a row group in segments, staged files and snapshot files. It is
small, so that several threads can read even a small file."""

GROUP_BYTES: Final = 48 << 20
"""Size in memory, in bytes, at which rows are written as a row group even if they are
fewer than `GROUP_ROWS`."""


@dataclass(slots=True)
class RowBuffer:
    """Rows in memory, in the order in which they were added. `rows`: their number;
    `bytes`: their size in memory."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.bytes += batch.nbytes

    @property
    def is_full(self) -> bool:
        """True if the rows fill a row group, by their number or by their size."""
        return self.rows >= GROUP_ROWS or self.bytes >= GROUP_BYTES

    def clear(self) -> None:
        self.batches = []
        self.rows = self.bytes = 0


def row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the same rows in the same order, in tables that fill a row group, except
    the last."""
    buffer = RowBuffer()
    for batch in batches:
        buffer.add(batch)
        if buffer.is_full:
            yield pa.Table.from_batches(buffer.batches)
            buffer.clear()
    if buffer.batches:
        yield pa.Table.from_batches(buffer.batches)
