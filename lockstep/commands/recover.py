"""`lockstep recover` makes a ledger and a source's folder in the lake agree again.

`lockstep undo` takes back a run and all later ones. It moves the ledger away and then
does what `lockstep recover --back-to` does, for the batch before the run.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from lockstep import exits
from lockstep.arguments import author_of, reason_of
from lockstep.commands.plan import supply_lines, supply_values
from lockstep.context import CommandContext, Outcome
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.recovery import RecoveryCase, RecoveryPlan
from lockstep.pipeline.run.agreement.changelog_files import correct_changelogs
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.recovery.recover import (
    RecoveryOutcome,
    RunToUndo,
    plan_recovery,
    recover,
    run_to_undo,
)
from lockstep.pipeline.run.recovery.tables_after import tables_of_next_run
from lockstep.pipeline.run.status.plan import forecast_loads
from lockstep.pipeline.supply.plan import RowsFromServer
from lockstep.pipeline.values.consumers import Consumer
from lockstep.pipeline.values.errors import ConfigurationError, LockstepError
from lockstep.printing import pluralize
from lockstep.resources.holders import holder_name
from lockstep.resources.postgres.embedded import move_away


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Recover or undo with `--yes`; otherwise only show what would be done."""
    return (_undo if arguments.command == "undo" else _recover)(arguments, context)


def _recover(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
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
        next_run_lines = list(_next_run_lines(ports, outcome))
    is_recorded = arguments.yes and outcome.case is not RecoveryCase.AGREE
    context.say(
        *_outcome_lines(source, outcome, consumers, is_recorded=is_recorded), *next_run_lines
    )
    context.say(*_next_command_lines(source, outcome, after_batch, is_recorded=is_recorded))
    payload = {
        "source": source,
        "done": is_recorded,
        **attributes(outcome, "case, disagreement, moved_folders as moved_to"),
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
    yield from (f"  now at {folder}" for folder in outcome.moved_folders)


def _kept_ledger_lines(
    source: str, outcome: RecoveryOutcome, *, is_recorded: bool
) -> Iterator[str]:
    yield (
        "  the ledger stays as it is: changelogs list only what it acknowledged, and the next run "
        "reads the log from where the ledger ends"
    )
    if outcome.reloads:
        yield (
            "  versions of these tables that are gone from the lake, or belong to another history, "
            f"can no longer be read (`lockstep versions --list --source {source}` lists the places)"
        )
    for folder, files in outcome.restatements:
        yield (
            f"  {folder}: {files.removed_count} files that this ledger does not have are no longer "
            f"listed, {files.added_count} are listed again, {len(files.lost_paths)} are lost"
        )
    if not is_recorded:
        yield (
            "  to replace this ledger by a new one, which is made from the lake, move it away "
            "first (docs/recovery.md#the-ledger-is-behind-its-lake)"
        )


def _next_run_lines(ports: RunPorts, outcome: RecoveryOutcome) -> Iterator[str]:
    """Yield lines about tables that do not simply continue: the steps of the next run,
    with their prices."""
    tables = outcome.table_plans
    if tables.plans:
        yield "  the next run then:"
    yield from (f"  {line}" for line in supply_lines(tables))
    if tables.estimated_rows:
        lines = forecast_loads(ports, ports.server.facts(), tables.estimated_rows)
        yield from (f"    {line}" for line in lines)


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


# -- the report of both commands -----------------------------------------------------------------


def changelog_values(outcome: RecoveryOutcome) -> dict[str, Any]:
    """Return the changelogs that were made to list what the ledger recorded, and what
    each of them lists now or no longer, for `--json`."""
    names = "removed_count as removed, added_count as added, lost_paths as lost"
    return {
        "changelogs": {folder: attributes(files, names) for folder, files in outcome.restatements}
    }


def recovery_values(outcome: RecoveryOutcome) -> dict[str, Any]:
    """Return the values in `--json`: the place at which the ledger continues, and its
    tables."""
    plan, tables = outcome.plan, outcome.table_plans
    next_run = {
        "read_again": tables.tables_supplied(RowsFromServer),
        "supplies": supply_values(tables),
    }
    if plan is None:
        return {"position": None, "tables": {}, **next_run, "cut": (), "doubts": ()}
    adopted = {
        adoption.mirror.table: attributes(
            adoption, "mirror.folder as mirror", "version", "needs_restore as restored"
        )
        for adoption in plan.adoptions
    }
    return {
        **attributes(plan, "lake_end.end as position", "lake_end.batch as batch", "highest_batch"),
        "tables": adopted,
        **next_run,
        "left": [mirror.folder for mirror in plan.unchanged_mirrors],
        "cut": outcome.shortened_changelogs,
        "doubts": plan.doubts,
    }


def recovery_lines(
    source: str, outcome: RecoveryOutcome, plan: RecoveryPlan, consumers: Sequence[Consumer]
) -> Iterator[str]:
    """Yield the place at which the ledger continues, and the changes to tables and
    consumers."""
    yield (
        f"{source}: the ledger continues after batch {plan.lake_end.batch} of the ledger "
        f"{plan.lake_end.ledger}, at {plan.lake_end.end}"
    )
    if plan.highest_batch > plan.lake_end.batch:
        first = plan.lake_end.batch + 1
        yield f"  batches {first} to {plan.highest_batch} are undone; the log is read again"
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


# -- undo ----------------------------------------------------------------------------------


def _undo(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    source = context.one_source(arguments.source).name
    with context.open_source(source) as (adapters, ports):
        undone = run_to_undo(ports.ledger, source, arguments.run)
        outcome = plan_recovery(ports, undone.previous_batch)
        assert outcome.plan is not None, "the ledger has the source"
        if arguments.yes:
            _require_embedded_with_one_source(context, source, ports.ledger, undone.previous_batch)
            with ports.ledger.lock(source, holder_name("undo"), None) as lease:
                # The new ledger is made from the lake's logs, so they must list what
                # this ledger acknowledged before it is moved away.
                tuple(correct_changelogs(ports, lease))
        consumers = adapters.consumers().consumers(source)
        next_run_lines = list(_next_run_lines(ports, outcome))
    later_runs = (
        f", and what came after it ({undone.later_count} more)" if undone.later_count else ""
    )
    context.say(
        f"{source}: run {undone.run} is undone, from batch {undone.first_batch} on{later_runs}"
    )
    context.say(*recovery_lines(source, outcome, outcome.plan, consumers), *next_run_lines)
    former_folder = _replace_ledger(arguments, context, source, undone) if arguments.yes else None
    if former_folder is None:
        command_clause = f"`lockstep undo {undone.run} --source {source} --yes` does it"
        context.say(f"  nothing is written: {command_clause}")
    payload = {
        "source": source,
        "run": undone.run,
        "behind": undone.previous_batch,
        "done": arguments.yes,
        "ledger_kept": former_folder,
        **recovery_values(outcome),
        "consumers": {consumer.name: consumer.cursor for consumer in consumers},
    }
    return Outcome(exits.DONE, payload)


def _replace_ledger(
    arguments: argparse.Namespace, context: CommandContext, source: str, undone: RunToUndo
) -> Path:
    """Replace the ledger by one that ends before the run; return the former ledger's
    folder."""
    folder = context.settings.state_folder / "ledger"
    former_folder = folder.with_name(f"ledger.undone-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    command = f"`lockstep recover --back-to {undone.previous_batch} --source {source} --yes`"
    context.say(
        f"  the former ledger is kept in {former_folder}; if this is interrupted, {command} "
        "finishes it"
    )
    move_away(folder, former_folder)
    with (
        context.open_source(source) as (_, ports),
        ports.ledger.lock(source, holder_name("undo"), None) as lease,
    ):
        recover(ports, lease, author=author_of(arguments), after_batch=undone.previous_batch)
    context.say(f"  done. Next: `lockstep run --source {source}`, then `lockstep verify`")
    return former_folder


def _require_embedded_with_one_source(
    context: CommandContext, source: str, ledger: Ledger, after_batch: int
) -> None:
    """Raise `ConfigurationError` unless the ledger is embedded and has no other source,
    because the whole ledger is moved away."""
    recover_command = f"`lockstep recover --source {source} --back-to {after_batch} --yes`"
    if context.settings.ledger_dsn() != "embedded":
        raise ConfigurationError(
            "The ledger is in a Postgres of yours, and an empty database has to take its place.",
            hint=f"name one as [ledger] dsn, then {recover_command}",
        )
    names = [other.name for other in context.settings.sources if other.name != source]
    other_sources = [name for name in names if ledger.cursors(name).captured is not None]
    if other_sources:
        lost_sources = ", ".join(other_sources)
        raise ConfigurationError(
            f"The ledger also has other sources, which would be lost with it: {lost_sources}.",
            hint=f"move it away, {recover_command}, and `lockstep recover --yes --source "
            f"{other_sources[0]}`, as docs/recovery.md says",
        )
