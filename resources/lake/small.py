"""A merge into a small mirror: its rows are read, changed in memory, and written anew.

A MERGE of Spark's is several queries, however few the rows; writing a few rows is one
(`python -m benchmarks small`). Belongs here: which merges can be made so, and what they leave.
Does not: what few is (`sessions`), applying the changes (`pipeline.changes.apply`), the commit
(`writing`).
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.changes.apply import apply
from pipeline.changes.layout import changelog_names
from pipeline.ports.mirror_writes import MirrorWrite
from resources.lake.scan import mirror_schema, scanned
from resources.lake.storage import lake_errors


def is_whole(write: MirrorWrite) -> bool:
    """Whether a write is a merge whose images have every value that they bring."""
    partial = write.kept or write.lacking or write.completion is not None
    return write.mode == "merge" and write.deletes == "remove" and not partial


def rows_after(path: Path, write: MirrorWrite, version: int) -> pa.Table:
    """All rows of the mirror after the write, as insert images; `version`: the mirror's before."""
    names = write.schema.names
    there = mirror_schema(path, version)
    schema = pa.schema([there.field(name) for name in names])
    rows = pa.Table.from_batches(scanned(path, names, version), schema)
    with lake_errors(path):
        changes = pa.concat_tables(pq.read_table(file) for file in write.files)
    after = apply(rows, changes, write.key).rename_columns(changelog_names(names))
    kind = pa.repeat(pa.scalar("insert"), after.num_rows)
    return after.add_column(0, "_change_type", kind)
