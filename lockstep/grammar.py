"""The command line's grammar: commands, options, and what is refused as not yet."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from pipeline.errors import ConfigurationError, NotYet

NOT_YET_COMMANDS = frozenset(
    {
        "pause",
        "plan",
        "release",
        "replay",
        "resume",
        "schema",
        "snapshot",
        "start-at",
        "support",
        "versions",
    }
)
NOT_YET_OPTIONS = frozenset({("run", "--until"), ("read", "--at")})


class UsageError(ConfigurationError):
    """The command line cannot be read."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}.", hint=f"{self.prog} --help")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments, read. `UsageError`, or `NotYet` for what is designed only."""
    parser = make_parser()
    refuse_not_yet(arguments)
    return parser.parse_args(arguments)


def refuse_not_yet(arguments: Sequence[str]) -> None:
    """NotYet for a command or an option that a later version brings."""
    words = iter(arguments)
    command = ""
    for word in words:
        if word == "--config":
            next(words, None)
        elif not word.startswith("-"):
            command = word
            break
    if command in NOT_YET_COMMANDS:
        raise NotYet(f"`lockstep {command}` is not built yet.", hint="lockstep --help")
    for word in words:
        option = word.partition("=")[0]
        if (command, option) in NOT_YET_OPTIONS:
            raise NotYet(
                f"`lockstep {command} {option}` is not built yet.",
                hint=f"lockstep {command} --help",
            )


def make_parser() -> argparse.ArgumentParser:
    shared = _Parser(add_help=False)
    shared.add_argument(
        "--config",
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="the configuration (default: LOCKSTEP_CONFIG, else ./lockstep.toml)",
    )
    shared.add_argument(
        "--json",
        action="store_true",
        default=argparse.SUPPRESS,
        help="print exactly one JSON object on standard output",
    )
    parser = _Parser(
        prog="lockstep",
        description="Keeps Delta Lake tables equal to MySQL tables, in bounded runs.",
        parents=[shared],
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, told: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name, help=told, description=told, parents=[shared], allow_abbrev=False
        )

    _init(command("init", "write lockstep.toml for a server, then check it"))
    _source(command("check", "is everything as a run needs it; each line with its cure"))
    _source(command("tables", "every table of the source: captured or not, and why"))
    _source(command("run", "one bounded run: capture, publish, merge, acknowledge"))
    _source(command("status", "positions, lag, open batches, tables set aside, decisions"))
    verify = command("verify", "compare MySQL with the lake at one position")
    verify.add_argument("tables", nargs="*", metavar="TABLE", help="database.table (default: all)")
    _source(verify)
    read = command("read", "a snippet for Spark, delta-rs and DuckDB, ready to paste")
    read.add_argument("table", metavar="TABLE", help="database.table")
    _source(read)
    return parser


def _source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", metavar="NAME", help="one source (default: all)")


def _init(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", help="what to call the source (shop)")
    parser.add_argument("--host", help="the server's host name or address")
    parser.add_argument("--port", type=int, default=3306, help="its port (3306)")
    parser.add_argument("--user", help="the account that reads the log")
    parser.add_argument(
        "--password",
        metavar="REFERENCE",
        help="env:NAME or file:PATH (default: env:<NAME>_PASSWORD)",
    )
    parser.add_argument("--tls", choices=("verify", "required", "off"), help="(verify)")
    parser.add_argument(
        "--tables", action="append", metavar="PATTERN", help="database.table, with * and ?"
    )
    parser.add_argument("--exclude", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--start", default="earliest", help="earliest, latest or file:offset")
    parser.add_argument("--schedule", metavar="CRON", help='such as "*/10 * * * *"')
    parser.add_argument("--lake", default="lake", metavar="FOLDER", help="(lake)")
    parser.add_argument("--ledger", default="embedded", metavar="DSN", help="(embedded)")
