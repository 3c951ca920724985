"""`lockstep reload`: have the next run write mirrors again, or read some rows of one
table again."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, Final

from lockstep import exits
from lockstep.arguments import author_of, parse_table_name, reason_of
from lockstep.commands.run import run_sources
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.model.table_state import Supplier, TableCondition, TableState
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.logged_statements import dialect_of
from lockstep.pipeline.run.load.by_condition import condition_refusal
from lockstep.pipeline.run.orders import (
    OrderRequest,
    Reload,
    ReloadFacts,
    give_reload,
    plan_condition_reload,
    plan_reload,
)
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.run.status.plan import forecast_loads
from lockstep.pipeline.snapshot.condition import read_condition
from lockstep.pipeline.source_plan import RereadRows
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import NothingMatches
from lockstep.pipeline.values.shown import pluralize
from lockstep.pipeline.values.table import TableName, TablePatterns
from lockstep.printing import origin_values
from lockstep.resources.adapters import Adapters
from lockstep.resources.holders import holder_name


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Order the next run to write the mirror of each table again. With `--where`, read
    the rows at once, in runs that this command makes. With `--dry-run`, only show what
    would be done."""
    if arguments.where is not None:
        _require_valid_where(arguments)
    with context.adapters() as adapters:
        source = context.source_with_tables(
            adapters, arguments.source, arguments.tables, may_be_new=True
        )
        ports = adapters.ports(source, SilentProgress())
        if arguments.where is not None:
            reloads = [_planned_row_reload(arguments, ports)]
            if not arguments.dry_run:
                code, values = reload_by_condition(context, adapters, ports, reloads)
                return Outcome(code, {"source": source, **values})
        elif arguments.dry_run:
            reloads = _planned_reloads(arguments, context, ports)
        else:
            with ports.ledger.lock(source, holder_name("reload"), None) as lease:
                planned = _planned_reloads(arguments, context, ports)
                reloads = record_reloads(context, ports, lease, planned)
        if arguments.dry_run:
            show_planned(context, ports, reloads)
    tables = {reload.table: reload_values(reload) for reload in reloads}
    return Outcome(exits.DONE, {"source": source, "tables": tables})


def reload_values(reload: Reload) -> dict[str, Any]:
    """Return the values of a reload, recorded or only planned, for `--json`."""
    if reload.condition_rows is not None:
        return attributes(reload, "condition_rows.condition.text as where, estimated_rows")
    return {
        **attributes(reload, "order.id as order_id, load_id, sentence as next, estimated_rows"),
        **(origin_values(reload.origin) if reload.origin else {}),
    }


def show_planned(context: CommandContext, ports: RunPorts, reloads: Sequence[Reload]) -> None:
    """Print the effects of reloads that are only planned, and their costs."""
    context.say(
        *(_reload_line(ports, reload) for reload in reloads),
        *_cost_lines(ports, reloads),
        "nothing is recorded (--dry-run)",
    )


def record_reloads(
    context: CommandContext, ports: RunPorts, lease: Lease, reloads: Sequence[Reload]
) -> list[Reload]:
    """Record reloads, print what the next run does, and return them as recorded."""
    recorded = []
    for reload in reloads:
        recorded.append(give_reload(ports, lease, reload))
        _say_recorded(context, ports, recorded[-1])
    context.say(*_cost_lines(ports, recorded))
    return recorded


def _planned_reloads(
    arguments: argparse.Namespace, context: CommandContext, ports: RunPorts
) -> list[Reload]:
    """Return a planned reload for each chosen table. A stopped table waits for a
    person, so it is left out unless its full name was given."""
    states = ports.ledger.table_states(ports.source.name)
    tables = []
    for table in _chosen_tables(ports, states, arguments.tables):
        state = states.get(table)
        if state is not None and state.has_stopped and str(table) not in arguments.tables:
            context.note(
                f"{ports.source.name}: {table} is left out: it was {state.in_words}, because "
                f"{state.reason}; name it to have it reloaded"
            )
        else:
            tables.append(table)
    supplier = None if arguments.from_ is None else Supplier(arguments.from_)
    author, reason = author_of(arguments), reason_of(arguments)
    facts = ReloadFacts(ports, tables)
    return [
        plan_reload(ports, OrderRequest(table, author, reason), supplier, facts) for table in tables
    ]


def _chosen_tables(
    ports: RunPorts, states: Mapping[TableName, TableState], patterns: Sequence[str]
) -> list[TableName]:
    """Return the captured tables that match one of the patterns. Raise `NothingMatches`
    if a pattern matches none."""
    tables = {table.name for table in ports.server.tables()}
    tables |= {
        table for table, state in states.items() if state.condition is not TableCondition.DROPPED
    }
    captured_tables = sorted(filter(ports.source.patterns.matches, tables))
    for pattern in patterns:
        if not any(map(TablePatterns((pattern,)).matches, captured_tables)):
            raise NothingMatches(
                f"no captured table of {ports.source.name} matches {pattern}",
                hint="`lockstep tables` lists all tables, and which are captured",
            )
    return list(filter(TablePatterns(tuple(patterns)).matches, captured_tables))


def _reload_line(ports: RunPorts, reload: Reload) -> str:
    estimate = (
        ""
        if reload.estimated_rows is None
        else f", about {pluralize(reload.estimated_rows, 'row')}"
    )
    return f"{ports.source.name}: {reload.sentence}{estimate}"


def _say_recorded(context: CommandContext, ports: RunPorts, reload: Reload) -> None:
    if not reload.is_already_reading:
        request = reload.request
        context.say(
            f"{ports.source.name}: recorded: reload {request.table} "
            f"({request.author}: {request.reason})"
        )
    context.say(_reload_line(ports, reload))


def _cost_lines(ports: RunPorts, reloads: Sequence[Reload]) -> list[str]:
    """Return lines about the cost of reading all rows of tables: time, space, and
    whether the server keeps its log long enough. The list is empty if no table is read
    completely."""
    total = sum(reload.estimated_rows or 0 for reload in reloads if reload.condition_rows is None)
    facts = ports.server.facts() if total else None
    return [] if facts is None else [f"  {line}" for line in forecast_loads(ports, facts, total)]


# -- some rows of one table ------------------------------------------------------------

# A run that finds differences when it samples rows has still done all of its work.
SUCCESS_CODES: Final = (exits.DONE, exits.QUARANTINED, exits.DIFFERENCES)


def _require_valid_where(arguments: argparse.Namespace) -> None:
    if len(arguments.tables) != 1 or arguments.from_ not in (None, Supplier.SOURCE):
        raise UsageError(
            "--where reads rows of one table from MySQL.",
            hint="name one table, database.table, without --from changelog or log",
        )


def _planned_row_reload(arguments: argparse.Namespace, ports: RunPorts) -> Reload:
    """Return the planned reload of the rows of `--where`. Raise an error if rows of the
    table cannot be merged alone."""
    condition = read_condition(arguments.where, dialect_of(ports.server.facts()))
    table = parse_table_name(arguments.tables[0])
    reread = RereadRows(table, condition, author_of(arguments), reason_of(arguments))
    if (refusal := condition_refusal(ports, table)) is not None:
        raise refusal
    return plan_condition_reload(ports, reread)


def reload_by_condition(
    context: CommandContext, adapters: Adapters, ports: RunPorts, reloads: Sequence[Reload]
) -> tuple[int, dict[str, Any]]:
    """Carry out those reloads that read only the rows of a condition. An ordinary run
    captures the log up to its end; then one run for each reload reads its rows. Stop if
    a run fails. Return the exit code and the values in `--json` of the last run; their
    `reread` has the tables of all these reloads."""
    source = ports.source.name
    by_condition = [reload for reload in reloads if reload.condition_rows is not None]
    context.say(*(_reload_line(ports, reload) for reload in by_condition))
    reread: dict[str, Any] = {}
    code, values = run_sources(context, adapters, [source])[source]
    for reload in by_condition:
        if code not in SUCCESS_CODES:
            break
        outcomes = run_sources(context, adapters, [source], reread=reload.condition_rows)
        code, values = outcomes[source]
        if code in SUCCESS_CODES:
            _say_reread(context, reload.table, values)
        reread |= values.get("reread", {})
    return code, {**values, "reread": reread}


def _say_reread(context: CommandContext, table: TableName, values: Mapping[str, Any]) -> None:
    reread = values["reread"].get(str(table))
    stopped_tables = {quarantine.table for quarantine in values["stopped"]}
    if reread is not None and table not in stopped_tables:
        context.say(
            f"{table}: {pluralize(reread.read, 'row')} read again, "
            f"{pluralize(reread.gone, 'row')} deleted from the mirror because the source no "
            "longer has them"
        )
