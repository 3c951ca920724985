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
    """Count the rows in the mirror's newest version that repeat a primary key."""
    table, mirrors = state.table, ports.mirrors
    delta_version = mirrors.version(state.mirror)
    if delta_version is None or state.mirror_schema_version is None:
        return KeyCount(table, (), reason="nothing of it was merged yet")
    schema_version = ports.ledger.schema_version(
        ports.source.name, table, state.mirror_schema_version
    )
    schema = schema_version.shown_schema
    key = () if schema is None else schema.primary_key
    names = mirrors.schema(state.mirror, delta_version).names
    if not key or not set(key) <= set(names):
        return KeyCount(table, key, reason="the lake shows no primary key of it")
    size = mirrors.size(state.mirror, delta_version)
    if size is None or size.row_count is None or size.row_count > MOST_ROWS:
        reason = (
            f"it may have more than {MOST_ROWS:,} rows: `lockstep verify {table.word}` compares it"
        )
        return KeyCount(table, key, reason=reason)
    batches = [batch.select(list(key)) for batch in mirrors.rows(state.mirror, key, delta_version)]
    if not batches:
        return KeyCount(table, key, repeated_count=0)
    rows = pa.Table.from_batches(batches)
    distinct = rows.group_by(list(key)).aggregate([]).num_rows
    return KeyCount(table, key, rows.num_rows, rows.num_rows - distinct)
