"""Numbers of rows and bytes of mirrors and of staged files, without reading them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from obstore.exceptions import BaseError

from lockstep.pipeline.mirror.strategy import Size
from lockstep.pipeline.ports.mirrors import MirrorSize
from lockstep.resources.lake.delta.delta_log import checksum_of
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import parquet_content

_COUNTED = 5_000_000
"""Most rows of a table whose deletion vectors are read to count its deleted rows."""


def size_of_files(files: Iterable[LakePath]) -> Size | None:
    """Return the size of Parquet files; None if one is unreadable, which the write will report."""
    total = Size(0, 0)
    try:
        for file in files:
            total += Size(pq.read_metadata(parquet_content(file)).num_rows, file.stat().st_size)
    except (pa.ArrowException, BaseError, OSError):
        return None
    return total


def files_of(table: DeltaTable) -> tuple[int | None, list[int]]:
    """Return the rows of a table's files, deleted ones included, None if the log does not tell; and
    the bytes of each file."""
    actions = pa.table(table.get_add_actions(flatten=True))
    if not actions.num_rows:
        return 0, []
    counts = actions["num_records"].to_pylist() if "num_records" in actions.column_names else [None]
    return None if None in counts else sum(counts), actions["size_bytes"].to_pylist()


def size_of(table: DeltaTable) -> Size | None:
    """Return the size of a table's files, deleted rows included; None if the log does not tell."""
    try:
        rows, sizes = files_of(table)
    except (DeltaError, pa.ArrowException):
        return None
    return None if rows is None else Size(rows, sum(sizes))


def visible_size(path: LakePath, table: DeltaTable) -> MirrorSize | None:
    """Return the rows that a reader of the table's version sees, and the size of its files."""
    rows, sizes = files_of(table)
    if rows is None:
        return None
    deleted = deleted_rows(path, table, rows)
    return MirrorSize(None if deleted is None else rows - deleted, len(sizes), sum(sizes))


def deleted_rows(path: LakePath, table: DeltaTable, rows: int | None) -> int | None:
    """Return how many of the `rows` of the files at `path` are marked as deleted.

    None if the version's checksum file does not count them, and the deletion vectors cannot be
    read, as those of a widened table, or are too large to count. `OSError` of the checksum file is
    not caught.
    """
    if rows == 0 or "deletionVectors" not in (table.protocol().reader_features or ()):
        return 0
    count = checksum_of(path, table.version()).get("numDeletedRecordsOpt")
    if isinstance(count, int):
        return count
    if rows is None or rows > _COUNTED:
        return None
    try:
        masks = pa.table(table.deletion_vectors()).column("selection_vector")
        return sum(pc.sum(pc.invert(mask.values)).as_py() or 0 for mask in masks)
    except (DeltaError, pa.ArrowException, OSError):
        return None
