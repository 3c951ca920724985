"""Reading a mirror at a version without Java.

delta-rs' query engine honours deletion vectors (its `count()` and `to_pyarrow_table` do not). It
opens tables with widened columns, but reads no rows of them. Their files are read here one by one;
in a file, a column can have another name (column mapping) or a narrower type (type widening), or be
missing, since it was added later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from lockstep.pipeline.mirror.mapping import cast_column
from lockstep.pipeline.ports.mirrors import Near
from lockstep.pipeline.proof.sampling import ValueRange
from lockstep.resources.lake.delta.columns import (
    PHYSICAL_NAME,
    column_names,
    mirror_schema,
    schema_of,
)
from lockstep.resources.lake.delta.delta_log import checksum_of
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import delta_table, lake_errors, parquet_content


def scan(
    path: LakePath, columns: Sequence[str], version: int, near: Near | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield `columns` of all rows at a version, or of those `near`, in no particular order."""
    with lake_errors(path):
        table = delta_table(path, version)
        own = column_names(table)
        names = ", ".join(_quoted(own[name]) for name in columns)
        condition = "" if near is None else f" where {_within(own[near[0]], near[1])}"
        schema = schema_of(table)
        wanted = pa.schema([schema.field(name) for name in columns])
        if _widened(table):
            yield from _in_files(path, table, wanted)
            return
        builder = QueryBuilder().register("mirror", table)
        try:
            for batch in builder.execute(f"select {names} from mirror{condition}"):
                yield pa.record_batch(batch).rename_columns(list(columns)).cast(wanted)
        except Exception as error:
            if type(error) is not Exception:
                raise
            # delta-rs has no class of its own for a missing or damaged file.
            raise DeltaError(str(error)) from error


_MOST = (1 << 63) - 1
"""The largest value that file statistics can have for a column of integers."""


def _within(column: str, spans: Sequence[ValueRange]) -> str:
    """Return the condition that the column is in one of the spans. Numbers beyond 64 bits always
    are."""
    name = _quoted(column)
    parts = []
    single = []
    for span in spans:
        if isinstance(span.high, int) and span.high > _MOST:
            parts.append(f"{name} >= {min(span.low, _MOST)}")
        elif span.low == span.high:
            single.append(_literal(span.low))
        else:
            parts.append(f"{name} between {_literal(span.low)} and {_literal(span.high)}")
    if single:
        parts.append(f"{name} in ({', '.join(single)})")
    return " or ".join(parts) or "false"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: int | str) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def needs_spark(path: LakePath, table: DeltaTable) -> bool:
    """Return whether only Spark can read a table: a column was widened, and rows can be marked as
    deleted."""
    features = table.protocol().reader_features or []
    if "deletionVectors" not in features or not _widened(table):
        return False
    return checksum_of(path, table.version()).get("numDeletionVectorsOpt") != 0


def _widened(table: DeltaTable) -> bool:
    features = table.protocol().reader_features or []
    return any(feature.startswith("typeWidening") for feature in features)


def rows_at(path: LakePath, version: int, columns: Sequence[str] | None = None) -> pa.Table:
    """Return `columns` of all rows at a version, or all columns, in no particular order."""
    whole = mirror_schema(path, version)
    schema = whole if columns is None else pa.schema([whole.field(name) for name in columns])
    return pa.Table.from_batches(scan(path, schema.names, version), schema)


def staged_rows(folder: str, columns: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a mirror that Spark copied to Parquet files (`writing.copy_rows`)."""
    wanted = pa.schema([schema.field(name) for name in columns])
    places = [f"c{at}" for at in range(len(columns))]
    for path in sorted(Path(folder).glob("*.parquet")):
        with lake_errors(path), pq.ParquetFile(path) as file:
            for batch in file.iter_batches():
                yield batch.select(places).rename_columns(list(columns)).cast(wanted)


def _in_files(path: LakePath, table: DeltaTable, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the columns `wanted` of a table without deleted rows, in no particular order."""
    metadata = {field.name: field.metadata for field in table.schema().fields}
    own = column_names(table)
    stored = {name: metadata[own[name]].get(PHYSICAL_NAME, own[name]) for name in own}
    for name in pa.table(table.get_add_actions()).column("path").to_pylist():
        with (
            lake_errors(path / name),
            pq.ParquetFile(parquet_content(path / name), coerce_int96_timestamp_unit="us") as file,
        ):
            names = set(file.schema_arrow.names)
            columns = [stored[field.name] for field in wanted if stored[field.name] in names]
            for batch in file.iter_batches(columns=columns):
                arrays = [_column(batch, stored[field.name], field.type) for field in wanted]
                yield pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _column(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, kind)
    return cast_column(batch.column(name), kind)
