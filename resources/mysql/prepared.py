"""The XA transactions that are prepared on a server: XA RECOVER."""

from __future__ import annotations

import pymysql
from pymysql.cursors import Cursor

from pipeline.batch import Xid

_NOT_ALLOWED = 1401
"""ER_XAER_RMERR: the account lacks XA_RECOVER_ADMIN on MySQL."""


def prepared_if_told(cursor: Cursor) -> frozenset[Xid] | None:
    """Return the prepared transactions; None if the account may not list them, which the preflight
    reports."""
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
    """Return the number of XA COMMITs since the server started; None if it does not count them."""
    cursor.execute("show global status like 'com_xa_commit'")
    row = cursor.fetchone()
    return None if row is None else int(row[1])


def _from_hex(format_id: int, first: int, second: int, data: str) -> Xid:
    """Return the XID for `data`, which is 0x and the bytes of gtrid and bqual."""
    content = bytes.fromhex(data.removeprefix("0x"))
    return Xid(format_id, content[:first], content[first : first + second])


def _from_text(format_id: int, text: str) -> Xid:
    """Return the XID for `X'6774',X'6271',7`; parts that are printable are quoted as text."""
    parts = [_bytes(part) for part in text.split(",")]
    gtrid, bqual = parts[0], parts[1] if len(parts) > 1 else b""
    return Xid(format_id, gtrid, bqual)


def _bytes(text: str) -> bytes:
    stripped = text.strip()
    if stripped[:2].upper() == "X'":
        return bytes.fromhex(stripped[2:-1])
    return stripped.strip("'").encode()
