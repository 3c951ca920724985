"""`lockstep recover` makes a ledger and a source's folder in the lake agree again."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from lockstep import exits
from lockstep.arguments import author_of, reason_of
from lockstep.commands.plan import supply_lines, supply_values
from lockstep.context import CommandContext, Outcome
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.recovery import RecoveryCase, RecoveryPlan
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.recovery.recover import (
    RecoveryOutcome,
    plan_recovery,
    recover,
    tables_of_next_run,
)
from lockstep.pipeline.run.status.plan import forecast_loads
from lockstep.pipeline.supply import RowsFromServer
from lockstep.pipeline.values.consumers import Consumer
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.shown import batch_words, pluralize
from lockstep.resources.holders import holder_name


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Recover with `--yes`; otherwise only show what would be done."""
    source = context.one_source(arguments.source).name
    after_batch, start_over = arguments.back_to, arguments.start_over
    author, reason = author_of(arguments), reason_of(arguments)
    with context.open_source(source) as (adapters, ports):
        if arguments.yes:
            with ports.ledger.lock(source, holder_name("recover"), None) as lease:
                outcome = recover(
                    ports,
                    lease,
                    author=author,
                    reason=reason,
                    after_batch=after_batch,
                    start_over=start_over,
                )
            with suppress(LockstepError):  # The recovery is done even if the server is down.
                outcome = replace(outcome, table_plans=tables_of_next_run(ports))
        else:
            outcome = plan_recovery(ports, after_batch, start_over=start_over)
        is_refused = outcome.case is RecoveryCase.REFUSED
        consumers = adapters.consumers().consumers(source) if is_refused else []
        lines = list(next_run_lines(ports, outcome))
    is_recorded = arguments.yes and outcome.case is not RecoveryCase.AGREE
    context.say(*_outcome_lines(source, outcome, consumers, is_recorded=is_recorded), *lines)
    context.say(*_next_command_lines(source, outcome, after_batch, is_recorded=is_recorded))
    payload = {
        "source": source,
        "done": is_recorded,
        **attributes(outcome, "case, disagreement, lake_changes.moved_folders as moved_to"),
        **recovery_values(outcome),
        **changelog_values(outcome),
        "consumers": {consumer.name: consumer.cursor for consumer in consumers},
    }
    return Outcome(exits.DONE, payload)


def _outcome_lines(
    source: str, outcome: RecoveryOutcome, consumers: Sequence[Consumer], *, is_recorded: bool
) -> Iterator[str]:
    match outcome.case:
        case RecoveryCase.AGREE:
            yield f"{source}: the ledger and the lake agree: there is nothing to recover"
        case RecoveryCase.FINISH:
            verb = "is finished" if is_recorded else "would be finished"
            yield f"{source}: an interrupted recovery of the ledger from the lake {verb}"
        case RecoveryCase.START_OVER:
            yield (
                f"{source}: the folder {source} of the lake moves to _before, with all versions of "
                "its mirrors; the next run is a first run"
            )
        case RecoveryCase.KEEP_LEDGER:
            yield f"{source}: {outcome.disagreement}"
            yield from _kept_ledger_lines(source, outcome, is_recorded=is_recorded)
        case _:
            assert outcome.plan is not None, "a ledger is made from the lake"
            yield from recovery_lines(source, outcome, outcome.plan, consumers)
    yield from (f"  moved to {folder}" for folder in outcome.lake_changes.moved_folders)


def _kept_ledger_lines(
    source: str, outcome: RecoveryOutcome, *, is_recorded: bool
) -> Iterator[str]:
    yield (
        "  the ledger stays as it is: changelogs list only what it acknowledged, and the next run "
        "reads the log from where the ledger ends"
    )
    if outcome.reloads:
        yield (
            "  a table that is read from the source gets a resnapshot row in its changelog, in "
            "place of its changes until then"
        )
        yield (
            "  versions of these tables that are gone from the lake, or belong to another history, "
            f"can no longer be read (`lockstep versions --list --source {source}` lists the places)"
        )
    for folder, files in outcome.lake_changes.restatements:
        yield (
            f"  {folder}: {files.removed_count} files that this ledger does not have are no longer "
            f"listed, {files.added_count} are listed again, {len(files.lost_paths)} are lost"
        )
    for folder in outcome.lake_changes.unknown_folders:
        yield f"  {folder} moves to _before: this ledger does not know it"
    if not is_recorded:
        yield (
            "  to replace this ledger by a new one, which is made from the lake, move it away "
            "first (docs/recovery.md#the-ledger-is-behind-its-lake)"
        )


_ALTERNATIVES: Final = {
    RecoveryCase.FROM_LAKE: "  `--start-over` instead moves what is in the lake to _before, and "
    "the next run is a first run",
    RecoveryCase.START_OVER: "  without `--start-over` this ledger is made from what is in the "
    "lake instead, and no table is moved",
}


def _next_command_lines(
    source: str, outcome: RecoveryOutcome, after_batch: int | None, *, is_recorded: bool
) -> Iterator[str]:
    options = "" if after_batch is None else f" --back-to {after_batch}"
    options += " --start-over" if outcome.case is RecoveryCase.START_OVER else ""
    command_clause = f"`lockstep recover --source {source}{options} --yes` does it"
    if outcome.case is RecoveryCase.REFUSED:
        yield (
            f"  nothing is written: this ledger has {source} already. After it is moved away "
            f"(docs/recovery.md#a-run-is-undone), {command_clause}"
        )
    elif is_recorded:
        yield f"  recorded; the folder {source} belongs to this ledger"
        yield f"  next: `lockstep run --source {source}`, then `lockstep verify --source {source}`"
    elif outcome.case is not RecoveryCase.AGREE:
        if after_batch is None and outcome.case in _ALTERNATIVES:
            yield _ALTERNATIVES[outcome.case]
        yield f"  nothing is written: {command_clause}"


# -- the report, which `lockstep undo` shows, too --------------------------------------


def changelog_values(outcome: RecoveryOutcome) -> dict[str, Any]:
    """Return the values in `--json` of the changelogs that were corrected to list what
    the ledger recorded: how many files each lists again or no longer, and which files
    are lost."""
    names = "removed_count as removed, added_count as added, lost_paths as lost"
    return {
        "changelogs": {
            folder: attributes(files, names) for folder, files in outcome.lake_changes.restatements
        }
    }


def recovery_values(outcome: RecoveryOutcome) -> dict[str, Any]:
    """Return the values in `--json`: the place at which a ledger made from the lake
    continues, and its tables."""
    plan, table_plans = outcome.plan, outcome.table_plans
    next_run = {
        "read_again": table_plans.tables_supplied(RowsFromServer),
        "supplies": supply_values(table_plans),
    }
    if plan is None:
        return {
            "place": None,
            "tables": {},
            **next_run,
            "shortened_changelogs": (),
            "doubts": (),
        }
    adopted = {
        adoption.mirror.table: attributes(
            adoption, "mirror.folder as mirror, version as delta_version, needs_restore as restored"
        )
        for adoption in plan.adoptions
    }
    return {
        **attributes(plan, "lake_end.end as place, lake_end.batch as batch, highest_batch"),
        "tables": adopted,
        **next_run,
        "unchanged_mirrors": [mirror.folder for mirror in plan.unchanged_mirrors],
        "shortened_changelogs": outcome.shortened_changelogs,
        "doubts": plan.doubts,
    }


def recovery_lines(
    source: str, outcome: RecoveryOutcome, plan: RecoveryPlan, consumers: Sequence[Consumer]
) -> Iterator[str]:
    """Yield the place at which a ledger made from the lake continues, and what that
    changes for tables and consumers."""
    yield (
        f"{source}: a new ledger continues after batch {plan.lake_end.batch} of the ledger "
        f"{plan.lake_end.ledger}, at {plan.lake_end.end}"
    )
    if plan.highest_batch > plan.lake_end.batch:
        undone_batches = batch_words(plan.lake_end.batch + 1, plan.highest_batch)
        yield f"  undone: {undone_batches}; the next run reads that part of the log again"
    if outcome.case is RecoveryCase.REFUSED:  # This ledger still has earlier batches.
        yield (
            f"  afterwards, `rebuild`, `versions` and `replay` no longer work for places before "
            f"the end of batch {plan.lake_end.batch}: first rebuild what an audit needs"
        )
    count = pluralize(len(plan.adoptions), "table continues", "tables continue")
    yield f"  {count} with the mirrors"
    for adoption in plan.adoptions:
        if adoption.needs_restore:
            yield (
                f"  {adoption.mirror.table}: its mirror is set back to version {adoption.version}, "
                f"because version {adoption.mirror.newest_version} shows another place"
            )
    for folder in outcome.shortened_changelogs:
        yield f"  {folder} no longer lists changes after that place: they are read again"
    for mirror in plan.unchanged_mirrors:
        yield f"  {mirror.folder} stays as it is: {mirror.table} was dropped at the source"
    for table in sorted(plan.tables_needing_consent):
        yield f"  {table} stays stopped: it may show values that other settings hid"
    for doubt in plan.doubts:
        yield f"  in doubt: {doubt}; `lockstep verify` compares every row"
    for consumer in consumers:
        effect = _consumer_clause(consumer.cursor or 0, plan.lake_end.batch)
        yield f"  the consumer {consumer.name} {effect}"


def _consumer_clause(cursor: int, after_batch: int) -> str:
    """Return a clause about a consumer: its cursor, and a person's task with it before
    the ledger goes back to the end of batch `after_batch`."""
    progress = f"has acknowledged batch {cursor}" if cursor else "has not acknowledged a batch yet"
    if cursor < after_batch:
        return (
            f"{progress}: let it read up to batch {after_batch} first, else it never gets these "
            "changes"
        )
    repetition = (
        f": it gets what came after batch {after_batch} again" if cursor > after_batch else ""
    )
    return f"{progress}{repetition}; create it again before the next run (docs/recovery.md)"


def next_run_lines(ports: RunPorts, outcome: RecoveryOutcome) -> Iterator[str]:
    """Yield the steps of the next run, with their prices, for tables that do not simply
    continue."""
    table_plans = outcome.table_plans
    if table_plans.plans:
        yield "  the next run then:"
    yield from (f"  {line}" for line in supply_lines(table_plans))
    if table_plans.estimated_rows:
        lines = forecast_loads(ports, ports.server.facts(), table_plans.estimated_rows)
        yield from (f"    {line}" for line in lines)
