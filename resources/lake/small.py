"""A merge into a small mirror: its rows are read, changed in memory, and written anew.

Belongs here: what such a merge leaves. Does not: which merges are made so
(`pipeline.changes.strategy`), applying the changes (`pipeline.changes.apply`), the commit
(`writing`).
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.changes.apply import apply
from pipeline.ports.mirror_writes import Merge
from resources.lake.scan import mirror_schema, scanned
from resources.lake.storage import lake_errors


def rows_after(path: Path, write: Merge, version: int) -> pa.Table:
    """All rows of the mirror after the write; `version`: the mirror's before."""
    names = write.target.schema.names
    there = mirror_schema(path, version)
    schema = pa.schema([there.field(name) for name in names])
    rows = pa.Table.from_batches(scanned(path, names, version), schema)
    with lake_errors(path):
        changes = pa.concat_tables(pq.read_table(file) for file in write.changes.files)
    return apply(rows, changes, write.key)
