"""`lockstep status`: where each source stands, from the ledger; lag, if MySQL answers."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep import exits, report
from lockstep.desk import Desk, Outcome
from pipeline.batch import SetAside, TableCondition
from pipeline.errors import LockstepError

if TYPE_CHECKING:
    from pipeline.batch import Batch, LeaseView
    from pipeline.ports import Ledger, ServerFacts
    from pipeline.position import Position
    from resources.site import Site


def perform(arguments: argparse.Namespace, desk: Desk) -> Outcome:
    """Exit code 6 if tables are set aside. A MySQL that is down is a line, not an error."""
    from resources.site import Site

    payload: dict[str, Any] = {}
    codes = []
    with Site(desk.settings, on_warning=desk.note) as site:
        for source in desk.sources(arguments.source):
            aside = _aside(site.ledger(), source.name)
            facts, trouble = _facts(site, source.name)
            told = _status(site.ledger(), source.name, facts, datetime.now(UTC))
            told["trouble"] = trouble
            told["set_aside"] = report.aside_json(aside)
            codes.append(exits.SET_ASIDE if aside else exits.DONE)
            payload[source.name] = told
            _show(desk, source.name, told)
            report.show_aside(desk, aside)
    return Outcome(exits.most_serious(codes), {"sources": payload})


def log_distance(facts: ServerFacts, position: Position) -> int | None:
    """Bytes of log between a position and the server's head; None if that cannot be told
    (another server, a purged file)."""
    at, head = position.at, facts.head
    sizes = {log.file: log.size for log in facts.binlogs}
    if facts.server_uuid != position.server_uuid or at.file not in sizes:
        return None
    between = [
        size for file, size in sizes.items() if at.file.number <= file.number < head.file.number
    ]
    return max(sum(between) - at.offset + head.offset, 0)


def _status(
    ledger: Ledger, source: str, facts: ServerFacts | None, now: datetime
) -> dict[str, Any]:
    captured = ledger.captured_cursor(source)
    done = ledger.acknowledged_cursor(source)
    position = done.position if done else None
    behind = log_distance(facts, position) if facts and position else None
    return {
        "captured": report.position_json(captured.position if captured else None),
        "acknowledged": report.position_json(position),
        "lag": {"seconds": _lag_seconds(position, behind, now), "bytes": behind},
        "open_batches": [_batch_json(batch) for batch in ledger.unfinished(source)],
        "lease": _lease_json(ledger.lease(source)),
        "decisions": [
            {
                "at": entry.decided_at.isoformat(),
                "kind": entry.decision.kind,
                "rule": entry.decision.rule,
                "reason": entry.decision.reason,
                "author": entry.decision.author,
            }
            for entry in ledger.decisions(source)
        ],
    }


def _lag_seconds(position: Position | None, behind: int | None, now: datetime) -> float | None:
    """How old what the lake shows is: nothing behind, nothing old."""
    if behind == 0:
        return 0.0
    if position is None or position.committed_at is None:
        return None
    return round(max((now - position.committed_at).total_seconds(), 0.0), 3)


def _facts(site: Site, source: str) -> tuple[ServerFacts | None, dict[str, Any] | None]:
    try:
        return site.server(source).facts(), None
    except LockstepError as error:
        return None, report.error_json(error)


def _aside(ledger: Ledger, source: str) -> list[SetAside]:
    return [
        SetAside(table, state.reason or "", state.hint or "", state.position or "")
        for table, state in sorted(ledger.table_states(source).items())
        if state.condition is not TableCondition.ACTIVE
    ]


def _batch_json(batch: Batch) -> dict[str, Any]:
    return {
        "id": batch.id,
        "state": batch.state.value,
        "start": report.position_json(batch.start),
        "end": report.position_json(batch.end),
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
    }


def _show(desk: Desk, source: str, told: dict[str, Any]) -> None:
    desk.say(source)
    lag = told["lag"]
    seconds = "unknown" if lag["seconds"] is None else f"{lag['seconds']:,.0f} s"
    behind = "" if lag["bytes"] is None else f", {lag['bytes']:,} bytes of log"
    pairs = {
        "captured": _place(told["captured"]),
        "acknowledged": _place(told["acknowledged"]),
        "lag": seconds + behind,
    }
    if told["lease"]:
        pairs["being run by"] = f"{told['lease']['holder']}, since {told['lease']['taken_at']}"
    for batch in told["open_batches"]:
        pairs[f"batch {batch['id']}"] = f"{batch['state']}, from {_place(batch['start'])}"
    desk.say(report.lines(pairs))
    if told["trouble"]:
        desk.say(f"  {told['trouble']['message']}\n  hint: {told['trouble']['hint']}")
    for entry in told["decisions"]:
        desk.say(f"  {entry['at'][:19]}  {entry['rule']}: {entry['reason']}")


def _place(position: dict[str, Any] | None) -> str:
    if position is None:
        return "nothing yet"
    committed = f", committed {position['committed_at']}" if position["committed_at"] else ""
    return f"{position['file']}:{position['offset']}{committed}"
