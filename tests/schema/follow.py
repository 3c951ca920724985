"""`python -m tests.schema.follow DIR`: anybody's statements, followed on a real MySQL.

Belongs here: the server for it, and the report. DIR holds `.sql` and `.jsonl` files
(`cases` tells their form). Rows are written into every table under every structure in
between. Exit code 1 where a structure that was followed is not the server's.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from demo.mysql_search import GivenServer, find_mysql
from demo.mysqld import mysql_server
from tests.fix_mysql import MySqlStand
from tests.schema.cases import Case, read_cases
from tests.schema.following import Outcome, counted, outcomes

USAGE: Final = "usage: python -m tests.schema.follow DIR"
_SHOWN: Final = 160
"""Characters of a statement that are shown."""

_REFUSED: Final = 20
"""Statements that the server refused, of which so many are shown."""


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print(USAGE, file=sys.stderr)
        return 2
    found = find_mysql(os.environ)
    if isinstance(found, GivenServer):
        print("a server of somebody else's is left alone: unset LOCKSTEP_TEST_MYSQL")
        return 2
    cases = read_cases(Path(arguments[0]), "mysql")
    refused: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="follow-") as folder,
        mysql_server(found, Path(folder), os.environ) as server,
    ):
        stand = MySqlStand(server, server.user, server.password)
        done = outcomes(stand, [*map(_alone, cases)], refused)
    print(*refused[:_REFUSED], sep="\n")
    print(report(done, len(cases), refused))
    return 1 if counted(done)["wrong"] else 0


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
