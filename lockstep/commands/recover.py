"""`lockstep recover`: a ledger and a source's folder in the lake agree again; recorded.
`lockstep undo`: a run, and all behind it, as if they had not been; the log is read again. It is
`lockstep recover --back-to` by the name of a run, with the ledger moved away in between.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import author, reason
from pipeline.consumers import Consumer
from pipeline.errors import ConfigurationError
from pipeline.json_values import parts
from pipeline.ports.ledger import Ledger
from pipeline.recovery.decide import Case
from pipeline.recovery.facts import RecoveryPlan
from pipeline.runs.agreement.changelog_files import agree
from pipeline.runs.recovering.recover import (
    RecoveryOutcome,
    UndoneRun,
    foresee,
    recover,
    undone_run,
)
from resources.holders import holder
from resources.postgres.embedded import move_away


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Without --yes it tells what it would do, and writes nothing."""
    return (_undo if arguments.command == "undo" else _recover)(arguments, context)


def _recover(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    source = context.one_source(arguments.source).name
    behind, start_over = arguments.back_to, arguments.start_over
    why, who = reason(arguments), author(arguments)
    with context.work_on(source) as (adapters, work):
        if arguments.yes:
            with work.ledger.lock(source, holder("recover"), None) as lease:
                done = recover(
                    work, lease, author=who, reason=why, behind=behind, start_over=start_over
                )
        else:
            done = foresee(work, behind, start_over=start_over)
        readers = adapters.consumers().consumers(source) if done.case is Case.REFUSED else []
    recorded = arguments.yes and done.case is not Case.AGREE
    context.say(*_lines(source, done, readers, recorded=recorded))
    context.say(*_next(source, done, behind, recorded=recorded))
    payload = {
        "source": source,
        "done": recorded,
        **parts(done, "case, told as disagreement, moved_to"),
        **recovery_values(done),
        "changelogs": {f: parts(one, "removed, added, lost") for f, one in done.restated},
        "consumers": {consumer.name: consumer.cursor for consumer in readers},
    }
    return Outcome(exits.DONE, payload)


def _lines(
    source: str, done: RecoveryOutcome, readers: Sequence[Consumer], *, recorded: bool
) -> Iterator[str]:
    match done.case:
        case Case.AGREE:
            yield f"{source}: the ledger and the lake agree: there is nothing to recover"
        case Case.FINISH:
            ended = "is ended" if recorded else "is to be ended"
            yield f"{source}: the ledger is made from the lake; what was cut off {ended}"
        case Case.START_OVER:
            yield (
                f"{source}: the folder {source} of the lake moves to _before, with everything in "
                "it and all versions of its mirrors; the next run is a first run"
            )
        case Case.KEEP_LEDGER:
            yield f"{source}: {done.told}"
            yield from _kept_lines(source, done, recorded=recorded)
        case _:
            assert done.plan is not None, "a ledger is made from the lake"
            yield from recovery_lines(source, done, done.plan, readers)
    yield from (f"  now at {folder}" for folder in done.moved_to)


def _kept_lines(source: str, done: RecoveryOutcome, *, recorded: bool) -> Iterator[str]:
    yield (
        "  the ledger goes on as it is: changelogs list what it acknowledged and no more, and the "
        "log is read from where it ends"
    )
    yield from _read_lines(done)
    if done.reloads:
        yield (
            "  versions of these tables that are gone from the lake, or belong to another history, "
            f"can no longer be read (`lockstep versions --list --source {source}` lists the places)"
        )
    for folder, one in done.restated:
        yield (
            f"  {folder}: {one.removed} files that this ledger does not have are no longer listed, "
            f"{one.added} are listed again, {len(one.lost)} are lost"
        )
    if not recorded:
        yield (
            "  to give it up for a new one, which is made from the lake, move it away first "
            "(docs/recovery.md#the-ledger-is-behind-its-lake)"
        )


def _read_lines(done: RecoveryOutcome) -> Iterator[str]:
    for table, why in done.reloads:
        yield f"  the next run reads {table} from the source: {why}"


_INSTEAD: Final = {
    Case.FROM_LAKE: "  `--start-over` instead moves what is in the lake to _before, and the next "
    "run is a first run",
    Case.START_OVER: "  without `--start-over` this ledger is made from what is in the lake "
    "instead, and no table is moved",
}
"""What else a person may choose."""


def _next(
    source: str, done: RecoveryOutcome, behind: int | None, *, recorded: bool
) -> Iterator[str]:
    given = "" if behind is None else f" --back-to {behind}"
    given += " --start-over" if done.case is Case.START_OVER else ""
    does_it = f"`lockstep recover --source {source}{given} --yes` does it"
    if done.case is Case.REFUSED:
        yield (
            f"  nothing is written: this ledger holds {source}. Once it is moved away "
            f"(docs/recovery.md#a-run-is-undone), {does_it}"
        )
    elif recorded:
        yield f"  recorded; the folder {source} belongs to this ledger"
        yield f"  next: `lockstep run --source {source}`, then `lockstep verify --source {source}`"
    elif done.case is not Case.AGREE:
        if behind is None and done.case in _INSTEAD:
            yield _INSTEAD[done.case]
        yield f"  nothing is written: {does_it}"


# -- what both tell ------------------------------------------------------------------------------


def recovery_values(done: RecoveryOutcome) -> dict[str, Any]:
    plan, again = done.plan, dict(done.reloads)
    if plan is None:
        return {"position": None, "tables": {}, "read_again": again, "cut": (), "doubts": ()}
    adopted = {
        adoption.mirror.table: parts(adoption, "mirror.folder as mirror", "version", "restored")
        for adoption in plan.adopted
    }
    return {
        **parts(plan, "told.at as position", "told.batch as batch", "batch as highest_batch"),
        "tables": adopted,
        "read_again": again,
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
    yield from _read_lines(done)
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


# -- undo ----------------------------------------------------------------------------------


def _undo(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    source = context.one_source(arguments.source).name

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
    others = [name for name in names if ledger.cursors(name).captured is not None]
    if others:
        raise ConfigurationError(
            f"The ledger holds other sources too, which would be given up with it: "
            f"{', '.join(others)}.",
            hint=f"move it away, {back}, and `lockstep recover --yes --source {others[0]}`, as "
            "docs/recovery.md says",
        )
