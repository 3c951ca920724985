"""How many rows and bytes a mirror and staged files have, without reading them.

Belongs here: asking files and logs. Does not: what follows from it (`pipeline.changes.strategy`).
"""

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


def size_of(table: DeltaTable) -> Size | None:
    """Of a table's files, deleted rows among it; None where they do not tell."""
    try:
        actions = pa.table(table.get_add_actions(flatten=True))
    except (DeltaError, pa.ArrowException):
        return None
    if "num_records" not in actions.column_names:
        return Size(0, 0) if actions.num_rows == 0 else None
    rows: list[int | None] = actions["num_records"].to_pylist()
    counts = [count for count in rows if count is not None]
    if len(counts) < len(rows):
        return None
    return Size(sum(counts), sum(actions["size_bytes"].to_pylist()))


def shown_by(table: DeltaTable) -> MirrorSize | None:
    """What a reader of the table's version sees."""
    found = size_of(table)
    if found is None:
        return None
    gone: int | None = 0
    if "deletionVectors" in (table.protocol().reader_features or ()):
        gone = _deleted(table) if found.rows <= _COUNTED else None
    files = len(table.file_uris())
    return MirrorSize(None if gone is None else found.rows - gone, files, found.bytes)


def _deleted(table: DeltaTable) -> int | None:
    """Rows that files hold and deletion vectors leave out; None where they cannot be read."""
    try:
        masks = pa.table(table.deletion_vectors()).column("selection_vector")
        return sum(pc.sum(pc.invert(mask.values)).as_py() or 0 for mask in masks)
    except (DeltaError, pa.ArrowException, OSError):
        return None
