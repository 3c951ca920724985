"""Decoded row images: what a decoder hands on.

Belongs here: the shape they have. Does not: decoding (`pipeline.binlog`), numbering
(`pipeline.changes.marks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from pipeline.segment import ChangeType

CHANGE_TYPES = (
    ChangeType.INSERT,
    ChangeType.UPDATE_PREIMAGE,
    ChangeType.UPDATE_POSTIMAGE,
    ChangeType.DELETE,
)
"""What `RowImages.change_type` counts in."""


@dataclass(frozen=True, slots=True)
class RowImages:
    """Decoded row images of one table, in order of event and row.

    `columns`: the table's columns (`schema.types.arrow_schema`), one row per image.
    `event`: int32, index of the image's event in what was decoded. `row`: int32, the
    row's index within its event; an update's two images share it. `change_type`: int8,
    index into `CHANGE_TYPES`. `softened`: values replaced by NULL by policy, per column.
    """

    columns: pa.RecordBatch
    event: pa.Int32Array
    row: pa.Int32Array
    change_type: pa.Int8Array
    softened: Mapping[str, int]
