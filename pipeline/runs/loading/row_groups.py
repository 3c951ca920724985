"""Batches of a table's rows, gathered until they are worth a row group.

Belongs here: how many are held. Does not: reading them (`SourceServer.snapshot`), writing them
(`ports.segments`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from pipeline.segment import GROUP_BYTES, GROUP_ROWS


def row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The same rows in the same order; no table has fewer than `GROUP_ROWS` rows and
    `GROUP_BYTES` bytes but the last."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)
