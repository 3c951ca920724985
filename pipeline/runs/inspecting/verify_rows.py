"""Verify: compare whole tables of MySQL and the lake while both stand still.

The two sides come by independent paths (a SELECT's text; the mirror's files), meet as
Arrow, and are compared as multisets of rows. Head and acknowledged cursor must be equal
before and after, else the comparison says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.arrow_errors import for_one_table
from pipeline.batch import Cursor
from pipeline.changes.layout import DELETED_AT
from pipeline.errors import MirrorRefused, NothingMatches, SourceMoving, TableError
from pipeline.position import Position
from pipeline.runs.acknowledge import tables_set_aside
from pipeline.runs.context import NotCompared, TableDifference, VerifyReport, Workplace
from pipeline.runs.schema_choice import reload_hint
from pipeline.schema.types import arrow_schema
from pipeline.table import TableName, TableStructure
from pipeline.table_state import TableCondition, TableState

EXAMPLES = 5
_SIDE = "_lockstep_side"


def verify(work: Workplace, tables: Sequence[TableName] | None = None) -> VerifyReport:
    """Compare `tables`, or all that are captured and not set aside.

    SourceMoving if the log grew, or is ahead of the acknowledged cursor. A table that cannot
    be read on one side is told of, and the others are compared.
    """
    clock = perf_counter()
    before = _standing_still(work)
    states = work.ledger.table_states(work.source.name)
    chosen = _chosen(work, tables, states)
    found = [_tried(work, table, states.get(table)) for table in chosen]
    after = _standing_still(work)
    if after.position.at != before.position.at:
        raise _moving(after.position, str(before.position.at))
    return VerifyReport(
        before.batch,
        before.position,
        tuple(one for one in found if isinstance(one, TableDifference)),
        tables_set_aside(work),
        perf_counter() - clock,
        tuple(one for one in found if isinstance(one, NotCompared)),
    )


def _standing_still(work: Workplace) -> Cursor:
    cursor = work.ledger.acknowledged_cursor(work.source.name)
    head = work.server.facts().head
    if cursor is None or cursor.position.at != head:
        raise _moving(cursor.position if cursor else None, str(head))
    return cursor


def _moving(position: Position | None, head: str) -> SourceMoving:
    return SourceMoving(
        f"the source's log ends at {head}, the lake shows {position or 'nothing yet'}",
        hint="stop the writers, `lockstep run`, then `lockstep verify` again",
    )


def _chosen(
    work: Workplace,
    tables: Sequence[TableName] | None,
    states: dict[TableName, TableState],
) -> list[TableName]:
    present = {table.name for table in work.server.tables()}
    if tables is not None:
        unknown = [table for table in tables if table not in present and table not in states]
        if unknown:
            raise NothingMatches(
                f"neither the source nor the lake knows {unknown[0]}",
                hint="`lockstep tables` lists what there is",
            )
        return sorted(tables)
    aside = {t for t, state in states.items() if state.condition is not TableCondition.ACTIVE}
    matched = {table for table in present if work.source.patterns.matches(table)}
    return sorted((matched | states.keys()) - aside)


def _tried(
    work: Workplace, table: TableName, state: TableState | None
) -> TableDifference | NotCompared:
    """One table that cannot be read never keeps the others from being compared."""
    try:
        with for_one_table("compare its rows"):
            return _compared(work, table, state)
    except MirrorRefused as error:
        return NotCompared(table, error.reason, reload_hint(table))
    except TableError as error:
        return NotCompared(table, error.reason, error.hint)
    except NothingMatches as error:
        return NotCompared(table, error.message, error.hint)


def _compared(work: Workplace, table: TableName, state: TableState | None) -> TableDifference:
    structure = work.server.structure(table)
    with work.server.rows(structure) as batches:
        source = pa.Table.from_batches(batches, arrow_schema(structure))
    lake = _lake_rows(work, structure, state)
    return difference(structure, source, lake)


def _lake_rows(work: Workplace, structure: TableStructure, state: TableState | None) -> pa.Table:
    """The mirror now; empty where there is none yet (a table without rows)."""
    schema = arrow_schema(structure)
    version = work.mirrors.version(state.mirror) if state else None
    if state is None or version is None:
        return schema.empty_table()
    there = work.mirrors.schema(state.mirror, version)
    deleted = DELETED_AT.name in there.names and DELETED_AT.name not in schema.names
    names = [name for name in schema.names if name in there.names]
    marks = [DELETED_AT.name] if deleted else []
    batches: Iterator[pa.RecordBatch] = work.mirrors.rows(state.mirror, [*names, *marks], version)
    rows = pa.Table.from_batches(
        list(batches), pa.schema([there.field(n) for n in [*names, *marks]])
    )
    if deleted:
        rows = rows.filter(pc.is_null(rows.column(DELETED_AT.name)))
    # A column that the mirror lacks is NULL in it, and so a difference.
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def difference(structure: TableStructure, source: pa.Table, lake: pa.Table) -> TableDifference:
    """Two tables of the same schema, compared as multisets of rows; NULL equals NULL.

    A key that stands on both sides with unequal rows counts as `different`.
    """
    both = pa.concat_tables([_sided(source, 1), _sided(lake, -1)])
    rows = both.group_by(source.column_names).aggregate([(_SIDE, "sum")])
    rows = rows.filter(pc.not_equal(rows.column(f"{_SIDE}_sum"), 0))
    key = list(structure.primary_key) or source.column_names
    sides = [_keys(rows, key, pc.greater), _keys(rows, key, pc.less)]
    shared = sides[0] & sides[1]
    only_source, only_lake = sides[0] - shared, sides[1] - shared
    examples = [
        *(f"different: {text}" for text in sorted(shared)[:EXAMPLES]),
        *(f"only in MySQL: {text}" for text in sorted(only_source)[:EXAMPLES]),
        *(f"only in the lake: {text}" for text in sorted(only_lake)[:EXAMPLES]),
    ]
    return TableDifference(
        table=structure.name,
        source_rows=source.num_rows,
        lake_rows=lake.num_rows,
        only_in_source=len(only_source),
        only_in_lake=len(only_lake),
        different=len(shared),
        examples=tuple(examples[:EXAMPLES]),
    )


def _sided(table: pa.Table, side: int) -> pa.Table:
    columns = [_groupable(column) for column in table.columns]
    columns.append(pa.chunked_array([pa.repeat(pa.scalar(side, pa.int64()), table.num_rows)]))
    return pa.table(columns, names=[*table.column_names, _SIDE])


def _groupable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Lists of numbers as their bytes: Arrow groups by anything but nested values."""
    if not pa.types.is_list(column.type):
        return column
    numbers = column.type.value_type.to_pandas_dtype()
    packed = (
        None if values is None else np.array(values, numbers).tobytes()
        for values in column.to_pylist()
    )
    return pa.chunked_array([pa.array(packed, pa.large_binary())])


def _keys(rows: pa.Table, key: list[str], compare: Callable[..., pa.Array]) -> set[str]:
    side = rows.filter(compare(rows.column(f"{_SIDE}_sum"), 0)).select(key)
    return {
        ", ".join(f"{name}={value!r}" for name, value in row.items()) for row in side.to_pylist()
    }
