"""The options of commands that have many, or that several share.

Belongs here: what is added to a command's parser. Does not: which commands there are (`grammar`).
"""

from __future__ import annotations

import argparse


def report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run", nargs="?", metavar="RUN", help="a run's id, or how it begins (default: the last)"
    )
    span(parser, required=False)
    parser.add_argument(
        "--output", metavar="FILE", help="where the page goes (default: below .lockstep/pages)"
    )
    source(parser)


def span(parser: argparse.ArgumentParser, *, required: bool) -> None:
    forms = (
        "a moment such as 2026-11-01T06:00:00Z or 2026-11-01T08:00:00+02:00, "
        "binlog.000012:4567, binlog.000012@2026-11-01T06:00:00Z, gtid:<set>, run:<id>"
    )
    parser.add_argument(
        "--from", dest="since", required=required, metavar="PLACE", help=f"{forms}, earliest"
    )
    parser.add_argument("--to", dest="until", required=required, metavar="PLACE", help="…, latest")


def upkeep(parser: argparse.ArgumentParser) -> None:
    some_tables(parser)
    parser.add_argument(
        "--purge",
        action="store_true",
        help="rewrite every file that still has deleted rows, as a request for erasure needs",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show the steps with files and bytes; change nothing"
    )
    source(parser)


def catalog(parser: argparse.ArgumentParser) -> None:
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
    source(parser)


def replay(parser: argparse.ArgumentParser) -> None:
    span(parser, required=True)
    some_tables(parser)
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
    one_source(parser)


def rebuild(parser: argparse.ArgumentParser) -> None:
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
    one_source(parser)


def rows(text: str) -> int:
    """A number of rows, at least 1."""
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows")
    return int(text)


def at(parser: argparse.ArgumentParser, told: str) -> None:
    parser.add_argument(
        "--at",
        metavar="PLACE",
        help=f"{told}: a moment such as 2026-11-01T06:00:00Z, binlog.000012:4567, "
        "binlog.000012@2026-11-01T06:00:00Z, gtid:<set> (the first that has all of it), run:<id>, "
        "earliest, latest",
    )


def until(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--until",
        metavar="PLACE",
        help="end there: binlog.000012:4567, a moment such as 2026-11-01T06:00:00Z (what was "
        "committed before it), gtid:<set> (once all of it is read), run:<id>",
    )


def start_at(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "place",
        metavar="PLACE",
        help="earliest, latest, binlog.000012:4567, a moment such as 2026-11-01T06:00:00Z, "
        "binlog.000012@2026-11-01T06:00:00Z, gtid:<set>, run:<id>; the latest choice "
        "counts",
    )
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why; kept for good")
    author(parser)
    one_source(parser)


def adopt(parser: argparse.ArgumentParser) -> None:
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
    author(parser)
    one_source(parser)


def recover(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--back-to",
        type=int,
        metavar="BATCH",
        help="go back to where this batch ended, and undo the later ones (default: the newest "
        "batch that all tables show)",
    )
    consent(parser)
    author(parser)
    one_source(parser)


def undo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="the run's id, which may be shortened")
    consent(parser)
    author(parser)
    one_source(parser)


def schema(parser: argparse.ArgumentParser) -> None:
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
    source(parser)


def order(parser: argparse.ArgumentParser, *, needs_reason: bool) -> None:
    parser.add_argument("table", metavar="TABLE", help="database.table")
    parser.add_argument(
        "--reason", required=needs_reason, metavar="TEXT", help="why; kept for good"
    )
    author(parser)
    one_source(parser)


def consent(parser: argparse.ArgumentParser) -> None:
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--yes", action="store_true", help="do it; without --yes, only show what would be done"
    )
    ways.add_argument(
        "--dry-run", action="store_true", help="only show it, as without --yes; write nothing"
    )


def author(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--author", metavar="NAME", help="who (default: this account's name)")


def some_tables(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tables", nargs="+", default=[], metavar="TABLE", help="database.table (default: all)"
    )


def one_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", metavar="NAME", help="which source, if there are several")


def source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", metavar="NAME", help="one source (default: all)")


def init(parser: argparse.ArgumentParser) -> None:
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
