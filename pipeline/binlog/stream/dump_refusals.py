"""The errors by which a server refuses or ends a dump: errno and text → typed error.

A server uses errno 1236 for nearly every reason, so only its text tells them apart. Errors of
connections are in `resources.mysql.connection`.
"""

from __future__ import annotations

from typing import Final

from lockstep.pipeline.values.errors import (
    DamagedEvent,
    LockstepError,
    NotAnEventBoundary,
    PositionPurged,
    PrivilegeMissing,
    SourceUnavailable,
    StartUnreachable,
    TransactionsWithoutGtid,
)

DUMP_REFUSED: Final = 1236
_EOF_MAX_BYTES: Final = 9
_TEXT_BYTES: Final = 5 + 1 + 512
"""Longest text of a server's error, SQL state included (MYSQL_ERRMSG_SIZE of
`include/mysql_com.h`); anything longer is not from a server and is cut off."""

_PRIVILEGE: Final = frozenset({1044, 1045, 1142, 1227})


def refusal(text: str) -> LockstepError:
    """Return the error for the text of an errno 1236, from MySQL or MariaDB."""
    lowered = text.lower()
    if "could not find first log file" in lowered or "purged" in lowered:
        return PositionPurged(
            f"the server no longer has the log that the run must start in: {text}",
            hint="restore the log files, or choose a new start in lockstep.toml",
        )
    if "impossible position" in lowered or "larger than" in lowered or "position > file" in lowered:
        return StartUnreachable(
            f"the server's log does not reach the start: {text}",
            hint="choose a start that SHOW BINARY LOGS covers",
        )
    if "cannot replicate" in lowered and "transaction when" in lowered:
        # With gtid_mode ON a server sends no transaction without a GTID, with OFF none with one.
        return TransactionsWithoutGtid(
            f"the server does not send a transaction that its gtid_mode forbids: {text}",
            hint="set global gtid_mode = ON_PERMISSIVE (from OFF by way of OFF_PERMISSIVE), run "
            "once to read these transactions, then set it back",
        )
    if any(words in lowered for words in _NO_BOUNDARY):
        return NotAnEventBoundary(
            f"the start is not the beginning of an event: {text}",
            hint="choose an offset that SHOW BINLOG EVENTS lists, or a file's beginning, 4",
        )
    return SourceUnavailable(
        f"the server refuses the dump: {text}",
        hint="look at the server's error log, then run again",
    )


_NO_BOUNDARY = ("max_allowed_packet", "truncated in the middle", "bogus data", "event too small")


def is_end(packet: bytes) -> bool:
    """Return whether a packet without an event marks the end of the log: 0xFE, and short."""
    return packet[:1] == b"\xfe" and len(packet) < _EOF_MAX_BYTES


def refused_by(packet: bytes) -> LockstepError:
    """Return the error for an error packet, which a server may send at any point of a stream:
    0xFF, errno 2, `#` and SQL state 5, text."""
    if packet[:1] != b"\xff":
        return DamagedEvent(
            f"the server's stream holds a packet that begins with {packet[:1].hex() or 'nothing'}",
            hint="it was not recorded; run again, and look at the server's error log",
        )
    number = int.from_bytes(packet[1:3], "little")
    text = packet[3 : 3 + _TEXT_BYTES].decode("utf-8", "replace")
    if text.startswith("#"):
        text = text[6:]
    if number == DUMP_REFUSED:
        return refusal(text)
    if number in _PRIVILEGE:
        return PrivilegeMissing(
            f"the server refuses the dump: {text}",
            hint="grant replication slave on *.* to the account of the source",
        )
    return SourceUnavailable(
        f"the server ended the dump: {text} ({number})",
        hint="look at the server's error log, then run again",
    )
