"""`lockstep init`: write lockstep.toml for a server, then check it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lockstep import exits
from lockstep.commands import check
from lockstep.context import CommandContext, Outcome
from lockstep.grammar import UsageError
from pipeline.errors import ConfigurationError
from pipeline.json_values import parts
from resources.config.example import file_of_source, password_of

if TYPE_CHECKING:
    from pathlib import Path

Ask = Callable[[str, str], str]


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Nothing is written unless the whole file is valid; an existing one is kept."""
    from resources.config.load import parse_settings

    if context.config.exists():
        raise ConfigurationError(
            f"{context.config} exists already.", hint="edit it, or name another with --config"
        )
    ask = _asker(context) if sys.stdin is not None and sys.stdin.isatty() else None
    text = configuration(arguments, ask)
    parse_settings(text, context.config)
    _write(context.config, text)
    context.say(f"wrote {context.config}\n")
    outcome = check.perform(argparse.Namespace(source=None), context)
    if outcome.code == exits.DONE:
        context.say("next: `lockstep run`, then `lockstep verify` compares MySQL with the lake")
    else:
        context.say("next: cure what is refused, then `lockstep check`")
    return Outcome(outcome.code, {"wrote": str(context.config), **outcome.payload})


def configuration(arguments: argparse.Namespace, ask: Ask | None) -> str:
    """The file's text from the options, and from `ask` (question, default) for what they
    leave open. `UsageError` names what is missing where nobody can be asked."""

    def chosen(option: str, question: str, default: str) -> str:
        given: str | None = getattr(arguments, option)
        if given is not None:
            return given
        if ask is not None:
            return ask(question, default)
        if not default:
            raise UsageError(f"--{option} is missing.", hint="`lockstep init --help`")
        return default

    name = chosen("name", "What shall the source be called?", "shop")
    host = chosen("host", "The MySQL server's host?", "" if ask is None else "127.0.0.1")
    user = chosen("user", "The account that reads the log?", "" if ask is None else "lockstep")
    password = chosen(
        "password", "Where is its password (env:NAME or file:PATH)?", password_of(name)
    )
    tls = chosen("tls", "TLS (verify, required, off)?", "verify")
    tables = arguments.tables or (
        ask("Which tables (patterns with a space between)?", f"{name}.*").split() if ask else []
    )
    if not tables:
        raise UsageError("--tables is missing.", hint="`lockstep init --help`")
    asked: dict[str, Any] = {
        "name": name,
        "host": host,
        "user": user,
        "password": password,
        "tls": tls,
    }
    given = ("port", "exclude", "start", "schedule", "lake", "ledger")
    return file_of_source(**asked, tables=tables, **parts(arguments, *given))


def _asker(context: CommandContext) -> Ask:
    def ask(question: str, default: str) -> str:
        context.streams.people.write(f"{question} [{default}] ")
        context.streams.people.flush()
        return sys.stdin.readline().strip() or default

    return ask


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written.", hint="choose another place with --config"
        ) from error
