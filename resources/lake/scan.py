"""Reading a mirror's rows at a version without Java: delta-rs' own query engine, which
honours deletion vectors (its plain `count()` and `to_pyarrow` do not)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from resources.lake.storage import lake_errors


def scanned(path: Path, columns: Sequence[str], version: int) -> Iterator[pa.RecordBatch]:
    """`columns` of all rows at a version, in no particular order."""
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    with lake_errors(path):
        table = DeltaTable(path, version=version)
        schema = pa.schema(table.schema().to_arrow())
        wanted = pa.schema([schema.field(name) for name in columns])
        builder = QueryBuilder().register("mirror", table)
        for batch in builder.execute(f"select {names} from mirror"):
            yield pa.record_batch(batch).cast(wanted)
