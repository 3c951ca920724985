"""`lockstep verify`: compare MySQL with the lake at one position of the log."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from random import SystemRandom
from typing import Any, Final

from lockstep import exits
from lockstep.arguments import parse_table_name
from lockstep.commands.reload import (
    SUCCESS_CODES,
    record_reloads,
    reload_by_condition,
    reload_values,
    show_planned,
)
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.model.table_state import Supplier
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.table_extents import record_complete, tables_proven_complete
from lockstep.pipeline.run.orders import Reload, ReloadFacts, plan_reload, plan_repairs
from lockstep.pipeline.run.proof.verify_rows import record_proofs, verify
from lockstep.pipeline.run.proof.verify_sample import verify_sample
from lockstep.pipeline.run.reports import TableComparison, VerifyReport
from lockstep.pipeline.values.errors import LockstepError, SourceBusy
from lockstep.pipeline.values.shown import pluralize
from lockstep.pipeline.values.table import TableName
from lockstep.printing import comparison_lines, show_stopped_tables, show_table
from lockstep.resources.adapters import Adapters
from lockstep.resources.config import SourceSettings
from lockstep.resources.holders import account_name, holder_name

_MAX_GTID_CHARACTERS: Final = 200
"""Largest number of characters of a GTID set that are printed."""

_ROW_COUNTS: Final = "table, source_rows, lake_rows, only_in_source, only_in_lake, different"


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Compare each source, and with `--repair` have the differing tables read again. If
    one of several sources cannot be compared now, the others are compared all the
    same."""
    tables = [parse_table_name(text) for text in arguments.tables]
    chosen = _tables_by_source(context.sources(arguments.source), tables)
    answers: dict[str, tuple[int, dict[str, Any]]] = {}
    with context.adapters() as adapters:
        for source, source_tables in chosen:
            try:
                answers[source.name] = _verify_source(
                    arguments, context, adapters, source.name, source_tables
                )
            except LockstepError as error:
                if len(chosen) == 1:
                    raise
                answers[source.name] = context.report_error(source.name, error)
    return Outcome.of_sources(answers)


def _verify_source(
    arguments: argparse.Namespace,
    context: CommandContext,
    adapters: Adapters,
    source: str,
    tables: Sequence[TableName] | None,
) -> tuple[int, dict[str, Any]]:
    """Compare tables of a source; return the exit code and the values in `--json`."""
    with context.watch(source) as progress:
        ports = adapters.ports(source, progress)
        sample_rows, show_values = arguments.sample, arguments.show_values
        if sample_rows is None:
            report = verify(ports, tables, show_values=show_values)
        else:
            report = verify_sample(
                ports, tables, sample_rows, SystemRandom(), show_values=show_values
            )
        record_proofs(ports, report)
        if sample_rows is None:
            _record_complete_tables(ports, report, context)
    show_verify(context, source, report)
    values = {
        **attributes(report, "position, seconds"),
        "tables": {comparison.table: comparison for comparison in report.tables},
        "not_compared": {skipped.table: skipped for skipped in report.not_compared},
        "not_proven": {unproven.table: unproven for unproven in report.not_proven},
        "stopped": report.quarantined,
    }
    if arguments.repair or arguments.dry_run:
        values |= _repair_tables(adapters, ports, report, context, dry_run=arguments.dry_run)
    return exit_code(report), values


def exit_code(report: VerifyReport) -> int:
    """Return 4 if a table differs or could not be compared, 3 if a table could not be
    proven now, 6 if tables are quarantined, else 0."""
    if report.differs:
        return exits.DIFFERENCES
    if report.not_proven:
        return exits.TRY_AGAIN
    return exits.QUARANTINED if report.quarantined else exits.DONE


def show_verify(context: CommandContext, source: str, report: VerifyReport) -> None:
    """Print a summary, the tables, the rows that differ, and the tables that were not
    compared."""
    equal_count = sum(comparison.equal for comparison in report.tables)
    count = len(report.tables) + len(report.not_compared) + len(report.not_proven)
    tables = pluralize(count, "table is", "tables are")
    summary = f"{equal_count} of {tables} equal, {report.seconds:.1f} s"
    context.say(f"{source} at {report.position}: {summary}")
    if gtids := report.position.gtid_set:
        context.say(f"  GTIDs: {gtids.shortened_text(_MAX_GTID_CHARACTERS)}")
    show_table(
        context,
        ("table", "rows", "in the lake", "missing", "too many", "different", "proven"),
        [
            (*attributes(comparison, _ROW_COUNTS).values(), _proof_words(comparison))
            for comparison in report.tables
        ],
    )
    for comparison in report.tables:
        if comparison.kept:
            rows = pluralize(comparison.kept, "row")
            context.say(
                f"{comparison.table} keeps {rows} that MySQL no longer has, as its policies say"
            )
        context.say(*comparison_lines(comparison))
    for skipped in report.not_compared:
        context.say(f"{skipped.table} was not compared: {skipped.reason}\n  hint: {skipped.hint}")
    for unproven in report.not_proven:
        context.say(f"{unproven.table} is not proven: {unproven.reason}\n  hint: {unproven.hint}")
    show_stopped_tables(context, report.quarantined)


def _proof_words(comparison: TableComparison) -> str:
    if not comparison.equal:
        return "-"
    rows = "" if comparison.compared is None else f"{pluralize(comparison.compared, 'row')}, "
    return f"{rows}{comparison.at}" if comparison.at else "-"


def _record_complete_tables(ports: RunPorts, report: VerifyReport, context: CommandContext) -> None:
    """Record that partial tables, and tables that lacked changes because of a gap, are
    complete if they proved equal. If a run is going on, record nothing, because it may
    change them."""
    if not tables_proven_complete(ports, report):
        return
    try:
        with ports.ledger.lock(ports.source.name, holder_name("verify"), None) as lease:
            record_complete(ports, lease, report)
    except SourceBusy:
        context.note(
            "a run began, so it is not recorded which tables are complete: verify them again"
        )


def _repair_tables(
    adapters: Adapters,
    ports: RunPorts,
    report: VerifyReport,
    context: CommandContext,
    *,
    dry_run: bool,
) -> dict[str, Any]:
    """Repair tables that differ. If a condition can select a table's differing rows,
    read them now; otherwise have the next run read all its rows. Raise `SourceBusy`
    while a run is going on. `dry_run`: only print what would be read."""
    repairs = plan_repairs(ports, report, account_name())
    if dry_run:
        if repairs:
            show_planned(context, ports, repairs)
        return {"repairs": {repair.table: reload_values(repair) for repair in repairs}}
    if repairs:
        context.say("Rows that differ are read from MySQL again after these counts:")
    code = exits.DONE
    reread: dict[str, Any] = {}
    if any(repair.condition_rows is not None for repair in repairs):
        code, values = reload_by_condition(context, adapters, ports, repairs)
        reread = values["reread"]
    unread = [repair for repair in repairs if str(repair.table) not in reread]
    if code not in SUCCESS_CODES:
        # A failed run is no reason to read all rows of a table.
        for repair in unread:
            if repair.condition_rows is not None:
                context.say(
                    f"{repair.table}: the run that reads its rows failed; "
                    f"`lockstep verify {repair.table.word} --repair` tries again"
                )
        unread = [repair for repair in unread if repair.condition_rows is None]
    facts = ReloadFacts(ports, [repair.table for repair in repairs])
    whole_reloads = [
        plan_reload(ports, repair.request, Supplier.SOURCE, facts) for repair in unread
    ]
    with ports.ledger.lock(ports.source.name, holder_name("verify"), None) as lease:
        recorded = record_reloads(context, ports, lease, whole_reloads)
    context.say(*_next_lines(repairs, recorded))
    return {"repaired": [reload.table for reload in recorded], "reread": reread}


def _next_lines(repairs: Sequence[Reload], recorded: Sequence[Reload]) -> Iterator[str]:
    """Yield what to type after a repair. `recorded`: the repairs that are left to the
    next run."""
    names = " ".join(repair.table.word for repair in repairs)
    if recorded:
        tables = ", ".join(str(reload.table) for reload in recorded)
        yield f"  next: `lockstep run` reads {tables}; then `lockstep verify {names}` proves it"
    elif repairs:
        yield (
            f"  next: `lockstep verify {names}` proves it; until then `lockstep status` shows what "
            "the last comparison found"
        )


def _tables_by_source(
    sources: Sequence[SourceSettings], tables: Sequence[TableName]
) -> list[tuple[SourceSettings, list[TableName] | None]]:
    """Return each source with the given tables that it captures. None stands for all
    tables."""
    if not tables:
        return [(source, None) for source in sources]
    tables_by_source = [
        (source, [table for table in tables if source.plan().patterns.matches(table)])
        for source in sources
    ]
    all_captured = {table for _, captured in tables_by_source for table in captured}
    for table in tables:
        if table not in all_captured:
            raise UsageError(
                f"No source captures {table}.", hint="`lockstep tables` lists what is captured"
            )
    return [(source, captured) for source, captured in tables_by_source if captured]
