"""A table's part of a consumer's delivery: its files, its columns, its changes in order.

Belongs here: what of the changelog a delivery holds, asked of the ledger, and one Arrow
table made of what was read. Does not: reading files, whose turn it is to have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline.batch import Segment, SegmentFile, TableCondition, TableState
from pipeline.changes.layout import changelog_schema
from pipeline.consumers import Delivery
from pipeline.errors import NothingMatches, NotYet, SegmentsLost, TableError, TableSetAside
from pipeline.ports import Ledger, SegmentStore
from pipeline.table import TableName


@dataclass(frozen=True, slots=True)
class DeliveredTable:
    """`files` lie in the changelog's `folder`; `schema` has the columns of all of them."""

    table: TableName
    folder: str
    files: tuple[SegmentFile, ...]
    schema: pa.Schema


def delivered_segments(ledger: Ledger, delivery: Delivery) -> tuple[Segment, ...]:
    """All segments of the delivery's batches, as they were recorded."""
    return tuple(one for batch in delivery.batches for one in ledger.segments(batch))


def delivered_table(
    ledger: Ledger,
    delivery: Delivery,
    segments: Sequence[Segment],
    table: TableName,
    *,
    incomplete: bool,
) -> DeliveredTable:
    """What `segments`, the delivery's, hold of a table.

    `NothingMatches` for a table that was never captured. `TableSetAside` for one that is
    set aside, since changes may be missing in this delivery, unless that is known
    (`incomplete`). `NotYet` where a column changed its type within the delivery.
    """
    state = ledger.table_states(delivery.source).get(table)
    if state is None:
        raise NothingMatches(
            f"No run has captured a table {table} of {delivery.source!r}.", hint="lockstep tables"
        )
    if state.condition is not TableCondition.ACTIVE and not incomplete:
        raise _set_aside(state)
    own = [one for one in segments if one.table == table]
    versions = sorted({one.schema_version for one in own}, reverse=True)
    return DeliveredTable(
        table=table,
        folder=state.changelog,
        files=tuple(file for one in own for file in one.files),
        schema=_schema(ledger, delivery.source, state, versions),
    )


def require_files(store: SegmentStore, found: DeliveredTable) -> None:
    """`SegmentsLost` where a file of the delivery is gone or is not what was captured."""
    wrong = store.damaged(found.folder, found.files)
    if wrong:
        raise SegmentsLost(
            f"The changelog of {found.table} has lost changes of this delivery: {wrong[0]}",
            hint="restore the file from a copy of the lake; or give these changes up: drop the "
            "consumer, and make it again behind a batch whose files are there",
        )


def read_in_order(store: SegmentStore, found: DeliveredTable) -> pa.Table:
    """The changes in the order of `_sequence`, with the columns of `found.schema`; NULL
    where a column was not there yet."""
    require_files(store, found)
    if not found.files:
        return found.schema.empty_table()
    parts = [_filled(store.read(found.folder, [file]), found.schema) for file in found.files]
    whole = pa.concat_tables(parts)
    numbers = whole.column("_sequence").to_numpy()
    if bool(np.all(numbers[1:] > numbers[:-1])):
        return whole
    return whole.take(pa.array(np.argsort(numbers, kind="stable")))


def _filled(part: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        part.column(field.name).cast(field.type)
        if field.name in part.column_names
        else pa.nulls(part.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _schema(ledger: Ledger, source: str, state: TableState, versions: Sequence[int]) -> pa.Schema:
    """The columns of these versions, newest first; of the newest one there is without any."""
    if versions:
        structures = [
            ledger.table_version(source, state.table, number).structure for number in versions
        ]
    else:
        newest = ledger.newest_versions(source).get(state.table)
        structures = [] if newest is None else [newest.structure]
    try:
        schemas = [changelog_schema(structure) for structure in structures]
    except TableError as error:
        raise _set_aside(state) from error
    if not schemas:
        raise _set_aside(state)
    return _united(state.table, schemas)


def _united(table: TableName, schemas: Sequence[pa.Schema]) -> pa.Schema:
    fields: dict[str, pa.Field] = {}
    for schema in schemas:
        for field in schema:
            known = fields.setdefault(field.name, field)
            if known.type != field.type:
                raise NotYet(
                    f"Column {field.name!r} of {table} is {field.type} and then {known.type} "
                    "within one delivery.",
                    hint="roll it back, then take fewer batches: get(max_batches=1)",
                )
    return pa.schema(list(fields.values()))


def _set_aside(state: TableState) -> TableSetAside:
    return TableSetAside(
        f"{state.table} is set aside at {state.position}, and its changes after that are "
        f"missing: {state.reason}",
        hint=f"{state.hint}; or read what there is, with incomplete=True",
    )
