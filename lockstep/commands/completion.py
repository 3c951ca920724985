"""`lockstep completion`: what makes a shell complete commands and options."""

from __future__ import annotations

import argparse

from lockstep import exits
from lockstep.context import CommandContext, Outcome


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Needs no configuration."""
    import shtab

    from lockstep.grammar import make_parser

    script = shtab.complete(make_parser(), arguments.shell)
    context.say(script.rstrip("\n"))
    return Outcome(exits.DONE, {"script": script})
