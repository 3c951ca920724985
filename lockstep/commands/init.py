"""`lockstep init`: write lockstep.toml for a MySQL server, then check it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from lockstep import exits
from lockstep.commands import check
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError
from lockstep.pipeline.model.json_values import attributes
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.pipeline.values.survey import is_loopback
from lockstep.resources.config.example import default_password, text_of_new_file
from lockstep.streams import file_errors

AskPerson = Callable[[str, str], str]
"""A function that asks a question, which has a default, and returns the answer."""


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Write the file if its whole text is valid. Never replace an existing file."""
    from lockstep.resources.config.load import parse_settings

    if context.config.exists():
        raise ConfigurationError(
            f"{context.config} exists already.", hint="edit it, or name another file with --config"
        )
    ask = _make_ask(context) if sys.stdin is not None and sys.stdin.isatty() else None
    text = configuration_text(arguments, ask)
    parse_settings(text, context.config)
    with file_errors("The configuration", context.config, "--config"):
        context.config.parent.mkdir(parents=True, exist_ok=True)
        with context.config.open("x", encoding="utf-8") as file:
            file.write(text)
    context.say(f"wrote {context.config}\n")
    outcome = check.perform(argparse.Namespace(source=None), context)
    if outcome.code == exits.DONE:
        context.say("next: `lockstep run`, then `lockstep verify` compares MySQL with the lake")
    else:
        context.say("next: cure what was refused, then `lockstep check`")
    return Outcome(outcome.code, {"wrote": str(context.config), **outcome.payload})


def configuration_text(arguments: argparse.Namespace, ask: AskPerson | None) -> str:
    """Return the file's text, from the options and, for those that were left out, from
    `ask(question, default)`. Without `ask`, `UsageError` names a missing option."""

    def choose(option: str, question: str, default: str) -> str:
        value: str | None = getattr(arguments, option)
        if value is not None:
            return value
        if ask is not None:
            return ask(question, default)
        if not default:
            raise UsageError(f"--{option} must be given.", hint="`lockstep init --help`")
        return default

    name = choose("name", "Name of the source?", "shop")
    host = choose("host", "Host of the MySQL server?", "" if ask is None else "127.0.0.1")
    user = choose("user", "MySQL account that reads the log?", "" if ask is None else "lockstep")
    password = choose(
        "password", "Where is its password (env:NAME or file:PATH)?", default_password(name)
    )
    # MySQL's own certificate is self-signed and cannot be verified; loopback needs no
    # TLS.
    tls = choose("tls", "TLS (verify, required, off)?", "off" if is_loopback(host) else "verify")
    tables = arguments.tables or (
        ask("Which tables (patterns, separated by spaces)?", f"{name}.*").split() if ask else []
    )
    if not tables:
        raise UsageError("--tables must be given.", hint="`lockstep init --help`")
    return text_of_new_file(
        name=name,
        host=host,
        user=user,
        password=password,
        tls=tls,
        tables=tables,
        **attributes(arguments, "port, exclude, start, schedule, lake, ledger"),
    )


def _make_ask(context: CommandContext) -> AskPerson:
    def ask(question: str, default: str) -> str:
        context.streams.messages.write(f"{question} [{default}] ")
        context.streams.messages.flush()
        return sys.stdin.readline().strip() or default

    return ask
