"""`python -m tests.schema.follow DIR [8.0|5.7]`: anybody's statements, followed on a real MySQL.

Belongs here: the server for it, by default the newest, and the report. DIR holds `.sql` and
`.jsonl` files (`cases` tells their form). Rows are written into every table under every structure
in between. Exit code 1 where a structure that was followed is not the server's.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from demo.mysql_search import GivenServer, MySql, cache_folder, find_mysql
from demo.mysqld import mysql_server
from lockstep.resources.lake.spark.java import require_java
from tests.fix_mysql import UNHURRIED, MySqlStand
from tests.old_mysql import MYSQL_5_7, MYSQL_8_0, old_mysql
from tests.schema.cases import Case, read_cases
from tests.schema.following import Outcome, counted, outcomes

USAGE: Final = "usage: python -m tests.schema.follow DIR [8.0|5.7]"
_OLD: Final = {"8.0": MYSQL_8_0, "5.7": MYSQL_5_7}
_SHOWN: Final = 160
"""Characters of a statement that are shown."""

_REFUSED: Final = 20
"""Statements that the server refused, of which so many are shown."""


def main(arguments: Sequence[str]) -> int:
    folder_given, *versions = arguments or ("",)
    if not Path(folder_given).is_dir() or len(versions) > 1 or not _OLD.keys() >= {*versions}:
        print(USAGE, file=sys.stderr)
        return 2
    found = _old(*versions) if versions else find_mysql(os.environ)
    if isinstance(found, GivenServer):
        print("a server of somebody else's is left alone: unset LOCKSTEP_TEST_MYSQL")
        return 2
    cases = read_cases(Path(folder_given), "mysql")
    refused: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="follow-") as folder,
        mysql_server(found, Path(folder), os.environ, options=UNHURRIED) as server,
    ):
        stand = MySqlStand(server, server.user, server.password)
        done = outcomes(stand, [*map(_alone, cases)], refused)
    print(*refused[:_REFUSED], sep="\n")
    print(report(done, len(cases), refused))
    return 1 if counted(done)["wrong"] else 0


def _old(version: str) -> MySql:
    java = require_java(os.environ).program
    return old_mysql(_OLD[version], cache_folder(os.environ), java)


def _alone(case: Case) -> Case:
    """Cases that make databases by name have the server to themselves."""
    if case.alone:
        return case
    return Case(case.name, case.statements, "cases", alone=True)


def report(done: Sequence[Outcome], cases: int, refused: Sequence[str]) -> str:
    """What was quarantined, by reason, what is wrong, and how many."""
    lines = []
    quarantined = [one for one in done if one.kind == "quarantined"]
    reasons = Counter(one.why[0] for one in quarantined)
    for reason, count in reasons.most_common():
        first = next(one for one in quarantined if one.why[0] == reason)
        lines.append(f"quarantined {count} times: {reason}\n    {_short(first.statement)}")
    for one in done:
        if one.kind == "wrong":
            lines += [f"wrong: {one.case}: {_short(one.statement)}", *map("    {}".format, one.why)]
    numbers = counted(done)
    lines.append(
        f"{cases} sequences: {numbers['followed']} statements followed, {numbers['quarantined']}"
        f" quarantined, {numbers['wrong']} wrong; {sum(one.maps for one in done)} table maps "
        f"compared;"
        f" {len(refused)} statements refused by the server"
    )
    return "\n".join(lines)


def _short(statement: str) -> str:
    line = " ".join(statement.split())
    return line if len(line) <= _SHOWN else line[:_SHOWN] + " …"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
