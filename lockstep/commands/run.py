"""`lockstep run`: the job that a schedule runs, executed here."""

from __future__ import annotations

import argparse
from typing import Any

from lockstep.context import CommandContext, Outcome
from lockstep.grammar import place_argument
from lockstep.running import run_sources
from pipeline.errors import LockstepError


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """One bounded run of a source, or of each in turn; a failed one stops no other."""
    sources = context.sources(arguments.source)
    until = place_argument(arguments.until, "--until") if arguments.until else None
    outcomes: dict[str, tuple[int, dict[str, Any]]] = {}
    with context.adapters() as adapters:
        for source in sources:  # a missing secret is told before anything is made
            try:
                adapters.server(source.name)
            except LockstepError as error:
                outcomes[source.name] = context.refused(source.name, error)
        ready = [source.name for source in sources if source.name not in outcomes]
        if ready:
            outcomes |= run_sources(ready, adapters, until, context)
        if context.settings.notify:
            from assets.notices import tell_people

            names = [source.name for source in sources]
            tell_people(context.settings, adapters, names, context.note)
    return Outcome.of_sources(outcomes)
