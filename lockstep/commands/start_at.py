"""`lockstep start-at`: an operator chooses where the next run starts. The choice is recorded, and
used once."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import author, place_argument, reason
from lockstep.pipeline.model.json_values import parts
from lockstep.pipeline.run.status.plan import Choice, choose_start
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import LockstepError
from lockstep.resources.holders import holder


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """A choice that no run could carry out is refused, and is not recorded."""
    place = place_argument(arguments.place, "PLACE", "start-at")
    text = reason(arguments)
    source = context.one_source(arguments.source).name
    try:
        with (
            context.work_on(source) as (_, work),
            work.ledger.lock(source, holder("start-at"), None) as lease,
        ):
            choice = choose_start(work, lease, place, text, author(arguments))
    except LockstepError as error:
        return Outcome.of_sources({source: context.refused(source, error)})
    context.say(*_lines(source, choice))
    next_start = choice.position and parts(  # None if the server could not be asked
        choice, "position as start, follows, continuity, gap_tables, abandoned as abandons"
    )
    values = {"override": choice.override, "next": next_start, "trouble": choice.trouble}
    return Outcome.of_sources({source: (exits.DONE, values)})


def _lines(source: str, choice: Choice) -> Iterator[str]:
    override = choice.override
    yield f"{source}: recorded: start at {override.place} ({override.author}: {override.reason})"
    if choice.trouble is not None:
        yield (
            f"  the server could not be asked ({choice.trouble.message}); the next run checks that "
            "the place exists"
        )
    elif choice.position is not None:
        yield f"  the next run starts at {choice.position}; `lockstep plan` shows it"
    for batch in choice.abandoned:
        yield f"  batch {batch}, which was never acknowledged, is abandoned"
    if choice.continuity is Continuity.GAP:
        yield (
            f"  a gap: the log from {choice.follows} to {choice.position} is not read; rows of "
            f"{', '.join(choice.gap_tables)} may be wrong until `lockstep verify` finds them "
            "equal, or they are read again"
        )
    elif choice.continuity is Continuity.CONTIGUOUS:
        yield "  nothing is left out, nothing is read twice"
    yield "  if this is the wrong place, choose again: the latest choice counts until a run uses it"
