"""The command line's grammar: commands and options."""

from __future__ import annotations

import argparse
import difflib
import getpass
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

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
    before = _global_options()
    before.add_argument("command", nargs="?", default="help")
    given = before.parse_known_args(arguments)[0].command
    if given not in _COMMANDS:
        for command in difflib.get_close_matches(given, _COMMANDS, n=1):
            raise UsageError(
                f"There is no command {given!r}; did you mean {command!r}?",
                hint=f"`lockstep {command} --help`",
            )


# -- commands and their options ----------------------------------------------------------------
#
# A line is an option: its name, its value, what `--help` says of it. A value ends with `*`, `+` or
# `?` where there may be several or none of it, as in a regular expression, and with `!` where it
# must be given. Of options behind a `|` only one can be. `@name` stands for lines of `_SHARED`.

_GLOBAL: Final = """\
--config FILE   the configuration (default: LOCKSTEP_CONFIG, else ./lockstep.toml)
--json          print exactly one JSON object on standard output
--log-format {text,json}  progress, notes and refusals on standard error: for people, or one JSON
                object each
--log-file FILE  those lines of JSON in a file as well, which rotates
"""
"""The options that stand before the command or after it."""

_SHARED: Final = {
    "source": "--source NAME  one source (default: all)",
    "one-source": "--source NAME  which source, if there are several",
    "author": "--author NAME  who (default: this account's name)",
    "until": """\
--until PLACE   end there: binlog.000012:4567, a moment such as 2026-11-01T06:00:00Z (what was
                committed before it), gtid:<set> (once all of it is read), run:<id>
""",
    "tables": "--tables TABLE+  database.table (default: all)",
    "consent": """\
| --yes         do it; without --yes, only show what would be done
| --dry-run     only show it, as without --yes; write nothing
""",
    "order": """\
table TABLE     database.table
--reason TEXT!  why; kept for good
@author
@one-source
""",
}

_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "init": (
        "write lockstep.toml for a server, then check it",
        """\
--name NAME     what to call the source (shop)
--host HOST     the server's host name or address
--port PORT     its port (3306)
--user USER     the account that reads the log
--password REFERENCE  env:NAME or file:PATH (default: env:<NAME>_PASSWORD)
--tls {verify,required,off}  (verify)
--tables PATTERN+  database.table, with * and ?
--exclude PATTERN+  what to leave out of that
--start START   snapshot: the tables as they are, then the log (default); earliest: all logs the
                server has; latest, file:offset
--schedule CRON  such as "*/10 * * * *"
--lake FOLDER   (lake)
--ledger DSN    (embedded)
""",
    ),
    "check": ("look at everything a run needs; say what is wrong and how to cure it", "@source"),
    "tables": ("every table of the source: captured or not, and why", "@source"),
    "plan": (
        "what the next run would do: start and why, end, rows; writes nothing",
        "@source\n@until",
    ),
    "run": ("one bounded run: capture, publish, merge, acknowledge", "@source\n@until"),
    "status": ("positions, lag, open batches, tables quarantined, decisions", "@source"),
    "start-at": (
        "choose where the next run starts; once, recorded",
        """\
place PLACE     earliest, latest, binlog.000012:4567, a moment such as 2026-11-01T06:00:00Z,
                binlog.000012@2026-11-01T06:00:00Z, gtid:<set>, run:<id>; the latest choice counts
--reason TEXT!  why; kept for good
@author
@one-source
""",
    ),
    "recover": (
        "make a ledger and a lake agree again: from the lake where the ledger is lost, or by this "
        "ledger where the lake has other batches or is gone",
        """\
| --back-to BATCH  a new ledger goes back to where this batch ended, and undoes the later ones
                (default: the newest batch that all tables show)
| --start-over  with a new ledger: move what is in the lake to _before, so that the next run is a
                first run
--reason TEXT   why; kept for good
@consent
@author
@one-source
""",
    ),
    "undo": (
        "take back a run and all later ones; the log is read again from there",
        """\
run RUN         the run's id, which may be shortened
@consent
@author
@one-source
""",
    ),
    "schema": (
        "a table's structure, now or at a place; `verify` proves them all",
        """\
table TABLE     database.table; or the word verify: follow every recorded statement again, and
                compare the newest structures with the server
--at PLACE      the structure in force there: binlog.000012:4567, a moment such as
                2026-11-01T06:00:00Z, binlog.000012@2026-11-01T06:00:00Z, gtid:<set>, run:<id>,
                earliest
@source
""",
    ),
    "pause": ("stop one table, the others go on; recorded", "@order"),
    "resume": (
        "bring a stopped table back with the next run; recorded",
        """\
table TABLE     database.table
--reason TEXT   why; kept for good
@author
@one-source
--schema FILE   its structure from where it stopped, as `show create table` prints it
--rename OLD=NEW  with --schema: the column OLD is now called NEW; repeat it for each column
--dry-run       show what the next run would do; record nothing
""",
    ),
    "reload": (
        "have mirrors written again, from their changelogs or from MySQL; or some rows of one",
        """\
tables TABLE+   database.table, with * and ?
--reason TEXT!  why; kept for good
--from {changelog,source,log}  where the rows come from (default: the changelog if it is complete,
                else the source, which is MySQL); log: of a table that is not in the lake yet, every
                change that MySQL's log still tells
--where CONDITION  only the rows of one table for which this holds at MySQL, at once; what follows
                WHERE
@author
--dry-run       show which tables, and how many rows; record and read nothing
@one-source
""",
    ),
    "verify": (
        "compare MySQL with the lake at one position",
        """\
tables TABLE*   database.table (default: all)
--sample ROWS   compare this many rows of each table, chosen at random
--repair        have the next run read the tables that differ from MySQL
--show-values   show what differs, not only where
@source
""",
    ),
    "replay": (
        "repeat a span of the past: read it again, put right what differs",
        """\
--from PLACE!   a moment such as 2026-11-01T06:00:00Z or 2026-11-01T08:00:00+02:00,
                binlog.000012:4567, binlog.000012@2026-11-01T06:00:00Z, gtid:<set>, run:<id>,
                earliest
--to PLACE!     …, latest
@tables
| --dry-run     show which batches, and whether the log still has them; read nothing
| --compare     read the span again and say where the lake differs; write nothing
--show-values   with --compare: show what differs, not only where
@one-source
""",
    ),
    "rebuild": (
        "a table as of any transaction of the past, at a path of its own",
        """\
table TABLE     database.table
--as-of PLACE!  as it was after the last transaction there: a moment such as 2026-11-01T06:00:00Z,
                binlog.000012:4567, binlog.000012@2026-11-01T06:00:00Z, gtid:<set>, run:<id>, latest
--into PATH     where the table goes (default: a folder beside the lake, which is shown)
--dry-run       show what it would be made from, and where it would be; read no row
@one-source
""",
    ),
    "upkeep": (
        "put small files of mirrors together, and delete those that no version needs",
        """\
@tables
--purge         rewrite every file that still has deleted rows, as a request for erasure needs
--dry-run       show the steps with files and bytes; change nothing
@source
""",
    ),
    "catalog": (
        "what of the lake is registered in [catalog], and what differs",
        """\
| --dry-run     show what differs; change nothing (the default)
| --yes         register what is missing, correct what differs, and take over entries that somebody
                else made for mirrors under their names
@source
""",
    ),
    "report": (
        "one page about a run or a span: what came, what changed, how long",
        """\
run RUN?        a run's id, or how it begins (default: the last)
--from PLACE    a moment such as 2026-11-01T06:00:00Z or 2026-11-01T08:00:00+02:00,
                binlog.000012:4567, binlog.000012@2026-11-01T06:00:00Z, gtid:<set>, run:<id>,
                earliest
--to PLACE      …, latest
--output FILE   where the page goes (default: below .lockstep/pages)
@source
""",
    ),
    "metrics": (
        "how sources stand, as numbers for a monitoring system",
        """\
--output FILE   replaced as a whole (default: standard output)
--files         count the mirrors' files: reads all of their logs
@source
""",
    ),
    "read": (
        "a snippet for Spark, delta-rs and DuckDB, ready to paste",
        """\
table TABLE?    database.table
--dbt           sources.yml of a dbt project instead: the table, or all, with keys, types, comments
--changes       for its changelog: all generations as one relation
--at PLACE      as the source was there: a moment such as 2026-11-01T06:00:00Z, binlog.000012:4567,
                binlog.000012@2026-11-01T06:00:00Z, gtid:<set> (the first that has all of it),
                run:<id>, earliest, latest
@source
""",
    ),
    "versions": (
        "which version of each table shows the source as of one place",
        """\
--at PLACE      as of there (default: as of the newest batch): a moment such as
                2026-11-01T06:00:00Z, binlog.000012:4567, binlog.000012@2026-11-01T06:00:00Z,
                gtid:<set> (the first that has all of it), run:<id>, earliest, latest
--list          the places there are versions of, newest first
@source
""",
    ),
    "setup": (
        "fetch Delta's jars, compile the engine; once for each installation",
        """\
--with {s3}     for a lake in an object store
--ivy-settings FILE  where Maven Central is reached through a mirror
--no-java       where Spark is a server elsewhere: no jars
""",
    ),
    "spark": (
        "keep a Spark running (Spark Connect), for runs every minute",
        """\
action {serve}  serve at [spark] remote, until Ctrl-C
--dry-run       say whether it could start; start nothing
""",
    ),
    "completion": (
        "print a script that makes the shell complete commands and options",
        "shell {bash,zsh,fish,tcsh}  the shell",
    ),
}


def _number_of_rows(text: str) -> int:
    """A number of rows, at least 1."""
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows")
    return int(text)


_LIST: Final = {"action": "extend", "default": []}

_MORE: Final[Mapping[str, Mapping[str, Any]]] = {
    "--port": {"type": int, "default": 3306},
    "--lake": {"default": "lake"},
    "--ledger": {"default": "embedded"},
    "--back-to": {"type": int},
    "--sample": {"type": _number_of_rows},
    "--tables": _LIST,
    "--exclude": _LIST,
    "--rename": {"action": "append", "default": []},
    "--with": {"action": "append", "default": [], "dest": "extra"},
    "--from": {"dest": "since"},
    "--to": {"dest": "until"},
}
"""What argparse is told of some options besides."""

_OPTION: Final = re.compile(r"(\| )?([\w-]+)(?: (?:\{(.+)\}|([\w=]+))([*+?!]?))? {2,}(.+)")


def _add(parser: argparse.ArgumentParser, text: str, **more: Any) -> None:
    """The options of the text; `more`: what argparse is told of each."""
    ways: Any = None
    for line in re.sub(r"\n +", " ", text).splitlines():
        if line.startswith("@"):
            _add(parser, _SHARED[line.removeprefix("@")], **more)
            continue
        match = _OPTION.fullmatch(line)
        assert match, line
        grouped, name, choices, metavar, sign, told = match.groups()
        settings: dict[str, Any] = {"help": told, **_MORE.get(name, {}), **more}
        if choices:
            settings["choices"] = tuple(choices.split(","))
        elif metavar:
            settings["metavar"] = metavar
        else:
            settings["action"] = "store_true"
        if sign:
            settings |= {"required": True} if sign == "!" else {"nargs": sign}
        if grouped:
            ways = ways or parser.add_mutually_exclusive_group()
        (ways if grouped else parser).add_argument(name, **settings)


@cache
def make_parser() -> argparse.ArgumentParser:
    """One parser for all commands of a process, and of those that are forked from it."""
    about: dict[str, Any] = {"parents": [_global_options()], "allow_abbrev": False}
    described = "Keeps Delta Lake tables equal to MySQL tables, in bounded runs."
    parser = _Parser(prog="lockstep", description=described, **about)
    parser.add_argument("--version", nargs=0, action=_Version, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (told, options) in _COMMANDS.items():
        _add(commands.add_parser(name, help=told, description=told, **about), options)
    return parser


def _global_options() -> _Parser:
    parser = _Parser(add_help=False)
    _add(parser, _GLOBAL, default=argparse.SUPPRESS)
    return parser


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
