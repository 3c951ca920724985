"""The command line's grammar: every command, its options and their `--help`.

Not here: the meaning of a value, such as a place in the log (`lockstep.arguments`).
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache, partial
from textwrap import fill
from typing import Any, Final, NoReturn

from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.pipeline.values.shown import printable


class UsageError(ConfigurationError):
    """The command line does not follow the grammar."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        required = "the following arguments are required: "
        if message.startswith(required):
            message = f"{message.removeprefix(required)} must be given"
        sentence = message.removeprefix("argument ")
        raise UsageError(f"{sentence[0].upper()}{sentence[1:]}.", hint=f"`{self.prog} --help`")


class _Version(argparse.Action):
    """`--version`: reading the package's metadata takes time, so only this option does
    it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        sys.stdout.write(f"lockstep {version('lockstep')}\n")
        parser.exit()


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the parsed arguments. Raise `UsageError` if they do not follow the
    grammar."""
    try:
        parsed = make_parser().parse_args(arguments)
    except UsageError as error:
        command = _known_command(arguments)
        if command is None:
            raise
        raise UsageError(error.message, hint=f"`lockstep {command} --help`") from None
    if parsed.command == "read" and parsed.table is None and not parsed.dbt:
        raise UsageError("TABLE must be given.", hint="`lockstep read --help`")
    return parsed


def _known_command(arguments: Sequence[str]) -> str | None:
    """Return the command that was typed; None if there is none. If the command is
    unknown, raise `UsageError` with the most similar command."""
    parser = _global_options()
    parser.add_argument("command", nargs="?")
    typed_command: str | None = parser.parse_known_args(arguments)[0].command
    if typed_command is None or typed_command in _COMMANDS:
        return typed_command
    similar_commands = difflib.get_close_matches(typed_command, _COMMANDS, n=1)
    if similar_commands:
        (command,) = similar_commands
        raise UsageError(
            f"There is no command {typed_command!r}; did you mean {command!r}?",
            hint=f"`lockstep {command} --help`",
        )
    raise UsageError(f"There is no command {typed_command!r}.", hint="`lockstep --help`")


# -- commands and their options --------------------------------------------------------
#
# A line declares an option: its name, its value, its text in `--help`. The value is
# followed by `*`, `+` or `?` as in a regular expression if it can be repeated or left
# out, and by `!` if the option is required. Options that begin with `|` exclude each
# other. An indented line continues the one before it. `@name` inserts the lines of
# `_SHARED_OPTIONS`. Wherever a value is a PLACE, `--help` ends with `_PLACES_HELP`.

_GLOBAL_OPTIONS: Final = """\
--config FILE   the configuration file (default: $LOCKSTEP_CONFIG, else ./lockstep.toml)
--json          print the answer as one JSON object on standard output
--log-format {text,json}  print progress, notes and errors on standard error as text (default) or
                as one JSON object per line
--log-file FILE  also write progress, notes and errors as JSON lines to a file, which is rotated
"""
"""The options that stand before or after any command."""

_PLACES_HELP: Final = """\
PLACE, a place in MySQL's log, is one of:
  2026-11-01T06:00:00Z                a moment, in UTC or with an offset (…T08:00:00+02:00)
  binlog.000012:4567                  a log file and an offset in it
  binlog.000012@2026-11-01T06:00:00Z  a moment in one log file
  gtid:<set>                          after all transactions of a GTID set
  run:<id>                            where a run of Lockstep ended
  earliest, latest                    the beginning and the end of the log
"""

_SHARED_OPTIONS: Final = {
    "source": "--source NAME  only this source (default: all sources)",
    "one-source": "--source NAME  the source; needed if there are several",
    "author": "--author NAME  who decides this (default: the name of your account)",
    "until": """\
--until PLACE   end the run there (default: at the end of the log): before the first transaction
                committed at or after a moment, or once all of a GTID set is read
""",
    "tables": "--tables TABLE+  only these tables, each as database.table (default: all)",
    "consent": """\
| --yes         do it; without --yes, only show what would be done
| --dry-run     only show what would be done and write nothing (default)
""",
}

_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "init": (
        "Write lockstep.toml for a MySQL server, then check it",
        """\
--name NAME     the name that the source gets (default: shop)
--host HOST     the server's host name or address
--port PORT     its port (default: 3306)
--user USER     the MySQL account that reads the log
--password REFERENCE  where its password is: env:NAME or file:PATH (default: env:<NAME>_PASSWORD)
--tls {verify,required,off}  how the connection is encrypted (default: verify; off if the server is
    on this machine)
--tables PATTERN+  the tables to capture, each as database.table with * and ?
--exclude PATTERN+  patterns of tables to leave out
--start START   where the first run starts. snapshot: read the tables, then follow the log
                (default); earliest: follow all of the log that the server still has; latest; or
                file:offset
--schedule CRON  when Dagster starts runs, such as "*/10 * * * *"
--lake FOLDER   the folder of the Delta tables (default: lake)
--ledger DSN    the Postgres database of the ledger (default: embedded, which Lockstep itself runs)
""",
    ),
    "check": ("Check everything that a run needs, and say how to cure what is wrong", "@source"),
    "tables": ("List the source's tables: captured or not, and why", "@source"),
    "plan": (
        "Show what the next run would do and why: start, end, rows; write nothing",
        "@source\n@until",
    ),
    "run": (
        "Carry out one bounded run: capture, publish, merge, acknowledge",
        "@source\n@until",
    ),
    "status": (
        "Show positions, lag, open batches, stopped tables and recorded decisions",
        "@source",
    ),
    "start-at": (
        "Choose where the next run starts; recorded, and used once",
        """\
place PLACE     where the next run starts; the latest choice counts until a run uses it
--reason TEXT!  why; recorded for good
@author
@one-source
""",
    ),
    "recover": (
        "Make ledger and lake agree again: the ledger is made from the lake if it was lost; else "
        "the lake is corrected to show what the ledger recorded",
        """\
| --back-to BATCH  with a new ledger: go back to the end of this batch and undo later ones
                (default: the newest batch that all tables show)
| --start-over  with a new ledger: move what is in the lake to _before, so that the next run is a
                first run
--reason TEXT   why; recorded for good
@consent
@author
@one-source
""",
    ),
    "undo": (
        "Take back a run and all later ones; the next run reads the log again from there",
        """\
run RUN         the run's id, or the first characters of it
@consent
@author
@one-source
""",
    ),
    "schema": (
        "Show a table's structure, now or at a place in the log; `schema verify` checks all tables",
        """\
table TABLE     the table, as database.table; or the word verify: apply every recorded statement
                again, and compare the newest structures with the server
--at PLACE      show the structure that was in force there (default: now)
@source
""",
    ),
    "pause": (
        "Stop following some tables, while the others go on; recorded",
        """\
tables TABLE+   the tables, each as database.table with * and ?
--reason TEXT!  why; recorded for good
@author
@one-source
""",
    ),
    "resume": (
        "Follow stopped tables again, beginning with the next run; recorded",
        """\
tables TABLE+   the tables, each as database.table; with * and ? all that are stopped
--reason TEXT   why; recorded for good
@author
@one-source
--schema FILE   the structure of one table where it stopped, as `show create table` prints it
--rename OLD=NEW  with --schema: the column OLD is now called NEW; repeat it for each column
--dry-run       show what the next run would do; record nothing
""",
    ),
    "reload": (
        "Write mirrors again, from their changelogs or from MySQL; or read some rows of one again",
        """\
tables TABLE+   the tables, each as database.table with * and ?
--reason TEXT!  why; recorded for good
--from {changelog,source,log}  where the rows come from (default: the changelog if it is complete,
                else the source, which is MySQL); log: all changes that MySQL's log still has, for
                a table that is not in the lake yet
--where CONDITION  read only the rows of one table that match this SQL condition in MySQL, and read
                them at once
@author
--dry-run       show which tables, and how many rows; record and read nothing
@one-source
""",
    ),
    "verify": (
        "Compare MySQL with the lake at one position of the log",
        """\
tables TABLE*   the tables, each as database.table (default: all)
--sample ROWS   compare this many rows of each table, chosen at random
--repair        read differing rows again from MySQL, or have the next run read the whole table
--dry-run       show what --repair would read, and about how many rows; record and read nothing
--show-values   also show the values that differ
@source
""",
    ),
    "replay": (
        "Read a span of the log again, and correct what differs in the lake",
        """\
--from PLACE!   where the span begins
--to PLACE!     where the span ends
@tables
| --dry-run     show which batches, and whether the log still has them; read nothing
| --compare     read the span again and show where the lake differs; write nothing
--show-values   with --compare: also show the values that differ
@one-source
""",
    ),
    "rebuild": (
        "Write a table as it was after any transaction of the past, at a path of its own",
        """\
table TABLE     the table, as database.table
--as-of PLACE!  write the table as it was after the last transaction up to this place
--into PATH     the path of the new table (default: a folder beside the lake, which is shown)
--dry-run       show what the table would be made from, and its path; read no row
@one-source
""",
    ),
    "upkeep": (
        "Compact small files of mirrors, and delete files that no version needs",
        """\
@tables
--purge         rewrite every file that still has deleted rows, as a request for erasure demands
--dry-run       show the steps with files and bytes; change nothing
@source
""",
    ),
    "catalog": (
        "Show how the entries in [catalog] differ from the lake, and correct them with --yes",
        """\
| --dry-run     show what differs; change nothing (default)
| --yes         register what is missing, correct what differs, and take over entries that somebody
                else made under the names of mirrors
@source
""",
    ),
    "report": (
        "Write one page about a run or a span: what was read, what changed, how long it took",
        """\
run RUN?        the run's id, or the first characters of it (default: the last run)
--from PLACE    where the span begins (default: earliest)
--to PLACE      where the span ends (default: latest)
--output FILE   the page's file (default: one in .lockstep/pages)
@source
""",
    ),
    "metrics": (
        "Print the state of the sources as metrics for a monitoring system",
        """\
--output FILE   write to this file, which is replaced as a whole (default: standard output)
--files         also count the mirrors' files, which reads all their Delta logs
@source
""",
    ),
    "read": (
        "Print code that reads a table with Spark, delta-rs, Polars or DuckDB, ready to paste",
        """\
table TABLE?    the table, as database.table
--dbt           print sources.yml of a dbt project instead, with keys, types and comments of this
                table or of all
--changes       read the table's changelog, with all its generations as one relation
--at PLACE      read the table as the source was there; for a GTID set, as of the first version that
                has all of it
@source
""",
    ),
    "versions": (
        "Show which version of each table shows the source as it was at one place",
        """\
--at PLACE      the place (default: where the newest batch ends); for a GTID set, the first version
                that has all of it counts
--list          list the places that versions exist for, newest first
@source
""",
    ),
    "setup": (
        "Fetch Delta's jars and compile the engine; once for each installation",
        """\
--with {s3}     also what a lake in an object store needs
--ivy-settings FILE  Ivy's settings, if Maven Central is reached through a mirror
--no-java       fetch no jars, because Spark is a server elsewhere
""",
    ),
    "spark": (
        "Keep a Spark Connect server running, so that frequent runs need not start Spark",
        """\
action {serve}  serve at [spark] remote, until Ctrl-C
--dry-run       say whether it could start; start nothing
""",
    ),
    "completion": (
        "Print a script that makes your shell complete commands and options",
        "shell {bash,zsh,fish,tcsh}  your shell",
    ),
}


def _positive_number(text: str, *, meaning: str) -> int:
    """Return the number that was typed. `meaning`: what it is, for the refusal."""
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not {meaning}")
    return int(text)


_REPEATABLE: Final = {"action": "extend", "default": []}

_FURTHER_ARGUMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "--port": {"type": partial(_positive_number, meaning="a port"), "default": 3306},
    "--lake": {"default": "lake"},
    "--ledger": {"default": "embedded"},
    "--back-to": {"type": partial(_positive_number, meaning="the number of a batch")},
    "--sample": {"type": partial(_positive_number, meaning="a number of rows")},
    "--author": {"type": printable},  # makes bytes that are not UTF-8 printable, too
    "--reason": {"type": partial(printable, keep="\n\t")},
    "--tables": _REPEATABLE,
    "--exclude": _REPEATABLE,
    "--rename": {"action": "append", "default": []},
    "--with": {"action": "append", "default": [], "dest": "extra"},
    "--from": {"dest": "from_"},
}
"""Further arguments of `add_argument`, which the lines above cannot express."""

_OPTION_LINE: Final = re.compile(r"(\| )?([\w-]+)(?: (?:\{(.+)\}|([\w=]+))([*+?!]?))? {2,}(.+)")


def _add_options(parser: Any, text: str, **common_arguments: Any) -> None:
    """Add the options that the text declares to a parser, or to a group of one.
    `common_arguments`: arguments of `add_argument` for each of them."""
    exclusive_group: Any = None
    for line in re.sub(r"\n +", " ", text).splitlines():
        if line.startswith("@"):
            _add_options(parser, _SHARED_OPTIONS[line.removeprefix("@")], **common_arguments)
            continue
        match = _OPTION_LINE.fullmatch(line)
        assert match, line
        is_exclusive, name, choices, metavar, arity, help_text = match.groups()
        settings: dict[str, Any] = {
            "help": help_text,
            **_FURTHER_ARGUMENTS.get(name, {}),
            **common_arguments,
        }
        if choices:
            settings["choices"] = tuple(choices.split(","))
        elif metavar:
            settings["metavar"] = metavar
        else:
            settings["action"] = "store_true"
        if arity:
            settings |= {"required": True} if arity == "!" else {"nargs": arity}
        if is_exclusive:
            exclusive_group = exclusive_group or parser.add_mutually_exclusive_group()
        (exclusive_group if is_exclusive else parser).add_argument(name, **settings)


@cache
def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands. It is built once, before processes are forked."""
    parser_settings: dict[str, Any] = {
        "parents": [_global_options()],
        "allow_abbrev": False,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }
    parser = _Parser(
        prog="lockstep",
        description="Keeps Delta Lake tables equal to MySQL tables, in bounded runs.",
        epilog="Type lockstep COMMAND --help for a command's options.",
        **parser_settings,
    )
    parser.add_argument("--version", nargs=0, action=_Version, help="print the version and exit")
    commands = parser.add_subparsers(
        dest="command", title="commands", metavar="COMMAND", required=True
    )
    for name, (purpose, options) in _COMMANDS.items():
        epilog = _PLACES_HELP if "PLACE" in options or "@until" in options else None
        description = f"{fill(purpose)}."
        _add_options(
            commands.add_parser(
                name, help=purpose, description=description, epilog=epilog, **parser_settings
            ),
            options,
        )
    return parser


def _global_options() -> _Parser:
    parser = _Parser(prog="lockstep", add_help=False)
    group = parser.add_argument_group("options of every command")
    _add_options(group, _GLOBAL_OPTIONS, default=argparse.SUPPRESS)
    return parser
