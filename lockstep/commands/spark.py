"""`lockstep spark serve`: a Spark that keeps running, for runs every minute."""

from __future__ import annotations

import argparse

from lockstep import exits
from lockstep.context import CommandContext, Outcome


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """With `--dry-run` what would be started; else this process becomes the server."""
    from resources.lake.serving import become_server, require_free, server_to_start

    settings = context.settings
    conf = settings.spark_conf()
    server = server_to_start(conf)
    scratch = settings.state_folder / "spark"
    if not arguments.dry_run:
        context.note(f"Spark Connect will answer at {server} in about ten seconds; Ctrl-C ends it")
        become_server(conf, settings.lake_path(), scratch)
    require_free(server)
    context.say(f"would serve Spark Connect at {server}, with files of its own in {scratch}")
    return Outcome(exits.DONE, {"server": str(server), "folder": str(scratch)})
