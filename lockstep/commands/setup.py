"""What an installation needs: `lockstep setup`, `lockstep spark serve`, `lockstep completion`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import make_parser
from pipeline.errors import JavaMissing


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    return _PERFORM[arguments.command](arguments, context)


def _setup(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Java is looked at, jars are fetched, the engine is compiled; needs no configuration. What is
    there already is left as it is."""
    from pipeline.binlog.arrays.compiled import cache_folder
    from resources.mysql.rehearsal import rehearse

    spark = {} if arguments.no_java else _spark(arguments, context)
    context.say("the engine: compiled once, which takes half a minute")
    clock = perf_counter()
    rehearse()
    kept = cache_folder()
    where = f"kept in {kept}" if kept else "nowhere to keep it: compiled at every start"
    context.say(f"the engine: ready after {perf_counter() - clock:.1f} s, {where}")
    compiled = None if kept is None else str(kept)
    return Outcome(exits.DONE, {**spark, "compiled": compiled})


def _spark(arguments: argparse.Namespace, context: CommandContext) -> dict[str, Any]:
    from resources.lake.jars import DELTA, S3, bring_jars, class_path, jars_folder
    from resources.lake.java import java_or_refuse, make_archive
    from resources.lake.log_store import log_store_jar

    try:
        java = java_or_refuse(os.environ)
    except JavaMissing as error:
        elsewhere = "where Spark is a server elsewhere: `lockstep setup --no-java`"
        raise JavaMissing(error.message, hint=f"{error.hint}; {elsewhere}") from error
    context.say(f"Java {java.major}: {java.program}")
    folder = jars_folder(sys.prefix)
    settings = None if arguments.ivy_settings is None else Path(arguments.ivy_settings)
    locks = (DELTA, S3) if arguments.extra else (DELTA,)
    fetched = bring_jars(folder, *locks, java=java.program, settings=settings)
    context.say(f"jars of Delta Lake{' and for s3' * len(locks[1:])}: {len(fetched)} fetched")
    archived = make_archive(folder, (*class_path(folder), log_store_jar()), java)
    context.say(f"the archive that lets Spark start faster: {'made' if archived else 'there'}")
    return {"java": str(java.program), "fetched": [jar.file_name for jar in fetched]}


def _serve(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """With `--dry-run` what would be started; else this process becomes the server, a Spark that
    keeps running for runs every minute."""
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


def _completion(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """What makes a shell complete commands and options; needs no configuration."""
    import shtab

    script = shtab.complete(make_parser(), arguments.shell)
    context.say(script.rstrip("\n"))
    return Outcome(exits.DONE, {"script": script})


_PERFORM: Final = {"setup": _setup, "spark": _serve, "completion": _completion}
