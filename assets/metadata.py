"""Reports of the steps → Dagster's metadata; errors → Dagster's failures.

Only what the lake and the ledger may show anyway goes in: positions, counts, names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import dagster as dg

from pipeline.changes.extents import cure
from pipeline.errors import LockstepError, Recovery
from pipeline.gaps import Gap
from pipeline.position import Position
from pipeline.proof.proven import TableProof
from pipeline.runs.context import AcknowledgeReport, CaptureReport, MergeReport, TableMerge
from pipeline.table_state import Extent, SetAside

Metadata = dict[str, dg.MetadataValue]


def failure(error: LockstepError) -> dg.Failure:
    """The sentence and the cure, as Dagster's page shows them. What a person must mend
    is not retried by anybody."""
    return dg.Failure(
        description=f"{error.message}\nhint: {error.hint}",
        metadata={"hint": dg.MetadataValue.text(error.hint), "kind": type(error).__name__},
        allow_retries=error.recovery is Recovery.RETRY,
    )


def captured_metadata(report: CaptureReport) -> Metadata:
    found: Metadata = {
        "decision": dg.MetadataValue.text(f"{report.rule}: {report.reason}"),
        "start": dg.MetadataValue.text(str(report.start)),
        "end": dg.MetadataValue.text(str(report.end)),
        "transactions": dg.MetadataValue.int(report.transactions),
        "rows": dg.MetadataValue.int(report.rows),
        "log bytes": dg.MetadataValue.int(report.log_bytes),
        "tables": dg.MetadataValue.int(len(report.counts)),
        "seconds": _seconds(report.start_seconds + report.capture_seconds),
    }
    if report.continuity is not None:
        found["continuity"] = dg.MetadataValue.text(report.continuity.value)
    if report.batch is not None:
        found["batch"] = dg.MetadataValue.int(report.batch)
    if report.end.gtid_set:
        found["GTIDs"] = dg.MetadataValue.text(str(report.end.gtid_set))
    if report.repaired:
        found["repaired"] = dg.MetadataValue.text("\n".join(report.repaired))
    if report.set_aside:
        found["set aside"] = set_aside_table(report.set_aside)
    return found


def merged_metadata(report: MergeReport) -> Metadata:
    found: Metadata = {
        "tables changed": dg.MetadataValue.int(len({done.table for done in report.merged})),
        "rows": dg.MetadataValue.int(sum(done.counts.total for done in report.merged)),
        "publish seconds": _seconds(report.publish_seconds),
        "merge seconds": _seconds(report.merge_seconds),
    }
    if report.waiting:
        found["waiting"] = dg.MetadataValue.text(", ".join(map(str, report.waiting)))
    if report.failed:
        found["set aside"] = set_aside_table(report.failed)
    return found


def table_metadata(
    done: TableMerge, *, position: Position | None, size: int, now: datetime
) -> Metadata:
    """One mirror's materialization. `size` is bytes of the changes merged; `position` is
    the place in the log that the mirror now shows."""
    found: Metadata = {
        "rows inserted": dg.MetadataValue.int(done.counts.inserted),
        "rows updated": dg.MetadataValue.int(done.counts.updated),
        "rows deleted": dg.MetadataValue.int(done.counts.deleted),
        "bytes": dg.MetadataValue.int(size),
        "Delta version": dg.MetadataValue.int(done.delta_version),
        "seconds": _seconds(done.seconds),
        "reason": dg.MetadataValue.text(done.reason),
        "batches": dg.MetadataValue.text(_span(done.first_batch, done.last_batch)),
        "mirror": dg.MetadataValue.text(done.mirror),
        "changelog": dg.MetadataValue.text(done.changelog),
        "dagster/column_schema": dg.MetadataValue.table_schema(
            dg.TableSchema([dg.TableColumn(name, kind) for name, kind in done.columns])
        ),
    }
    return found | position_metadata(position, now)


def acknowledged_metadata(report: AcknowledgeReport, now: datetime) -> Metadata:
    found = position_metadata(report.position, now)
    found["batches"] = dg.MetadataValue.text(", ".join(map(str, report.acknowledged)) or "none")
    found["seconds"] = _seconds(report.seconds)
    if report.held:
        found["held"] = dg.MetadataValue.text(held_sentence(report.held))
    if report.set_aside:
        found["set aside"] = set_aside_table(report.set_aside)
    if report.partial:
        found["partial"] = partial_table(report.partial)
    return found


def position_metadata(position: Position | None, now: datetime) -> Metadata:
    if position is None:
        return {}
    found: Metadata = {"position": dg.MetadataValue.text(str(position))}
    if position.gtid_set:
        found["GTIDs"] = dg.MetadataValue.text(str(position.gtid_set))
    if position.committed_at is not None:
        found["committed at"] = dg.MetadataValue.timestamp(position.committed_at)
        lag = (now - position.committed_at).total_seconds()
        found["lag seconds"] = _seconds(max(lag, 0.0))
    return found


def held_sentence(held: Mapping[int, Sequence[object]]) -> str:
    """Which batches are not acknowledged, and the tables they wait for."""
    return "; ".join(
        f"batch {batch} waits for {', '.join(map(str, tables)) or 'its merge'}"
        for batch, tables in held.items()
    )


def partial_table(tables: Sequence[Extent]) -> dg.MetadataValue:
    return _table(
        ("table", "begins", "hint"),
        [(str(one.table), str(one.begins), cure(one.table)) for one in tables],
    )


def proof_age(one: TableProof, now: datetime) -> float | None:
    """Seconds since a table was last found equal; None for never."""
    return None if one.proven_at is None else round((now - one.proven_at).total_seconds(), 3)


def proof_table(proofs: Sequence[TableProof]) -> dg.MetadataValue:
    return _table(
        ("table", "compared", "at", "differing", "proven at", "rows", "position"),
        [
            (
                str(one.table),
                "all rows" if one.whole else "a sample",
                one.compared_at.isoformat(),
                str(one.differing),
                one.proven_at.isoformat() if one.proven_at else "never",
                str(one.proven.rows) if one.proven else "",
                str(one.proven.at) if one.proven else "",
            )
            for one in proofs
        ],
    )


def set_aside_table(tables: Sequence[SetAside]) -> dg.MetadataValue:
    return _table(
        ("table", "reason", "hint", "position"),
        [(str(one.table), one.reason, one.hint, one.position) for one in tables],
    )


def gap_table(gaps: Sequence[Gap]) -> dg.MetadataValue:
    return _table(
        ("tables", "from", "to", "reason", "decided at"),
        [
            (
                ", ".join(one.open_tables),
                one.begin,
                one.end,
                one.reason,
                one.decided_at.isoformat(),
            )
            for one in gaps
        ],
    )


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> dg.MetadataValue:
    return dg.MetadataValue.table(
        [dg.TableRecord(dict(zip(names, row, strict=True))) for row in rows],
        schema=dg.TableSchema([dg.TableColumn(name, "string") for name in names]),
    )


def _seconds(value: float) -> dg.MetadataValue:
    return dg.MetadataValue.float(round(value, 3))


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
