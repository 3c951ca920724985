"""`lockstep start-at`: an operator chooses where the next run starts; once, recorded."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import author, place_argument, reason
from lockstep.holder import holder
from pipeline.decisions import Continuity
from pipeline.errors import LockstepError

if TYPE_CHECKING:
    from pipeline.runs.inspecting.choose_start import Choice


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """What no run could carry out is refused at once, and nothing is recorded."""
    place = place_argument(arguments.place, "PLACE", "start-at")
    why = reason(arguments)
    source = context.one_source(arguments.source).name

    from pipeline.runs.inspecting.choose_start import choose_start

    try:
        with (
            context.work_on(source) as (_, work),
            work.ledger.lock(source, holder("start-at"), None) as lease,
        ):
            choice = choose_start(work, lease, place, why, author(arguments))
    except LockstepError as error:
        return Outcome.of_sources({source: context.refused(source, error)})
    context.say(*_lines(source, choice))
    return Outcome.of_sources({source: (exits.DONE, _values(choice))})


def _values(choice: Choice) -> dict[str, Any]:
    """`next` is null where the server could not be asked."""
    return {
        "override": choice.override,
        "next": choice.position
        and {
            "start": choice.position,
            "follows": choice.follows,
            "continuity": choice.continuity,
            "gap_tables": choice.gap_tables,
            "abandons": choice.abandoned,
        },
        "trouble": choice.trouble,
    }


def _lines(source: str, choice: Choice) -> list[str]:
    """What was recorded and what comes of it, for people."""
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
