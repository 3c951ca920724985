"""`lockstep undo` takes back a run and all later ones. It moves the ledger away and
then does what `lockstep recover --back-to` does, for the batch before the run."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

from lockstep import exits
from lockstep.arguments import author_of
from lockstep.commands.recover import next_run_lines, recovery_lines, recovery_values
from lockstep.context import CommandContext, Outcome
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.run.agreement.changelog_files import correct_changelogs
from lockstep.pipeline.run.recovery.recover import (
    RecoveryOutcome,
    RunToUndo,
    declare_undone,
    plan_recovery,
    recover,
    run_to_undo,
)
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.resources.holders import holder_name
from lockstep.resources.postgres.embedded import move_away


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Undo with `--yes`; otherwise only show what would be done."""
    source = context.one_source(arguments.source).name
    with context.open_source(source) as (adapters, ports):
        undone = run_to_undo(ports.ledger, source, arguments.run)
        outcome = plan_recovery(ports, undone.previous_batch, reread_tables=undone.reread_tables)
        assert outcome.plan is not None, "the ledger has the source"
        refusal = _refusal(context, source, ports.ledger, undone)
        if arguments.yes:
            if refusal is not None:
                raise refusal
            with ports.ledger.lock(source, holder_name("undo"), None) as lease:
                # The new ledger is made from the Delta logs of the lake. So before this
                # ledger is moved away, the logs must list all files that it records.
                list(correct_changelogs(ports, lease))
        consumers = adapters.consumers().consumers(source)
        lines = list(next_run_lines(ports, outcome))
    later_runs = (
        f", and what came after it ({undone.later_count} more)" if undone.later_count else ""
    )
    verb = "is undone" if arguments.yes else "would be undone"
    context.say(
        f"{source}: run {undone.run} {verb}, from batch {undone.first_batch} on{later_runs}"
    )
    context.say(*recovery_lines(source, outcome, outcome.plan, consumers), *lines)
    former_folder = (
        _replace_ledger(arguments, context, source, undone, outcome) if arguments.yes else None
    )
    if refusal is not None:
        context.say(f"  nothing is written: {refusal.message}\n  hint: {refusal.hint}")
    elif former_folder is None:
        command_clause = f"`lockstep undo {undone.run} --source {source} --yes` does it"
        context.say(f"  nothing is written: {command_clause}")
    payload = {
        "source": source,
        "run": undone.run,
        "previous_batch": undone.previous_batch,
        "done": arguments.yes,
        "ledger_kept": former_folder,
        **recovery_values(outcome),
        "consumers": {consumer.name: consumer.cursor for consumer in consumers},
    }
    return Outcome(exits.DONE, payload)


def _replace_ledger(
    arguments: argparse.Namespace,
    context: CommandContext,
    source: str,
    undone: RunToUndo,
    outcome: RecoveryOutcome,
) -> Path:
    """Replace the ledger by one that ends before the run; return the former ledger's
    folder."""
    folder = context.settings.state_folder / "ledger"
    former_folder = folder.with_name(f"ledger.undone-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    context.say(
        f"  the former ledger is kept in {former_folder}; if this is interrupted, "
        f"{_recover_command(source, undone)} finishes it{_reload_clause(undone)}"
    )
    move_away(folder, former_folder)
    with (
        context.open_source(source) as (_, ports),
        ports.ledger.lock(source, holder_name("undo"), None) as lease,
    ):
        # This comes first: if this process dies during the recovery, a later recovery
        # without `--back-to` then also ends before the run.
        declare_undone(ports, lease, outcome)
        recover(
            ports,
            lease,
            author=author_of(arguments),
            after_batch=undone.previous_batch,
            reread_tables=undone.reread_tables,
        )
    context.say(f"  done. Next: `lockstep run --source {source}`, then `lockstep verify`")
    return former_folder


def _recover_command(source: str, undone: RunToUndo) -> str:
    """Return the command that makes a ledger up to the batch before the run."""
    return f"`lockstep recover --source {source} --back-to {undone.previous_batch} --yes`"


def _reload_clause(undone: RunToUndo) -> str:
    """Return a clause with the command to type after a `lockstep recover` that finishes
    the undo: that command does not know of rows that were read from the source and are
    in no mirror yet."""
    tables = " ".join(table.word for table in undone.reread_tables)
    return f", and then `lockstep reload {tables} --from source --reason …`" if tables else ""


def _refusal(
    context: CommandContext, source: str, ledger: Ledger, undone: RunToUndo
) -> ConfigurationError | None:
    """Return an error unless the ledger is embedded and has no other source, because
    the whole ledger is moved away."""
    recover_command = _recover_command(source, undone)
    reload_clause = _reload_clause(undone)
    if context.settings.ledger_dsn() != "embedded":
        return ConfigurationError(
            "The ledger is in a Postgres of yours, and an empty database has to take its place.",
            hint=f"name one as [ledger] dsn, then {recover_command}{reload_clause}",
        )
    names = [other.name for other in context.settings.sources if other.name != source]
    other_sources = [name for name in names if ledger.cursors(name).captured is not None]
    if not other_sources:
        return None
    lost_sources = ", ".join(other_sources)
    other_commands = ", ".join(
        f"`lockstep recover --source {name} --yes`" for name in other_sources
    )
    return ConfigurationError(
        f"The ledger also has other sources, which would be lost with it: {lost_sources}.",
        hint=f"move it away, {recover_command}, and {other_commands}, as docs/recovery.md says"
        f"{reload_clause}",
    )
