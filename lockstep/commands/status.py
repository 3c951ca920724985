"""`lockstep status`: the state of each source and what is wrong, also while MySQL is
down."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from lockstep import exits
from lockstep.assets.notices import assess_source, readable_patterns
from lockstep.context import CommandContext, Outcome
from lockstep.pipeline.check import longest_pause_from_now
from lockstep.pipeline.model.batch import Cursor
from lockstep.pipeline.model.json_values import attributes, to_json
from lockstep.pipeline.model.table_state import OrderKind, TableCondition, TableOrder, TableState
from lockstep.pipeline.proof.proven import ComparisonRecord, open_differences, proof_times
from lockstep.pipeline.run.catalog import CatalogStanding, registrations_of
from lockstep.pipeline.run.left_out import states_of_next_run
from lockstep.pipeline.run.table_plans import only_server_supplies
from lockstep.pipeline.source_plan import settings_in_words
from lockstep.pipeline.status.facts import Headroom, Standing, reason_not_by_gtid
from lockstep.pipeline.status.verdict import State, Verdict, verdict
from lockstep.pipeline.values.consumers import Consumer
from lockstep.pipeline.values.decisions import RecordedDecision
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.shown import duration_text, name_list, pluralize, utc_text
from lockstep.pipeline.values.table import TableName
from lockstep.printing import align_pairs, gap_values, partial_table_lines
from lockstep.resources.adapters import Adapters
from lockstep.resources.config import SourceSettings

_MAX_BATCHES: Final = 20
"""Largest number of batches in the answer."""

_MAX_GTID_CHARACTERS: Final = 100
"""Largest number of characters of a GTID set that are printed."""


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Print the state of each source. The exit code is 0 if nothing waits for a person
    or for a run. If MySQL is down, the answer says so and shows everything that the
    ledger has."""
    with context.adapters() as adapters:
        return Outcome.of_sources(
            {
                source.name: _show_status(context, adapters, source)
                for source in context.sources(arguments.source)
            }
        )


def _show_status(
    context: CommandContext, adapters: Adapters, source: SourceSettings
) -> tuple[int, dict[str, Any]]:
    """Print the state of a source; return the exit code and the values in `--json`."""
    ledger, now = adapters.ledger(), datetime.now(UTC)
    patterns = readable_patterns(source)
    standing, source_verdict = assess_source(adapters, source, now)
    states = states_of_next_run(ledger, source.name, patterns)
    tables = inactive_tables(states, ledger.open_orders(source.name), patterns.matches)
    decisions = ledger.decisions(source.name)
    consumers = adapters.consumers().consumers(source.name)
    settings: Mapping[TableName, str] = {}
    registry = None
    with suppress(LockstepError):  # `lockstep check` shows mistakes of the settings.
        plan = source.plan()
        settings = settings_in_words(filter(patterns.matches, states), plan.table_settings)
        registry = adapters.registry()
    catalog: CatalogStanding | None = None
    if registry is not None:
        catalog = registrations_of(ledger, plan.mirror_names, registry)
    context.say(*status_lines(standing, source_verdict, now, decisions, inactive_lines(tables)))
    context.say(*(f"  {table}: {words}" for table, words in settings.items()))
    if catalog is not None:
        context.say(_catalog_line(catalog))
    if consumers:
        context.say(align_pairs(consumer_pairs(consumers)))
    values = {
        **status_values(standing, source_verdict, now, decisions),
        "tables": inactive_values(tables),
        "consumers": [attributes(consumer, _CONSUMER_KEYS) for consumer in consumers],
        "catalog": catalog,
        **({"settings": settings} if settings else {}),
    }
    return exit_code(standing, now, longest_pause_from_now(source.schedule)), values


def exit_code(standing: Standing, now: datetime, pause: timedelta | None) -> int:
    """Return 0 if nothing waits for a person or for a run. While a run is going on,
    work that waits for a run does not count."""
    source_verdict = verdict(standing, now, pause)
    is_running = source_verdict.state is State.BUSY and source_verdict.recovery is None
    if is_running:
        source_verdict = verdict(replace(standing, lease=None), now, pause)
    if source_verdict.recovery is not None:
        code = source_verdict.recovery.exit_code
        return exits.DONE if is_running and code == exits.TRY_AGAIN else code
    return exits.DONE if source_verdict.state is State.FINE else exits.QUARANTINED


# -- the answer to a program -----------------------------------------------------------


_CONSUMER_KEYS: Final = "name, cursor, batches_behind, changes_behind, deliveries_out, created_at"
_SERVER_KEYS: Final = "server_uuid as uuid, version, gtid_mode, head"
_HEADROOM_KEYS: Final = (
    "is_purged as purged, remaining as remaining_seconds, retention as retention_seconds, "
    "bytes_per_day"
)
_FAILURE_KEYS: Final = "count, first_at, last_attempt.hint as hint"
_DECISION_KEYS: Final = (
    "decided_at, decision.kind as kind, decision.rule as rule, decision.reason as reason, "
    "decision.author as author"
)
_COMPARISON_KEYS: Final = (
    "table, is_whole as whole, compared_at, differing_count as differing, proven_at"
)
_PROOF_KEYS: Final = (
    "proof.kind as proof, proof.row_count as rows, proof.at as place, proof.gtid_set as gtid_set"
)
_UNCLEARED_KEYS: Final = (
    "table, tightening.columns as columns, tightening.has_fewer_rows as fewer_rows, "
    "tightening.is_rehashed as rehashed, tightening.last_batch as through_batch, noted_at, "
    "has_begun as begun, holders, kept_because, hint"
)


def status_values(
    standing: Standing,
    source_verdict: Verdict,
    now: datetime,
    decisions: Iterable[RecordedDecision],
) -> dict[str, Any]:
    """Return the values in `--json`, null if not known. `decisions`: the latest, newest
    first."""
    facts, headroom, failures = standing.facts, standing.headroom, standing.failures
    return {
        **attributes(source_verdict, "state, sentence, hint"),
        "captured": _cursor_values(standing, standing.captured),
        "acknowledged": _cursor_values(standing, standing.acknowledged),
        "lag": attributes(standing.lag, "seconds, log_bytes as bytes, transactions"),
        "headroom": headroom and attributes(headroom, _HEADROOM_KEYS),
        "server": facts
        and {
            **attributes(facts, _SERVER_KEYS),
            "another_than_read_last": standing.is_other_server,
            "standby": facts.is_standby,
        },
        "lineage": standing.lineage,
        "open_batches": [
            {**to_json(batch.batch), "waits_for": batch.tables}
            for batch in standing.waiting_batches
        ],
        "batches": standing.batches[:_MAX_BATCHES],
        "failures": failures and attributes(failures, _FAILURE_KEYS),
        "lease": standing.lease,
        "override": standing.override,
        "gaps": gap_values(standing.gaps),
        **attributes(standing, "overlaps, stopped_tables as stopped, extents as partial"),
        "invisible": [
            attributes(table, "table, reason, hint") for table in standing.invisible_tables
        ],
        "reading": {progress.table: progress for progress in standing.loads},
        "proofs": proof_values(standing.proofs, now),
        "unproven": standing.unproven,
        "in_clear": [attributes(note, _UNCLEARED_KEYS) for note in standing.uncleared_values],
        "former_mirrors": standing.former_folders,
        "decisions": [
            attributes(recorded_decision, _DECISION_KEYS) for recorded_decision in decisions
        ],
        "trouble": standing.server_error,
    }


def _cursor_values(standing: Standing, cursor: Cursor | None) -> dict[str, Any] | None:
    if cursor is None:
        return None
    return {
        **to_json(cursor.position),
        **attributes(cursor, "batch, position.server_uuid as server_uuid, by_gtid"),
        "why_not_by_gtid": _reason_not_by_gtid(standing, cursor),
    }


def _reason_not_by_gtid(standing: Standing, cursor: Cursor) -> str | None:
    reason = reason_not_by_gtid(cursor, standing.facts)
    if reason is None and standing.reads_other_log:
        return "the server's log is not the one that was read"
    return reason


def proof_values(records: Iterable[ComparisonRecord], now: datetime) -> list[dict[str, Any]]:
    """Return each table's comparisons with MySQL; `age_seconds`: the time since the
    table was last proven equal."""
    return [
        {
            **attributes(record, _COMPARISON_KEYS),
            "age_seconds": record.proven_at and now - record.proven_at,
            **attributes(record, _PROOF_KEYS),
        }
        for record in records
    ]


# -- lines for a person ----------------------------------------------------------------


def status_lines(
    standing: Standing,
    source_verdict: Verdict,
    now: datetime,
    decisions: Iterable[RecordedDecision] = (),
    table_lines: Iterable[str] = (),
) -> Iterator[str]:
    """Yield the verdict on the source and its hint, then all details. `decisions`: the
    latest, newest first; `table_lines`: the lines about tables that are not followed
    now."""
    yield f"{standing.source}: {source_verdict.state}: {source_verdict.sentence}"
    if source_verdict.hint:
        yield f"  hint: {source_verdict.hint}"
    pairs = {
        "captured": _cursor_words(standing.captured),
        "acknowledged": _cursor_words(standing.acknowledged),
        "lag": _lag_words(standing),
        **_server_pairs(standing),
    }
    for batch in standing.waiting_batches:
        tables_left = ", ".join(map(str, batch.tables))
        waits = f", waits for {tables_left}" if tables_left else ""
        state = batch.batch.state.value
        pairs[f"batch {batch.batch.id}"] = f"{state}, from {batch.batch.start}{waits}"
    if (lease := standing.lease) is not None:
        heartbeat = f", last sign of life {utc_text(lease.beat_at)}" if lease.beat_at else ""
        result = f", last result {utc_text(lease.recorded_at)}" if lease.recorded_at else ""
        pairs["being run by"] = (
            f"{lease.holder}, since {utc_text(lease.taken_at)}{heartbeat}{result}"
        )
    if (choice := standing.override) is not None:
        pairs["next start"] = f"{choice.place}, chosen by {choice.author}: {choice.reason}"
    yield align_pairs(pairs)
    yield from _gap_lines(standing)
    for table in standing.loads:
        yield f"  following, reading rows: {table.sentence()}"
    yield from partial_table_lines(standing.extents)
    for invisible in standing.invisible_tables:
        yield f"  {invisible.table}: {invisible.reason}"
        yield f"    hint: {invisible.hint}"
    yield from proof_lines(standing.proofs, standing.stopped_names, now)
    if standing.unproven is not None:
        names = ", ".join(map(str, sorted(standing.unproven.tables)))
        since = utc_text(standing.unproven.since)
        yield f"  not compared with the server: the structures of {names}, since {since}"
    for note in standing.uncleared_values:
        yield f"  {note.table}: {note.sentence}: {note.hint}"
    for folder in standing.former_folders:
        yield f"  {folder}: the former place of a mirror; `lockstep upkeep` deletes it later"
    yield from table_lines
    for recorded_decision in decisions:
        decision = recorded_decision.decision
        yield f"  {utc_text(recorded_decision.decided_at)}  {decision.rule}: {decision.reason}"


def _gap_lines(standing: Standing) -> Iterator[str]:
    """Yield a line for each part of the log that was never read, or was read twice."""
    for gap in standing.gaps:
        if gap.is_open:
            closed = f"; right again: {', '.join(gap.closed)}" if gap.closed else ""
            yield (
                f"  gap: {gap.sentence}; rows of {', '.join(gap.open_tables)} may be wrong{closed}"
            )
    for overlap in standing.overlaps:
        until = (
            f" committed up to {utc_text(overlap.committed_until)}"
            if overlap.committed_until
            else ""
        )
        yield (
            f"  read twice: rows with _batch = {overlap.batch}{until} may be in the changelogs "
            f"with _batch <= {overlap.previous_batch} as well; mirrors are exact"
        )


def _server_pairs(standing: Standing) -> dict[str, str]:
    facts, cursor = standing.facts, standing.captured
    pairs = {}
    if facts is not None:
        change = ", not the one that was read last" if standing.is_other_server else ""
        role = ", the standby" if facts.is_standby else ""
        pairs["server"] = f"{facts.server_uuid}{role}{change}, its log ends at {facts.head}"
    elif standing.server_error is not None:
        pairs["server"] = standing.server_error.message
    if len(standing.lineage) > 1:
        pairs["read from"] = ", then ".join(map(str, standing.lineage))
    if cursor is not None:
        refusal = _reason_not_by_gtid(standing, cursor)
        pairs["failover"] = (
            f"would be refused: {refusal}" if refusal else "could be followed by GTIDs"
        )
    if standing.headroom is not None:
        pairs["headroom"] = _headroom_words(standing.headroom)
    return pairs


def _headroom_words(headroom: Headroom) -> str:
    rate = ""
    if headroom.bytes_per_day:
        rate = f"; {headroom.bytes_per_day / 1e6:,.1f} MB of log a day"
    if headroom.is_purged:
        return f"the log at the cursor is already gone{rate}"
    if headroom.remaining is None:
        return f"logs are kept until somebody purges them{rate}"
    if not headroom.remaining:
        return f"the log at the cursor may be purged at any time{rate}"
    return f"{duration_text(headroom.remaining)} until the log at the cursor may be purged{rate}"


def _lag_words(standing: Standing) -> str:
    lag = standing.lag
    if standing.reads_other_log:
        return "unknown: the server's log is not the one that was read"
    clauses = []
    if lag.seconds is not None:
        clauses.append("none" if not lag.seconds else duration_text(timedelta(seconds=lag.seconds)))
    if lag.transactions is not None:
        clauses.append(pluralize(lag.transactions, "transaction"))
    if lag.log_bytes is not None:
        clauses.append(f"{lag.log_bytes:,} bytes of log")
    return ", ".join(clauses) or "unknown"


def _cursor_words(cursor: Cursor | None) -> str:
    if cursor is None:
        return "nothing yet"
    position = cursor.position
    committed = f", committed {utc_text(position.committed_at)}" if position.committed_at else ""
    gtids = (
        f", GTIDs {position.gtid_set.shortened_text(_MAX_GTID_CHARACTERS)}"
        if position.gtid_set
        else ""
    )
    return f"{position}{committed}{gtids}"


def proof_lines(
    proofs: Sequence[ComparisonRecord], stopped_tables: Collection[TableName], now: datetime
) -> Iterator[str]:
    """Yield the tables that differed in their last comparison, then the age of the
    oldest proof of tables that follow the source."""
    for table, proof in open_differences(proofs).items():
        rows, when = pluralize(proof.differing_count, "row"), utc_text(proof.compared_at)
        yield f"  {table} differs from MySQL: {rows} when compared {when}"
        yield f"    hint: `lockstep verify {table.word}` compares again, `--repair` corrects it"
    proven_times = proof_times(proofs, stopped_tables).values()
    if proven_times:
        oldest = duration_text(max(now - min(proven_times), timedelta()))
        tables = pluralize(len(proven_times), "table")
        yield f"  proven equal to MySQL: {tables}, the oldest proof {oldest} ago"
    if stopped_tables and proofs:
        yield f"  not proven: {pluralize(len(stopped_tables), 'table')} that stopped"


# -- tables that are not followed just now ---------------------------------------------

_ORDER_WORDS = {OrderKind.RESUME: "resumed", OrderKind.RELOAD: "to be reloaded"}


@dataclass(frozen=True, slots=True)
class InactiveTable:
    """A table that is not followed. `is_excluded`: the source's patterns do not match
    it any more. `order`: the open order that brings the table back; None if there is
    none or the table is excluded."""

    state: TableState
    order: TableOrder | None
    is_excluded: bool = False


def _return_clause(state: TableState, order: TableOrder) -> str:
    """Return a clause that says how the next run brings the table back. Only `lockstep
    plan` checks whether the server still has the log."""
    if order.kind is OrderKind.RELOAD:
        return "rewrites its mirror"
    if only_server_supplies(state, order) or state.stopped is None:
        return "reads it from the source"
    return f"catches it up through the log from {state.stopped.at}"


def inactive_tables(
    states: Mapping[TableName, TableState],
    orders: Iterable[TableOrder],
    is_captured: Callable[[TableName], bool],
) -> tuple[InactiveTable, ...]:
    """Return the tables that are not followed, sorted by name, each with its open
    order. `is_captured`: returns whether the source's patterns match a table."""
    orders_by_table = {order.table: order for order in orders}
    return tuple(
        InactiveTable(state, orders_by_table.get(table))
        if is_captured(table)
        else InactiveTable(replace(state, hint=_excluded_hint(state)), None, is_excluded=True)
        for table, state in sorted(states.items())
        if state.condition is not TableCondition.FOLLOWING
    )


def _excluded_hint(state: TableState) -> str | None:
    """Return a hint if a table that the patterns leave out has changes that are not
    merged."""
    if state.missing_since is None:
        return None
    return (
        f"its changes since batch {state.missing_since} are not merged, so `keep_changes` deletes "
        "nothing from there on; to end that, let a pattern match it until a run has merged them"
    )


def inactive_values(tables: Iterable[InactiveTable]) -> list[dict[str, Any]]:
    """Return the values in `--json`. `order`: null if nobody has ordered the table
    back."""
    return [
        {
            **attributes(table.state, "table, condition as state, stopped_by"),
            "excluded": table.is_excluded,
            "place": table.state.place_text or None,
            **attributes(table.state, "reason, hint"),
            "order": table.order
            and {
                **attributes(table.order, "kind, author, reason, ordered_at"),
                "with_structure": table.order.schema is not None,
            },
        }
        for table in tables
    ]


def inactive_lines(tables: Iterable[InactiveTable]) -> Iterator[str]:
    for table in tables:
        state, order = table.state, table.order
        place = f" at {state.place_text}" if state.place_text else ""
        reason = f": {state.reason}" if state.reason else ""
        source = " at the source" if state.condition is TableCondition.DROPPED else ""
        excluded = "is excluded; it " if table.is_excluded else ""
        yield f"  {state.table} {excluded}was {state.in_words}{source}{place}{reason}"
        if order is not None:
            order_reason = f": {order.reason}" if order.reason else ""
            yield (
                f"    {_ORDER_WORDS[order.kind]} by {order.author}, {utc_text(order.ordered_at)}"
                f"{order_reason}; the next run {_return_clause(state, order)}"
            )
        elif state.hint:
            yield f"    hint: {state.hint}"


# -- consumers and the catalog ---------------------------------------------------------


def consumer_pairs(consumers: Iterable[Consumer]) -> dict[str, str]:
    return {f"consumer {consumer.name}": _consumer_sentence(consumer) for consumer in consumers}


def _consumer_sentence(consumer: Consumer) -> str:
    place = f"after batch {consumer.cursor}"
    if consumer.cursor is None:
        place = "before the first batch"
    backlog = "nothing behind"
    if consumer.batches_behind:
        batches = pluralize(consumer.batches_behind, "batch", "batches")
        backlog = f"{batches} behind ({pluralize(consumer.changes_behind, 'change')})"
    deliveries = (
        f", {pluralize(consumer.deliveries_out, 'open delivery', 'open deliveries')}"
        if consumer.deliveries_out
        else ""
    )
    return f"{place}, {backlog}{deliveries}"


def _catalog_line(standing: CatalogStanding) -> str:
    line = f"  catalog: {pluralize(standing.registered, 'table')} registered"
    if standing.waiting:
        line += f"; waiting for the next run: {name_list(standing.waiting)}"
    if standing.left:
        line += f"; {len(standing.left)} cannot have a name there: `lockstep catalog` says why"
    return line
