"""What an event is to the rules: its `EventRole`, for events that Python looks at.

Belongs here: telling it from an event's type, and from a statement's first words. Does not:
what follows from it (`stream.rules`, `rare_events`); compiled code tells the many by itself
(`stream.stream`).
"""

from __future__ import annotations

from typing import Final

from pipeline.binlog.stream.control import Query, read_mariadb_gtid, read_query, read_xa_prepare
from pipeline.binlog.stream.framing import Event, EventType
from pipeline.binlog.stream.rules import EventRole

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
_VALUES: Final = frozenset(
    {
        EventType.INTVAR,
        EventType.RAND,
        EventType.USER_VAR,
        EventType.BEGIN_LOAD_QUERY,
        EventType.APPEND_BLOCK,
        EventType.DELETE_FILE,
    }
)
_KINDS: Final = {
    EventType.GTID: EventRole.GTID,
    EventType.ANONYMOUS_GTID: EventRole.GTID,
    EventType.GTID_TAGGED: EventRole.GTID,
    EventType.XID: EventRole.COMMIT,
    EventType.TRANSACTION_PAYLOAD: EventRole.PAYLOAD,
    EventType.ROWS_QUERY: EventRole.NOTE,
    EventType.MARIADB_ANNOTATE_ROWS: EventRole.NOTE,
    EventType.VIEW_CHANGE: EventRole.NOTE,
    **dict.fromkeys(_VALUES, EventRole.VALUE),
    EventType.HEARTBEAT: EventRole.HEARTBEAT,
    EventType.HEARTBEAT_V2: EventRole.HEARTBEAT,
    **dict.fromkeys(_PLACES, EventRole.PLACE),
}
_STATEMENTS: Final = {
    ("BEGIN",): EventRole.BEGIN,
    ("COMMIT",): EventRole.COMMIT,
    ("ROLLBACK",): EventRole.ROLLBACK,
}
_XA: Final = {
    "START": EventRole.XA_START,
    "BEGIN": EventRole.XA_START,
    "END": EventRole.XA_END,
    "COMMIT": EventRole.XA_COMMIT,
    "ROLLBACK": EventRole.XA_ROLLBACK,
}


def classify(event: Event) -> tuple[EventRole, Query | None]:
    """What an event is to the rules, and its statement if it is a QUERY."""
    if event.type is EventType.QUERY:
        query = read_query(event)
        return classify_statement(query.text), query
    if event.type is EventType.EXECUTE_LOAD_QUERY:
        return EventRole.STATEMENT, read_query(event)
    if event.type is EventType.XA_PREPARE:
        _, one_phase = read_xa_prepare(event)
        return (EventRole.XA_ONE_PHASE if one_phase else EventRole.XA_PREPARE), None
    if event.type is EventType.MARIADB_GTID:
        gtid = read_mariadb_gtid(event)
        if gtid.prepares:
            return EventRole.XA_GROUP, None
        return (EventRole.GTID if gtid.standalone or gtid.xid else EventRole.GROUP), None
    return _KINDS.get(event.type, EventRole.CHANGE), None


def classify_statement(text: str) -> EventRole:
    """The server writes these words itself, in this spelling, in row format."""
    words = text[:80].upper().split()
    if (first := tuple(words)) in _STATEMENTS:
        return _STATEMENTS[first]
    match words[:2]:
        case ["XA", word] if word in _XA:
            return _XA[word]
        case ["SAVEPOINT", _]:
            return EventRole.SAVEPOINT
        case ["ROLLBACK", "TO" | "WORK"]:
            return EventRole.ROLLBACK_TO
        case ["RELEASE", "SAVEPOINT"]:
            return EventRole.RELEASE
        case ["CREATE", "TABLE" | "OR"]:
            return EventRole.CREATE
        case _:
            return EventRole.STATEMENT
