"""`lockstep recover`: a ledger that holds nothing of a source is made from its lake; recorded."""

from __future__ import annotations

import argparse
import getpass
from typing import TYPE_CHECKING

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError
from lockstep.holder import holder
from lockstep.recovery_report import recovery_json, recovery_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.consumers import Consumer
    from pipeline.runs.recovering.recover import RecoveryOutcome


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Without --yes it tells what it would do, and writes nothing."""
    if arguments.yes and arguments.dry_run:
        raise UsageError("--yes and --dry-run contradict each other.", hint="leave one of them out")
    source = context.one_source(arguments.source).name
    author = arguments.author or getpass.getuser()

    from pipeline.runs.recovering.recover import foresee, recover
    from resources.adapters import Adapters

    with (
        Adapters(context.settings, on_warning=context.note) as adapters,
        context.watch(source) as progress,
    ):
        work = adapters.workplace(source, progress)
        if arguments.yes:
            with work.ledger.lock(source, holder("recover"), None) as lease:
                done = recover(work, lease, author=author, behind=arguments.back_to)
        else:
            done = foresee(work, arguments.back_to)
        readers = adapters.consumers().consumers(source) if done.held else []
    for line in _lines(source, done, arguments, readers):
        context.say(line)
    consumers = {consumer.name: consumer.cursor for consumer in readers}
    payload = {
        "source": source,
        "done": arguments.yes,
        **recovery_json(done),
        "consumers": consumers,
    }
    return Outcome(exits.DONE, payload)


def _lines(
    source: str, done: RecoveryOutcome, given: argparse.Namespace, readers: Sequence[Consumer]
) -> Iterator[str]:
    if done.plan is None:
        yield f"{source}: the ledger is made from the lake already; it has yet to claim the folder"
    else:
        yield from recovery_lines(source, done, done.plan, readers)
    behind = "" if given.back_to is None else f" --back-to {given.back_to}"
    does_it = f"`lockstep recover --source {source}{behind} --yes` does it"
    if done.held:
        yield (
            f"  nothing is written: this ledger holds {source}. Once it is moved away "
            f"(docs/recovery.md#a-run-is-undone), {does_it}"
        )
    elif not given.yes:
        yield f"  nothing is written: {does_it}"
    else:
        yield f"  recorded; the folder {source} belongs to this ledger"
        yield f"  next: `lockstep run --source {source}`, then `lockstep verify --source {source}`"
