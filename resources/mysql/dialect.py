"""A server's product and version, on which some statements depend."""

from __future__ import annotations

from dataclasses import dataclass

from pymysql.cursors import Cursor

from lockstep.pipeline.binlog.stream.control import version_number


@dataclass(frozen=True, slots=True)
class Dialect:
    """`version` is a number such as 90704; 0 if the server names it in another form."""

    mariadb: bool
    version: int

    def mysql_from(self, major: int, minor: int = 0, patch: int = 0) -> bool:
        """Return whether this is MySQL of that version or later."""
        return not self.mariadb and self.version >= major * 10_000 + minor * 100 + patch


def read_dialect(cursor: Cursor) -> Dialect:
    cursor.execute("select @@version")
    (version,) = cursor.fetchone() or ("",)
    return Dialect("mariadb" in str(version).lower(), version_number(str(version)) or 0)
