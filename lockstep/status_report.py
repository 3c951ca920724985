"""How a source stands, twice: as JSON, and as a person sees it. Values in, text or JSON out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from lockstep import exits
from lockstep.proof_report import proof_lines, proofs_json
from lockstep.report import (
    counted,
    error_json,
    lines,
    loading_json,
    partial_json,
    partial_lines,
    position_json,
    quarantined_json,
)
from pipeline.batch import Batch, Cursor
from pipeline.decisions import LeaseView, Override, RecordedDecision
from pipeline.errors import Recovery
from pipeline.gaps import Gap
from pipeline.preflight.retention import spoken
from pipeline.standing.facts import Headroom, Overlap, Standing
from pipeline.standing.measures import why_not_by_gtid
from pipeline.standing.verdict import State, Verdict, clock, verdict

_GTIDS: Final = 100
_BATCHES: Final = 20


def exit_code(standing: Standing, now: datetime, pause: timedelta | None) -> int:
    """0 if nothing waits for anybody. While a run goes on, what waits for a run does not count,
    and what waits for a person does."""
    found = verdict(standing, now, pause)
    if found.state is State.BUSY and found.recovery is None:
        code = exit_code(replace(standing, lease=None), now, pause)
        return exits.DONE if code == exits.TRY_AGAIN else code
    if found.recovery is not None:
        return found.recovery.exit_code
    return exits.DONE if found.state is State.FINE else exits.QUARANTINED


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


def status_lines(
    standing: Standing,
    judged: Verdict,
    now: datetime,
    decisions: Iterable[RecordedDecision] = (),
    tables: Iterable[str] = (),
) -> Iterator[str]:
    """What is the matter and what to type; then everything else that is known. `decisions`: the
    newest, newest first; `tables`: lines on those that are not followed just now."""
    yield f"{standing.source}: {judged.state}: {judged.sentence}"
    if judged.hint:
        yield f"  hint: {judged.hint}"
    pairs = {
        "captured": _place(standing.captured),
        "acknowledged": _place(standing.acknowledged),
        "lag": _lag(standing),
        **_server(standing),
    }
    for batch in standing.waiting:
        waits = ", ".join(map(str, batch.tables))
        pairs[f"batch {batch.batch.id}"] = (
            f"{batch.batch.state.value}, from {batch.batch.start}"
            + (f", waits for {waits}" if waits else "")
        )
    if (lease := standing.lease) is not None and lease.live:
        beat = f", last sign of life {clock(lease.beat_at)}" if lease.beat_at else ""
        pairs["being run by"] = f"{lease.holder}, since {clock(lease.taken_at)}{beat}"
    if (choice := standing.override) is not None:
        pairs["next start"] = f"{choice.place}, chosen by {choice.author}: {choice.reason}"
    yield lines(pairs)
    yield from _scars(standing)
    for table in standing.loading:
        yield f"  being read from the source: {table.sentence()}"
    yield from partial_lines(standing.partial)
    yield from proof_lines(standing.proofs, now)
    yield from tables
    for done in decisions:
        yield f"  {clock(done.decided_at)}  {done.decision.rule}: {done.decision.reason}"


def _scars(standing: Standing) -> Iterator[str]:
    """What the lake lacks, or has twice."""
    for gap in standing.gaps:
        if gap.is_open:
            again = f"; right again: {', '.join(gap.closed)}" if gap.closed else ""
            yield (
                f"  gap: {gap.begin} to {gap.end} was never read ({gap.reason}); rows of "
                f"{', '.join(gap.open_tables)} may be wrong{again}"
            )
    for overlap in standing.overlaps:
        until = f" committed up to {clock(overlap.until)}" if overlap.until else ""
        yield (
            f"  read twice: rows with _batch = {overlap.batch}{until} may be in the changelogs "
            f"under "
            f"_batch <= {overlap.after} as well; mirrors are exact"
        )


def _server(standing: Standing) -> dict[str, str]:
    facts, cursor = standing.facts, standing.captured
    found = {}
    if facts is not None:
        other = ", not the one that was read last" if standing.other_server else ""
        standby = ", the standby" if facts.standby else ""
        found["server"] = f"{facts.server_uuid}{standby}{other}, its log ends at {facts.head}"
    elif standing.trouble is not None:
        asked = standing.trouble.recovery is not Recovery.CONFIGURATION
        answer = "does not answer" if asked else "was not asked"
        found["server"] = f"{answer}: {standing.trouble.message}"
    if len(standing.lineage.reigns) > 1:
        found["read from"] = str(standing.lineage)
    if cursor is not None:
        why = why_not_by_gtid(cursor, facts)
        found["failover"] = f"would be refused: {why}" if why else "could be followed by GTIDs"
    if standing.headroom is not None:
        found["headroom"] = _headroom(standing.headroom)
    return found


def _headroom(room: Headroom) -> str:
    rate = f"; {room.bytes_per_day / 1e6:,.1f} MB of log a day" if room.bytes_per_day else ""
    if room.gone:
        return f"the log at the cursor is already gone{rate}"
    if room.remaining is None:
        return f"logs are kept until somebody purges them{rate}"
    if not room.remaining:
        return f"the log at the cursor may be purged at any time{rate}"
    return f"{spoken(room.remaining)} until the log at the cursor may be purged{rate}"


def _lag(standing: Standing) -> str:
    lag = standing.lag
    parts = []
    if lag.seconds is not None:
        parts.append("none" if not lag.seconds else spoken(timedelta(seconds=lag.seconds)))
    if lag.transactions is not None:
        parts.append(counted(lag.transactions, "transaction"))
    if lag.log_bytes is not None:
        parts.append(f"{lag.log_bytes:,} bytes of log")
    return ", ".join(parts) or "unknown"


def _place(cursor: Cursor | None) -> str:
    if cursor is None:
        return "nothing yet"
    at = cursor.position
    committed = f", committed {clock(at.committed_at)}" if at.committed_at else ""
    gtids = f", GTIDs {at.gtid_set.shortened(_GTIDS)}" if at.gtid_set else ""
    return f"{at}{committed}{gtids}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
