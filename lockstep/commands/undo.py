"""`lockstep undo`: a run, and all behind it, as if they had not been; the log is read again.

It is `lockstep recover --back-to` by the name of a run, with the ledger moved away in between.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep import exits
from lockstep.commands.recover import recovery_lines, recovery_values
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import author
from lockstep.holder import holder
from pipeline.errors import ConfigurationError

if TYPE_CHECKING:
    from pipeline.ports.ledger import Ledger
    from pipeline.runs.recovering.recover import UndoneRun


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Without --yes it tells what it would do, and writes nothing."""
    source = context.one_source(arguments.source).name

    from pipeline.runs.agreement.changelog_files import agree
    from pipeline.runs.recovering.recover import foresee, undone_run

    with context.work_on(source) as (adapters, work):
        undone = undone_run(work.ledger, source, arguments.run)
        done = foresee(work, undone.behind)
        assert done.plan is not None, "this ledger holds the source"
        if arguments.yes:
            _require_alone(context, source, work.ledger, undone.behind)
            with work.ledger.lock(source, holder("undo"), None) as lease:
                # This ledger knows its files better than the lake's logs do.
                tuple(agree(work, lease))
        readers = adapters.consumers().consumers(source)
    also = f", and what came after it ({undone.later} more)" if undone.later else ""
    context.say(f"{source}: run {undone.run} is undone, from batch {undone.first} on{also}")
    context.say(*recovery_lines(source, done, done.plan, readers))
    kept = _carried_out(arguments, context, source, undone) if arguments.yes else None
    if kept is None:
        does_it = f"`lockstep undo {undone.run} --source {source} --yes` does it"
        context.say(f"  nothing is written: {does_it}")
    payload = {
        "source": source,
        "run": undone.run,
        "behind": undone.behind,
        "done": arguments.yes,
        "ledger_kept": kept,
        **recovery_values(done),
        "consumers": {consumer.name: consumer.cursor for consumer in readers},
    }
    return Outcome(exits.DONE, payload)


def _carried_out(
    arguments: argparse.Namespace, context: CommandContext, source: str, undone: UndoneRun
) -> Path:
    """Where the ledger of before is now."""
    from pipeline.runs.recovering.recover import recover
    from resources.postgres.embedded import move_away

    folder = context.settings.state_folder / "ledger"
    kept = folder.with_name(f"ledger.undone-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    again = f"`lockstep recover --back-to {undone.behind} --source {source} --yes`"
    context.say(f"  the former ledger stays in {kept}; if this is interrupted, {again} finishes it")
    move_away(folder, kept)
    with (
        context.work_on(source) as (_, work),
        work.ledger.lock(source, holder("undo"), None) as lease,
    ):
        recover(work, lease, author=author(arguments), behind=undone.behind)
    context.say(f"  done. Next: `lockstep run --source {source}`, then `lockstep verify`")
    return kept


def _require_alone(context: CommandContext, source: str, ledger: Ledger, behind: int) -> None:
    """Only a ledger that is Lockstep's own, and has no other source, may be moved away."""
    back = f"`lockstep recover --source {source} --back-to {behind} --yes`"
    if context.settings.ledger_dsn() != "embedded":
        raise ConfigurationError(
            "The ledger is in a Postgres of yours, and an empty database has to take its place.",
            hint=f"name one as [ledger] dsn, then {back}",
        )
    names = [one.name for one in context.settings.sources if one.name != source]
    others = [name for name in names if ledger.captured_cursor(name) is not None]
    if others:
        raise ConfigurationError(
            f"The ledger holds other sources too, which would be given up with it: "
            f"{', '.join(others)}.",
            hint=f"move it away, {back}, and `lockstep recover --yes --source {others[0]}`, as "
            "docs/recovery.md says",
        )
