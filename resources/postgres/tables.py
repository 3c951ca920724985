"""What the ledger records about tables, on Postgres: their states, orders (requests of
a person), loads (tables read in chunks) and proofs (comparisons with the source)."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from lockstep.pipeline.model.batch import CaptureRecord
from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.model.life import MirrorEvent, Reloaded, TableStopped, quarantine_event
from lockstep.pipeline.model.load import Chunk, ChunkRows, FollowedFrom, Load, LoadBasis
from lockstep.pipeline.model.table_state import (
    Extent,
    OrderKind,
    StoppedTable,
    Supplier,
    TableOrder,
    TableState,
    pause_texts,
    reload_texts,
)
from lockstep.pipeline.ports.ledger import LAST_BATCH
from lockstep.pipeline.proof.proven import (
    ComparisonRecord,
    ComparisonResult,
    EqualityProof,
    ProofKind,
)
from lockstep.pipeline.schema.model import TableSchema, schema_from_json, schema_to_json
from lockstep.pipeline.snapshot.chunks import Bound, Range
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import StoppedBy
from lockstep.pipeline.values.table import TableName
from lockstep.resources.postgres.life_events import last_capture_end, record_events, state_of
from lockstep.resources.postgres.refusals import refusal
from lockstep.resources.postgres.rows import (
    Row,
    coordinate_columns,
    coordinates_of,
    file_rows,
    files_of,
    stop_place_of,
    table_columns,
    table_of,
    value_of,
)
from lockstep.resources.postgres.session import LedgerPort, Transaction


class PostgresTables(LedgerPort):
    """The port `Tables` (`pipeline.ports.ledger`), which describes each method, on
    Postgres."""

    # -- states --------------------------------------------------------------------------------

    def table_states(self, source: str) -> dict[TableName, TableState]:
        states = self._cached(state_of, "table_states", source=source)
        return {state.table: state for state in states}

    def complete_since(self, source: str) -> dict[TableName, int]:
        rows = self._all("complete_since", source=source)
        return {table_of(row): row["batch"] for row in rows}

    def partial_tables(self, source: str, batch: int = LAST_BATCH) -> list[Extent]:
        return self._cached(_extent, "partial_tables", source=source, batch=batch)

    def note_complete(self, lease: Lease, batch: int, tables: Collection[TableName]) -> None:
        with self._transaction(lease) as transaction:
            complete_extents = [Extent(table, begins=None) for table in sorted(tables)]
            record_extents(transaction, lease.source, batch, complete_extents)

    def quarantine(self, lease: Lease, quarantined: StoppedTable) -> None:
        with self._transaction(lease) as transaction:
            end = last_capture_end(transaction, lease.source)
            if end is not None and quarantined.at is not None:
                end = replace(end, at=quarantined.at)
            event = quarantine_event(quarantined, end)
            record_events(transaction, lease, [(quarantined.table, event)])
            note_missing_batches(transaction, lease.source, quarantined.table)
            if quarantined.need is not None:  # the next write does not continue the mirror
                table = table_columns(quarantined.table)
                transaction.run("give_up_intents", source=lease.source, **table)

    def record_event(self, lease: Lease, table: TableName, event: MirrorEvent) -> TableState:
        with self._transaction(lease) as transaction:
            return record_events(transaction, lease, [(table, event)])[table]

    # -- orders --------------------------------------------------------------------------------

    def open_orders(self, source: str) -> list[TableOrder]:
        return self._cached(_order, "open_orders", source=source)

    def order_table(
        self,
        lease: Lease,
        table: TableName,
        kind: OrderKind,
        *,
        author: str,
        reason: str,
        schema: TableSchema | None = None,
        renames: Sequence[tuple[str, str]] = (),
        supplier: Supplier | None = None,
    ) -> TableOrder:
        with self._transaction(lease) as transaction:
            row = transaction.only(
                "order_table",
                source=lease.source,
                token=lease.token,
                **table_columns(table),
                kind=kind.value,
                author=author,
                reason=reason,
                schema=None if schema is None else json.dumps(schema_to_json(schema)),
                renames=json.dumps(list(renames)) if renames else None,
                supplier=supplier,
            )
            if kind is OrderKind.PAUSE:
                transaction.run("withdraw_load", source=lease.source, **table_columns(table))
            if kind is not OrderKind.RESUME:
                end = last_capture_end(transaction, lease.source)
                event: TableStopped | Reloaded = (
                    TableStopped(StoppedBy.PERSON, *pause_texts(table, reason, author), end)
                    if kind is OrderKind.PAUSE
                    else Reloaded(*reload_texts(table, reason, author), end)
                )
                record_events(transaction, lease, [(table, event)])
                note_missing_batches(transaction, lease.source, table)
            return _order(transaction.only("order_by_id", source=lease.source, order=row["id"]))

    # -- loads ---------------------------------------------------------------------------------

    def order_load(
        self,
        lease: Lease,
        table: TableName,
        *,
        author: str,
        reason: str,
        with_past: bool | None = None,
    ) -> Load:
        with self._transaction(lease) as transaction:
            keys = {"source": lease.source, **table_columns(table)}
            rows = transaction.all("unbegun_load", **keys)
            if not rows:
                values = {"token": lease.token, "author": author, "reason": reason}
                rows = transaction.all("order_load", **keys, **values)
            load_id = rows[0]["id"]
            if with_past is not None:
                transaction.run(
                    "set_with_past", source=lease.source, load=load_id, with_past=with_past
                )
            return _load(transaction.only("load_by_id", source=lease.source, load=load_id), ())

    def open_loads(self, source: str) -> list[Load]:
        rows = self._cached(dict, "open_loads", source=source)
        chunks: dict[int, list[Chunk]] = {row["id"]: [] for row in rows}
        if rows:
            for row in self._all("load_chunks", loads=list(chunks)):
                chunks[row["load"]].append(_chunk(row))
        return [_load(row, chunks[row["id"]]) for row in rows]

    def load_without_past(self, lease: Lease, load: int) -> None:
        with self._transaction(lease) as transaction:
            transaction.run("set_with_past", source=lease.source, load=load, with_past=False)

    def begin_load(self, lease: Lease, load: int, basis: LoadBasis) -> None:
        with self._transaction(lease) as transaction:
            transaction.run_or_refuse(
                "begin_load",
                "loads_known",
                source=lease.source,
                load=load,
                schema=json.dumps(schema_to_json(basis.schema)),
                server_uuid=basis.server_uuid,
                estimated_rows=basis.estimated_rows,
                shape=basis.shape,
                **coordinate_columns(basis.low, "low_"),
            )

    def plan_chunk(self, lease: Lease, load: int, number: int, key_range: Range) -> None:
        with self._transaction(lease) as transaction:
            ends = {
                "after": _bound_json(key_range.after),
                "through": _bound_json(key_range.through),
            }
            transaction.run("plan_chunk", load=load, number=number, **ends)

    def record_chunk(self, lease: Lease, load: int, number: int, rows: ChunkRows) -> None:
        with self._transaction(lease) as transaction:
            transaction.run_or_refuse(
                "record_chunk",
                "load_chunks_known",
                load=load,
                number=number,
                **coordinate_columns(rows.low, "low_"),
                **coordinate_columns(rows.high, "high_"),
                rows=rows.row_count,
                seconds=rows.seconds,
            )
            files = [{"load": load, "number": number, **file} for file in file_rows(rows.files)]
            transaction.insert("record_load_files", files)

    def void_load(self, lease: Lease, load: int, reason: str) -> None:
        with self._transaction(lease) as transaction:
            transaction.run_or_refuse(
                "void_load", "loads_known", source=lease.source, load=load, reason=reason
            )

    # -- proofs --------------------------------------------------------------------------------

    def note_compared(self, source: str, compared: Sequence[ComparisonResult]) -> None:
        # No lease is needed, because comparisons run beside other runs. The query
        # `identity` only begins the transaction.
        with self._session.transaction("identity") as (transaction, _):
            for comparison in compared:
                transaction.run("note_compared", source=source, **_comparison_columns(comparison))

    def proofs(self, source: str) -> list[ComparisonRecord]:
        return [_comparison_record(row) for row in self._all("proofs", source=source)]


# -- states ----------------------------------------------------------------------------


def record_extents(
    transaction: Transaction, source: str, batch: int, extents: Sequence[Extent]
) -> None:
    keys = {"source": source, "batch": batch}
    transaction.insert(
        "record_extents", [{**keys, **_extent_columns(extent)} for extent in extents]
    )


def note_missing_batches(transaction: Transaction, source: str, table: TableName) -> None:
    """Record the first batch whose changes the mirror lacks, if the table is stopped,
    or if such a batch was recorded before."""
    transaction.run("note_missing_batches", source=source, **table_columns(table))


def _extent(row: Row) -> Extent:
    empty = None if row["empty_base"] is None else coordinates_of(row, "empty_")
    return Extent(table_of(row), coordinates_of(row, "begins_"), empty)


def _extent_columns(value: Extent) -> dict[str, Any]:
    places = coordinate_columns(value.begins, "begins_") | coordinate_columns(
        value.empty_at, "empty_"
    )
    return {**table_columns(value.table), **places}


# -- orders ----------------------------------------------------------------------------


def mark_carried_out(transaction: Transaction, source: str, batch: int, order: int) -> TableName:
    """Record that the capture of `batch` carries out the order, and return the order's
    table."""
    rows = transaction.all("mark_carried_out", source=source, batch=batch, order=order)
    if not rows:
        raise refusal("table_orders_known")
    return table_of(rows[0])


def _order(row: Row) -> TableOrder:
    return value_of(
        TableOrder,
        row,
        table=table_of(row),
        kind=OrderKind(row["kind"]),
        stopped=stop_place_of(row),
        schema=None if row["schema"] is None else schema_from_json(row["schema"]),
        renames=tuple((old, new) for old, new in row["renames"] or ()),
        supplier=None if row["supplier"] is None else Supplier(row["supplier"]),
    )


# -- loads -----------------------------------------------------------------------------


def record_loads(transaction: Transaction, source: str, batch: int, record: CaptureRecord) -> None:
    """Record what a capture did to loads: it began to take the changes of their tables
    (`followed_loads`), joined a load to these changes, or found a load needless. The
    tables and their versions must be recorded before."""
    for followed in record.followed_loads:
        values = {"batch": batch, "sequence": followed.sequence, "version": followed.version}
        transaction.run_or_refuse(
            "follow_load", "loads_known", source=source, load=followed.load_id, **values
        )
    for joined in record.joined_loads:
        transaction.run_or_refuse(
            "join_load", "loads_known", source=source, load=joined.load_id, batch=batch
        )
    for load in record.needless_loads:
        reason = "the log has all of it"
        transaction.run_or_refuse(
            "void_load", "loads_known", source=source, load=load, reason=reason
        )


def _load(row: Row, chunks: Sequence[Chunk]) -> Load:
    basis = followed_from = None
    if row["schema"] is not None:
        basis = LoadBasis(
            schema_from_json(row["schema"]),
            row["server_uuid"],
            coordinates_of(row, "low_"),
            row["estimated_rows"],
            row["shape"],
        )
    if row["followed_batch"] is not None:
        followed_from = FollowedFrom(
            row["followed_batch"], row["followed_sequence"], row["followed_version"]
        )
    values = {"basis": basis, "followed_from": followed_from, "chunks": tuple(chunks)}
    return value_of(Load, row, table=table_of(row), **values)


def _chunk(row: Row) -> Chunk:
    rows = None
    if row["rows"] is not None:
        rows = ChunkRows(
            coordinates_of(row, "low_"),
            coordinates_of(row, "high_"),
            row["rows"],
            row["seconds"],
            files_of(row),
        )
    return Chunk(row["number"], Range(_bound_of(row["after"]), _bound_of(row["through"])), rows)


def _bound_of(values: list[str] | None) -> Bound | None:
    return None if values is None else Bound.from_json(values)


def _bound_json(value: Bound | None) -> str | None:
    return None if value is None else json.dumps(to_json(value))


# -- proofs ----------------------------------------------------------------------------


def _comparison_columns(value: ComparisonResult) -> dict[str, Any]:
    proof = value.proof
    return {
        **table_columns(value.table),
        **coordinate_columns(None if proof is None else proof.at),
        "whole": value.is_whole,
        "differing": value.differing_count,
        "proof": None if proof is None else proof.kind.value,
        "rows": None if proof is None else proof.row_count,
        "gtid_set": None if proof is None else proof.gtid_set,
    }


def _comparison_record(row: Row) -> ComparisonRecord:
    proof = None
    if row["proof"] is not None:
        at = coordinates_of(row, "at_")
        proof = EqualityProof(ProofKind(row["proof"]), row["rows"], at, row["gtid_set"])
    return ComparisonRecord(
        table_of(row), row["whole"], row["compared_at"], row["differing"], proof, row["proven_at"]
    )
