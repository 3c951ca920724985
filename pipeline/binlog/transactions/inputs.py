"""What an event is to the rules: its `Input`, for events that Python looks at.

Belongs here: telling it from an event's type, and from a statement's first words. Does not:
what follows from it (`stream.rules`, `rare_events`); compiled code tells the many by itself
(`stream.stream`).
"""

from __future__ import annotations

from typing import Final

from pipeline.binlog.stream.control import Query, read_mariadb_gtid, read_query, read_xa_prepare
from pipeline.binlog.stream.framing import Event, EventType
from pipeline.binlog.stream.rules import Input

_PLACES: Final = frozenset(
    {
        EventType.ROTATE,
        EventType.FORMAT_DESCRIPTION,
        EventType.PREVIOUS_GTIDS,
        EventType.STOP,
        EventType.MARIADB_BINLOG_CHECKPOINT,
        EventType.MARIADB_GTID_LIST,
        EventType.MARIADB_START_ENCRYPTION,
    }
)
_KINDS: Final = {
    EventType.GTID: Input.GTID,
    EventType.ANONYMOUS_GTID: Input.GTID,
    EventType.GTID_TAGGED: Input.GTID,
    EventType.XID: Input.COMMIT,
    EventType.TRANSACTION_PAYLOAD: Input.PAYLOAD,
    EventType.ROWS_QUERY: Input.NOTE,
    EventType.MARIADB_ANNOTATE_ROWS: Input.NOTE,
    EventType.VIEW_CHANGE: Input.NOTE,
    EventType.HEARTBEAT: Input.HEARTBEAT,
    EventType.HEARTBEAT_V2: Input.HEARTBEAT,
    **dict.fromkeys(_PLACES, Input.PLACE),
}
_STATEMENTS: Final = {
    ("BEGIN",): Input.BEGIN,
    ("COMMIT",): Input.COMMIT,
    ("ROLLBACK",): Input.ROLLBACK,
}
_XA: Final = {
    "START": Input.XA_START,
    "BEGIN": Input.XA_START,
    "END": Input.XA_END,
    "COMMIT": Input.XA_COMMIT,
    "ROLLBACK": Input.XA_ROLLBACK,
}


def classify(event: Event) -> tuple[Input, Query | None]:
    """What an event is to the rules, and its statement if it is a QUERY."""
    if event.type is EventType.QUERY:
        query = read_query(event)
        return classify_statement(query.text), query
    if event.type is EventType.XA_PREPARE:
        _, one_phase = read_xa_prepare(event)
        return (Input.XA_ONE_PHASE if one_phase else Input.XA_PREPARE), None
    if event.type is EventType.MARIADB_GTID:
        gtid = read_mariadb_gtid(event)
        if gtid.prepares:
            return Input.XA_GROUP, None
        return (Input.GTID if gtid.standalone or gtid.xid else Input.GROUP), None
    return _KINDS.get(event.type, Input.CHANGE), None


def classify_statement(text: str) -> Input:
    """The server writes these words itself, in this spelling, in row format."""
    words = text[:80].upper().split()
    if (first := tuple(words)) in _STATEMENTS:
        return _STATEMENTS[first]
    match words[:2]:
        case ["XA", word] if word in _XA:
            return _XA[word]
        case ["SAVEPOINT", _]:
            return Input.SAVEPOINT
        case ["ROLLBACK", "TO" | "WORK"]:
            return Input.ROLLBACK_TO
        case ["RELEASE", "SAVEPOINT"]:
            return Input.RELEASE
        case ["CREATE", "TABLE" | "OR"]:
            return Input.CREATE
        case _:
            return Input.STATEMENT
