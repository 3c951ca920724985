"""The asset checks of a source as a whole. The facts are gathered once, and each check
is a function of them. A new check is a row of `CHECKS`.

Checks report the ledger's records and never block a run. Conditions that must hold
before a batch is acknowledged are enforced by the ledger itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import dagster as dg

from lockstep.assets.pages import (
    Metadata,
    distance_metadata,
    partial_table,
    quarantine_table,
    records,
    seconds,
)
from lockstep.pipeline.check import longest_pause_from_now
from lockstep.pipeline.check.log import duration_text
from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.model.table_state import Extent, StoppedTable
from lockstep.pipeline.ports.consumers import Consumers
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.proof.proven import ComparisonRecord, open_differences
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.dump.table_extents import partial_tables
from lockstep.pipeline.run.status.status import log_seen
from lockstep.pipeline.run.stop_errors import stopped_tables
from lockstep.pipeline.status.accounting import Account, accounts
from lockstep.pipeline.status.facts import Headroom, Lag
from lockstep.pipeline.status.verdict import Verdict, late_verdict, risk_verdict
from lockstep.pipeline.values.consumers import Consumer
from lockstep.pipeline.values.errors import StoppedBy
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.table import TableName
from lockstep.resources.config import Settings

_WARN, _ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR

_BATCHES = 20
"""Number of acknowledged batches, the newest ones, whose rows are added up."""


@dataclass(frozen=True, slots=True)
class CheckedSource:
    """The facts that the checks judge. `pause`: the longest time between two scheduled
    runs, or None. `keep`: how long versions of mirrors are kept. `following`: the
    tables that follow the source and lack nothing. `accounts`: numbers of rows read and
    written in the newest acknowledged batches, oldest first. `consumers`: each with the
    time since which it has changes to read, or None if it has acknowledged everything."""

    source: str
    now: datetime
    pause: timedelta | None
    keep: timedelta
    following: frozenset[TableName]
    stopped: Sequence[StoppedTable]
    gaps: Sequence[Gap]
    partial: Sequence[Extent]
    proofs: Sequence[ComparisonRecord]
    lag: Lag
    headroom: Headroom | None
    accounts: Sequence[Account]
    consumers: Sequence[tuple[Consumer, datetime | None]]


def source_results(
    settings: Settings, work: Workplace, consumers: Consumers, asset: dg.AssetKey
) -> Iterator[dg.AssetCheckResult]:
    """Yield the result of every check of the source now, as a check of that asset."""
    checked = _gather(settings, work, consumers)
    for name, _, judge in CHECKS:
        judged = judge(checked)
        yield dg.AssetCheckResult(
            check_name=name,
            asset_key=asset,
            passed=judged.passed,
            severity=judged.severity,
            description=judged.description,
            metadata=judged.metadata,
        )


def _gather(settings: Settings, work: Workplace, consumers: Consumers) -> CheckedSource:
    source, ledger, now = work.source.name, work.ledger, work.clock()
    states = ledger.table_states(source)
    following = frozenset(table for table, state in states.items() if state.complete)
    _, lag, room = log_seen(work, now)
    return CheckedSource(
        source=source,
        now=now,
        pause=longest_pause_from_now(settings.source(source).schedule),
        keep=settings.version_retention(),
        following=following,
        stopped=stopped_tables(states),
        gaps=ledger.gaps(source),
        partial=partial_tables(ledger, source, work.source.patterns),
        proofs=ledger.proofs(source),
        lag=lag,
        headroom=room,
        accounts=_accounts(ledger, source, following),
        consumers=[(each, _behind_since(ledger, each)) for each in consumers.consumers(source)],
    )


def _accounts(ledger: Ledger, source: str, following: frozenset[TableName]) -> tuple[Account, ...]:
    newest = ledger.batches(source, limit=2 * _BATCHES)
    done = [batch for batch in newest if batch.state is BatchState.ACKNOWLEDGED][:_BATCHES]
    if not done:
        return ()
    span = (source, done[-1].id, done[0].id)
    contents = ledger.contents(*span)
    return accounts(
        reversed(done),
        [row for content in contents for row in content.rows()],
        [event for content in contents for event in content.events],
        ledger.writes_within(*span),
        following,
    )


def _behind_since(ledger: Ledger, consumer: Consumer) -> datetime | None:
    """Return the time at which the batch at the consumer's cursor was acknowledged by
    its run, or at which the consumer was created if it has no cursor. Return None if it
    has nothing to read."""
    if not consumer.behind:
        return None
    if consumer.cursor is None:
        return consumer.made_at
    [read] = ledger.live_batches(consumer.source, consumer.cursor, consumer.cursor)
    return read.acknowledged_at


# -- the rules -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check: the fields of `dg.AssetCheckResult` that depend on the
    facts."""

    passed: bool
    severity: dg.AssetCheckSeverity
    metadata: Metadata
    description: str | None = None


def _stopped(checked: CheckedSource) -> CheckResult:
    stopped = checked.stopped
    faults = [table for table in stopped if table.by is StoppedBy.SYSTEM]
    metadata: Metadata = {"tables": len(stopped)}
    if stopped:
        metadata["stopped"] = quarantine_table(stopped)
    return CheckResult(not stopped, _ERROR if faults else _WARN, metadata)


def _gaps(checked: CheckedSource) -> CheckResult:
    gaps = [
        (", ".join(gap.open_tables), gap.begin, gap.end, gap.reason, gap.decided_at)
        for gap in checked.gaps
        if gap.is_open
    ]
    heads = ("tables", "from", "to", "reason", "decided at")
    return CheckResult(not gaps, _WARN, {"gaps": records(heads, gaps)} if gaps else {})


def _partial(checked: CheckedSource) -> CheckResult:
    extents = checked.partial
    return CheckResult(not extents, _WARN, {"partial": partial_table(extents)} if extents else {})


def _age(checked: CheckedSource, moment: datetime | None) -> float | None:
    return None if moment is None else seconds((checked.now - moment).total_seconds())


def _differing(checked: CheckedSource) -> CheckResult:
    proofs = checked.proofs
    metadata: Metadata = {}
    if proofs:
        heads = ("table", "compared", "at", "differing", "proven at", "rows", "position")
        rows = [
            (
                record.table,
                "all rows" if record.is_whole else "a sample",
                record.compared_at,
                record.differing_count,
                record.proven_at or "never",
                record.proof and record.proof.row_count,
                record.proof and record.proof.at,
            )
            for record in proofs
        ]
        metadata["compared"] = records(heads, rows)
    proven = [record.proven_at for record in proofs if record.proven_at is not None]
    if proven:
        metadata["oldest proof in seconds"] = _age(checked, min(proven))
    return CheckResult(not open_differences(proofs), _ERROR, metadata)


def _judged(
    verdict: Verdict | None, severity: dg.AssetCheckSeverity, figures: Metadata
) -> CheckResult:
    if verdict is None:
        return CheckResult(True, severity, figures)
    return CheckResult(False, severity, figures | {"hint": verdict.hint}, verdict.sentence)


def _late(checked: CheckedSource) -> CheckResult:
    verdict = late_verdict(checked.source, checked.lag, checked.pause)
    return _judged(verdict, _WARN, distance_metadata(checked.lag, None))


def _at_risk(checked: CheckedSource) -> CheckResult:
    room = checked.headroom
    verdict = None if room is None else risk_verdict(checked.source, room, checked.pause)
    return _judged(verdict, _ERROR, distance_metadata(Lag(), room))


def _adding_up(checked: CheckedSource) -> CheckResult:
    accounts = checked.accounts
    wrong = [account for account in accounts if not (account.has_all_images and account.is_merged)]
    figures: Metadata = {"batches": len(accounts)}
    row_counts = {
        "written": [account.written_rows for account in accounts],
        "merged": [account.merged_rows for account in accounts],
        "of tables that stopped": [account.stopped_rows for account in accounts],
    }
    for name, batch_counts in row_counts.items():
        counts = sum(batch_counts, RowCounts())
        for operation in ("inserted", "updated", "deleted"):
            figures[f"rows {operation}, {name}"] = getattr(counts, operation)
    figures["images read"] = sum(account.read_images for account in accounts)
    figures["images written"] = sum(account.written_images for account in accounts)
    if not wrong:
        return CheckResult(True, _WARN, figures)
    heads = ("batch", "images read", "images written", "rows written", "rows merged", "not merged")
    rows = [
        (
            account.batch,
            account.read_images,
            account.written_images,
            account.written_rows.total,
            account.merged_rows.total,
            ", ".join(map(str, account.unmerged_tables)),
        )
        for account in wrong
    ]
    figures["batches that do not add up"] = records(heads, rows)
    lost = any(not account.has_all_images for account in wrong)
    numbers = ", ".join(str(account.batch) for account in wrong)
    sentence = f"batch {numbers}: read, written and merged rows differ; `lockstep verify`"
    return CheckResult(False, _ERROR if lost else _WARN, figures, sentence)


def _old_proofs(checked: CheckedSource) -> CheckResult:
    """Judge how long ago each table that follows was last proven equal, completely or
    by samples."""
    following, keep = checked.following, checked.keep.total_seconds()
    newest: dict[TableName, float] = {}
    for proof in checked.proofs:
        age = _age(checked, proof.proven_at)
        if age is not None and proof.table in following:
            newest[proof.table] = min(age, newest.get(proof.table, age))
    never = following - newest.keys()
    figures: Metadata = {"tables proven": len(newest), "tables never proven": len(never)}
    if not newest:
        sentence = "no table was ever compared with MySQL: `lockstep verify`"
        return CheckResult(True, _WARN, figures, sentence if never else None)
    figures["oldest proof in seconds"] = max(newest.values())
    figures["limit in seconds"] = keep
    old = sorted(table for table, age in newest.items() if age > keep)
    if not old:
        return CheckResult(True, _WARN, figures)
    sentence = (
        f"{len(old)} tables were last found equal more than {duration_text(checked.keep)} ago, "
        f"{old[0]} first: `lockstep verify {old[0]}`"
    )
    return CheckResult(False, _WARN, figures, sentence)


def _slow_consumers(checked: CheckedSource) -> CheckResult:
    consumers = checked.consumers
    waits = {consumer.name: _age(checked, since) or 0.0 for consumer, since in consumers}
    figures: Metadata = {
        "consumers": len(consumers),
        "longest behind in seconds": max(waits.values(), default=0.0),
        "changes not read": sum(consumer.changes for consumer, _ in consumers),
    }
    if consumers:
        heads = ("consumer", "batches behind", "changes behind", "deliveries out", "since")
        counts = "name, behind, changes, out"
        rows = [(*attributes(consumer, counts).values(), since) for consumer, since in consumers]
        figures["consumers' places"] = records(heads, rows)
    slow = [name for name, age in waits.items() if age > checked.keep.total_seconds()]
    if not slow:
        return CheckResult(True, _WARN, figures)
    sentence = (
        f"{', '.join(slow)}: nothing acknowledged for more than {duration_text(checked.keep)}, "
        "which is how long versions are kept: start the program that reads, or delete the consumer "
        "with lockstep.drop_consumer"
    )
    return CheckResult(False, _WARN, figures, sentence)


CHECKS: Sequence[tuple[str, str, Callable[[CheckedSource], CheckResult]]] = (
    (
        "no_table_stopped",
        "A table that was stopped does not follow the source until it starts again.",
        _stopped,
    ),
    (
        "no_gap",
        "No part of the log was left unread because somebody chose a later start: after such a "
        "gap, tables may differ from the source.",
        _gaps,
    ),
    (
        "no_partial_mirror",
        "No mirror has only a part of its table, because the table had rows before the place from "
        "which its log is read.",
        _partial,
    ),
    (
        "no_table_differs",
        "No table differed from the source's when `lockstep verify`, or a run with prove_rows, "
        "last compared it.",
        _differing,
    ),
    ("not_late", "The lake is as fresh as its schedule allows.", _late),
    (
        "log_is_kept",
        "The server keeps the log after the cursor long enough for the next runs.",
        _at_risk,
    ),
    (
        "rows_add_up",
        "In the newest batches, as many rows were written and merged as were read from the log, by "
        "operation.",
        _adding_up,
    ),
    (
        "proofs_are_recent",
        "Each table was proven equal to MySQL's within the time that versions are kept.",
        _old_proofs,
    ),
    (
        "consumers_keep_up",
        "Each consumer of the changelog reads within the time that versions are kept.",
        _slow_consumers,
    ),
)
"""Name, description and rule of each check."""
