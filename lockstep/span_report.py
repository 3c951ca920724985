"""`lockstep report`: the values of its page as JSON, and a run in a few lines.

Values in, text or JSON out. Does not belong here: the page (`assets.report`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lockstep.report import counted, proof_values
from lockstep.version_report import version_set_json
from pipeline.batch import Batch
from pipeline.intent import SettledWrite
from pipeline.runs.inspecting.span_report import SpanReport, StructureChange, TableTotal
from resources.lake.paths import LakePath


def span_report_json(report: SpanReport, lake: LakePath) -> dict[str, Any]:
    """Moments in ISO 8601, sizes in bytes."""
    return {
        "about": report.about,
        "made_at": report.made_at.isoformat(),
        "batches": [_batch_json(batch, report) for batch in report.batches],
        "tables": {str(total.table): _total_json(total) for total in report.totals},
        "structures": [_change_json(change) for change in report.changes],
        "writes": [_write_json(write) for write in report.writes],
        "quarantined": report.stopped,
        "proofs": proof_values(report.proofs, report.made_at),
        "versions": None if report.shown is None else version_set_json(report.shown, lake),
    }


def span_report_lines(report: SpanReport, page: Path) -> Iterator[str]:
    counts = report.counts
    transactions = sum(batch.transactions for batch in report.batches)
    yield (
        f"{report.source}: {report.about}: {counted(transactions, 'transaction')}, "
        f"+{counts.inserted:,} ~{counts.updated:,} -{counts.deleted:,} rows of "
        f"{counted(len(report.totals), 'table')}"
    )
    if report.requests is not None:
        yield f"  requests to the store: {report.requests}"
    yield f"  the page: {page}"


def _batch_json(batch: Batch, report: SpanReport) -> dict[str, Any]:
    rows = [row for row in report.rows if row.batch == batch.id]
    moments = {
        "created_at": batch.created_at,
        "captured_at": batch.captured_at,
        "merged_at": batch.merged_at,
        "acknowledged_at": batch.acknowledged_at,
    }
    return {
        "batch": batch.id,
        "run": batch.dagster_run,
        "state": batch.state.value,
        "start": batch.start,
        "end": batch.end,
        "transactions": batch.transactions,
        "bytes": batch.log_bytes,
        "requests": batch.requests,
        "rows": sum(row.counts.total for row in rows),
        "read": sum(row.read for row in rows),
        **{name: at.isoformat() if at else None for name, at in moments.items()},
    }


def _total_json(total: TableTotal) -> dict[str, Any]:
    return {
        "inserted": total.counts.inserted,
        "updated": total.counts.updated,
        "deleted": total.counts.deleted,
        "read": total.read,
        "bytes": total.size,
        "delta_version": total.written.delta_version if total.written else None,
    }


def _change_json(change: StructureChange) -> dict[str, Any]:
    return {
        "table": str(change.event.table),
        "change": change.event.kind.value,
        "position": str(change.event.place),
        "committed_at": change.committed_at.isoformat() if change.committed_at else None,
        "reason": change.event.reason,
        "statement": change.statement,
        "effects": list(change.effects),
    }


def _write_json(write: SettledWrite) -> dict[str, Any]:
    return {
        "table": str(write.intent.table),
        "first_batch": write.intent.first_batch,
        "last_batch": write.intent.last_batch,
        "delta_version": write.delta_version,
        "begun_at": write.intended_at.isoformat(),
        "settled_at": write.settled_at.isoformat(),
        "reason": write.reason,
    }
