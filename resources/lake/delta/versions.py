"""One version of a Delta table, read without Java: its rows, its size, or why it cannot
be read any more.

The query engine of delta-rs leaves out rows that a deletion vector marks as deleted;
`DeltaTable.count` and `DeltaTable.to_pyarrow_table` do not. The engine cannot read
tables with widened columns, so their files are read here one by one. In a file, a
column can have another name (column mapping) or a narrower type (type widening), or it
can be missing because it was added later.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError
from obstore.exceptions import BaseError

from lockstep.pipeline.mirror.mapping import cast_column
from lockstep.pipeline.mirror.strategy import Size
from lockstep.pipeline.ports.mirrors import ColumnRanges, MirrorSize
from lockstep.pipeline.proof.sampling import ValueRange
from lockstep.pipeline.values.errors import ConfigurationError, LakeUnavailable, VersionGone
from lockstep.resources.lake.delta.checksums import read_checksum_file
from lockstep.resources.lake.delta.columns import (
    PHYSICAL_NAME,
    mirror_schema,
    schema_of,
    table_spelling,
)
from lockstep.resources.lake.delta.delta_log import newest_version, read_commit
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import (
    count_missing_files,
    delta_table,
    file_paths,
    first_line,
    lake_errors,
    open_file,
    parquet_content,
    raise_storage_failure,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def scan_rows(
    path: LakePath,
    columns: Sequence[str],
    version: int,
    column_ranges: ColumnRanges | None = None,
    *,
    limits_memory: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Yield `columns` of all rows at a version, in no particular order. `needs_spark`
    must be false for this version. `column_ranges`: a column and ranges of its values;
    rows whose value is in none of the ranges may be left out. `limits_memory`: read
    large rows in small batches; their size is read from a few files' footers."""
    with lake_errors(path):
        table = delta_table(path, version)
        spelled = table_spelling(table)
        names = ", ".join(_double_quoted(spelled[name]) for name in columns)
        condition = ""
        if column_ranges is not None:
            column, ranges = column_ranges
            condition = f" where {_in_ranges(spelled[column], ranges)}"
        schema = schema_of(table)
        output_schema = pa.schema([schema.field(name) for name in columns])
        if _may_have_widened_columns(table):
            yield from _rows_of_files(path, table, output_schema)
            return
        builder = QueryBuilder().register("mirror", table)
        try:
            batch_rows = _MOST_BATCH_ROWS
            if limits_memory:
                batch_rows = _batch_rows_of_table(path, table, output_schema)
            if batch_rows < _MOST_BATCH_ROWS:
                list(builder.execute(f"set datafusion.execution.batch_size = {batch_rows}"))
            for batch in builder.execute(f"select {names} from mirror{condition}"):
                yield pa.record_batch(batch).rename_columns(list(columns)).cast(output_schema)
        except Exception as error:
            if type(error) is not Exception:
                raise
            # delta-rs has no class of its own for a missing or damaged file.
            raise DeltaError(str(error)) from error


_MOST_BATCH_ROWS: Final = 8_192
"""Rows of a batch, by default, in the query engine of delta-rs."""

_BATCH_BYTES: Final = 16 << 20
"""Bytes of a batch. Rows that have more on average are read one at a time."""

_MOST_FOOTERS: Final = 16
"""Most files of a table whose footers are read to find out how large its rows are."""


def _batch_rows_of_table(path: LakePath, table: DeltaTable, output_schema: pa.Schema) -> int:
    """Return the number of rows of a batch: fewer if they are large. The footers of at
    most `_MOST_FOOTERS` files are read, because the log has only the packed sizes, and
    large rows can be packed to a few bytes. If there are more files, those with the
    most packed bytes for each row are chosen, which are not certain to have the largest
    rows."""
    if all(map(_is_fixed_in_size, output_schema.types)):
        return _MOST_BATCH_ROWS
    actions = pa.table(table.get_add_actions())
    present = {"path", "size_bytes", "num_records"} & set(actions.column_names)
    files = actions.select(sorted(present)).to_pylist()
    densest = nlargest(
        _MOST_FOOTERS, files, lambda file: file["size_bytes"] / (file.get("num_records") or 1)
    )
    batch_rows = _MOST_BATCH_ROWS
    physical_names = _physical_names(table)
    columns = [physical_names[name] for name in output_schema.names]
    try:
        for name in (file["path"] for file in densest):
            with pq.ParquetFile(parquet_content(path / name)) as content:
                batch_rows = min(batch_rows, _batch_rows_of_file(content, columns))
    except (OSError, pa.ArrowException, BaseError):
        return _MOST_BATCH_ROWS  # The reading itself tells what is wrong with the file.
    return batch_rows


def _is_fixed_in_size(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_primitive(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
    )


def _batch_rows_of_file(file: pq.ParquetFile, columns: Sequence[str]) -> int:
    """Return the number of rows of a batch for these columns of a file: as many as fit
    into `_BATCH_BYTES` in the row group with the largest rows."""
    metadata = file.metadata
    names = frozenset(columns)
    indexes = [
        index
        for index in range(metadata.num_columns)
        if not names.isdisjoint(_column_and_parents(metadata.schema.column(index).path))
    ]
    row_bytes = 1.0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        values_bytes = sum(group.column(index).total_uncompressed_size for index in indexes)
        row_bytes = max(row_bytes, values_bytes / max(group.num_rows, 1))
    return max(1, min(_MOST_BATCH_ROWS, int(_BATCH_BYTES / row_bytes)))


def _column_and_parents(path: str) -> Iterator[str]:
    """Yield the names that a column of a table can have to which a path in a Parquet
    file belongs: `a`, `a.b` and `a.b.c` for `a.b.c`, because names may have dots."""
    return accumulate(path.split("."), "{}.{}".format)


def _physical_names(table: DeltaTable) -> dict[str, str]:
    """Return the names of a table's columns in its files, by the names as the lake has
    them."""
    metadata = {field.name: field.metadata for field in table.schema().fields}
    spelled = table_spelling(table)
    return {name: metadata[spelled[name]].get(PHYSICAL_NAME, spelled[name]) for name in spelled}


_LARGEST_INTEGER = (1 << 63) - 1
"""The largest value of an integer column in the statistics of files."""


def _in_ranges(column: str, ranges: Sequence[ValueRange]) -> str:
    """Return the SQL condition that the column is in one of the ranges. A range that
    ends beyond 64 bits becomes a range without an end."""
    name = _double_quoted(column)
    conditions = []
    single_values = []
    for value_range in ranges:
        if isinstance(value_range.high, int) and value_range.high > _LARGEST_INTEGER:
            conditions.append(f"{name} >= {min(value_range.low, _LARGEST_INTEGER)}")
        elif value_range.low == value_range.high:
            single_values.append(_literal(value_range.low))
        else:
            conditions.append(
                f"{name} between {_literal(value_range.low)} and {_literal(value_range.high)}"
            )
    if single_values:
        conditions.append(f"{name} in ({', '.join(single_values)})")
    return " or ".join(conditions) or "false"


def _double_quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: int | str) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def needs_spark(path: LakePath, table: DeltaTable) -> bool:
    """Return whether only Spark can read a table, because a column was widened and rows
    may be marked as deleted."""
    features = table.protocol().reader_features or []
    if "deletionVectors" not in features or not _may_have_widened_columns(table):
        return False
    with lake_errors(path):
        return read_checksum_file(path, table.version()).get("numDeletionVectorsOpt") != 0


def _may_have_widened_columns(table: DeltaTable) -> bool:
    features = table.protocol().reader_features or []
    return any(feature.startswith("typeWidening") for feature in features)


def rows_at(path: LakePath, version: int, columns: Sequence[str] | None = None) -> pa.Table:
    """Return `columns` of all rows at a version, or all columns, in no particular
    order."""
    schema = mirror_schema(path, version)
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    return pa.Table.from_batches(
        scan_rows(path, schema.names, version, limits_memory=False), schema
    )


def staged_rows(folder: str, columns: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a mirror that Spark copied to Parquet files
    (`writing.copy_rows`)."""
    output_schema = pa.schema([schema.field(name) for name in columns])
    file_columns = [f"c{index}" for index in range(len(columns))]
    for path in sorted(Path(folder).glob("*.parquet")):
        with lake_errors(path), pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_batch_rows_of_file(file, file_columns)):
                yield batch.select(file_columns).rename_columns(list(columns)).cast(output_schema)


def _rows_of_files(
    path: LakePath, table: DeltaTable, output_schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the columns `output_schema` of a table, in no particular order. No row of
    the table may be marked as deleted."""
    physical_names = _physical_names(table)
    for name in file_paths(table):
        with (
            lake_errors(path / name),
            pq.ParquetFile(parquet_content(path / name), coerce_int96_timestamp_unit="us") as file,
        ):
            file_columns = set(file.schema_arrow.names)
            present_columns = [
                physical_names[field.name]
                for field in output_schema
                if physical_names[field.name] in file_columns
            ]
            batch_rows = _batch_rows_of_file(file, present_columns)
            for batch in file.iter_batches(batch_rows, columns=present_columns):
                arrays = [
                    _column_or_nulls(batch, physical_names[field.name], field.type)
                    for field in output_schema
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=output_schema)


def _column_or_nulls(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, kind)
    return cast_column(batch.column(name), kind)


AGE_LIMIT_SETTING: Final = (
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
)
"""The session setting with which Delta refuses a version because its commit is old,
even if it was the newest one until a moment ago. We switch it off, and check that the
version's files exist."""

_HINT: Final = (
    "read as of a later place: `lockstep versions --list`; `keep` under [lake] in lockstep.toml "
    "says how long versions stay"
)


@dataclass(frozen=True, slots=True)
class DeltaVersion:
    """A version of the Delta table in a folder. `table_id`: the table's id.
    `last_batch`: the last batch that the version may show. Either is None if it is
    unknown."""

    path: LakePath
    version: int
    table_id: str | None = None
    last_batch: int | None = None


def open_version(version: DeltaVersion) -> DeltaTable:
    """Open a version. Raise `VersionGone` if it is of another table, or if a file of it
    is missing."""
    table = _table_or_reason(version)
    if isinstance(table, str):
        raise VersionGone(
            f"Version {version.version} of {version.path} cannot be read any more: {table}",
            hint=f"{_earliest_place_clause(version)}{_HINT}",
        )
    return table


def reason_unreadable(version: DeltaVersion) -> str | None:
    """Return the reason why a version cannot be read; None if it can. Raise
    `LakeUnavailable` if the storage fails."""
    table = _table_or_reason(version)
    return table if isinstance(table, str) else None


def _table_or_reason(version: DeltaVersion) -> DeltaTable | str:
    path, table_id, last_batch = version.path, version.table_id, version.last_batch
    try:
        table = delta_table(path, version.version)
        if table_id is not None and str(table.metadata().id) != table_id:
            return "another table was created in its folder later"
        if last_batch is not None and _last_batch_shown(path, version.version) > last_batch:
            return "the lake was set back, and the version was written again"
        missing_count = count_missing_files(path, file_paths(table))
    except (BaseError, DeltaError, OSError) as error:
        raise_storage_failure(path, error)
        return first_line(str(error)) or "its log is gone"
    return f"{missing_count} of its files were deleted, as VACUUM does" if missing_count else table


def _last_batch_shown(path: LakePath, version: int) -> int:
    """Return the last batch that a version shows, according to its commit; 0 if the
    commit's file is gone, so that only a checkpoint has the version."""
    commit = read_commit(path, version)
    metadata = None if commit is None else commit.metadata
    return 0 if metadata is None else max(metadata.get("batches", [0]))


def version_rows(version: DeltaVersion) -> pa.Table:
    """Return all rows of a version, in no particular order. Raise `ConfigurationError`
    if only Spark can read them."""
    if needs_spark(version.path, open_version(version)):
        raise ConfigurationError(
            f"{version.path} has widened columns and rows marked as deleted: only Spark reads both",
            hint="use .spark(session)",
        )
    try:
        return rows_at(version.path, version.version)
    except LakeUnavailable:
        open_version(version)
        raise


def version_frame(session: SparkSession, version: DeltaVersion) -> DataFrame:
    """Return all rows of a version as a DataFrame; the session must have Delta.
    `AGE_LIMIT_SETTING` is switched off for the whole session, because Spark reads only
    when the DataFrame is used."""
    open_version(version)
    session.conf.set(AGE_LIMIT_SETTING, "false")
    return (
        session.read.format("delta").option("versionAsOf", version.version).load(str(version.path))
    )


def _earliest_place_clause(version: DeltaVersion) -> str:
    """Return a clause for a message with the place of the log that the earliest
    readable version after this one shows; '' if there is none. VACUUM removes the files
    of the oldest versions first, so a binary search finds that version."""
    newest = newest_version(version.path)
    if (
        newest is None
        or newest <= version.version
        or reason_unreadable(DeltaVersion(version.path, newest)) is not None
    ):
        return ""
    low, high = version.version + 1, newest
    while low < high:
        middle = (low + high) // 2
        if reason_unreadable(DeltaVersion(version.path, middle)) is None:
            high = middle
        else:
            low = middle + 1
    commit = read_commit(version.path, high)
    place = None if commit is None or commit.metadata is None else commit.metadata.get("place")
    return "" if place is None else f"the earliest place that it can be read as of is {place}; "


_MOST_COUNTED_ROWS = 5_000_000
"""Most rows of a table whose deletion vectors are read to count its deleted rows."""


@dataclass(frozen=True, slots=True)
class FilesSize:
    """The size of Parquet files as they are stored, and the bytes of their values, which
    may be compressed to a thousandth of them."""

    stored: Size
    unpacked_bytes: int


def files_size(files: Iterable[LakePath]) -> FilesSize | None:
    """Return the size of Parquet files; None if one is unreadable, which the write will
    report."""
    stored, unpacked_bytes = Size(0, 0), 0
    try:
        for file in files:
            with open_file(file) as content:
                byte_count = content.seek(0, os.SEEK_END)
                metadata = pq.read_metadata(content)
            stored += Size(metadata.num_rows, byte_count)
            groups = map(metadata.row_group, range(metadata.num_row_groups))
            unpacked_bytes += sum(group.total_byte_size for group in groups)
    except (pa.ArrowException, BaseError, OSError):
        return None
    return FilesSize(stored, unpacked_bytes)


def row_count_and_sizes(table: DeltaTable) -> tuple[int | None, list[int]]:
    """Return the number of rows in a table's files, deleted rows included (None if the
    log does not have it), and the size of each file in bytes."""
    actions = pa.table(table.get_add_actions(flatten=True))
    if not actions.num_rows:
        return 0, []
    sizes = actions["size_bytes"].to_pylist()
    counts = actions["num_records"].to_pylist() if "num_records" in actions.column_names else [None]
    return (None, sizes) if None in counts else (sum(counts), sizes)


def table_size(table: DeltaTable) -> Size | None:
    """Return the rows in a table's files, deleted rows included, and the files' bytes;
    None if the log does not have them."""
    try:
        row_count, sizes = row_count_and_sizes(table)
    except (DeltaError, pa.ArrowException):
        return None
    return None if row_count is None else Size(row_count, sum(sizes))


def visible_size(path: LakePath, table: DeltaTable) -> MirrorSize | None:
    """Return the size of the table's version; None if the log does not say how many
    rows its files have."""
    row_count, sizes = row_count_and_sizes(table)
    if row_count is None:
        return None
    deleted_count = count_deleted_rows(path, table, row_count)
    visible_count = None if deleted_count is None else row_count - deleted_count
    return MirrorSize(visible_count, file_count=len(sizes), byte_count=sum(sizes))


def count_deleted_rows(path: LakePath, table: DeltaTable, row_count: int | None) -> int | None:
    """Return how many of the `row_count` rows of the table's files are marked as
    deleted.

    The number is taken from the version's checksum file. If there is none, the deletion
    vectors are counted. Return None if they cannot be read, as in a table with widened
    columns, or if there are more rows than `_MOST_COUNTED_ROWS`. Raise `OSError` if the
    checksum file cannot be read.
    """
    if row_count == 0 or "deletionVectors" not in (table.protocol().reader_features or ()):
        return 0
    count = read_checksum_file(path, table.version()).get("numDeletedRecordsOpt")
    if isinstance(count, int):
        return count
    if row_count is None or row_count > _MOST_COUNTED_ROWS:
        return None
    try:
        masks = pa.table(table.deletion_vectors()).column("selection_vector")
        return sum(pc.sum(pc.invert(mask.values)).as_py() or 0 for mask in masks)
    except (DeltaError, pa.ArrowException, OSError):
        return None
