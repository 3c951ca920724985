"""The command line's grammar: commands and options."""

from __future__ import annotations

import argparse
import difflib
import getpass
import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NoReturn

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

    _init_options(command("init", "write lockstep.toml for a server, then check it"))
    _source_option(
        command("check", "look at everything a run needs; say what is wrong and how to cure it")
    )
    _source_option(command("tables", "every table of the source: captured or not, and why"))
    plan = command("plan", "what the next run would do: start and why, end, rows; writes nothing")
    _source_option(plan)
    _until_option(plan)
    run = command("run", "one bounded run: capture, publish, merge, acknowledge")
    _source_option(run)
    _until_option(run)
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
    _author_option(snapshot)
    snapshot.add_argument(
        "--dry-run", action="store_true", help="show which tables, and how many rows; read nothing"
    )
    _one_source_option(snapshot)
    _source_option(command("status", "positions, lag, open batches, tables quarantined, decisions"))
    _start_at_options(command("start-at", "choose where the next run starts; once, recorded"))
    _adopt_options(
        command(
            "adopt",
            "continue with a lake folder that disagrees with this ledger, or with mirrors that "
            "somebody else loaded",
        )
    )
    _recover_options(command("recover", "make a new ledger from a lake whose ledger is lost"))
    _undo_options(
        command("undo", "take back a run and all later ones; the log is read again from there")
    )
    _schema_options(
        command("schema", "a table's structure, now or at a place; `verify` proves them all")
    )
    _order_options(
        command("pause", "stop one table, the others go on; recorded"), needs_reason=True
    )
    _order_options(
        command("resume", "bring a paused table back with the next run"), needs_reason=False
    )
    release = command("release", "bring back a table that is quarantined; recorded")
    _order_options(release, needs_reason=True)
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
    _order_options(reload, needs_reason=True)
    verify = command("verify", "compare MySQL with the lake at one position")
    verify.add_argument("tables", nargs="*", metavar="TABLE", help="database.table (default: all)")
    verify.add_argument(
        "--sample",
        type=_number_of_rows,
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
    _source_option(verify)
    _replay_options(
        command("replay", "repeat a span of the past: read it again, put right what differs")
    )
    _rebuild_options(
        command(
            "rebuild", "a table as of any transaction of the past, or make the live mirror again"
        )
    )
    _upkeep_options(
        command(
            "upkeep", "put small files of mirrors together, and delete those that no version needs"
        )
    )
    _catalog_options(
        command("catalog", "what of the lake is registered in [catalog], and what differs")
    )
    _report_options(
        command("report", "one page about a run or a span: what came, what changed, how long")
    )
    metrics = command("metrics", "how sources stand, as numbers for a monitoring system")
    metrics.add_argument(
        "--output", metavar="FILE", help="replaced as a whole (default: standard output)"
    )
    metrics.add_argument(
        "--files", action="store_true", help="count the mirrors' files: reads all of their logs"
    )
    _source_option(metrics)
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
    _at_option(read, "as the source was there")
    _source_option(read)
    versions = command("versions", "which version of each table shows the source as of one place")
    _at_option(versions, "as of there (default: as of the newest batch)")
    versions.add_argument(
        "--list", action="store_true", help="the places there are versions of, newest first"
    )
    _source_option(versions)
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


def _init_options(parser: argparse.ArgumentParser) -> None:
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
        "--tables",
        nargs="+",
        action="extend",
        metavar="PATTERN",
        help="database.table, with * and ?",
    )
    parser.add_argument(
        "--exclude",
        nargs="+",
        action="extend",
        default=[],
        metavar="PATTERN",
        help="what to leave out of that",
    )
    parser.add_argument(
        "--start",
        help="snapshot: the tables as they are, then the log (default); earliest: all logs the "
        "server has; latest, file:offset",
    )
    parser.add_argument("--schedule", metavar="CRON", help='such as "*/10 * * * *"')
    parser.add_argument("--lake", default="lake", metavar="FOLDER", help="(lake)")
    parser.add_argument("--ledger", default="embedded", metavar="DSN", help="(embedded)")


def _source_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", metavar="NAME", help="one source (default: all)")


def _until_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--until",
        metavar="PLACE",
        help="end there: binlog.000012:4567, a moment such as 2026-11-01T06:00:00Z (what was "
        "committed before it), gtid:<set> (once all of it is read), run:<id>",
    )


def _author_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--author", metavar="NAME", help="who (default: this account's name)")


def _one_source_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", metavar="NAME", help="which source, if there are several")


def _tables_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tables", nargs="+", default=[], metavar="TABLE", help="database.table (default: all)"
    )


def _start_at_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "place",
        metavar="PLACE",
        help="earliest, latest, binlog.000012:4567, a moment such as 2026-11-01T06:00:00Z, "
        "binlog.000012@2026-11-01T06:00:00Z, gtid:<set>, run:<id>; the latest choice "
        "counts",
    )
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why; kept for good")
    _author_option(parser)
    _one_source_option(parser)


def _adopt_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tables",
        nargs="*",
        metavar="TABLE",
        help="database.table: take over the mirrors of these, which somebody else loaded, if they "
        "are equal to MySQL (default: the source's whole folder)",
    )
    parser.add_argument(
        "--reason", metavar="TEXT", help="why; kept for good. Without it nothing is done"
    )
    _author_option(parser)
    _one_source_option(parser)


def _recover_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--back-to",
        type=int,
        metavar="BATCH",
        help="go back to where this batch ended, and undo the later ones (default: the newest "
        "batch that all tables show)",
    )
    _consent_options(parser)
    _author_option(parser)
    _one_source_option(parser)


def _undo_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="the run's id, which may be shortened")
    _consent_options(parser)
    _author_option(parser)
    _one_source_option(parser)


def _consent_options(parser: argparse.ArgumentParser) -> None:
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--yes", action="store_true", help="do it; without --yes, only show what would be done"
    )
    ways.add_argument(
        "--dry-run", action="store_true", help="only show it, as without --yes; write nothing"
    )


def _schema_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table",
        metavar="TABLE",
        help="database.table; or the word verify: follow every recorded statement again, and "
        "compare the newest structures with the server",
    )
    parser.add_argument(
        "--at",
        metavar="PLACE",
        help="the structure in force there: binlog.000012:4567, a moment such as "
        "2026-11-01T06:00:00Z, binlog.000012@2026-11-01T06:00:00Z, gtid:<set>, run:<id>, earliest",
    )
    _source_option(parser)


def _order_options(parser: argparse.ArgumentParser, *, needs_reason: bool) -> None:
    parser.add_argument("table", metavar="TABLE", help="database.table")
    parser.add_argument(
        "--reason", required=needs_reason, metavar="TEXT", help="why; kept for good"
    )
    _author_option(parser)
    _one_source_option(parser)


def _at_option(parser: argparse.ArgumentParser, told: str) -> None:
    parser.add_argument(
        "--at",
        metavar="PLACE",
        help=f"{told}: a moment such as 2026-11-01T06:00:00Z, binlog.000012:4567, "
        "binlog.000012@2026-11-01T06:00:00Z, gtid:<set> (the first that has all of it), run:<id>, "
        "earliest, latest",
    )


def _number_of_rows(text: str) -> int:
    """A number of rows, at least 1."""
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows")
    return int(text)


def _span_options(parser: argparse.ArgumentParser, *, required: bool) -> None:
    forms = (
        "a moment such as 2026-11-01T06:00:00Z or 2026-11-01T08:00:00+02:00, "
        "binlog.000012:4567, binlog.000012@2026-11-01T06:00:00Z, gtid:<set>, run:<id>"
    )
    parser.add_argument(
        "--from", dest="since", required=required, metavar="PLACE", help=f"{forms}, earliest"
    )
    parser.add_argument("--to", dest="until", required=required, metavar="PLACE", help="…, latest")


def _report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run", nargs="?", metavar="RUN", help="a run's id, or how it begins (default: the last)"
    )
    _span_options(parser, required=False)
    parser.add_argument(
        "--output", metavar="FILE", help="where the page goes (default: below .lockstep/pages)"
    )
    _source_option(parser)


def _upkeep_options(parser: argparse.ArgumentParser) -> None:
    _tables_option(parser)
    parser.add_argument(
        "--purge",
        action="store_true",
        help="rewrite every file that still has deleted rows, as a request for erasure needs",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show the steps with files and bytes; change nothing"
    )
    _source_option(parser)


def _catalog_options(parser: argparse.ArgumentParser) -> None:
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--dry-run", action="store_true", help="show what differs; change nothing (the default)"
    )
    ways.add_argument(
        "--yes",
        action="store_true",
        help="register what is missing, correct what differs, and take over entries that somebody "
        "else made for mirrors under their names",
    )
    _source_option(parser)


def _replay_options(parser: argparse.ArgumentParser) -> None:
    _span_options(parser, required=True)
    _tables_option(parser)
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--dry-run",
        action="store_true",
        help="show which batches, and whether the log still has them; read nothing",
    )
    ways.add_argument(
        "--compare",
        action="store_true",
        help="read the span again and say where the lake differs; write nothing",
    )
    parser.add_argument(
        "--show-values",
        action="store_true",
        help="with --compare: show what differs, not only where",
    )
    _one_source_option(parser)


def _rebuild_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE", help="database.table")
    parser.add_argument(
        "--as-of",
        metavar="PLACE",
        help="as it was after the last transaction there: a moment such as 2026-11-01T06:00:00Z, "
        "binlog.000012:4567, binlog.000012@2026-11-01T06:00:00Z, gtid:<set>, run:<id>, latest "
        "(default: make the live mirror again, in its place)",
    )
    parser.add_argument(
        "--into",
        metavar="PATH",
        help="where a table of the past goes (default: a folder beside the lake, which is shown)",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="show what it would be made from, and where it would be; read no row",
    )
    _one_source_option(parser)


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
