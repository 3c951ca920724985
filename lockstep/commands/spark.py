"""`lockstep spark serve`: a Spark that keeps running, for runs every minute."""

from __future__ import annotations

import argparse
from functools import partial

from lockstep import exits
from lockstep.context import CommandContext, Outcome


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """With `--dry-run` what would be started; else this process becomes the server, and another one
    beside it forks runs."""
    from lockstep.cli import forked
    from lockstep.forkserver.server import start_beside
    from resources.lake.serving import become_server, require_free, server_to_start

    settings = context.settings
    conf = settings.spark_conf()
    server = server_to_start(conf)
    scratch = settings.state_folder / "spark"
    if not arguments.dry_run:
        both = "" if arguments.spark_only else ", and from then on runs start at once"
        context.note(
            f"Spark Connect will answer at {server} in about ten seconds{both}; Ctrl-C ends it"
        )
        beside = None if arguments.spark_only else partial(start_beside, main=forked)
        become_server(conf, settings.lake_path(), scratch, beside)
    require_free(server)
    context.say(f"would serve Spark Connect at {server}, with files of its own in {scratch}")
    return Outcome(exits.DONE, {"server": str(server), "folder": str(scratch)})
