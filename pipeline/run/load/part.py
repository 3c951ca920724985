"""Reads rows of a captured table from the source (MySQL) again, by a WHERE condition.

The rows that match the condition are read in one consistent snapshot. The mirror (the
Delta table with the current rows) may have other rows that match the condition. These
are looked up by key in the same snapshot, and a row that the snapshot does not have was
deleted at the source. If the settings keep deleted rows in the mirror without a mark,
nothing is looked up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.ports.segments import EventFile
from lockstep.pipeline.ports.source import ConditionSnapshot
from lockstep.pipeline.proof.hashes import Hashes, RowHasher
from lockstep.pipeline.proof.sampling import ValueRange
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.mirror_rows import MirrorReader
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import key_candidates, row_structure
from lockstep.pipeline.snapshot.bounds import column_without_literal
from lockstep.pipeline.snapshot.condition import Limit, Literal
from lockstep.pipeline.source_plan import RereadRows
from lockstep.pipeline.values.errors import (
    ConditionRefused,
    RowsNotRead,
    StructureMoved,
    TableBusy,
    TableError,
)
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName, TableStructure

AGAIN = "`lockstep run`, then `lockstep reload {} --where … --reason …` again"


class ScratchRows:
    """Rows of one schema, which wait in a temporary file until they are captured."""

    def __init__(self, file: EventFile, schema: pa.Schema) -> None:
        self._file, self._schema = file, schema
        self._places: list[tuple[int, int]] = []
        self._size = self.rows = 0

    def put(self, batch: pa.RecordBatch) -> None:
        content = batch.serialize()
        self._file.write(memoryview(content))
        self._places.append((self._size, content.size))
        self._size += content.size
        self.rows += batch.num_rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        for at, size in self._places:
            content = pa.py_buffer(self._file.read(at, size))
            yield pa.ipc.read_record_batch(content, self._schema)

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True, slots=True)
class PartRead:
    """The result of reading rows by a condition, as of one moment.

    - `low`, `high`: places of the log before and after this moment.
    - `rows`: rows of the source that match the condition.
    - `gone`: rows of the mirror that the source no longer has.
    - `left`: number of rows of the mirror that were not looked up, because SQL has no exact literal
      for values of `unnamed`, a column of the key.
    """

    order: RereadRows
    structure: TableStructure
    low: Coordinates
    high: Coordinates
    rows: ScratchRows
    gone: ScratchRows
    left: int
    unnamed: str | None

    @property
    def table(self) -> TableName:
        return self.order.table

    def close(self) -> None:
        self.rows.close()
        self.gone.close()


def refusal_by_condition(work: Workplace, table: TableName) -> ConditionRefused | None:
    """Return the reason if rows of the table cannot be read by a condition now,
    otherwise None."""
    source = work.source.name
    state = work.ledger.table_states(source).get(table)
    loading = any(load.table == table for load in work.ledger.open_loads(source))
    if loading or (state is not None and state.is_loading):
        return ConditionRefused(
            f"all of {table} is being read from the source",
            hint="`lockstep run` continues until all of it is read",
        )
    if state is None or state.mirror_version is None:
        return ConditionRefused(
            f"{table} is not in the lake yet",
            hint=f"`lockstep reload {table} --from source --reason …` reads all of it",
        )
    if not state.is_complete:
        return ConditionRefused(
            f"{table} is {state.in_words}: its mirror is not continued",
            hint="`lockstep status` says what brings it back",
        )
    if work.server.facts().settings.get("binlog_row_image", "FULL").upper() != "FULL":
        return ConditionRefused(
            "row images leave columns out (binlog_row_image), and cannot be merged row by row",
            hint=f"`lockstep reload {table} --from source --reason …` reads all of it",
        )
    return None


def read_part(work: Workplace, order: RereadRows) -> PartRead:
    """Read the rows of an order into temporary files, which the result's `close`
    deletes. Raise `ConditionRefused` if they cannot be read by a condition,
    `RowsNotRead` if a later attempt may succeed."""
    table = order.table
    if (refused := refusal_by_condition(work, table)) is not None:
        raise refused
    if work.ledger.unfinished(work.source.name) or table in work.ledger.pending(work.source.name):
        raise RowsNotRead(f"changes of {table} wait to be merged", hint=AGAIN.format(table))
    try:
        return _read(work, order, work.ledger.table_states(work.source.name)[table])
    except TableBusy as error:
        raise RowsNotRead(f"{table}: {error.reason}", hint=error.hint) from error
    except TableError as error:
        raise ConditionRefused(f"{table}: {error.reason}", hint=error.hint) from error
    except StructureMoved as error:
        raise RowsNotRead(error.message, hint=AGAIN.format(table)) from error


def _read(work: Workplace, order: RereadRows, state: TableState) -> PartRead:
    table = order.table
    schema, version = _schema_and_shown_version(work, state)
    structure = version.shown_structure
    limits = on_shown_columns(order.condition.limits, version.treatments_in_words)
    key = _key(schema)
    facts = work.server.facts()
    hasher = RowHasher(replace(structure, primary_key=key), facts.flavour)
    rows, gone = (ScratchRows(work.spool.scratch(), hasher.schema) for _ in range(2))
    try:
        with work.server.rows_where(
            schema, order.condition, most_seconds=work.source.snapshot.seconds
        ) as snapshot:
            _require_not_before(work, snapshot.rows.low)
            keys_read = _put_matching(work, order, snapshot, hasher, rows)
            mirror = MirrorReader(work, state.mirror, work.mirrors.version(state.mirror))
            keeps = work.source.policies_of(table).ignores_truncates
            unnamed, left = column_without_literal(schema, key), 0
            not_read = _keys_not_read(mirror, table, limits, hasher, keys_read)
            candidates = [] if keeps else not_read
            if unnamed is None:
                _put_gone(mirror, limits, hasher, _absent(snapshot, hasher, candidates), gone)
            else:
                left = sum(batch.num_rows for batch in candidates)
            low, high = snapshot.rows.low, max(snapshot.rows.high, work.server.facts().head)
    except BaseException:
        rows.close()
        gone.close()
        raise
    return PartRead(order, structure, low, high, rows, gone, left, unnamed)


def _schema_and_shown_version(
    work: Workplace, state: TableState
) -> tuple[TableSchema, SchemaVersion]:
    """Return the table's structure on the server, and the version that its mirror
    shows. Raise `RowsNotRead` if the two differ."""
    table = state.table
    schemas = [schema for schema in work.server.baseline([table]).tables if schema.name == table]
    assert state.mirror_version is not None, "refusal_by_condition checked it"
    version = work.ledger.schema_version(work.source.name, table, state.mirror_version)
    shown = version.schema
    if not schemas or shown is None or row_structure(schemas[0]) != row_structure(shown):
        raise RowsNotRead(f"{table} was altered since the last run", hint=AGAIN.format(table))
    return schemas[0], version


def _key(schema: TableSchema) -> tuple[str, ...]:
    """Return the key by which rows are looked up: the PRIMARY KEY, or the only UNIQUE
    key. With several UNIQUE keys and no PRIMARY KEY, the mirror's merges may use
    another one."""
    keys = list(key_candidates(schema))
    if not keys or not (len(keys) == 1 or any(key.kind == "primary" for key in schema.keys)):
        has = "no key tells its rows apart" if not keys else "several keys tell its rows apart"
        raise ConditionRefused(
            f"{schema.name}: {has}, and none is its PRIMARY KEY",
            hint=f"`lockstep reload {schema.name} --from source --reason …` reads all of it",
        )
    return keys[0]


def _require_not_before(work: Workplace, low: Coordinates) -> None:
    """Raise `RowsNotRead` if the snapshot's low watermark is before the captured
    position. This is possible because MySQL logs a transaction before its changes are
    visible."""
    cursor = work.ledger.cursors(work.source.name).captured
    assert cursor is not None, "the table was captured"
    if low < cursor.position.at:
        raise RowsNotRead(
            "transactions that are in the log are not committed yet",
            hint="run the same command again in a moment",
        )


def _put_matching(
    work: Workplace,
    order: RereadRows,
    snapshot: ConditionSnapshot,
    hasher: RowHasher,
    rows: ScratchRows,
) -> Hashes:
    """Write the rows that match the condition to `rows`, and return the hashes of their
    keys."""
    hashes = [np.zeros(0, np.uint64)]
    for batch in snapshot.rows.batches:
        rows.put(batch)
        hashes.append(hasher.keys(batch))
    work.progress.note(f"{order.table}: rows read where {order.condition.text}: {rows.rows:,}")
    return np.unique(np.concatenate(hashes))


def _keys_not_read(
    mirror: MirrorReader,
    table: TableName,
    limits: Sequence[Limit],
    hasher: RowHasher,
    keys_read: Hashes,
) -> list[pa.RecordBatch]:
    """Return the keys of the mirror's rows that may match the condition and were not
    read. Raise `ConditionRefused` if the mirror has several rows with a key that was
    read: a merge would update all of them."""
    names = columns_of(hasher.schema, hasher.key, limits)
    schema = pa.schema([hasher.schema.field(name) for name in names])
    column, spans = span_of(schema, limits)
    not_read, in_both = [], [np.zeros(0, np.uint64)]
    for batch in mirror.batches(schema, column, spans):
        keys, inside = hasher.keys(batch), rows_within(batch, limits)
        was_read = np.isin(keys, keys_read)
        in_both.append(keys[was_read])
        inside &= ~was_read
        if inside.any():
            not_read.append(batch.filter(pa.array(inside)).select(list(hasher.key)))
    matched = np.concatenate(in_both)
    if more := len(matched) - len(np.unique(matched)):
        raise ConditionRefused(
            f"the mirror of {table} has keys twice, {more:,} in all",
            hint=f"`lockstep reload {table} --from source --reason …` reads all of it",
        )
    return not_read


def _absent(
    snapshot: ConditionSnapshot, hasher: RowHasher, candidates: Sequence[pa.RecordBatch]
) -> Hashes:
    """Return the hashes of the candidate keys that have no row at the source."""
    absent = [np.zeros(0, np.uint64)]
    for batch in candidates:
        present = [hasher.keys(keys) for keys in snapshot.by_keys(batch)]
        absent.append(np.setdiff1d(hasher.keys(batch), np.concatenate([absent[0], *present])))
    return np.concatenate(absent)


def _put_gone(
    mirror: MirrorReader,
    limits: Sequence[Limit],
    hasher: RowHasher,
    absent: Hashes,
    gone: ScratchRows,
) -> None:
    """Write the mirror's rows with these keys to `gone`."""
    if not len(absent):
        return
    for batch in mirror.batches(hasher.schema, *span_of(hasher.schema, limits)):
        rows = batch.filter(pa.array(np.isin(hasher.keys(batch), absent)))
        if rows.num_rows:
            gone.put(rows)


def findings(part: PartRead) -> Sequence[str]:
    """Return sentences for people about rows that are gone or were not looked up."""
    lines = [f"{part.table}: {part.gone.rows:,} rows of the mirror are gone at the source"]
    if part.left:
        lines.append(
            f"{part.table}: {part.left:,} rows of the mirror stay without being looked up, since "
            f"no statement can name the values of {part.unnamed!r}: `lockstep verify {part.table}`"
        )
    return lines[0 if part.gone.rows else 1 :]


_BIG = pa.decimal128(20, 0)
_DAY = pa.date32()


def on_shown_columns(limits: Sequence[Limit], treated: Collection[str]) -> list[Limit]:
    """Return the limits on columns whose values the mirror has unchanged. `treated`:
    columns that the settings hide or change, whose values cannot be compared with a
    limit."""
    hidden = {name.lower() for name in treated}
    return [limit for limit in limits if limit.column.lower() not in hidden]


def columns_of(schema: pa.Schema, key: Sequence[str], limits: Sequence[Limit]) -> list[str]:
    """Return the columns of the key, and the other columns with a limit."""
    more = [name for name, _ in _applied(schema, limits)]
    return list(dict.fromkeys([*key, *more]))


def span_of(schema: pa.Schema, limits: Sequence[Limit]) -> tuple[str, list[ValueRange]]:
    """Return an integer column with a limit, and its range; ("", []) if there is none."""
    for name, limit in _applied(schema, limits):
        kind = schema.field(name).type
        if pa.types.is_integer(kind):
            most = 2 ** (kind.bit_width - 1)
            low = -most if limit.low is None else limit.low
            high = most - 1 if limit.high is None else limit.high
            return name, [ValueRange(low, high)]
    return "", []


def rows_within(batch: pa.RecordBatch, limits: Sequence[Limit]) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows within the limits. NULL counts as within."""
    within = np.ones(batch.num_rows, np.bool_)
    for name, limit in _applied(batch.schema, limits):
        column = _comparable(batch.column(name))
        for value, compare in ((limit.low, pc.greater_equal), (limit.high, pc.less_equal)):
            if value is not None:
                inside = compare(column, pa.scalar(_scalar(value, column.type), column.type))
                within &= inside.fill_null(True).to_numpy(zero_copy_only=False).astype(np.bool_)
    return within


def _applied(schema: pa.Schema, limits: Sequence[Limit]) -> Iterator[tuple[str, Limit]]:
    spelled = {name.lower(): name for name in schema.names}
    for limit in limits:
        name = spelled.get(limit.column.lower())
        if name is not None and all(
            _fits(schema.field(name).type, value)
            for value in (limit.low, limit.high)
            if value is not None
        ):
            yield name, limit


def _fits(kind: pa.DataType, value: Literal) -> bool:
    if isinstance(value, datetime):
        return bool(kind == _DAY or pa.types.is_timestamp(kind))
    if kind == _BIG:
        return abs(value) < 10**20
    # An int16 column may be a SMALLINT or a YEAR, for which MySQL reads 70 as 1970.
    return bool(pa.types.is_integer(kind) and abs(value) < 2 ** (kind.bit_width - 1)) and (
        kind != pa.int16() or not 0 <= value < 100
    )


def _comparable(column: pa.Array) -> pa.Array:
    if column.type == _DAY:
        return column.cast(pa.timestamp("us"))
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    return column


def _scalar(value: Literal, kind: pa.DataType) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC)
    return Decimal(value) if kind == _BIG else value
