"""The command line's grammar: commands and options."""

from __future__ import annotations

import argparse
import difflib
import getpass
import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NoReturn

from lockstep import options
from lockstep.log import FORMATS
from pipeline.errors import ConfigurationError
from pipeline.table import TableName

if TYPE_CHECKING:
    from pipeline.places import Place


class UsageError(ConfigurationError):
    """The command line cannot be read."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}.", hint=f"`{self.prog} --help`")


class _Version(argparse.Action):
    """Looked up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        sys.stdout.write(f"lockstep {version('lockstep')}\n")
        parser.exit()


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments, read; `UsageError`."""
    try:
        read = make_parser().parse_args(arguments)
    except UsageError:
        _require_known_command(arguments)
        raise
    if read.command == "read" and read.table is None and not read.dbt:
        raise UsageError("TABLE is missing.", hint="`lockstep read --help`")
    return read


def _require_known_command(arguments: Sequence[str]) -> None:
    """`UsageError` that names the command which is written most like an unknown one."""
    before = _Parser(add_help=False, parents=[_shared()])
    before.add_argument("command", nargs="?", default="help")
    given = before.parse_known_args(arguments)[0].command
    names = _made()[1]
    nearest = difflib.get_close_matches(given, names, n=1)
    if given not in names:
        for command in nearest:
            raise UsageError(
                f"There is no command {given!r}; did you mean {command!r}?",
                hint=f"`lockstep {command} --help`",
            )


def make_parser() -> argparse.ArgumentParser:
    return _made()[0]


def _shared() -> _Parser:
    """The options that stand before the command or after it."""
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
    shared.add_argument(
        "--log-format",
        choices=FORMATS,
        default=argparse.SUPPRESS,
        help="progress, notes and refusals on standard error: for people, or one JSON object each",
    )
    shared.add_argument(
        "--log-file",
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="those lines of JSON in a file as well, which rotates",
    )
    return shared


@cache
def _made() -> tuple[argparse.ArgumentParser, frozenset[str]]:
    """One parser for all commands of a process, and of those that are forked from it; their
    names."""
    shared = _shared()
    parser = _Parser(
        prog="lockstep",
        description="Keeps Delta Lake tables equal to MySQL tables, in bounded runs.",
        parents=[shared],
        allow_abbrev=False,
    )
    parser.add_argument("--version", nargs=0, action=_Version, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, told: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name, help=told, description=told, parents=[shared], allow_abbrev=False
        )

    options.init(command("init", "write lockstep.toml for a server, then check it"))
    options.source(
        command("check", "look at everything a run needs; say what is wrong and how to cure it")
    )
    options.source(command("tables", "every table of the source: captured or not, and why"))
    plan = command("plan", "what the next run would do: start and why, end, rows; writes nothing")
    options.source(plan)
    options.until(plan)
    run = command("run", "one bounded run: capture, publish, merge, acknowledge")
    options.source(run)
    options.until(run)
    snapshot = command("snapshot", "read tables from the source, and join them with the log")
    snapshot.add_argument(
        "tables",
        nargs="*",
        metavar="TABLE",
        help="database.table, with * and ?: read these again (default: go on with those that are "
        "being read)",
    )
    snapshot.add_argument(
        "--where",
        metavar="CONDITION",
        help="of one table in the lake, only the rows for which this holds at the source; what "
        "follows WHERE",
    )
    snapshot.add_argument("--reason", metavar="TEXT", help="why; kept for good")
    options.author(snapshot)
    snapshot.add_argument(
        "--dry-run", action="store_true", help="show which tables, and how many rows; read nothing"
    )
    options.one_source(snapshot)
    options.source(command("status", "positions, lag, open batches, tables quarantined, decisions"))
    options.start_at(command("start-at", "choose where the next run starts; once, recorded"))
    options.adopt(
        command(
            "adopt",
            "continue with a lake folder that disagrees with this ledger, or with mirrors that "
            "somebody else loaded",
        )
    )
    options.recover(command("recover", "make a new ledger from a lake whose ledger is lost"))
    options.undo(
        command("undo", "take back a run and all later ones; the log is read again from there")
    )
    options.schema(
        command("schema", "a table's structure, now or at a place; `verify` proves them all")
    )
    options.order(command("pause", "stop one table, the others go on; recorded"), needs_reason=True)
    options.order(
        command("resume", "bring a paused table back with the next run"), needs_reason=False
    )
    release = command("release", "bring back a table that is quarantined; recorded")
    options.order(release, needs_reason=True)
    release.add_argument(
        "--schema",
        metavar="FILE",
        help="its structure from where it stopped, as `show create table` prints it",
    )
    release.add_argument(
        "--rename",
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="with --schema: the column OLD is now called NEW; repeat it for each column",
    )
    release.add_argument(
        "--dry-run", action="store_true", help="show what the next run would do; record nothing"
    )
    reload = command("reload", "rewrite a table's mirror, from its changelog or the source")
    options.order(reload, needs_reason=True)
    verify = command("verify", "compare MySQL with the lake at one position")
    verify.add_argument("tables", nargs="*", metavar="TABLE", help="database.table (default: all)")
    verify.add_argument(
        "--sample",
        type=options.rows,
        metavar="ROWS",
        help="compare this many rows of each table, chosen at random",
    )
    verify.add_argument(
        "--repair",
        action="store_true",
        help="have the next run read the tables that differ from MySQL",
    )
    verify.add_argument(
        "--show-values", action="store_true", help="show what differs, not only where"
    )
    options.source(verify)
    options.replay(
        command("replay", "repeat a span of the past: read it again, put right what differs")
    )
    options.rebuild(
        command(
            "rebuild", "a table as of any transaction of the past, or make the live mirror again"
        )
    )
    options.upkeep(
        command(
            "upkeep", "put small files of mirrors together, and delete those that no version needs"
        )
    )
    options.catalog(
        command("catalog", "what of the lake is registered in [catalog], and what differs")
    )
    options.report(
        command("report", "one page about a run or a span: what came, what changed, how long")
    )
    metrics = command("metrics", "how sources stand, as numbers for a monitoring system")
    metrics.add_argument(
        "--output", metavar="FILE", help="replaced as a whole (default: standard output)"
    )
    metrics.add_argument(
        "--files", action="store_true", help="count the mirrors' files: reads all of their logs"
    )
    options.source(metrics)
    read = command("read", "a snippet for Spark, delta-rs and DuckDB, ready to paste")
    read.add_argument("table", nargs="?", metavar="TABLE", help="database.table")
    read.add_argument(
        "--dbt",
        action="store_true",
        help="sources.yml of a dbt project instead: the table, or all, with keys, types, comments",
    )
    read.add_argument(
        "--changes",
        action="store_true",
        help="for its changelog: all generations as one relation",
    )
    options.at(read, "as the source was there")
    options.source(read)
    versions = command("versions", "which version of each table shows the source as of one place")
    options.at(versions, "as of there (default: as of the newest batch)")
    versions.add_argument(
        "--list", action="store_true", help="the places there are versions of, newest first"
    )
    options.source(versions)
    setup = command("setup", "fetch Delta's jars, compile the engine; once for each installation")
    setup.add_argument(
        "--with",
        dest="extra",
        action="append",
        choices=("s3",),
        default=[],
        help="for a lake in an object store",
    )
    setup.add_argument(
        "--ivy-settings", metavar="FILE", help="where Maven Central is reached through a mirror"
    )
    setup.add_argument(
        "--no-java", action="store_true", help="where Spark is a server elsewhere: no jars"
    )
    spark = command("spark", "keep a Spark running (Spark Connect), for runs every minute")
    spark.add_argument("action", choices=("serve",), help="serve at [spark] remote, until Ctrl-C")
    spark.add_argument(
        "--dry-run", action="store_true", help="say whether it could start; start nothing"
    )
    completion = command(
        "completion", "print a script that makes the shell complete commands and options"
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish", "tcsh"))
    return parser, frozenset(commands.choices)


def place_argument(text: str, option: str, command: str = "run") -> Place:
    """A place in time as it is written everywhere; `UsageError` names the forms."""
    from pipeline.places import parse_end, parse_place

    try:
        if option == "--until":
            return parse_end(text)
        return parse_place(text, as_start=command == "start-at")
    except ValueError as error:
        raise UsageError(f"{option}: {error}.", hint=f"`lockstep {command} --help`") from None


def table_name(text: str) -> TableName:
    """`shop.orders` → a name; the first dot divides."""
    database, _, name = text.partition(".")
    if not database or not name:
        raise UsageError(f"{text!r} is not a table's name.", hint="write it as database.table")
    return TableName(database, name)


def author(arguments: argparse.Namespace) -> str:
    """Who asks for something that is recorded: `--author`, or the name of this account."""
    chosen: str | None = arguments.author
    return chosen or getpass.getuser()


def reason(arguments: argparse.Namespace) -> str:
    """`--reason`, "" where it is left out; `UsageError` where it says nothing."""
    given: str | None = arguments.reason
    told = (given or "").strip()
    if given is not None and not told:
        raise UsageError("--reason is empty.", hint=f"`lockstep {arguments.command} --help`")
    return told
