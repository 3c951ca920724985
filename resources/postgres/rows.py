"""The ledger's rows and its values, each made of the other.

Belongs here: names of columns. Does not: SQL, connections.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain
from typing import Any

from pipeline.batch import Batch, BatchKind, BatchState, CaptureRecord, Cursor, Prepared, Xid
from pipeline.coverage import CaptureScope
from pipeline.decisions import Continuity, Decision, LeaseView, Override, RecordedDecision
from pipeline.errors import Remedy
from pipeline.gaps import Gap, Happened
from pipeline.gtid import GtidSet
from pipeline.intent import Intent, SettledWrite, VersionSetEntry
from pipeline.position import Coordinates, LogFile, Position, ServerLife, SetWitness, Witness
from pipeline.segment import RowCounts, Segment, SegmentFile
from pipeline.table import TableName
from pipeline.table_state import (
    Extent,
    Handover,
    SetAside,
    SnapshotPart,
    Stopped,
    TableCondition,
    TableEvent,
    TableEventKind,
    TableState,
)
from pipeline.tables import TablePatterns

Row = Mapping[str, Any]


def batch(row: Row) -> Batch:
    captured = row["captured_at"] is not None
    return Batch(
        id=row["id"],
        source=row["source"],
        state=BatchState(row["state"]),
        start=position(row, "start"),
        predecessor=row["predecessor"],
        start_decision=row["start_decision"],
        base=row["base"],
        token=row["token"],
        dagster_run=row["dagster_run"],
        created_at=row["created_at"],
        end=position(row, "end") if captured else None,
        witness=witness(row) if captured else None,
        changes=row["changes"],
        transactions=row["transactions"],
        log_bytes=row["log_bytes"],
        captured_at=row["captured_at"],
        merged_at=row["merged_at"],
        acknowledged_at=row["acknowledged_at"],
        follows=row["follows"],
        by_gtid=row["by_gtid"],
        continuity=Continuity(row["continuity"]) if row["continuity"] else None,
        kind=BatchKind(row["kind"]),
        life=_life(row),
    )


def _life(row: Row) -> ServerLife | None:
    if row["server_started_at"] is None:
        return None
    return ServerLife(row["server_started_at"], row["server_resets"])


def position(row: Row, which: str) -> Position:
    """`which` is "start" or "end"."""
    return Position(
        at=coordinates(row, which),
        gtid_set=GtidSet.parse(row[f"{which}_gtid_set"]),
        server_uuid=row[f"{which}_server_uuid"],
        committed_at=row[f"{which}_committed_at"],
    )


def coordinates(row: Row, which: str) -> Coordinates:
    file = LogFile(row[f"{which}_base"], row[f"{which}_number"])
    return Coordinates(file, row[f"{which}_offset"])


def witness(row: Row) -> Witness:
    return Witness(
        offset=row["witness_offset"],
        length=row["witness_length"],
        crc32=row["witness_crc32"],
        gtid=row["witness_gtid"],
        file_created=row["witness_file_created"],
    )


def cursor(row: Row) -> Cursor:
    lapsed = row["once"] and not row["resumable"]
    return Cursor(row["id"], position(row, "end"), witness(row), row["resumable"], lapsed)


def lease_view(row: Row) -> LeaseView:
    return LeaseView(
        row["token"],
        row["holder"],
        row["dagster_run"],
        row["taken_at"],
        row["live"],
        row["beat_at"],
    )


def segment(row: Row) -> Segment:
    return Segment(
        table=table(row),
        schema_version=row["schema_version"],
        files=files(row),
        counts=RowCounts(row["inserted"], row["updated"], row["deleted"]),
        first_sequence=row["first_sequence"],
        last_sequence=row["last_sequence"],
    )


def files(row: Row) -> tuple[SegmentFile, ...]:
    found = zip(row["paths"], row["images"], row["sizes"], row["digests"], strict=True)
    return tuple(SegmentFile(*file) for file in found)


def table(row: Row) -> TableName:
    return TableName(row["database"], row["name"])


def table_state(row: Row) -> TableState:
    return TableState(
        table=table(row),
        condition=TableCondition(row["condition"]),
        generation=row["generation"],
        mirror=row["mirror"],
        changelog=row["changelog"],
        reason=row["reason"],
        hint=row["hint"],
        position=row["position"],
        mirror_version=row["mirror_version"],
        changelog_generation=row["changelog_generation"],
        stopped=stopped(row),
        behind=row["behind_batch"],
        adopted=row["adopted"],
        mirror_generation=row["mirror_generation"],
        remedy=None if row["remedy"] is None else Remedy(row["remedy"]),
    )


def stopped(row: Row) -> Stopped | None:
    if row["stopped_batch"] is None:
        return None
    return Stopped(row["stopped_batch"], coordinates(row, "stopped"))


def prepared(row: Row) -> Prepared:
    file = None
    if row["path"] is not None:
        file = SegmentFile(row["path"], row["images"], row["size"], row["sha256"])
    xid = Xid(row["format_id"], bytes(row["gtrid"]), bytes(row["bqual"]))
    return Prepared(xid, row["batch"], row["position"], file)


def decision(row: Row) -> RecordedDecision:
    return RecordedDecision(
        id=row["id"],
        decided_at=row["decided_at"],
        decision=Decision(
            row["kind"],
            row["rule"],
            row["reason"],
            row["facts"],
            row["author"],
            row["follows"],
            Continuity(row["continuity"]) if row["continuity"] else None,
            tuple(row["gap_tables"]),
            row["override"],
        ),
    )


def override(row: Row) -> Override:
    return Override(row["id"], row["place"], row["reason"], row["author"], row["chosen_at"])


def gap(row: Row) -> Gap:
    begin, end = (coordinates(row, which) for which in ("from", "to"))
    return Gap(
        decision=row["decision"],
        batch=row["batch"],
        decided_at=row["decided_at"],
        author=row["author"],
        reason=row["reason"],
        tables=tuple(row["gap_tables"]),
        begin=str(begin),
        end=str(end),
    )


def happened(row: Row) -> Happened:
    taker = row["taker_name"] and TableName(row["taker_database"], row["taker_name"])
    kind = row["kind"] and TableEventKind(row["kind"])
    return Happened(str(table(row)), row["batch"], row["acknowledged_at"], kind, str(taker or ""))


def intent(row: Row) -> Intent:
    return Intent(
        id=row["id"],
        table=table(row),
        app_id=row["app_id"],
        txn_version=row["txn_version"],
        first_batch=row["first_batch"],
        last_batch=row["last_batch"],
        step=row["step"],
    )


def settled_write(row: Row) -> SettledWrite:
    return SettledWrite(intent(row), row["delta_version"], row["settled_at"])


def version_set_entry(row: Row) -> VersionSetEntry:
    return VersionSetEntry(table(row), row["mirror"], row["delta_version"])


def of_position(value: Position) -> dict[str, Any]:
    return {
        **of_coordinates(value.at),
        "gtid_set": str(value.gtid_set),
        "server_uuid": value.server_uuid,
        "committed_at": value.committed_at,
    }


def of_coordinates(value: Coordinates | None) -> dict[str, Any]:
    if value is None:
        return dict.fromkeys(("base", "number", "offset"))
    return {"base": value.file.base, "number": value.file.number, "offset": value.offset}


def of_table(value: TableName) -> dict[str, Any]:
    return {"database": value.database, "name": value.name}


def of_capture(value: CaptureRecord) -> dict[str, Any]:
    """Everything of the record that the batch's own row holds."""
    return {
        **of_position(value.end),
        "witness_offset": value.witness.offset,
        "witness_length": value.witness.length,
        "witness_crc32": value.witness.crc32,
        "witness_gtid": value.witness.gtid,
        "witness_file_created": value.witness.file_created,
        "changes": value.changes,
        "transactions": value.transactions,
        "log_bytes": value.log_bytes,
        "by_gtid": value.by_gtid,
        "server_started_at": None if value.life is None else value.life.started_at,
        "server_resets": None if value.life is None else value.life.resets,
    }


def of_decision(value: Decision) -> dict[str, Any]:
    return {
        "kind": value.kind,
        "rule": value.rule,
        "reason": value.reason,
        "facts": json.dumps(dict(value.facts)),
        "author": value.author,
        "follows": value.follows,
        "continuity": value.continuity,
        "gap_tables": list(value.gap_tables),
        "override": value.override,
    }


def of_state(value: TableState) -> dict[str, Any]:
    return {
        **of_table(value.table),
        "condition": value.condition.value,
        "generation": value.generation,
        "mirror": value.mirror,
        "changelog": value.changelog,
        "reason": value.reason,
        "hint": value.hint,
        "position": value.position,
        "remedy": None if value.remedy is None else value.remedy.value,
        "changelog_generation": value.changelog_generation,
        **of_stopped(value.stopped),
    }


def of_handover(value: Handover) -> dict[str, Any]:
    return {
        **of_table(value.table),
        "generation": value.generation,
        "mirror": value.mirror,
        "delta_version": value.delta_version,
        "shows": value.shows,
        "before_generation": value.before.generation,
        "before_mirror": value.before.mirror,
        "before_shows": value.before.mirror_version,
        "before_adopted": value.before.adopted,
    }


def extent(row: Row) -> Extent:
    empty = None if row["empty_base"] is None else coordinates(row, "empty")
    return Extent(table(row), coordinates(row, "begins"), empty)


def of_extent(value: Extent) -> tuple[Any, ...]:
    """As the ledger's columns stand: name, begin, where it was empty."""
    places = (of_coordinates(at).values() for at in (value.begins, value.empty))
    return (*of_table(value.table).values(), *chain.from_iterable(places))


def of_stopped(value: Stopped | None) -> dict[str, Any]:
    at = of_coordinates(value.at if value is not None else None)
    batch = value.batch if value is not None else None
    return {"stopped_batch": batch, **{f"stopped_{part}": told for part, told in at.items()}}


def of_segment(value: Segment) -> dict[str, Any]:
    return {
        **of_table(value.table),
        "schema_version": value.schema_version,
        "inserted": value.counts.inserted,
        "updated": value.counts.updated,
        "deleted": value.counts.deleted,
        "first_sequence": value.first_sequence,
        "last_sequence": value.last_sequence,
    }


def of_file(value: SegmentFile | None) -> dict[str, Any]:
    if value is None:
        return dict.fromkeys(("path", "images", "size", "sha256"))
    return {
        "path": value.path,
        "images": value.images,
        "size": value.size,
        "sha256": value.sha256,
    }


def of_prepared(value: Prepared) -> dict[str, Any]:
    return {
        "batch": value.batch,
        "format_id": value.xid.format_id,
        "gtrid": value.xid.gtrid,
        "bqual": value.xid.bqual,
        "position": value.position,
        **of_file(value.file),
    }


def capture_scope(row: Row) -> CaptureScope:
    patterns = TablePatterns(tuple(row["include"]), tuple(row["exclude"]))
    return CaptureScope(row["batch"], str(coordinates(row, "start")), patterns)


def of_scope(value: TablePatterns) -> dict[str, Any]:
    return {"include": list(value.include), "exclude": list(value.exclude)}


def of_set_witness(value: SetWitness) -> dict[str, Any]:
    return {
        "origin": value.origin,
        "gtid": value.gtid,
        "committed_at": value.committed_at,
        "digest": value.digest,
    }


def of_set_aside(value: SetAside) -> dict[str, Any]:
    return {
        **of_table(value.table),
        "reason": value.reason,
        "hint": value.hint,
        "position": value.position,
        "remedy": value.remedy.value,
        **of_coordinates(value.at),
    }


def of_event(value: TableEvent) -> dict[str, Any]:
    return {
        **of_table(value.table),
        "kind": value.kind.value,
        "sequence": value.sequence,
        "version": value.version,
        **of_coordinates(value.place),
        "reason": value.reason,
    }


def of_snapshot(value: SnapshotPart) -> dict[str, Any]:
    return {
        **of_table(value.table),
        "version": value.version,
        "low_sequence": value.low_sequence,
        "columns": None if value.columns is None else list(value.columns),
    }
