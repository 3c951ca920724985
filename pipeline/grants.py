"""The privileges of an account, read from the lines of SHOW GRANTS, and the GRANT that is missing.

Not here: asking for them, what a missing privilege means for a run (`preflight.account`). The lines
include privileges that come from a role if the role is active (MySQL manual, "SHOW GRANTS
Statement"); MariaDB lists the roles' own grants as well, and those of PUBLIC.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import translate
from typing import Final

from pipeline.table import TableName

_NAME: Final = r"(?:`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|\*)"
_LINE = re.compile(
    rf"(?:GRANT|REVOKE) (?P<what>.+?) ON (?:TABLE )?(?P<database>{_NAME})\.(?P<table>{_NAME}) "
    r"(?:TO|FROM) ",
    re.DOTALL,
)
_COLUMNS = re.compile(r"\w+ \((?:`(?:[^`]|``)*`|[^)`])*\),? ?")
_EVERYTHING: Final = frozenset({"ALL", "ALL PRIVILEGES"})


@dataclass(frozen=True, slots=True)
class Grant:
    """Privileges on `database`.`table`; a database is a LIKE pattern, "*" is everything. `revoked`:
    they are taken away from a wider grant (partial_revokes). `columns`: there are also privileges
    on single columns of the table."""

    privileges: frozenset[str]
    database: str
    table: str
    revoked: bool = False
    columns: bool = False

    def gives(self, privilege: str) -> bool:
        return bool(self.privileges & {privilege, *_EVERYTHING})


def read_grants(lines: tuple[str, ...]) -> tuple[Grant, ...]:
    """Return the grants on tables, databases and everything. Grants of routines, proxies and roles
    are left out; of privileges on single columns only their existence is kept."""
    return tuple(grant for line in lines for grant in _grant(line))


def _grant(line: str) -> Iterator[Grant]:
    match = _LINE.match(line)
    if match is None:
        return
    whole = _COLUMNS.sub("", match["what"])
    privileges = frozenset(part.strip().upper() for part in whole.split(",") if part.strip())
    database, table = _bare(match["database"]), _bare(match["table"])
    yield Grant(privileges, database, table, line.startswith("REVOKE"), whole != match["what"])


def _bare(quoted: str) -> str:
    return quoted if quoted == "*" else quoted[1:-1].replace(quoted[0] * 2, quoted[0])


def covers(grants: tuple[Grant, ...], privilege: str, table: TableName) -> bool:
    """Return whether the account has the privilege on the whole table."""
    meant = [
        grant
        for grant in grants
        if grant.gives(privilege)
        and _like(grant.database, table.database)
        and grant.table in ("*", table.name)
    ]
    given = [grant for grant in meant if not grant.revoked]
    # A partial revoke only takes away from what is granted on `*.*`.
    narrow = any(grant.database != "*" for grant in given)
    return bool(given) and (narrow or len(given) == len(meant))


def _like(pattern: str, database: str) -> bool:
    """Match a GRANT's database: `%` and `_` are wildcards unless a backslash comes before them."""
    if pattern == "*":
        return True
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    meant = {"%": "*", "_": "?", "*": "[*]", "?": "[?]", "[": "[[]"}
    shell = "".join(meant.get(part, part[1:] if len(part) > 1 else part) for part in parts)
    return re.fullmatch(translate(shell), database) is not None


def shown_whole(grants: Iterable[Grant], tables: Iterable[TableName]) -> frozenset[TableName]:
    """Return the tables that the account may certainly read as a whole. Tables with a grant on
    single columns are left out. Others may be shown as a whole too: a role, or the server's own
    rules, may give what no line says."""
    wide, own = list[Grant](), defaultdict[str, list[Grant]](list)
    for grant in grants:
        (wide if grant.table == "*" else own[grant.table]).append(grant)
    found = set[TableName]()
    for table in tables:
        meant = (*wide, *own[table.name])
        on_columns = any(grant.columns and grant.database == table.database for grant in meant)
        if not on_columns and covers(meant, "SELECT", table):
            found.add(table)
    return frozenset(found)


def account_name(account: str) -> str:
    """Return the answer of CURRENT_USER() as GRANT takes it: 'user'@'host'."""
    user, _, host = account.rpartition("@")
    return "@".join("'" + part.replace("'", "''") + "'" for part in (user, host))


def grant_statement(what: str, where: str, account: str) -> str:
    """Return the GRANT to type, without a semicolon."""
    return f"GRANT {what} ON {where} TO {account_name(account)}"


def place(table: TableName) -> str:
    parts = (part.replace("`", "``") for part in (table.database, table.name))
    return ".".join(f"`{part}`" for part in parts)
