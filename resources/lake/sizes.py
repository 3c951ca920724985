"""How many rows and bytes a mirror and staged files have, without reading them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from obstore.exceptions import BaseError

from pipeline.changes.strategy import Size
from pipeline.ports.mirrors import MirrorSize
from resources.lake.delta_log import checksum_of
from resources.lake.paths import LakePath
from resources.lake.storage import parquet_content

_COUNTED = 5_000_000
"""Rows up to which deletion vectors are read to count what they leave out."""


def size_in(files: Iterable[LakePath]) -> Size | None:
    """Of Parquet files; None where one cannot be read, which whoever reads them all will
    say."""
    found = Size(0, 0)
    try:
        for file in files:
            found += Size(pq.read_metadata(parquet_content(file)).num_rows, file.stat().st_size)
    except (pa.ArrowException, BaseError, OSError):
        return None
    return found


def files_of(table: DeltaTable) -> tuple[int | None, list[int]]:
    """Rows of a table's files, deleted ones among them, None where the log does not tell; and the
    bytes of each file."""
    actions = pa.table(table.get_add_actions(flatten=True))
    if not actions.num_rows:
        return 0, []
    counts = actions["num_records"].to_pylist() if "num_records" in actions.column_names else [None]
    return None if None in counts else sum(counts), actions["size_bytes"].to_pylist()


def size_of(table: DeltaTable) -> Size | None:
    """Of a table's files, deleted rows among it; None where they do not tell."""
    try:
        rows, sizes = files_of(table)
    except (DeltaError, pa.ArrowException):
        return None
    return None if rows is None else Size(rows, sum(sizes))


def shown_by(path: LakePath, table: DeltaTable) -> MirrorSize | None:
    """What a reader of the table's version sees."""
    rows, sizes = files_of(table)
    if rows is None:
        return None
    deleted = deleted_rows(path, table, rows)
    return MirrorSize(None if deleted is None else rows - deleted, len(sizes), sum(sizes))


def deleted_rows(path: LakePath, table: DeltaTable, rows: int | None) -> int | None:
    """How many of the `rows` of the files at `path` are marked as deleted; None where the checksum
    file beside the version does not count them, and the deletion vectors cannot be read, as those
    of a widened table, or would take long. OSError is not caught."""
    if rows == 0 or "deletionVectors" not in (table.protocol().reader_features or ()):
        return 0
    told = checksum_of(path, table.version()).get("numDeletedRecordsOpt")
    if isinstance(told, int):
        return told
    if rows is None or rows > _COUNTED:
        return None
    try:
        masks = pa.table(table.deletion_vectors()).column("selection_vector")
        return sum(pc.sum(pc.invert(mask.values)).as_py() or 0 for mask in masks)
    except (DeltaError, pa.ArrowException, OSError):
        return None
