"""Reading what a server warns of behind a result.

Belongs here: the count that each result carries, and SHOW WARNINGS. Does not: which of them
are harmless (`pipeline.source_warnings`).

The count is in the packet that ends a result (MySQL internals, "EOF_Packet"); PyMySQL keeps it
with the result, of an unbuffered one once its last row was fetched. SHOW WARNINGS tells of the
statement before it, in the same session.
"""

from __future__ import annotations

from typing import Any

from pymysql.cursors import Cursor

from pipeline.source_warnings import KEPT, SourceWarning

KEEP_ALL = f"set session max_error_count = {KEPT}"


def warning_count(cursor: Cursor) -> int:
    """Warnings of the cursor's last result, all of whose rows were fetched."""
    told: Any = cursor
    return 0 if told._result is None else int(told._result.warning_count or 0)


def read_warnings(cursor: Cursor) -> list[SourceWarning]:
    """Those that the server kept of the last statement of the cursor's connection."""
    connection: Any = cursor.connection
    with Cursor(connection) as asking:
        asking.execute("show warnings")
        return [SourceWarning(level, int(number), text) for level, number, text in asking]
