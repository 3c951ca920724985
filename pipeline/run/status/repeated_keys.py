"""Counts rows of a mirror (the Delta table with the current rows) that have the same
primary key as another row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.values.table import TableName

MOST_ROWS: Final = 5_000_000
"""Largest number of rows whose keys are counted. All keys are held in memory."""


@dataclass(frozen=True, slots=True)
class KeyCount:
    """The count for one table. `key`: the key's columns. `row_count`: number of rows.
    `repeated_count`: how many of them have the key of an earlier one; None if nothing
    was counted, which `reason` explains."""

    table: TableName
    key: tuple[str, ...]
    row_count: int = 0
    repeated_count: int | None = None
    reason: str = ""


def count_keys(ports: RunPorts, state: TableState) -> KeyCount:
    """Count repeated values of the primary key in the mirror's newest version."""
    table, mirrors = state.table, ports.mirrors
    version = mirrors.version(state.mirror)
    if version is None or state.mirror_schema_version is None:
        return KeyCount(table, (), reason="nothing of it was merged yet")
    version_shown = ports.ledger.schema_version(
        ports.source.name, table, state.mirror_schema_version
    )
    schema = version_shown.shown_schema
    key = () if schema is None else schema.primary_key
    names = mirrors.schema(state.mirror, version).names
    if not key or not set(key) <= set(names):
        return KeyCount(table, key, reason="it has no primary key")
    size = mirrors.size(state.mirror, version)
    if size is None or size.row_count is None or size.row_count > MOST_ROWS:
        reason = (
            f"it may have more than {MOST_ROWS:,} rows: `lockstep verify {table.word}` compares it"
        )
        return KeyCount(table, key, reason=reason)
    batches = [batch.select(list(key)) for batch in mirrors.rows(state.mirror, key, version)]
    if not batches:
        return KeyCount(table, key, repeated_count=0)
    rows = pa.Table.from_batches(batches)
    distinct = rows.group_by(list(key)).aggregate([]).num_rows
    return KeyCount(table, key, rows.num_rows, rows.num_rows - distinct)
