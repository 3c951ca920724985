"""Reads rows of a captured table from the source (MySQL) again, by a WHERE condition.

The rows that match the condition are read in one consistent snapshot. The mirror (the
Delta table with the current rows) may have other rows that match the condition. These
are looked up by key in the same snapshot, and a row that the snapshot does not have was
deleted at the source. If the settings keep deleted rows in the mirror without a mark,
nothing is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.mirror.layout import changelog_path, changelog_spelling
from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.ports.ledger import table_contents
from lockstep.pipeline.ports.segments import NewEventFile
from lockstep.pipeline.ports.source import ConditionSnapshot
from lockstep.pipeline.proof.hashes import Hashes, RowHasher, membership, sorted_unique
from lockstep.pipeline.proof.sampling import ValueRange
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.mirror_rows import MirrorReader
from lockstep.pipeline.run.stop_errors import NOT_COMMITTED_REASON
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import key_candidates, row_structure
from lockstep.pipeline.snapshot.chunks import column_without_literal
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
from lockstep.pipeline.values.segment import ChangeType
from lockstep.pipeline.values.table import TableName, TableStructure


def repeat_hint(table: TableName) -> str:
    """Return the hint to give the order again."""
    return f"`lockstep run`, then `lockstep reload {table.word} --where … --reason …` again"


def _reload_hint(table: TableName) -> str:
    return f"`lockstep reload {table.word} --from source --reason …` reads all of it"


class ScratchRows:
    """Rows of one schema, which wait in a temporary file until they are captured."""

    def __init__(self, file: NewEventFile, schema: pa.Schema) -> None:
        self._file, self._schema = file, schema
        self._offsets_and_sizes: list[tuple[int, int]] = []
        self._file_size = 0
        self.row_count = 0

    def put(self, batch: pa.RecordBatch) -> None:
        content = batch.serialize()
        self._file.write(memoryview(content))
        self._offsets_and_sizes.append((self._file_size, content.size))
        self._file_size += content.size
        self.row_count += batch.num_rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        return self._read(self._offsets_and_sizes)

    def _read(self, offsets_and_sizes: Sequence[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        for offset, size in offsets_and_sizes:
            content = pa.py_buffer(self._file.read(offset, size))
            yield pa.ipc.read_record_batch(content, self._schema)

    def drop(self, is_dropped: Callable[[pa.RecordBatch], npt.NDArray[np.bool_]]) -> None:
        """Remove the rows that `is_dropped` marks in each batch."""
        offsets_and_sizes = self._offsets_and_sizes
        self._offsets_and_sizes, self.row_count = [], 0
        for batch in self._read(offsets_and_sizes):
            kept_rows = batch.filter(pa.array(~is_dropped(batch)))
            if kept_rows.num_rows:
                self.put(kept_rows)

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True, slots=True)
class ConditionRead:
    """The result of reading rows by a condition, as of one moment.

    `hasher`: computes the hashes of the rows' keys. `low`, `high`: places of the log
    before and after this moment. `matching_rows`: rows of the source that match the
    condition. `deleted_rows`: rows of the mirror that the source no longer has.
    `unchecked_rows`: number of rows of the mirror that were not looked up, because SQL
    has no exact literal for values of `unsearchable_column`, a column of the key.
    """

    order: RereadRows
    structure: TableStructure
    hasher: RowHasher
    low: Coordinates
    high: Coordinates
    matching_rows: ScratchRows
    deleted_rows: ScratchRows
    unchecked_rows: int
    unsearchable_column: str | None

    @property
    def table(self) -> TableName:
        return self.order.table

    def close(self) -> None:
        self.matching_rows.close()
        self.deleted_rows.close()


def condition_refusal(ports: RunPorts, table: TableName) -> ConditionRefused | None:
    """Return an error if rows of the table cannot be read by a condition now; otherwise
    None."""
    source = ports.source.name
    state = ports.ledger.table_states(source).get(table)
    is_loading = any(load.table == table for load in ports.ledger.open_loads(source))
    if is_loading or (state is not None and state.is_loading):
        return ConditionRefused(
            f"all of {table} is being read from the source",
            hint="`lockstep run` continues until all of it is read",
        )
    if state is None or state.mirror_schema_version is None:
        return ConditionRefused(f"{table} is not in the lake yet", hint=_reload_hint(table))
    if not state.is_complete:
        return ConditionRefused(
            f"{table} is {state.in_words}: its mirror is not continued",
            hint="`lockstep status` says what brings it back",
        )
    if ports.server.facts().settings.get("binlog_row_image", "FULL").upper() != "FULL":
        return ConditionRefused(
            "row images leave columns out (binlog_row_image), and cannot be merged row by row",
            hint=_reload_hint(table),
        )
    if table not in ports.ledger.pending_batches(source) and _shows_earlier_columns(ports, state):
        return ConditionRefused(
            f"the mirror of {table} has the columns that it had before an ALTER TABLE which no run "
            "has read",
            hint=_reload_hint(table),
        )
    return None


def _shows_earlier_columns(ports: RunPorts, state: TableState) -> bool:
    """Return whether the mirror shows other columns than the newest version has.
    Statements that are followed change it at once; only what was not read leaves it
    behind."""
    ledger, source, table = ports.ledger, ports.source.name, state.table
    assert state.mirror_schema_version is not None, "the caller has checked it"
    newest = ledger.schema_at(source, table)
    shown = ledger.schema_version(source, table, state.mirror_schema_version)
    if newest is None or newest.schema is None or shown.schema is None:
        return False
    return row_structure(newest.schema) != row_structure(shown.schema)


def read_by_condition(ports: RunPorts, order: RereadRows) -> ConditionRead:
    """Read the rows of an order into temporary files, which the result's `close`
    deletes. Raise `ConditionRefused` if the rows cannot be read by a condition,
    `RowsNotRead` if a later attempt may succeed."""
    table, source = order.table, ports.source.name
    if (refusal := condition_refusal(ports, table)) is not None:
        raise refusal
    ledger = ports.ledger
    if ledger.unfinished_batches(source) or table in ledger.pending_batches(source):
        raise RowsNotRead(f"changes of {table} wait to be merged", hint=repeat_hint(table))
    try:
        return _read(ports, order, ledger.table_states(source)[table])
    except TableBusy as error:
        raise RowsNotRead(f"{table}: {error.reason}", hint=error.hint) from error
    except TableError as error:
        raise ConditionRefused(f"{table}: {error.reason}", hint=error.hint) from error
    except StructureMoved as error:
        raise RowsNotRead(error.message, hint=repeat_hint(table)) from error


def _read(ports: RunPorts, order: RereadRows, state: TableState) -> ConditionRead:
    schema, version = _schema_and_shown_version(ports, state)
    limits = comparable_limits(order.condition.limits, version.treatments_in_words)
    key = _lookup_key(schema)
    structure = replace(version.shown_structure, primary_key=key)
    hasher = RowHasher(structure, ports.server.facts().flavour)
    with ExitStack() as on_error:
        matching_rows = ScratchRows(ports.spool.create_scratch_file(), hasher.schema)
        on_error.enter_context(closing(matching_rows))
        deleted_rows = ScratchRows(ports.spool.create_scratch_file(), hasher.schema)
        on_error.enter_context(closing(deleted_rows))
        with ports.server.rows_where(
            schema, order.condition, most_seconds=ports.source.snapshot.max_seconds
        ) as snapshot:
            _require_after_capture(ports, snapshot.rows.low)
            keys_read = _put_matching(ports, order, snapshot, hasher, matching_rows)
            mirror = MirrorReader(ports, state.mirror, ports.mirrors.version(state.mirror))
            unread_keys = _keys_not_read(mirror, order.table, limits, hasher, keys_read)
            if ports.source.policies_of(order.table).keeps_unmarked_rows:
                unread_keys = []  # Deleted rows also stay, without a mark.
            unsearchable_column = column_without_literal(schema, key)
            if unsearchable_column is None:
                absent_keys = _absent_keys(snapshot, hasher, unread_keys)
                _put_deleted(mirror, limits, hasher, absent_keys, deleted_rows)
                unread_keys = []
            high = max(snapshot.rows.high, ports.server.facts().head)
        on_error.pop_all()
    return ConditionRead(
        order,
        version.shown_structure,
        hasher,
        low=snapshot.rows.low,
        high=high,
        matching_rows=matching_rows,
        deleted_rows=deleted_rows,
        unchecked_rows=sum(keys.num_rows for keys in unread_keys),
        unsearchable_column=unsearchable_column,
    )


def _schema_and_shown_version(
    ports: RunPorts, state: TableState
) -> tuple[TableSchema, SchemaVersion]:
    """Return the table's structure on the server, and the version that its mirror
    shows. Raise `RowsNotRead` if the two differ."""
    table = state.table
    schemas = [schema for schema in ports.server.baseline([table]).tables if schema.name == table]
    assert state.mirror_schema_version is not None, "condition_refusal checked it"
    version = ports.ledger.schema_version(ports.source.name, table, state.mirror_schema_version)
    shown_schema = version.schema
    if (
        not schemas
        or shown_schema is None
        or row_structure(schemas[0]) != row_structure(shown_schema)
    ):
        raise RowsNotRead(f"{table} was altered since the last run", hint=repeat_hint(table))
    return schemas[0], version


def _lookup_key(schema: TableSchema) -> tuple[str, ...]:
    """Return the key by which rows are looked up: the PRIMARY KEY, or the only UNIQUE
    key. With several UNIQUE keys and no PRIMARY KEY, the mirror's merges may use
    another one."""
    keys = list(key_candidates(schema))
    if len(keys) != 1 and not any(key.kind == "primary" for key in schema.keys):
        reason = "no key tells its rows apart"
        if keys:
            reason = "several keys tell its rows apart, and none is its PRIMARY KEY"
        raise ConditionRefused(f"{schema.name}: {reason}", hint=_reload_hint(schema.name))
    return keys[0]


def _require_after_capture(ports: RunPorts, low: Coordinates) -> None:
    """Raise `RowsNotRead` if the snapshot's low watermark is before the captured
    position. This is possible because MySQL logs a transaction before its changes are
    visible."""
    cursor = ports.ledger.cursors(ports.source.name).captured
    assert cursor is not None, "the table was captured"
    if low < cursor.position.at:
        raise RowsNotRead(
            NOT_COMMITTED_REASON,
            hint="run the same command again in a moment",
        )


def _put_matching(
    ports: RunPorts,
    order: RereadRows,
    snapshot: ConditionSnapshot,
    hasher: RowHasher,
    matching_rows: ScratchRows,
) -> Hashes:
    """Write the rows that match the condition to `matching_rows`, and return the hashes
    of their keys."""
    hashes = [np.zeros(0, np.uint64)]
    for batch in snapshot.rows.batches:
        matching_rows.put(batch)
        hashes.append(hasher.key_hashes(batch))
    ports.progress.note(
        f"{order.table}: rows read where {order.condition.short_text}: {matching_rows.row_count:,}"
    )
    return sorted_unique(np.concatenate(hashes))


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
    names = columns_of(hasher.schema, hasher.key_columns, limits)
    schema = pa.schema([hasher.schema.field(name) for name in names])
    range_column, spans = _range_of_limits(schema, limits)
    unread_keys: list[pa.RecordBatch] = []
    keys_in_both = [np.zeros(0, np.uint64)]
    for batch in mirror.batches(schema, range_column, spans):
        keys, is_within = hasher.key_hashes(batch), _rows_within(batch, limits)
        was_read = membership(keys, keys_read)
        keys_in_both.append(keys[was_read])
        is_within &= ~was_read
        if is_within.any():
            unread_keys.append(batch.filter(pa.array(is_within)).select(list(hasher.key_columns)))
    matched_keys = np.concatenate(keys_in_both)
    if repeated_count := len(matched_keys) - len(sorted_unique(matched_keys)):
        raise ConditionRefused(
            f"in the mirror of {table}, {repeated_count:,} rows have the key of another row",
            hint=_reload_hint(table),
        )
    return unread_keys


def _absent_keys(
    snapshot: ConditionSnapshot, hasher: RowHasher, candidates: Sequence[pa.RecordBatch]
) -> Hashes:
    """Return the hashes of the candidate keys that have no row at the source."""
    no_hashes = np.zeros(0, np.uint64)
    absent_keys = [no_hashes]
    for batch in candidates:
        present_keys = np.concatenate([no_hashes, *map(hasher.key_hashes, snapshot.by_keys(batch))])
        absent_keys.append(np.setdiff1d(hasher.key_hashes(batch), present_keys))
    return sorted_unique(np.concatenate(absent_keys))


def _put_deleted(
    mirror: MirrorReader,
    limits: Sequence[Limit],
    hasher: RowHasher,
    absent_keys: Hashes,
    deleted_rows: ScratchRows,
) -> None:
    """Write the mirror's rows with these keys to `deleted_rows`."""
    if not len(absent_keys):
        return
    for batch in mirror.batches(hasher.schema, *_range_of_limits(hasher.schema, limits)):
        batch_rows = batch.filter(pa.array(membership(hasher.key_hashes(batch), absent_keys)))
        if batch_rows.num_rows:
            deleted_rows.put(batch_rows)


def leave_deletes_to_log(ports: RunPorts, read: ConditionRead, batch: int) -> None:
    """Remove from `deleted_rows` each row that the log deleted, or gave another key,
    before the rows were read. `batch`: it captured the log up to there, and none of its
    changes is in the mirror whose rows were looked up."""
    source, table, hasher = ports.source.name, read.table, read.hasher
    shown_version = ports.ledger.table_states(source)[table].mirror_schema_version
    if not read.deleted_rows.row_count or shown_version is None:
        return
    batches = read.deleted_rows.batches()
    looked_up = sorted_unique(np.concatenate([*map(hasher.key_hashes, batches)]))
    version = ports.ledger.schema_version(source, table, shown_version)
    folder = changelog_path(source, table, version.generation)
    spelled = changelog_spelling(read.structure.names)
    schema = pa.schema([hasher.schema.field(name) for name in hasher.key_columns])
    last_changes = dict[int, str]()
    for content in table_contents(ports.ledger, source, table, batch, batch):
        for segment in content.segments:
            if segment.schema_version != shown_version:
                continue
            columns = ["_change_type", *(spelled[name] for name in schema.names)]
            for piece in ports.segments.pieces(folder, segment.files, columns):
                for images in piece.combine_chunks().to_batches():
                    kinds, *key = images.columns
                    values = [v.cast(t) for v, t in zip(key, schema.types, strict=True)]
                    hashes = hasher.key_hashes(pa.RecordBatch.from_arrays(values, schema=schema))
                    is_looked_up = membership(hashes, looked_up)
                    kinds = kinds.filter(pa.array(is_looked_up)).to_pylist()
                    last_changes |= zip(hashes[is_looked_up].tolist(), kinds, strict=True)
    # The last image with a key that a row had before an UPDATE of the key is its preimage.
    last_kinds = (ChangeType.DELETE, ChangeType.UPDATE_PREIMAGE)
    gone_by_log = [key for key, kind in last_changes.items() if kind in last_kinds]
    logged = sorted_unique(np.array(gone_by_log, np.uint64))
    read.deleted_rows.drop(lambda rows: membership(hasher.key_hashes(rows), logged))


def sentences_about_rows(read: ConditionRead) -> Sequence[str]:
    """Return sentences for people about rows that are gone or were not looked up."""
    table, sentences = read.table, list[str]()
    if deleted := read.deleted_rows.row_count:
        sentences.append(f"{table}: {deleted:,} rows of the mirror are gone at the source")
    if read.unchecked_rows:
        sentences.append(
            f"{table}: {read.unchecked_rows:,} rows of the mirror stay without being looked up, "
            f"because no statement can name the values of {read.unsearchable_column!r}; "
            f"`lockstep verify {table.word}` compares them"
        )
    return sentences


# -- the limits of a condition, applied to rows of Arrow -------------------------------

_UNSIGNED_BIGINT = pa.decimal128(20, 0)
_DAY = pa.date32()


def comparable_limits(limits: Sequence[Limit], treated_columns: Collection[str]) -> list[Limit]:
    """Return the limits on columns whose values the mirror has unchanged.
    `treated_columns`: columns that the settings hide or change, whose values cannot be
    compared with a limit."""
    hidden = {name.lower() for name in treated_columns}
    return [limit for limit in limits if limit.column.lower() not in hidden]


def columns_of(schema: pa.Schema, key: Sequence[str], limits: Sequence[Limit]) -> list[str]:
    """Return the columns of the key, and the other columns with a limit."""
    limited_columns = [name for name, _ in _usable_limits(schema, limits)]
    return list(dict.fromkeys([*key, *limited_columns]))


def _range_of_limits(schema: pa.Schema, limits: Sequence[Limit]) -> tuple[str, list[ValueRange]]:
    """Return an integer column with a limit, and its range; ("", []) if there is none."""
    for name, limit in _usable_limits(schema, limits):
        column_type = schema.field(name).type
        if pa.types.is_integer(column_type):
            bound = 2 ** (column_type.bit_width - 1)
            low = -bound if limit.low is None else limit.low
            high = bound - 1 if limit.high is None else limit.high
            return name, [ValueRange(low, high)]
    return "", []


def _rows_within(batch: pa.RecordBatch, limits: Sequence[Limit]) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows within the limits. NULL counts as within."""
    mask = np.ones(batch.num_rows, np.bool_)
    for name, limit in _usable_limits(batch.schema, limits):
        column = _comparable(batch.column(name))
        for value, compare in ((limit.low, pc.greater_equal), (limit.high, pc.less_equal)):
            if value is not None:
                is_inside = compare(column, pa.scalar(_scalar(value, column.type), column.type))
                mask &= is_inside.fill_null(True).to_numpy(zero_copy_only=False).astype(np.bool_)
    return mask


def _usable_limits(schema: pa.Schema, limits: Sequence[Limit]) -> Iterator[tuple[str, Limit]]:
    """Yield each limit on a column of the schema whose values can be compared with it,
    and the column's name."""
    exact_names = {name.lower(): name for name in schema.names}
    for limit in limits:
        name = exact_names.get(limit.column.lower())
        if name is not None and all(
            _can_compare(schema.field(name).type, value)
            for value in (limit.low, limit.high)
            if value is not None
        ):
            yield name, limit


def _can_compare(column_type: pa.DataType, value: Literal) -> bool:
    if isinstance(value, datetime):
        return bool(column_type == _DAY or pa.types.is_timestamp(column_type))
    if column_type == _UNSIGNED_BIGINT:
        return abs(value) < 10**20
    if not pa.types.is_integer(column_type) or abs(value) >= 2 ** (column_type.bit_width - 1):
        return False
    # An int16 column may be a SMALLINT or a YEAR, for which MySQL reads 70 as 1970.
    return column_type != pa.int16() or not 0 <= value < 100


def _comparable(column: pa.Array) -> pa.Array:
    if column.type == _DAY:
        return column.cast(pa.timestamp("us"))
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    return column


def _scalar(value: Literal, column_type: pa.DataType) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC)
    return Decimal(value) if column_type == _UNSIGNED_BIGINT else value
