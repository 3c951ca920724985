"""The asset checks of a source as a whole. The facts are gathered once, and each check
is a function of them. To add a check, add a row to `CHECKS`.

Checks report what the ledger recorded, and never block a run. Conditions that must hold
before a batch is acknowledged are enforced by the ledger itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import dagster as dg

from lockstep.assets.dagster_metadata import (
    Metadata,
    distance_metadata,
    metadata_table,
    partial_tables_metadata,
    rounded_seconds,
    stopped_tables_metadata,
)
from lockstep.pipeline.check import longest_pause_from_now
from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.model.table_state import Extent, StoppedTable
from lockstep.pipeline.ports.ledger import Consumers, Ledger
from lockstep.pipeline.proof.proven import ComparisonRecord, open_differences, proof_times
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.table_extents import partial_tables
from lockstep.pipeline.run.status.status import captured_gaps, captured_proofs, log_state
from lockstep.pipeline.run.stop_errors import stopped_tables
from lockstep.pipeline.status.accounting import Account, accounts
from lockstep.pipeline.status.facts import Headroom, Lag
from lockstep.pipeline.status.verdict import Verdict, late_verdict, risk_verdict
from lockstep.pipeline.values.consumers import Consumer
from lockstep.pipeline.values.errors import StoppedBy
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.shown import duration_text, in_markdown, pluralize
from lockstep.pipeline.values.table import TableName
from lockstep.resources.config import Settings

_WARN, _ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR

_MAX_BATCHES = 20
"""Largest number of acknowledged batches whose rows are added up: the newest ones."""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """The facts that the checks judge.

    `pause`: the longest time between two scheduled runs; None without a schedule.
    `version_retention`: how long versions of mirrors are kept.
    `complete_tables`: the tables that follow the source and lack no rows.
    `accounts`: numbers of rows read and written in the newest acknowledged batches,
    oldest first.
    `consumers`: each with the time since which it has unread changes, or None if it has
    read all.
    """

    source: str
    now: datetime
    pause: timedelta | None
    version_retention: timedelta
    complete_tables: frozenset[TableName]
    stopped_tables: Sequence[StoppedTable]
    gaps: Sequence[Gap]
    extents: Sequence[Extent]
    proofs: Sequence[ComparisonRecord]
    lag: Lag
    headroom: Headroom | None
    accounts: Sequence[Account]
    consumers: Sequence[tuple[Consumer, datetime | None]]


def source_check_results(
    settings: Settings, ports: RunPorts, consumers: Consumers, asset: dg.AssetKey
) -> Iterator[dg.AssetCheckResult]:
    """Yield the result of every check of the source now, as a check of that asset."""
    facts = _gather_facts(settings, ports, consumers)
    for name, _, judge in CHECKS:
        result = judge(facts)
        yield dg.AssetCheckResult(
            check_name=name,
            asset_key=asset,
            description=result.description and in_markdown(result.description),
            **attributes(result, "passed, severity, metadata"),
        )


def _gather_facts(settings: Settings, ports: RunPorts, consumers: Consumers) -> SourceFacts:
    source, ledger, now = ports.source.name, ports.ledger, ports.clock()
    states = ledger.table_states(source)
    complete_tables = frozenset(table for table, state in states.items() if state.is_complete)
    _, lag, headroom = log_state(ports, now)
    return SourceFacts(
        source=source,
        now=now,
        pause=longest_pause_from_now(settings.source(source).schedule),
        version_retention=settings.version_retention(),
        complete_tables=complete_tables,
        stopped_tables=stopped_tables(states, ports.source.patterns.matches),
        gaps=captured_gaps(ledger, source, ports.source.patterns, states),
        extents=partial_tables(ledger, source, ports.source.patterns),
        proofs=captured_proofs(ledger, source, ports.source.patterns),
        lag=lag,
        headroom=headroom,
        accounts=newest_accounts(ledger, source, complete_tables),
        consumers=[
            (consumer, _waiting_since(ledger, consumer)) for consumer in consumers.consumers(source)
        ],
    )


def newest_accounts(
    ledger: Ledger, source: str, complete_tables: frozenset[TableName]
) -> tuple[Account, ...]:
    """Return the accounts of the newest acknowledged batches whose contents the ledger
    still has, oldest first."""
    pruned_through = ledger.pruned_through(source)
    acknowledged = [
        batch
        for batch in ledger.batches(source, limit=2 * _MAX_BATCHES)
        if batch.state is BatchState.ACKNOWLEDGED and batch.id > pruned_through
    ][:_MAX_BATCHES]
    if not acknowledged:
        return ()
    span = (source, acknowledged[-1].id, acknowledged[0].id)
    contents = ledger.contents(*span)
    return accounts(
        reversed(acknowledged),
        [rows for content in contents for rows in content.captured_rows()],
        [event for content in contents for event in content.events],
        ledger.writes_within(*span),
        complete_tables,
    )


def _waiting_since(ledger: Ledger, consumer: Consumer) -> datetime | None:
    """Return the time since which the consumer has unread changes; None if it has read
    all. This is the time at which a run acknowledged the first batch that the consumer
    did not read, or at which the consumer was created, whichever is later."""
    first_unread = ledger.live_batches(consumer.source, (consumer.cursor or 0) + 1, limit=1)
    acknowledged_at = first_unread[0].acknowledged_at if first_unread else None
    return None if acknowledged_at is None else max(acknowledged_at, consumer.created_at)


# -- the rules -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The fields of `dg.AssetCheckResult` that depend on the facts."""

    passed: bool
    severity: dg.AssetCheckSeverity
    metadata: Metadata
    description: str | None = None


def _judge_stopped(facts: SourceFacts) -> CheckResult:
    stopped = facts.stopped_tables
    stopped_by_system = [table for table in stopped if table.by is StoppedBy.SYSTEM]
    metadata: Metadata = {"tables": len(stopped)}
    if stopped:
        metadata["stopped"] = stopped_tables_metadata(stopped)
    return CheckResult(not stopped, _ERROR if stopped_by_system else _WARN, metadata)


def _judge_gaps(facts: SourceFacts) -> CheckResult:
    rows = [
        (", ".join(gap.open_tables), gap.begin, gap.end, gap.reason, gap.decided_at)
        for gap in facts.gaps
        if gap.is_open
    ]
    heads = ("tables", "from", "to", "reason", "decided at")
    return CheckResult(not rows, _WARN, {"gaps": metadata_table(heads, rows)} if rows else {})


def _judge_partial(facts: SourceFacts) -> CheckResult:
    metadata = {"partial": partial_tables_metadata(facts.extents)} if facts.extents else {}
    return CheckResult(not facts.extents, _WARN, metadata)


def _age_seconds(facts: SourceFacts, moment: datetime | None) -> float | None:
    return None if moment is None else rounded_seconds((facts.now - moment).total_seconds())


def _judge_differing(facts: SourceFacts) -> CheckResult:
    proofs = facts.proofs
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
            for record in sorted(proofs, key=lambda record: not record.differing_count)
        ]
        metadata["compared"] = metadata_table(heads, rows)
    proven_times = proof_times(proofs, {table.table for table in facts.stopped_tables}).values()
    if proven_times:
        metadata["oldest proof in seconds"] = _age_seconds(facts, min(proven_times))
    return CheckResult(not open_differences(proofs), _ERROR, metadata)


def _result_of_verdict(
    verdict: Verdict | None, severity: dg.AssetCheckSeverity, figures: Metadata
) -> CheckResult:
    if verdict is None:
        return CheckResult(True, severity, figures)
    return CheckResult(False, severity, figures | {"hint": verdict.hint}, verdict.sentence)


def _judge_late(facts: SourceFacts) -> CheckResult:
    verdict = late_verdict(facts.source, facts.lag, facts.pause)
    return _result_of_verdict(verdict, _WARN, distance_metadata(facts.lag, None))


def _judge_at_risk(facts: SourceFacts) -> CheckResult:
    verdict = risk_verdict(facts.source, facts.headroom, facts.pause)
    return _result_of_verdict(verdict, _ERROR, distance_metadata(Lag(), facts.headroom))


def _judge_accounts(facts: SourceFacts) -> CheckResult:
    wrong_accounts = [
        account for account in facts.accounts if not (account.has_all_images and account.is_merged)
    ]
    figures: Metadata = {"batches": len(facts.accounts)}
    row_counts = {
        "written": [account.written_rows for account in facts.accounts],
        "merged": [account.merged_rows for account in facts.accounts],
        "of tables that stopped": [account.stopped_rows for account in facts.accounts],
    }
    for name, batch_counts in row_counts.items():
        counts = sum(batch_counts, RowCounts())
        for operation in ("inserted", "updated", "deleted"):
            figures[f"rows {operation}, {name}"] = getattr(counts, operation)
    figures["images read"] = sum(account.read_images for account in facts.accounts)
    figures["images written"] = sum(account.written_images for account in facts.accounts)
    if not wrong_accounts:
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
        for account in wrong_accounts
    ]
    figures["batches that do not add up"] = metadata_table(heads, rows)
    has_lost_rows = any(not account.has_all_images for account in wrong_accounts)
    batches = ", ".join(f"batch {account.batch}" for account in wrong_accounts)
    sentence = f"{batches}: numbers of rows read, written and merged differ: `lockstep verify`"
    return CheckResult(False, _ERROR if has_lost_rows else _WARN, figures, sentence)


def _judge_proof_ages(facts: SourceFacts) -> CheckResult:
    """Judge how long ago each table that follows the source was last proven equal, by
    all of its rows or by samples."""
    ages: dict[TableName, float] = {}
    for proof in facts.proofs:
        age = _age_seconds(facts, proof.proven_at)
        if age is not None and proof.table in facts.complete_tables:
            ages[proof.table] = min(age, ages.get(proof.table, age))
    never_proven = facts.complete_tables - ages.keys()
    figures: Metadata = {"tables proven": len(ages), "tables never proven": len(never_proven)}
    if not ages:
        sentence = "no table was ever compared with MySQL: `lockstep verify`"
        return CheckResult(True, _WARN, figures, sentence if never_proven else None)
    figures["oldest proof in seconds"] = max(ages.values())
    limit_seconds = facts.version_retention.total_seconds()
    figures["limit in seconds"] = limit_seconds
    old_tables = sorted(table for table, age in ages.items() if age > limit_seconds)
    if not old_tables:
        return CheckResult(True, _WARN, figures)
    limit_words = duration_text(facts.version_retention)
    sentence = (
        f"{pluralize(len(old_tables), 'table was', 'tables were')} last found equal more than "
        f"{limit_words} ago, {old_tables[0]} first: `lockstep verify {old_tables[0].word}`"
    )
    return CheckResult(False, _WARN, figures, sentence)


def _judge_consumers(facts: SourceFacts) -> CheckResult:
    consumers = facts.consumers
    waiting_seconds = {
        consumer.name: _age_seconds(facts, since) or 0.0 for consumer, since in consumers
    }
    figures: Metadata = {
        "consumers": len(consumers),
        "longest behind in seconds": max(waiting_seconds.values(), default=0.0),
        "changes not read": sum(consumer.changes_behind for consumer, _ in consumers),
    }
    if consumers:
        heads = ("consumer", "batches behind", "changes behind", "open deliveries", "since")
        counts = "name, batches_behind, changes_behind, deliveries_out"
        rows = [(*attributes(consumer, counts).values(), since) for consumer, since in consumers]
        figures["consumers' places"] = metadata_table(heads, rows)
    slow_consumers = [
        name
        for name, age in waiting_seconds.items()
        if age > facts.version_retention.total_seconds()
    ]
    if not slow_consumers:
        return CheckResult(True, _WARN, figures)
    limit_words = duration_text(facts.version_retention)
    sentence = (
        f"{', '.join(slow_consumers)}: changes wait for more than {limit_words}, which is how long "
        "versions are kept: start the program that reads, or delete the consumer with "
        "lockstep.drop_consumer"
    )
    return CheckResult(False, _WARN, figures, sentence)


CHECKS: Sequence[tuple[str, str, Callable[[SourceFacts], CheckResult]]] = (
    (
        "no_table_stopped",
        "A table that was stopped does not follow the source until it starts again.",
        _judge_stopped,
    ),
    (
        "no_gap",
        "The log was read without a gap. A gap is left if somebody chooses a later start; tables "
        "may then differ from the source.",
        _judge_gaps,
    ),
    (
        "no_partial_mirror",
        "No mirror is partial. A mirror is partial if its table had rows before the place from "
        "which the log is read.",
        _judge_partial,
    ),
    (
        "no_table_differs",
        "No mirror differed from its table when `lockstep verify`, or a run with prove_rows, last "
        "compared the two.",
        _judge_differing,
    ),
    ("not_late", "The lake is as fresh as its schedule allows.", _judge_late),
    (
        "log_is_kept",
        "The server keeps the log after the cursor long enough for the next runs.",
        _judge_at_risk,
    ),
    (
        "rows_add_up",
        "In the newest batches, as many rows were written and merged as were read from the log, by "
        "operation.",
        _judge_accounts,
    ),
    (
        "proofs_are_recent",
        "Each mirror was last proven equal to its table no longer ago than versions are kept.",
        _judge_proof_ages,
    ),
    (
        "consumers_keep_up",
        "Each consumer of the changelog reads within the time that versions are kept.",
        _judge_consumers,
    ),
)
"""Name, description and rule of each check."""
