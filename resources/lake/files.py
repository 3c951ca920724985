"""The rows of a Delta table from its Parquet files, each read under the table's columns.

Belongs here: columns under other names (column mapping), of narrower types (type widening), that
came later. Does not: which tables are read so, none with deletion vectors among them (`scan`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from pipeline.changes.mapping import cast_column
from resources.lake.columns import column_names
from resources.lake.paths import LakePath
from resources.lake.storage import lake_errors, parquet_content

NAME = "delta.columnMapping.physicalName"
"""In a column's metadata: what files call it."""


def in_files(path: LakePath, table: DeltaTable, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of `table`, at `path`, in the columns `wanted`, in no particular order. None of
    them may be marked as deleted."""
    metadata = {field.name: field.metadata for field in table.schema().fields}
    own = column_names(table)
    stored = {name: metadata[own[name]].get(NAME, own[name]) for name in own}
    for name in pa.table(table.get_add_actions()).column("path").to_pylist():
        with (
            lake_errors(path / name),
            pq.ParquetFile(parquet_content(path / name), coerce_int96_timestamp_unit="us") as file,
        ):
            there = set(file.schema_arrow.names)
            columns = [stored[field.name] for field in wanted if stored[field.name] in there]
            for batch in file.iter_batches(columns=columns):
                found = [_column(batch, stored[field.name], field.type) for field in wanted]
                yield pa.RecordBatch.from_arrays(found, schema=wanted)


def _column(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, kind)
    return cast_column(batch.column(name), kind)
