"""Tables' states, orders (a person's requests, such as pausing), loads (whole tables,
read in chunks) and proofs (comparisons of mirrors with the source), on Postgres."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from lockstep.pipeline.model.batch import CaptureRecord
from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.model.life import MirrorEvent, Reloaded, TableStopped, quarantine_event
from lockstep.pipeline.model.load import Chunk, ChunkRows, FollowedFrom, Load, LoadBegin
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
from lockstep.pipeline.proof.proven import Compared, Proof, Proven, TableProof
from lockstep.pipeline.schema.model import TableSchema, schema_from_json, schema_to_json
from lockstep.pipeline.snapshot.bounds import Bound, Range
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import StoppedBy
from lockstep.pipeline.values.table import TableName
from lockstep.resources.postgres.life_events import captures_end, record, state
from lockstep.resources.postgres.refusals import refusal
from lockstep.resources.postgres.rows import (
    Row,
    coordinates,
    files_of,
    of_coordinates,
    of_files,
    of_place,
    of_table,
    stopped,
    table,
    value_of,
)
from lockstep.resources.postgres.session import Step, Subject


class PostgresTables(Subject):
    """The port `Tables` (`pipeline.ports.ledger`), which describes each method, on
    Postgres."""

    # -- states --------------------------------------------------------------------------------

    def table_states(self, source: str) -> dict[TableName, TableState]:
        states = self._cached(state, "table_states", source=source)
        return {state.table: state for state in states}

    def partial(self, source: str) -> list[Extent]:
        return self._cached(_extent, "partial", source=source)

    def note_whole(self, lease: Lease, batch: int, tables: Collection[TableName]) -> None:
        with self._step(lease) as step:
            extents = [Extent(table, None) for table in sorted(tables)]
            record_extents(step, lease.source, batch, extents)

    def quarantine(self, lease: Lease, quarantined: StoppedTable) -> None:
        with self._step(lease) as step:
            stopped = captures_end(step, lease.source)
            if stopped is not None and quarantined.at is not None:
                stopped = replace(stopped, at=quarantined.at)
            record(step, lease, [(quarantined.table, quarantine_event(quarantined, stopped))])
            count_behind(step, lease.source, quarantined.table)
            step.run("give_up", source=lease.source, **of_table(quarantined.table))

    def record_event(self, lease: Lease, table: TableName, event: MirrorEvent) -> TableState:
        with self._step(lease) as step:
            return record(step, lease, [(table, event)])[table]

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
        with self._step(lease) as step:
            row = step.only(
                "order_table",
                source=lease.source,
                token=lease.token,
                **of_table(table),
                kind=kind.value,
                author=author,
                reason=reason,
                schema=None if schema is None else json.dumps(schema_to_json(schema)),
                renames=json.dumps(list(renames)) if renames else None,
                supplier=supplier,
            )
            if kind is not OrderKind.RESUME:
                end = captures_end(step, lease.source)
                event: TableStopped | Reloaded
                if kind is OrderKind.PAUSE:
                    why = pause_texts(table, reason, author)
                    event = TableStopped(StoppedBy.PERSON, *why, end)
                    step.run("withdraw_load", source=lease.source, **of_table(table))
                else:
                    event = Reloaded(*reload_texts(table, reason, author), end)
                record(step, lease, [(table, event)])
                count_behind(step, lease.source, table)
            return _order(step.only("the_order", source=lease.source, order=row["id"]))

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
        with self._step(lease) as step:
            keys = {"source": lease.source, **of_table(table)}
            rows = step.all("ordered_load", **keys)
            if not rows:
                values = {"token": lease.token, "author": author, "reason": reason}
                rows = step.all("order_load", **keys, **values)
            number = rows[0]["id"]
            if with_past is not None:
                step.run("set_with_past", source=lease.source, load=number, with_past=with_past)
            return _load(step.only("the_load", source=lease.source, load=number), ())

    def open_loads(self, source: str) -> list[Load]:
        rows = self._cached(dict, "open_loads", source=source)
        chunks: dict[int, list[Chunk]] = {row["id"]: [] for row in rows}
        if rows:
            for row in self._all("load_chunks", loads=list(chunks)):
                chunks[row["load"]].append(_chunk(row))
        return [_load(row, chunks[row["id"]]) for row in rows]

    def load_without_past(self, lease: Lease, load: int) -> None:
        with self._step(lease) as step:
            step.run("set_with_past", source=lease.source, load=load, with_past=False)

    def begin_load(self, lease: Lease, load: int, reading: LoadBegin) -> None:
        with self._step(lease) as step:
            step.must(
                "begin_load",
                "loads_known",
                source=lease.source,
                load=load,
                schema=json.dumps(schema_to_json(reading.schema)),
                server_uuid=reading.server_uuid,
                estimated_rows=reading.estimated_rows,
                shape=reading.shape,
                **of_coordinates(reading.low),
            )

    def plan_chunk(self, lease: Lease, load: int, number: int, range: Range) -> None:
        with self._step(lease) as step:
            ends = {"after": _of_bound(range.after), "through": _of_bound(range.through)}
            step.run("plan_chunk", load=load, number=number, **ends)

    def record_chunk(self, lease: Lease, load: int, number: int, read: ChunkRows) -> None:
        with self._step(lease) as step:
            step.must(
                "record_chunk",
                "load_chunks_known",
                load=load,
                number=number,
                **of_place("low", read.low),
                **of_place("high", read.high),
                rows=read.row_count,
                seconds=read.seconds,
            )
            files = [{"load": load, "number": number, **file} for file in of_files(read.files)]
            step.insert("record_load_files", files)

    def void_load(self, lease: Lease, load: int, why: str) -> None:
        with self._step(lease) as step:
            step.must("void_load", "loads_known", source=lease.source, load=load, why=why)

    # -- proofs --------------------------------------------------------------------------------

    def note_compared(self, source: str, compared: Sequence[Compared]) -> None:
        # Comparisons need no lease: they run beside other runs. `identity` only begins
        # a transaction.
        with self._session.step("identity") as (step, _):
            for comparison in compared:
                step.run("note_compared", source=source, **_of_compared(comparison))

    def proofs(self, source: str) -> list[TableProof]:
        return [table_proof(row) for row in self._all("proofs", source=source)]


# -- states ------------------------------------------------------------------------------------


def record_extents(step: Step, source: str, batch: int, extents: Sequence[Extent]) -> None:
    keys = {"source": source, "batch": batch}
    step.insert("record_extents", [{**keys, **_of_extent(extent)} for extent in extents])


def count_behind(step: Step, source: str, table: TableName) -> None:
    """If the table is stopped or its mirror is behind already, record the first batch
    whose changes the mirror lacks."""
    step.run("count_behind", source=source, **of_table(table))


def _extent(row: Row) -> Extent:
    empty = None if row["empty_base"] is None else coordinates(row, "empty")
    return Extent(table(row), coordinates(row, "begins"), empty)


def _of_extent(value: Extent) -> dict[str, Any]:
    places = of_place("begins", value.begins) | of_place("empty", value.empty_at)
    return {**of_table(value.table), **places}


# -- orders ------------------------------------------------------------------------------------


def carry_out(step: Step, source: str, batch: int, order: int) -> TableName:
    """Record that the capture of `batch` carries out the order, and return the order's
    table."""
    rows = step.all("carry_out", source=source, batch=batch, order=order)
    if not rows:
        raise refusal("table_orders_known")
    return table(rows[0])


def _order(row: Row) -> TableOrder:
    return value_of(
        TableOrder,
        row,
        table=table(row),
        kind=OrderKind(row["kind"]),
        stopped=stopped(row),
        schema=None if row["schema"] is None else schema_from_json(row["schema"]),
        renames=tuple((old, new) for old, new in row["renames"] or ()),
        supplier=None if row["supplier"] is None else Supplier(row["supplier"]),
    )


# -- loads -------------------------------------------------------------------------------------


def record_loads(step: Step, source: str, batch: int, record: CaptureRecord) -> None:
    """Record the loads that a capture begins to follow, joins to the table's changes,
    or voids. Their tables and versions must be recorded before."""
    for begun in record.followed_loads:
        values = {"batch": batch, "sequence": begun.sequence, "version": begun.version}
        step.must("follow_load", "loads_known", source=source, load=begun.load, **values)
    for ended in record.joined_loads:
        step.must("join_load", "loads_known", source=source, load=ended.load, batch=batch)
    for load in record.needless_loads:
        step.must("void_load", "loads_known", source=source, load=load, why="the log has all of it")


def _load(row: Row, chunks: Sequence[Chunk]) -> Load:
    begin = followed_from = None
    if row["schema"] is not None:
        begin = LoadBegin(
            schema_from_json(row["schema"]),
            row["server_uuid"],
            coordinates(row, "low"),
            row["estimated_rows"],
            row["shape"],
        )
    if row["followed_batch"] is not None:
        followed_from = FollowedFrom(
            row["followed_batch"], row["followed_sequence"], row["followed_version"]
        )
    values = {"begin": begin, "followed_from": followed_from, "chunks": tuple(chunks)}
    return value_of(Load, row, table=table(row), **values)


def _chunk(row: Row) -> Chunk:
    rows = None
    if row["rows"] is not None:
        rows = ChunkRows(
            coordinates(row, "low"),
            coordinates(row, "high"),
            row["rows"],
            row["seconds"],
            files_of(row),
        )
    return Chunk(row["number"], Range(_bound(row["after"]), _bound(row["through"])), rows)


def _bound(values: list[str] | None) -> Bound | None:
    return None if values is None else Bound.from_json(values)


def _of_bound(value: Bound | None) -> str | None:
    return None if value is None else json.dumps(to_json(value))


# -- proofs ------------------------------------------------------------------------------------


def _of_compared(value: Compared) -> dict[str, Any]:
    proven = value.proven
    return {
        **of_table(value.table),
        **of_coordinates(None if proven is None else proven.at),
        "whole": value.whole,
        "differing": value.differing,
        "proof": None if proven is None else proven.proof.value,
        "rows": None if proven is None else proven.rows,
        "gtid_set": None if proven is None else proven.gtid_set,
    }


def table_proof(row: Row) -> TableProof:
    proven = None
    if row["proof"] is not None:
        at = coordinates(row, "at")
        proven = Proven(Proof(row["proof"]), row["rows"], at, row["gtid_set"])
    return TableProof(
        table(row), row["whole"], row["compared_at"], row["differing"], proven, row["proven_at"]
    )
