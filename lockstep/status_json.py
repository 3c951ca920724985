"""How a source stands, as JSON. Values in, JSON out; as people see it in `status_report`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from lockstep.proof_report import proofs_json
from lockstep.report import (
    error_json,
    loading_json,
    partial_json,
    position_json,
    quarantined_json,
)
from pipeline.batch import Batch, Cursor
from pipeline.decisions import LeaseView, Override, RecordedDecision
from pipeline.gaps import Gap
from pipeline.standing.facts import Headroom, Overlap, Standing
from pipeline.standing.measures import why_not_by_gtid
from pipeline.standing.verdict import Verdict

_BATCHES: Final = 20


def status_json(
    standing: Standing, judged: Verdict, now: datetime, decisions: Iterable[RecordedDecision]
) -> dict[str, Any]:
    """Moments in ISO 8601, spans in seconds; null for what cannot be told. `decisions`: the newest,
    newest first."""
    facts, failed = standing.facts, standing.failures
    return {
        "state": judged.state.value,
        "sentence": judged.sentence,
        "hint": judged.hint,
        "captured": _cursor_json(standing, standing.captured),
        "acknowledged": _cursor_json(standing, standing.acknowledged),
        "lag": {
            "seconds": _rounded(standing.lag.seconds),
            "bytes": standing.lag.log_bytes,
            "transactions": standing.lag.transactions,
        },
        "headroom": _headroom_json(standing.headroom) if standing.headroom else None,
        "server": None
        if facts is None
        else {
            "uuid": facts.server_uuid,
            "version": facts.version,
            "gtid_mode": facts.gtid_mode,
            "head": str(facts.head),
            "another_than_read_last": standing.other_server,
            "standby": facts.standby,
        },
        "lineage": [
            {"server_uuid": reign.server_uuid, "since_batch": reign.since}
            for reign in standing.lineage.reigns
        ],
        "open_batches": [
            {**_batch_json(batch.batch), "waits_for": [str(table) for table in batch.tables]}
            for batch in standing.waiting
        ],
        "batches": [_batch_json(batch) for batch in standing.batches[:_BATCHES]],
        "failures": None
        if failed is None
        else {"count": failed.count, "first": failed.first.isoformat(), "hint": failed.last.hint},
        "lease": _lease_json(standing.lease),
        "override": _override_json(standing.override) if standing.override else None,
        "gaps": [_gap_json(gap) for gap in standing.gaps],
        "overlaps": [_overlap_json(overlap) for overlap in standing.overlaps],
        "quarantined": quarantined_json(standing.quarantined),
        "partial": partial_json(standing.partial),
        "loading": loading_json(standing.loading),
        "proofs": proofs_json(standing.proofs, now),
        "unproven": None
        if standing.unproven is None
        else {
            "tables": [str(table) for table in sorted(standing.unproven.tables)],
            "since": standing.unproven.since.isoformat(),
            "reason": standing.unproven.reason,
        },
        "decisions": [_decision_json(decision) for decision in decisions],
        "trouble": error_json(standing.trouble) if standing.trouble else None,
    }


def _cursor_json(standing: Standing, cursor: Cursor | None) -> dict[str, Any] | None:
    if cursor is None:
        return None
    return {
        **(position_json(cursor.position) or {}),
        "batch": cursor.batch,
        "server_uuid": cursor.position.server_uuid,
        "by_gtid": cursor.by_gtid,
        "why_not_by_gtid": why_not_by_gtid(cursor, standing.facts),
    }


def _headroom_json(room: Headroom) -> dict[str, Any]:
    return {
        "gone": room.gone,
        "seconds": room.remaining.total_seconds() if room.remaining is not None else None,
        "kept_seconds": room.kept.total_seconds() if room.kept is not None else None,
        "bytes_per_day": _rounded(room.bytes_per_day),
    }


def _batch_json(batch: Batch) -> dict[str, Any]:
    return {
        "id": batch.id,
        "state": batch.state.value,
        "start": position_json(batch.start),
        "end": position_json(batch.end),
        "dagster_run": batch.dagster_run,
        "created_at": batch.created_at.isoformat(),
    }


def _lease_json(lease: LeaseView | None) -> dict[str, Any] | None:
    if lease is None or not lease.live:
        return None
    return {
        "holder": lease.holder,
        "dagster_run": lease.dagster_run,
        "taken_at": lease.taken_at.isoformat(),
        "beat_at": lease.beat_at.isoformat() if lease.beat_at else None,
    }


def _override_json(override: Override) -> dict[str, Any]:
    return {
        "place": override.place,
        "reason": override.reason,
        "author": override.author,
        "chosen_at": override.chosen_at.isoformat(),
    }


def _gap_json(gap: Gap) -> dict[str, Any]:
    return {
        "begin": gap.begin,
        "end": gap.end,
        "tables": list(gap.tables),
        "open": list(gap.open_tables),
        "closed": {
            table: {
                "batch": one.batch,
                "at": one.at.isoformat(),
                "by": "compared" if one.kind is None else one.kind.value,
                "table": one.table,
            }
            for table, one in gap.closed.items()
        },
        "author": gap.author,
        "reason": gap.reason,
        "decided_at": gap.decided_at.isoformat(),
        "batch": gap.batch,
    }


def _overlap_json(overlap: Overlap) -> dict[str, Any]:
    return {
        "batch": overlap.batch,
        "after": overlap.after,
        "begin": overlap.begin,
        "until": overlap.until.isoformat() if overlap.until else None,
    }


def _decision_json(decision: RecordedDecision) -> dict[str, Any]:
    return {
        "at": decision.decided_at.isoformat(),
        "kind": decision.decision.kind,
        "rule": decision.decision.rule,
        "reason": decision.decision.reason,
        "author": decision.decision.author,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
