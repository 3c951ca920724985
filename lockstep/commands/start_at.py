"""`lockstep start-at`: an operator chooses where the next run starts; once, recorded."""

from __future__ import annotations

import argparse

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import author, place_argument, reason
from pipeline.decisions import Continuity
from pipeline.errors import LockstepError
from pipeline.json_values import parts
from pipeline.runs.inspecting.plan import Choice, choose_start
from resources.holders import holder


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """What no run could carry out is refused at once, and nothing is recorded."""
    place = place_argument(arguments.place, "PLACE", "start-at")
    why = reason(arguments)
    source = context.one_source(arguments.source).name

    try:
        with (
            context.work_on(source) as (_, work),
            work.ledger.lock(source, holder("start-at"), None) as lease,
        ):
            choice = choose_start(work, lease, place, why, author(arguments))
    except LockstepError as error:
        return Outcome.of_sources({source: context.refused(source, error)})
    context.say(*_lines(source, choice))
    found = "position as start, follows, continuity, gap_tables, abandoned as abandons"
    # Null where the server could not be asked.
    following = choice.position and parts(choice, found)
    told = {"override": choice.override, "next": following, "trouble": choice.trouble}
    return Outcome.of_sources({source: (exits.DONE, told)})


def _lines(source: str, choice: Choice) -> list[str]:
    override = choice.override
    told = [f"{source}: recorded: start at {override.place} ({override.author}: {override.reason})"]
    if choice.trouble is not None:
        told.append(
            f"  the server could not be asked ({choice.trouble.message}); the next run checks that "
            "the place exists"
        )
    elif choice.position is not None:
        told.append(f"  the next run starts at {choice.position}; `lockstep plan` shows it")
    told += [
        f"  batch {batch}, which was never acknowledged, is abandoned" for batch in choice.abandoned
    ]
    if choice.continuity is Continuity.GAP:
        told.append(
            f"  a gap: what was written between {choice.follows} and {choice.position} is not "
            f"read; rows of {', '.join(choice.gap_tables)} may be wrong until "
            "`lockstep verify` finds them equal, or they are re-read"
        )
    elif choice.continuity is Continuity.CONTIGUOUS:
        told.append("  nothing is left out, nothing is read twice")
    told.append("  the wrong place? choose again: the last choice counts until a run has used it")
    return told
