"""The commands of an installation: `lockstep setup`, `lockstep spark serve` and
`lockstep completion`."""

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
from lockstep.pipeline.values.errors import JavaMissing


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    return _COMMANDS[arguments.command](arguments, context)


def _setup(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Check Java, download missing jars and compile the engine, which decodes the
    binlog. This needs no configuration."""
    from lockstep.pipeline.binlog.arrays.compiled import cache_folder
    from lockstep.resources.mysql.decoder_compilation import compile_decoders

    java_values = {} if arguments.no_java else _prepare_java(arguments, context)
    context.say("the engine (binlog decoding): compiled once, which takes half a minute")
    begin = perf_counter()
    compile_decoders()
    folder = cache_folder()
    storage = f"kept in {folder}" if folder else "compiled at every start, as no folder can keep it"
    context.say(f"the engine: ready after {perf_counter() - begin:.1f} s, {storage}")
    return Outcome(exits.DONE, {**java_values, "compiled": folder})


def _prepare_java(arguments: argparse.Namespace, context: CommandContext) -> dict[str, Any]:
    from lockstep.resources.lake.spark.jars import (
        DELTA_LOCK,
        S3_LOCK,
        class_path,
        download_jars,
        jars_folder,
    )
    from lockstep.resources.lake.spark.java import archive_path, make_archive, require_java
    from lockstep.resources.lake.spark.log_store import log_store_jar

    try:
        java = require_java(os.environ)
    except JavaMissing as error:
        without_java = "if Spark is a server elsewhere: `lockstep setup --no-java`"
        raise JavaMissing(error.message, hint=f"{error.hint}; {without_java}") from error
    context.say(f"Java {java.major}: {java.program}")
    folder = jars_folder(sys.prefix)
    ivy_settings = None if arguments.ivy_settings is None else Path(arguments.ivy_settings)
    locks = (DELTA_LOCK, S3_LOCK) if arguments.extra else (DELTA_LOCK,)
    downloaded_jars = download_jars(folder, *locks, java=java.program, ivy_settings=ivy_settings)
    stores = " and for s3" if S3_LOCK in locks else ""
    context.say(f"jars of Delta Lake{stores}: {len(downloaded_jars)} fetched")
    jars = (*class_path(folder), log_store_jar())
    archive_words = "the class-data archive, with which Spark starts faster"
    if archive_path(folder, jars, java).is_file():
        context.say(f"{archive_words}: exists")
    else:
        context.say(f"{archive_words}: made once, which takes half a minute")
        if not make_archive(folder, jars, java):
            context.say(f"{archive_words}: could not be made; Spark works without it")
    return {"java": str(java.program), "fetched": [jar.file_name for jar in downloaded_jars]}


def _serve(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Turn this process into a Spark Connect server; with `--dry-run` only say what
    would start."""
    from lockstep.resources.lake.spark.serving import (
        become_server,
        require_free_port,
        server_to_start,
    )

    settings = context.settings
    conf = settings.spark_conf()
    server = server_to_start(conf)
    scratch = settings.state_folder / "spark"
    if not arguments.dry_run:
        context.note(f"Spark Connect will answer at {server} in about ten seconds; Ctrl-C ends it")
        become_server(conf, settings.lake_path(), scratch)
    require_free_port(server)
    context.say(f"would serve Spark Connect at {server}, with files of its own in {scratch}")
    return Outcome(exits.DONE, {"server": str(server), "folder": str(scratch)})


def _completion(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Print the completion script for a shell. This needs no configuration."""
    import shtab

    script = shtab.complete(make_parser(), arguments.shell)
    context.say(script.rstrip("\n"))
    return Outcome(exits.DONE, {"script": script})


_COMMANDS: Final = {"setup": _setup, "spark": _serve, "completion": _completion}
