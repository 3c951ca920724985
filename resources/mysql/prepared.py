"""XA transactions that are prepared on a server now: XA RECOVER."""

from __future__ import annotations

import pymysql
from pymysql.cursors import Cursor

from pipeline.batch import Xid

_NOT_ALLOWED = 1401
"""ER_XAER_RMERR: MySQL wants XA_RECOVER_ADMIN."""


def prepared_if_told(cursor: Cursor) -> frozenset[Xid] | None:
    """All of them; None where the account may not ask (the preflight tells of that)."""
    try:
        cursor.execute("xa recover convert xid")
    except pymysql.err.ProgrammingError:
        cursor.execute("xa recover format='sql'")  # MariaDB
        return frozenset(_from_text(int(row[0]), str(row[3])) for row in cursor.fetchall())
    except pymysql.MySQLError as error:
        if error.args[0] != _NOT_ALLOWED:
            raise
        return None
    return frozenset(
        _from_hex(int(format_id), int(first), int(second), str(data))
        for format_id, first, second, data in cursor.fetchall()
    )


def committed_count(cursor: Cursor) -> int | None:
    """XA COMMITs that were begun since the server started; None where it does not count them."""
    cursor.execute("show global status like 'com_xa_commit'")
    row = cursor.fetchone()
    return None if row is None else int(row[1])


def _from_hex(format_id: int, first: int, second: int, data: str) -> Xid:
    """`data` is 0x and both parts' bytes, one behind the other."""
    content = bytes.fromhex(data.removeprefix("0x"))
    return Xid(format_id, content[:first], content[first : first + second])


def _from_text(format_id: int, text: str) -> Xid:
    """`X'6774',X'6271',7`, or quoted as it is where every character can be shown."""
    parts = [_part(one) for one in text.split(",")]
    gtrid, bqual = parts[0], parts[1] if len(parts) > 1 else b""
    return Xid(format_id, gtrid, bqual)


def _part(text: str) -> bytes:
    stripped = text.strip()
    if stripped[:2].upper() == "X'":
        return bytes.fromhex(stripped[2:-1])
    return stripped.strip("'").encode()
