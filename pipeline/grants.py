"""What an account was granted, as the lines of SHOW GRANTS say it, and the GRANT that is missing.

Belongs here: reading the lines. Does not: asking for them, what a missing privilege means for a
run (`preflight.account`). Privileges that a role brings stand in them when the role is active
(MySQL manual, "SHOW GRANTS Statement"); MariaDB lists the roles' own grants as well, and those of
PUBLIC.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import translate
from typing import Final

from pipeline.table import TableName

_LINE = re.compile(r"(GRANT|REVOKE) (?P<what>.+?) ON (?:TABLE )?(?P<where>\S.*?) (?:TO|FROM) ")
_PART = re.compile(r"`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|\*")
_COLUMNS = re.compile(r"\w+ \((?:`(?:[^`]|``)*`|[^)`])*\),? ?")
_EVERYTHING: Final = frozenset({"ALL", "ALL PRIVILEGES"})


@dataclass(frozen=True, slots=True)
class Grant:
    """Privileges on `database`.`table`; a database is a LIKE pattern, "*" is everything.
    `revoked`: taken from what a wider grant gives (partial_revokes). `columns`: some more
    privileges are on single columns of the table."""

    privileges: frozenset[str]
    database: str
    table: str
    revoked: bool = False
    columns: bool = False

    def gives(self, privilege: str) -> bool:
        return bool(self.privileges & {privilege, *_EVERYTHING})


def read_grants(lines: tuple[str, ...]) -> tuple[Grant, ...]:
    """The grants on tables, databases and everything; those of routines, proxies and roles are
    left out, and of those on single columns it is only said that there are some."""
    return tuple(grant for line in lines for grant in _grant(line))


def _grant(line: str) -> Iterator[Grant]:
    match = _LINE.match(line)
    if match is None or match["what"] == "PROXY":
        return
    parts = _PART.findall(match["where"])
    if len(parts) != 2 or match["where"].startswith(("PROCEDURE", "FUNCTION", "PACKAGE")):
        return
    whole = _COLUMNS.sub("", match["what"])
    privileges = frozenset(part.strip().upper() for part in whole.split(",") if part.strip())
    database, table = (_bare(part) for part in parts)
    yield Grant(privileges, database, table, line.startswith("REVOKE"), whole != match["what"])


def _bare(quoted: str) -> str:
    return quoted if quoted == "*" else quoted[1:-1].replace(quoted[0] * 2, quoted[0])


def covers(grants: tuple[Grant, ...], privilege: str, table: TableName) -> bool:
    """Whether the account has the privilege on the whole table."""
    meant = [
        grant
        for grant in grants
        if grant.gives(privilege)
        and _like(grant.database, table.database)
        and grant.table in ("*", table.name)
    ]
    given = [grant for grant in meant if not grant.revoked]
    # A partial revoke takes from what is granted on everything alone.
    narrow = any(grant.database != "*" for grant in given)
    return bool(given) and (narrow or len(given) == len(meant))


def _like(pattern: str, database: str) -> bool:
    """LIKE of a GRANT's database: `%`, `_`, and a backslash before either."""
    if pattern == "*":
        return True
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    meant = {"%": "*", "_": "?", "*": "[*]", "?": "[?]", "[": "[[]"}
    shell = "".join(meant.get(part, part[1:] if len(part) > 1 else part) for part in parts)
    return re.fullmatch(translate(shell), database) is not None


def shown_whole(grants: Iterable[Grant], tables: Iterable[TableName]) -> frozenset[TableName]:
    """Those of the tables that the account may read whole, and sees none of by a grant on single
    columns. Others may be shown whole as well: a role or a server's rules may bring what no line
    says."""
    wide, own = list[Grant](), defaultdict[str, list[Grant]](list)
    for grant in grants:
        (wide if grant.table == "*" else own[grant.table]).append(grant)
    return frozenset(table for table in tables if _shows_whole((*wide, *own[table.name]), table))


def _shows_whole(grants: tuple[Grant, ...], table: TableName) -> bool:
    on_columns = any(grant.columns and grant.database == table.database for grant in grants)
    return not on_columns and covers(grants, "SELECT", table)


def account_name(account: str) -> str:
    """What CURRENT_USER() gives as 'user'@'host', as a GRANT wants it."""
    user, _, host = account.rpartition("@")
    return "@".join("'" + part.replace("'", "''") + "'" for part in (user, host))


def grant_statement(what: str, where: str, account: str) -> str:
    """The GRANT to type, without an end."""
    return f"GRANT {what} ON {where} TO {account_name(account)}"


def place(table: TableName) -> str:
    """A table, as a GRANT wants it."""
    parts = (part.replace("`", "``") for part in (table.database, table.name))
    return ".".join(f"`{part}`" for part in parts)
