"""`lockstep run`: one bounded run of each source, in this process."""

from __future__ import annotations

import argparse
from typing import Any

from lockstep.context import CommandContext, Outcome
from lockstep.grammar import place_option
from lockstep.pipeline.values.errors import LockstepError
from lockstep.running import run_sources


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Run the sources one after another. A source that fails does not stop the others."""
    sources = context.sources(arguments.source)
    until = place_option(arguments, "--until")
    outcomes: dict[str, tuple[int, dict[str, Any]]] = {}
    with context.adapters() as adapters:
        for source in sources:  # report missing secrets before anything is created
            try:
                adapters.server(source.name)
            except LockstepError as error:
                outcomes[source.name] = context.refused(source.name, error)
        ready = [source.name for source in sources if source.name not in outcomes]
        if ready:
            outcomes |= run_sources(ready, adapters, until, context)
        if context.settings.notify:
            from lockstep.assets.notices import notify_people

            names = [source.name for source in sources]
            notify_people(context.settings, adapters, names, context.note)
    return Outcome.of_sources(outcomes)
