"""`lockstep recover`: a ledger that holds nothing of a source is made from its lake; recorded."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import author
from lockstep.holder import holder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.consumers import Consumer
    from pipeline.recovery.facts import RecoveryPlan
    from pipeline.runs.recovering.recover import RecoveryOutcome


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Without --yes it tells what it would do, and writes nothing."""
    source = context.one_source(arguments.source).name

    from pipeline.runs.recovering.recover import foresee, recover

    with context.work_on(source) as (adapters, work):
        if arguments.yes:
            with work.ledger.lock(source, holder("recover"), None) as lease:
                done = recover(work, lease, author=author(arguments), behind=arguments.back_to)
        else:
            done = foresee(work, arguments.back_to)
        readers = adapters.consumers().consumers(source) if done.held else []
    context.say(*_lines(source, done, arguments, readers))
    consumers = {consumer.name: consumer.cursor for consumer in readers}
    payload = {
        "source": source,
        "done": arguments.yes,
        **recovery_values(done),
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


# -- what undo tells too ------------------------------------------------------------------------


def recovery_values(done: RecoveryOutcome) -> dict[str, Any]:
    plan = done.plan
    if plan is None:
        return {"position": None, "tables": {}, "read_again": {}, "cut": (), "doubts": ()}
    return {
        "position": plan.told.at,
        "batch": plan.told.batch,
        "highest_batch": plan.batch,
        "tables": {
            adoption.mirror.table: {
                "mirror": adoption.mirror.folder,
                "version": adoption.version,
                "restored": adoption.restored,
            }
            for adoption in plan.adopted
        },
        "read_again": dict(done.reloads),
        "left": [mirror.folder for mirror in plan.left],
        "cut": done.cut,
        "doubts": plan.doubts,
    }


def recovery_lines(
    source: str, done: RecoveryOutcome, plan: RecoveryPlan, readers: Sequence[Consumer]
) -> Iterator[str]:
    yield (
        f"{source}: the ledger goes on after batch {plan.told.batch} of the ledger "
        f"{plan.told.ledger}, at {plan.told.at}"
    )
    if plan.batch > plan.told.batch:
        yield f"  batches {plan.told.batch + 1} to {plan.batch} are undone; the log is read again"
    yield f"  {len(plan.adopted)} tables go on with their mirrors"
    for adoption in plan.adopted:
        if adoption.restored:
            yield (
                f"  {adoption.mirror.table}: its mirror shows version {adoption.version} once "
                f"more, since version {adoption.mirror.newest} is not of that place"
            )
    for folder in done.cut:
        yield f"  {folder} no longer lists what came after that place: it is read again"
    for table, why in done.reloads:
        yield f"  the next run reads {table} from the source: {why}"
    for mirror in plan.left:
        yield f"  {mirror.folder} stays as it is: the source had dropped {mirror.table}"
    for doubt in plan.doubts:
        yield f"  in doubt: {doubt}; `lockstep verify` compares every row"
    for reader in readers:
        yield f"  the consumer {reader.name} {_read_on(reader.cursor or 0, plan.told.batch)}"


def _read_on(cursor: int, behind: int) -> str:
    """What going back to a batch means for a consumer that is done up to another."""
    done = f"is done up to batch {cursor}" if cursor else "is done with no batch yet"
    if cursor < behind:
        return f"{done}: let it read on first, else it never gets what is up to batch {behind}"
    again = f": what came after batch {behind} comes to it again" if cursor > behind else ""
    return f"{done}{again}; make it again before the next run (docs/recovery.md)"
