"""Which product and version a server is, where statements have to differ.

Belongs here: reading `@@version`. Does not: whether such a server is read at all
(`pipeline.preflight`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pymysql.cursors import Cursor

_NUMBER: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Dialect:
    """`number` is the version, such as (9, 7, 4)."""

    mariadb: bool
    number: tuple[int, ...]

    def mysql_from(self, *number: int) -> bool:
        """Return whether this is MySQL of that version or later."""
        return not self.mariadb and self.number >= number


def read_dialect(cursor: Cursor) -> Dialect:
    cursor.execute("select @@version")
    (version,) = cursor.fetchone() or ("",)
    match = _NUMBER.match(str(version))
    number = tuple(map(int, match.groups())) if match else (0, 0, 0)
    return Dialect("mariadb" in str(version).lower(), number)
