"""`lockstep pause`, `lockstep resume` and `lockstep start-at`: orders of a person about
one table or about the next start. The ledger records them, and the next run carries
them out."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from lockstep import exits
from lockstep.arguments import author_of, parse_argument, parse_table_name, reason_of
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.model.table_state import OrderKind, TableCondition
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.orders import OrderOutcome, OrderRequest, give_order, plan_resume
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.run.repair import foresee_next_start
from lockstep.pipeline.run.status.plan import Choice, choose_start
from lockstep.pipeline.schema.model import schema_to_json
from lockstep.pipeline.values.decisions import Continuity, Lease
from lockstep.pipeline.values.errors import LockstepError, NothingMatches
from lockstep.pipeline.values.places import parse_start
from lockstep.pipeline.values.table import TableName, TablePatterns, has_wildcard
from lockstep.resources.holders import holder_name


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    carry_out = _choose_start if arguments.command == "start-at" else _record_order
    return carry_out(arguments, context)


def _record_order(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Record an order about each table. The exit code is 5 if it does not fit the
    table's state, 2 if the given structure or names are invalid. An order that no run
    could carry out is not recorded; if it is one of several resumes, none of them
    is."""
    kind, author = OrderKind(arguments.command), author_of(arguments)
    reason = reason_of(arguments)
    statement, renames = _given_structure(arguments)
    with context.adapters() as adapters:
        source = context.source_with_tables(adapters, arguments.source, arguments.tables)
        ports = adapters.ports(source, SilentProgress())
        requests = [
            OrderRequest(table, author, reason, statement, renames)
            for table in _chosen_tables(ports, kind, arguments.tables)
        ]
        if kind is OrderKind.RESUME and arguments.dry_run:
            outcomes = _plan_resumes(context, ports, requests)
            context.say("  nothing is recorded (--dry-run)")
        else:
            with ports.ledger.lock(source, holder_name(kind), None) as lease:
                outcomes = _give_orders(context, ports, lease, kind, requests)
    values = {str(outcome.order.table): _order_values(outcome) for outcome in outcomes}
    if len(values) == 1 and arguments.tables == [*values]:
        return Outcome(exits.DONE, {"source": source, **values[arguments.tables[0]]})
    return Outcome(exits.DONE, {"source": source, "tables": values})


def _chosen_tables(ports: RunPorts, kind: OrderKind, patterns: Sequence[str]) -> list[TableName]:
    """Return the tables that are named in full, and those that match a pattern and are
    in the condition for this kind of order. Raise `NothingMatches` if a pattern matches
    none."""
    is_resume = kind is OrderKind.RESUME
    fitting_condition = TableCondition.STOPPED if is_resume else TableCondition.FOLLOWING
    states = sorted(ports.ledger.table_states(ports.source.name).items())
    fitting_tables = [table for table, state in states if state.condition is fitting_condition]
    tables: list[TableName] = []
    for pattern in patterns:
        if not has_wildcard(pattern):
            tables.append(parse_table_name(pattern))
            continue
        matching = [*filter(TablePatterns((pattern,)).matches, fitting_tables)]
        tables += matching
        if not matching:
            raise NothingMatches(
                f"no {fitting_condition} table of {ports.source.name} matches {pattern}",
                hint="`lockstep status` shows which tables are stopped"
                if is_resume
                else "`lockstep tables` lists what is captured",
            )
    return list(dict.fromkeys(tables))


def _plan_resumes(
    context: CommandContext, ports: RunPorts, requests: Sequence[OrderRequest]
) -> list[OrderOutcome]:
    """Plan all resumes, then print their plans. Raise an error if no run could carry
    one out."""
    next_start = cache(partial(foresee_next_start, ports))
    planned_orders = [plan_resume(ports, request, next_start) for request in requests]
    context.say(*(f"{ports.source.name}: {planned.sentence}" for planned in planned_orders))
    return planned_orders


def _give_orders(
    context: CommandContext,
    ports: RunPorts,
    lease: Lease,
    kind: OrderKind,
    requests: Sequence[OrderRequest],
) -> list[OrderOutcome]:
    is_resume = kind is OrderKind.RESUME
    planned_orders: Sequence[OrderOutcome | None] = [None] * len(requests)
    if is_resume:
        planned_orders = _plan_resumes(context, ports, requests)
    outcomes = []
    for request, planned in zip(requests, planned_orders, strict=True):
        outcome = give_order(ports, lease, kind, request, planned)
        reason = f": {request.reason}" if request.reason else ""
        sentence = f"recorded: {kind} {request.table} ({request.author}{reason})"
        context.say(f"{ports.source.name}: {sentence}")
        if not is_resume:
            context.say(f"  {outcome.sentence}")
        outcomes.append(outcome)
    return outcomes


def _given_structure(
    arguments: argparse.Namespace,
) -> tuple[str | None, tuple[tuple[str, str], ...]]:
    """Return the statement in the file of `--schema` (None without that option), and
    the pairs of names of `--rename`."""
    if arguments.command == OrderKind.PAUSE:  # has neither option
        return None, ()
    renames = _parse_renames(arguments.rename)
    if not arguments.schema:
        if renames:
            raise UsageError(
                "--rename needs --schema: it gives columns of that structure their former names.",
                hint="add --schema FILE, with what `show create table` prints",
            )
        return None, ()
    if len(arguments.tables) != 1 or has_wildcard(arguments.tables[0]):
        raise UsageError("--schema describes one table.", hint="name one table, database.table")
    return _read_text(Path(arguments.schema)), renames


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read as UTF-8 text.",
            hint="give a file with what `show create table` prints",
        ) from error


def _parse_renames(options: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the old and the new name of each OLD=NEW, which may be in backticks as in
    SQL."""
    renames = []
    for option in options:
        old, equals_sign, new = (part.strip().strip("`") for part in option.partition("="))
        if not (old and equals_sign and new):
            raise UsageError(
                f"--rename {option} does not name two columns.",
                hint="write --rename OLD=NEW: the column's name when the table stopped, and its "
                "present name",
            )
        renames.append((old, new))
    return tuple(renames)


def _order_values(outcome: OrderOutcome) -> dict[str, Any]:
    order = outcome.order
    return {
        # A resume that is only planned has the id 0.
        "order": {
            **attributes(order, "id, table, kind, author, reason, ordered_at"),
            "schema": order.schema and schema_to_json(order.schema),
            "renames": dict(order.renames),
        }
        if order.id
        else None,
        **attributes(outcome, "order.stopped.at as stopped_place, sentence as next"),
    }


# -- start-at --------------------------------------------------------------------------


def _choose_start(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Record where the next run starts. Only that run uses the choice. A choice that no
    run could carry out is refused, and is not recorded."""
    place = parse_argument(arguments, "PLACE", arguments.place, parse_start)
    reason = reason_of(arguments)
    source = context.one_source(arguments.source).name
    try:
        with (
            context.open_source(source) as (_, ports),
            ports.ledger.lock(source, holder_name("start-at"), None) as lease,
        ):
            choice = choose_start(ports, lease, place, reason, author_of(arguments))
    except LockstepError as error:
        return Outcome.of_sources({source: context.report_error(source, error)})
    context.say(*_choice_lines(source, choice))
    # Everything but the choice is null or empty if the server could not be asked.
    keys = "override, position as start, captured_end, continuity, gap_tables, abandoned_batches"
    values = attributes(choice, f"{keys}, server_error as trouble")
    return Outcome.of_sources({source: (exits.DONE, values)})


def _choice_lines(source: str, choice: Choice) -> Iterator[str]:
    override = choice.override
    yield f"{source}: recorded: start at {override.place} ({override.author}: {override.reason})"
    if choice.server_error is not None:
        yield (
            f"  the server could not be asked ({choice.server_error.message}); the next run checks "
            "that the place exists"
        )
    elif choice.position is not None:
        yield f"  the next run starts at {choice.position}; `lockstep plan` shows it"
    for batch in choice.abandoned_batches:
        yield f"  batch {batch}, which was never acknowledged, is abandoned"
    if choice.continuity is Continuity.GAP:
        yield (
            f"  a gap: the log from {choice.captured_end} to {choice.position} is not read; rows "
            f"of {', '.join(choice.gap_tables)} may be wrong until `lockstep verify` finds them "
            "equal, or they are read again"
        )
        yield (
            "  next: `lockstep run`, `lockstep verify --repair`, `lockstep run`, `lockstep "
            "verify`; until then `lockstep status` names the tables"
        )
    elif choice.continuity is Continuity.CONTIGUOUS:
        yield "  nothing is left out, nothing is read twice; next: `lockstep run`"
    yield "  if this is the wrong place, choose again: the latest choice counts until a run uses it"
