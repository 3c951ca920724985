"""`lockstep plan`: show what the next run would do, without writing anything."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, assert_never

from lockstep import exits
from lockstep.arguments import place_option
from lockstep.context import CommandContext, Outcome
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.model.table_state import OrderKind, TableOrder
from lockstep.pipeline.run.status.plan import PlannedShape, PlannedStart, RunPlan, make_plan
from lockstep.pipeline.run.status.plan_reading import PlannedReading
from lockstep.pipeline.run.table_plans import TablePlans
from lockstep.pipeline.supply import (
    ColumnsFromServer,
    FromChangelog,
    FromLog,
    FromPast,
    Price,
    RowsFromServer,
    Supply,
    SupplyStep,
)
from lockstep.pipeline.values.errors import LockstepError, LogStops
from lockstep.pipeline.values.places import Place
from lockstep.pipeline.values.shown import name_list, pluralize, utc_text
from lockstep.pipeline.values.table import TableName
from lockstep.printing import origin_values, show_stopped_tables, show_table
from lockstep.resources.adapters import Adapters

_MAX_GTID_CHARACTERS: Final = 120
"""Largest number of characters of a GTID set that are printed."""


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Show the plan of each source. The exit code is the one that a run would have. If
    a source fails, the other sources are planned all the same."""
    sources = context.sources(arguments.source)
    until = place_option(arguments, "--until")
    with context.adapters() as adapters:
        return Outcome.of_sources(
            {source.name: _plan_source(adapters, context, source.name, until) for source in sources}
        )


def _plan_source(
    adapters: Adapters, context: CommandContext, source: str, until: Place | None
) -> tuple[int, dict[str, Any]]:
    try:
        with context.watch(source) as progress:
            ports = adapters.ports(source, progress)
            ports = replace(ports, source=replace(ports.source, until=until))
            plan = make_plan(ports)
    except LockstepError as error:
        return context.report_error(source, error)
    show_plan(context, source, plan)
    return exit_code(plan), plan_values(plan)


def exit_code(plan: RunPlan) -> int:
    """Return the exit code that `lockstep run` would have."""
    if plan.refusal is not None:
        return plan.refusal.recovery.exit_code
    stopped_tables = plan.new_quarantines or plan.remaining_stops
    return exits.QUARANTINED if stopped_tables else exits.DONE


# -- the answer to a program -----------------------------------------------------------


def plan_values(plan: RunPlan) -> dict[str, Any]:
    """Return the plan's values for `--json`. If the run would fail, `error` is what
    `lockstep run` would print."""
    return {
        **attributes(plan, "abandoned_sentences as abandoned, waiting_batches as waiting"),
        "supplies": supply_values(plan.table_plans),
        **attributes(plan, "load_forecasts as loads_take, start.position as start"),
        "start_decision": plan.start
        and attributes(plan.start, "rule, reason, continuity, gap_tables"),
        **attributes(plan, "capture_seconds"),
        **(_reading_values(plan.reading) if plan.reading else {"end": None}),
        **attributes(plan, "stopped_tables as stopped, active_run.holder as busy"),
        **({"settings": dict(plan.settings)} if plan.settings else {}),
        **({"shapes": dict(plan.shapes)} if plan.shapes else {}),
        **({"left_out": dict(plan.left_out)} if plan.left_out else {}),
        **({"error": plan.refusal} if plan.refusal else {}),
    }


def supply_values(plans: TablePlans) -> list[dict[str, Any]]:
    """Return, for each table that is behind the other tables, the steps that catch it
    up. `from`: the place where it stopped; `to`: the place that the other tables have
    reached; `steps`: each with its supplier, reason and price; `waits`: the reason why
    no step is taken now, or null."""
    orders = {order.table: order for order in plans.orders}
    return [
        {
            "table": table,
            **attributes(orders.get(table), "stopped.at as from"),
            "to": plans.cursor and plans.cursor.position.at,
            "steps": [
                {
                    "supplier": _SUPPLIER_NAMES[type(step.supply)],
                    **attributes(step, "reason"),
                    **attributes(step.price, "rows, bytes, log_bytes"),
                    **_origin_values(step.supply),
                }
                for step in plan.steps
            ],
            "waits": plan.reason_to_wait,
        }
        for table, plan in sorted(plans.plans.items())
    ]


def _origin_values(supply: Supply) -> dict[str, Any]:
    return origin_values(supply.origin) if isinstance(supply, FromChangelog) else {}


_SUPPLIER_NAMES: Final[Mapping[type[Supply], str]] = {
    FromLog: "log",
    FromPast: "log",
    FromChangelog: "changelog",
    RowsFromServer: "source",
    ColumnsFromServer: "source, by key",
}


def _reading_values(reading: PlannedReading) -> dict[str, Any]:
    return {
        **attributes(
            reading,
            "end, end_reason as ends_because, run_count as runs, "
            "transaction_count as transactions, log_bytes as bytes",
        ),
        "tables": {
            table: {
                **attributes(tally.counts, "inserted, updated, deleted"),
                **attributes(tally, "event_count as row_events, size_bytes as bytes"),
                "merge": reading.merge_sentences.get(table),
            }
            for table, tally in reading.tallies.items()
        },
        "not_captured": attributes(
            reading, "foreign_transaction_count as transactions, foreign_bytes as bytes"
        ),
        **attributes(reading, "statements, unlisted_statement_count as more_statements"),
        **attributes(reading, "largest_transaction"),
        **attributes(reading, "passed_sentences, rereads, drops"),
        **attributes(reading, "quarantines as quarantined"),
    }


# -- lines for a person ----------------------------------------------------------------


def show_plan(context: CommandContext, source: str, plan: RunPlan) -> None:
    context.say(*plan_lines(source, plan))
    reading = plan.reading
    if reading is None:
        return
    counts = "counts.inserted, counts.updated, counts.deleted, size_bytes"
    rows = [
        (table, *attributes(tally, counts).values()) for table, tally in reading.tallies.items()
    ]
    show_table(context, ("table", "inserted", "updated", "deleted", "bytes"), rows)
    for table, sentence in sorted(reading.merge_sentences.items()):
        context.say(f"  {table}, {sentence}")
    if reading.foreign_transaction_count:
        context.say(
            f"  not captured: {pluralize(reading.foreign_transaction_count, 'transaction')} "
            f"without rows of captured tables, {reading.foreign_bytes:,} bytes of log"
        )
    for statement in reading.statements:
        if not statement.is_passed:
            context.say(f"  {statement.place}  {statement.text}\n    {statement.effect}")
    if passed_count := sum(statement.is_passed for statement in reading.statements):
        statements = pluralize(passed_count, "statement concerns", "statements concern")
        context.say(f"  {statements} no captured table; `--json` lists them")
    if reading.unlisted_statement_count:
        context.say(f"  and {pluralize(reading.unlisted_statement_count, 'more statement')}")
    for line in reading.passed_sentences:
        context.say(f"  {line}")
    for table, reason in reading.rereads.items():
        context.say(f"  {table} is read from the source: {reason}")
    for table, reason in reading.drops.items():
        context.say(f"  {table} is marked as dropped: {reason}")
    if reading.quarantines:
        context.say("  would be quarantined:")
        show_stopped_tables(context, reading.quarantines)


def plan_lines(source: str, plan: RunPlan) -> Iterator[str]:
    """Yield the sentence on the next run, then its details up to the reading of the
    log."""
    if plan.refusal is not None:
        result = "be refused"
        if isinstance(plan.refusal, LogStops) and plan.refusal.transaction_end:
            result = f"capture all up to {plan.refusal.transaction_end} and end there"
        yield f"{source}: the next run would {result}: {plan.refusal.message}"
        yield f"  hint: {plan.refusal.hint}"
    elif plan.reading is not None:
        has_gap = plan.start is not None and bool(plan.start.gap_tables)
        is_idle = not (plan.reading.transaction_count or has_gap or plan.table_plans or plan.shapes)
        result = "find nothing new" if is_idle else "go through"
        if is_idle and plan.reading.is_past_end:
            result = f"read nothing: its end, {plan.reading.end_reason}, is not after its start"
        if plan.new_quarantines:
            result = f"quarantine {name_list(plan.new_quarantines)}, and go on with other tables"
        elif plan.remaining_stops:
            stay = "stays" if len(plan.remaining_stops) == 1 else "stay"
            result += f"; {name_list(plan.remaining_stops)} {stay} stopped"
        yield f"{source}: the next run would {result}"
    if plan.active_run is not None:
        lease = plan.active_run
        yield f"  a run is going on: {lease.holder}, since {utc_text(lease.taken_at)}"
    for sentence in plan.abandoned_sentences:
        yield f"  repair  {sentence}"
    for batch, tables in plan.waiting_batches.items():
        yield f"  merge   batch {batch} first: {', '.join(map(str, tables)) or 'nothing is left'}"
    for table, shape in plan.shapes.items():
        yield from _shape_lines(table, shape)
    for table, reason in plan.left_out.items():
        yield f"  stops   {table}: {reason}; its mirror stays as it is"
    yield from supply_lines(plan.table_plans)
    for sentence in plan.load_forecasts:
        yield f"          {sentence}"
    for table, words in plan.settings.items():
        yield f"  table   {table}: {words}"
    if plan.start is not None:
        yield f"  start   {start_line(plan.start)}"
        if plan.start.gap_tables:
            yield f"          a gap: changes of {', '.join(plan.start.gap_tables)} may be missing"
    if plan.reading is not None:
        yield from _reading_lines(plan.reading, plan.capture_seconds)


def price_words(price: Price) -> str:
    """Return the end of a sentence with the estimated numbers of rows and bytes that
    are read, as far as they are known."""
    rows = "" if price.rows is None else f": about {pluralize(price.rows, 'row')}"
    return rows + ("" if not price.bytes else f", {price.bytes:,} bytes")


def _shape_lines(table: TableName, shape: PlannedShape) -> Iterator[str]:
    if shape.refusal_hint is not None:
        yield f"  shape   {table} would be quarantined: {shape.reason}"
        yield f"          hint: {shape.refusal_hint}"
        return
    yield f"  shape   {table}: {shape.reason}"
    if shape.remains is not None:
        yield f"          {shape.remains}"


def supply_lines(plans: TablePlans) -> Iterator[str]:
    """Yield a line for each step that catches a table up with the other tables, and a
    line for each table that waits for its step."""
    end = "" if plans.cursor is None else str(plans.cursor.position.at)
    orders = {order.table: order for order in plans.orders}
    for table, plan in sorted(plans.plans.items()):
        order = orders.get(table)
        if plan.reason_to_wait is not None:
            yield f"  waits   {table}: {plans.wait_sentence(table)}"
        elif order is not None and order.stopped is not None and plan.needs_no_log_or_rows:
            yield f"  back    {table} goes on from {order.stopped.at}, where the others are"
        for step in plan.steps:
            yield f"  {_step_line(table, step, order, end)}"


def _step_line(table: TableName, step: SupplyStep, order: TableOrder | None, end: str) -> str:
    order_reason = ""
    if order is not None and order.author == "lockstep" and order.kind is OrderKind.RELOAD:
        order_reason = f": {order.reason}"
    price = price_words(step.price)
    match step.supply:
        case FromLog(span):
            return (
                f"back    {table} catches up through the log, from {span.low} to {end}: "
                f"{step.price.log_bytes:,} bytes"
            )
        case FromPast(past):
            return (
                f"past    {table} is followed from {past.begins} on, and not earlier, because "
                f"{step.reason}: {step.price.log_bytes:,} bytes"
            )
        case FromChangelog(origin):
            return (
                f"back    the mirror of {table} is rewritten {step.reason}: {origin.size}"
                f"{order_reason}; no row is read from the source"
            )
        case RowsFromServer(load):
            progress = (
                f", {load.row_count:,} of them are read"
                if load is not None and load.row_count
                else ""
            )
            return f"read    {table} from the source: {step.reason}{order_reason}{price}{progress}"
        case ColumnsFromServer(columns):
            names = ", ".join(columns.names)
            return f"read    {names} of {table} from the source, by key: {step.reason}{price}"
    assert_never(step.supply)


def start_line(start: PlannedStart) -> str:
    """Return the position at which the next run starts, with the rule and its reason."""
    decision = f"{start.rule}: {start.reason}"
    if start.position is None:
        return decision
    gtids = start.position.gtid_set
    gtid_words = f" ({gtids.shortened_text(_MAX_GTID_CHARACTERS)})" if gtids else ""
    return f"{start.position}{gtid_words}, {decision}"


def _reading_lines(reading: PlannedReading, seconds: float | None) -> Iterator[str]:
    runs = f"; {reading.run_count:,} such runs reach the end" if reading.run_count > 1 else ""
    yield f"  end     {reading.end}, {reading.end_reason}{runs}"
    rows = sum(tally.counts.total for tally in reading.tallies.values())
    duration = "" if seconds is None else f", about {seconds:,.0f} s to capture"
    yield (
        f"  reads   {pluralize(reading.transaction_count, 'transaction')}, "
        f"{pluralize(rows, 'row')}, {reading.log_bytes:,} bytes of log{duration}"
    )
    if reading.largest_transaction is not None and reading.transaction_count > 1:
        largest = reading.largest_transaction
        size = f"{largest.bytes:,} bytes, {pluralize(largest.rows, 'row')}"
        yield f"          largest transaction: {size}, at {largest.place}"
