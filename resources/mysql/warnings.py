"""SHOW WARNINGS: a server's warnings about the previous statement of the same session."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pymysql
from pymysql.cursors import Cursor

from pipeline.server_errors import KEPT, SourceWarning


def keep_warnings(cursor: Cursor) -> None:
    """Let the session keep as many warnings as possible, if the account may (MySQL requires
    SESSION_VARIABLES_ADMIN)."""
    with suppress(pymysql.err.OperationalError):
        cursor.execute(f"set session max_error_count = {KEPT}")


def read_warnings(cursor: Cursor) -> list[SourceWarning]:
    """Return the warnings about the last statement of the cursor's connection."""
    connection: Any = cursor.connection
    with Cursor(connection) as asking:
        asking.execute("show warnings")
        return [SourceWarning(level, int(number), text) for level, number, text in asking]
