"""Reading what a server warns of behind a result: SHOW WARNINGS, which tells of the statement
before it in the same session.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pymysql
from pymysql.cursors import Cursor

from pipeline.server_errors import KEPT, SourceWarning


def keep_warnings(cursor: Cursor) -> None:
    """Have the session keep as many as it can, if the account may: MySQL wants
    SESSION_VARIABLES_ADMIN."""
    with suppress(pymysql.err.OperationalError):
        cursor.execute(f"set session max_error_count = {KEPT}")


def read_warnings(cursor: Cursor) -> list[SourceWarning]:
    """Those that the server kept of the last statement of the cursor's connection."""
    connection: Any = cursor.connection
    with Cursor(connection) as asking:
        asking.execute("show warnings")
        return [SourceWarning(level, int(number), text) for level, number, text in asking]
