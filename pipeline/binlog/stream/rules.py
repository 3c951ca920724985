"""The rules of the transaction buffer, as prose and as the table that is the code.

A transaction is announced by a GTID event, real or anonymous. What follows it is

- one lone statement (DDL and the like: a QUERY that is not BEGIN), a transaction of its
  own; or
- BEGIN, table maps and rows, and an end: XID, COMMIT, or ROLLBACK, after which nothing
  of it comes out; or
- XA START, table maps and rows, XA END and XA_PREPARE. What was prepared waits, under its
  XID, for an XA COMMIT that comes out in its stead, perhaps many runs later, or for an
  XA ROLLBACK. A prepare in one phase is a commit; or
- TRANSACTION_PAYLOAD: the events of a whole transaction, compressed, which go through
  the same rules.

CREATE TABLE … AS SELECT stands inside BEGIN, before the rows it made; any other statement
there stands for rows that its session leaves out of the log. It is kept with its transaction, even
one that is rolled back: the log has such a one because a table without transactions was changed.
What a statement used that its text does not say (INTVAR, RAND, …) changes nothing. MariaDB's GTID
event is BEGIN (or XA START) at once, unless it announces a lone statement. SAVEPOINT remembers a
place inside a transaction and ROLLBACK TO drops what came after it.
Everything else (ROTATE, PREVIOUS_GTIDS, …) stands between transactions and moves the
position alone. Notes, which have the text of a statement whose rows follow, are kept with its
transaction; heartbeats change nothing.

Nothing leaves the buffer before its transaction's last event has come in. An event that
no rule allows in the present phase is refused, and the buffer is left as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt


class Phase(IntEnum):
    """Where the buffer stands."""

    BETWEEN = 0
    ANNOUNCED = 1
    OPEN = 2
    XA_OPEN = 3
    XA_ENDED = 4

    @property
    def words(self) -> str:
        return _PHASES[self]


_PHASES: Final = {
    Phase.BETWEEN: "between transactions",
    Phase.ANNOUNCED: "announced by a GTID",
    Phase.OPEN: "inside BEGIN",
    Phase.XA_OPEN: "inside XA START",
    Phase.XA_ENDED: "after XA END",
}


class EventRole(IntEnum):
    """What an event is to the rules."""

    GTID = 0
    GROUP = 1
    XA_GROUP = 2
    BEGIN = 3
    CHANGE = 4
    COMMIT = 5
    ROLLBACK = 6
    STATEMENT = 7
    CREATE = 8
    SAVEPOINT = 9
    ROLLBACK_TO = 10
    RELEASE = 11
    XA_START = 12
    XA_END = 13
    XA_PREPARE = 14
    XA_ONE_PHASE = 15
    XA_COMMIT = 16
    XA_ROLLBACK = 17
    PAYLOAD = 18
    PLACE = 19
    NOTE = 20
    HEARTBEAT = 21
    VALUE = 22

    @property
    def words(self) -> str:
        return _INPUTS[self]


_INPUTS: Final = {
    EventRole.GTID: "GTID",
    EventRole.GROUP: "GTID of MariaDB",
    EventRole.XA_GROUP: "GTID of MariaDB with an XID",
    EventRole.BEGIN: "QUERY BEGIN",
    EventRole.CHANGE: "TABLE_MAP, rows",
    EventRole.COMMIT: "XID, QUERY COMMIT",
    EventRole.ROLLBACK: "QUERY ROLLBACK",
    EventRole.STATEMENT: "QUERY of any other kind",
    EventRole.CREATE: "QUERY CREATE TABLE",
    EventRole.SAVEPOINT: "QUERY SAVEPOINT",
    EventRole.ROLLBACK_TO: "QUERY ROLLBACK TO",
    EventRole.RELEASE: "QUERY RELEASE SAVEPOINT",
    EventRole.XA_START: "QUERY XA START",
    EventRole.XA_END: "QUERY XA END",
    EventRole.XA_PREPARE: "XA_PREPARE",
    EventRole.XA_ONE_PHASE: "XA_PREPARE in one phase",
    EventRole.XA_COMMIT: "QUERY XA COMMIT",
    EventRole.XA_ROLLBACK: "QUERY XA ROLLBACK",
    EventRole.PAYLOAD: "TRANSACTION_PAYLOAD",
    EventRole.PLACE: "ROTATE, FORMAT_DESCRIPTION, PREVIOUS_GTIDS, STOP …",
    EventRole.NOTE: "ROWS_QUERY, ANNOTATE_ROWS",
    EventRole.HEARTBEAT: "HEARTBEAT",
    EventRole.VALUE: "INTVAR, RAND, USER_VAR, blocks of LOAD DATA",
}


class BufferAction(IntEnum):
    """What the buffer does about an event."""

    REFUSE = 0
    BEGIN = 1
    KEEP = 2
    EMIT = 3
    EMIT_NOTHING = 4
    MARK = 5
    DROP_TO_MARK = 6
    PREPARE = 7
    EMIT_PREPARED = 8
    FORGET_PREPARED = 9
    UNPACK = 10
    MOVE = 11
    PASS = 12

    @property
    def words(self) -> str:
        return _ACTIONS[self]


_ACTIONS: Final = {
    BufferAction.REFUSE: "refuse",
    BufferAction.BEGIN: "begin a transaction",
    BufferAction.KEEP: "keep",
    BufferAction.EMIT: "let the transaction out",
    BufferAction.EMIT_NOTHING: "let it out without its rows",
    BufferAction.MARK: "remember the place",
    BufferAction.DROP_TO_MARK: "drop what came after the place",
    BufferAction.PREPARE: "keep the rows under the XID",
    BufferAction.EMIT_PREPARED: "let the prepared rows out",
    BufferAction.FORGET_PREPARED: "forget the prepared rows",
    BufferAction.UNPACK: "take the events inside",
    BufferAction.MOVE: "move the position",
    BufferAction.PASS: "nothing",
}

_P, _I, _A = Phase, EventRole, BufferAction

TRANSITIONS: Final[Mapping[tuple[Phase, EventRole], tuple[BufferAction, Phase]]] = MappingProxyType(
    {
        (_P.BETWEEN, _I.GTID): (_A.BEGIN, _P.ANNOUNCED),
        (_P.BETWEEN, _I.GROUP): (_A.BEGIN, _P.OPEN),
        (_P.BETWEEN, _I.XA_GROUP): (_A.BEGIN, _P.XA_OPEN),
        (_P.BETWEEN, _I.PLACE): (_A.MOVE, _P.BETWEEN),
        (_P.BETWEEN, _I.HEARTBEAT): (_A.PASS, _P.BETWEEN),
        (_P.ANNOUNCED, _I.BEGIN): (_A.KEEP, _P.OPEN),
        (_P.ANNOUNCED, _I.XA_START): (_A.KEEP, _P.XA_OPEN),
        (_P.ANNOUNCED, _I.PAYLOAD): (_A.UNPACK, _P.ANNOUNCED),
        (_P.ANNOUNCED, _I.STATEMENT): (_A.EMIT, _P.BETWEEN),
        (_P.ANNOUNCED, _I.CREATE): (_A.EMIT, _P.BETWEEN),
        (_P.ANNOUNCED, _I.XA_COMMIT): (_A.EMIT_PREPARED, _P.BETWEEN),
        (_P.ANNOUNCED, _I.XA_ROLLBACK): (_A.FORGET_PREPARED, _P.BETWEEN),
        (_P.ANNOUNCED, _I.NOTE): (_A.KEEP, _P.ANNOUNCED),
        (_P.ANNOUNCED, _I.VALUE): (_A.PASS, _P.ANNOUNCED),
        (_P.ANNOUNCED, _I.HEARTBEAT): (_A.PASS, _P.ANNOUNCED),
        (_P.OPEN, _I.CHANGE): (_A.KEEP, _P.OPEN),
        (_P.OPEN, _I.CREATE): (_A.KEEP, _P.OPEN),
        (_P.OPEN, _I.STATEMENT): (_A.KEEP, _P.OPEN),
        (_P.OPEN, _I.VALUE): (_A.PASS, _P.OPEN),
        (_P.OPEN, _I.SAVEPOINT): (_A.MARK, _P.OPEN),
        (_P.OPEN, _I.ROLLBACK_TO): (_A.DROP_TO_MARK, _P.OPEN),
        (_P.OPEN, _I.RELEASE): (_A.PASS, _P.OPEN),
        (_P.OPEN, _I.COMMIT): (_A.EMIT, _P.BETWEEN),
        (_P.OPEN, _I.ROLLBACK): (_A.EMIT_NOTHING, _P.BETWEEN),
        (_P.OPEN, _I.NOTE): (_A.KEEP, _P.OPEN),
        (_P.OPEN, _I.HEARTBEAT): (_A.PASS, _P.OPEN),
        (_P.XA_OPEN, _I.CHANGE): (_A.KEEP, _P.XA_OPEN),
        (_P.XA_OPEN, _I.STATEMENT): (_A.KEEP, _P.XA_OPEN),
        (_P.XA_OPEN, _I.VALUE): (_A.PASS, _P.XA_OPEN),
        (_P.XA_OPEN, _I.SAVEPOINT): (_A.MARK, _P.XA_OPEN),
        (_P.XA_OPEN, _I.ROLLBACK_TO): (_A.DROP_TO_MARK, _P.XA_OPEN),
        (_P.XA_OPEN, _I.RELEASE): (_A.PASS, _P.XA_OPEN),
        (_P.XA_OPEN, _I.XA_END): (_A.PASS, _P.XA_ENDED),
        (_P.XA_OPEN, _I.XA_PREPARE): (_A.PREPARE, _P.BETWEEN),
        (_P.XA_OPEN, _I.NOTE): (_A.KEEP, _P.XA_OPEN),
        (_P.XA_OPEN, _I.HEARTBEAT): (_A.PASS, _P.XA_OPEN),
        (_P.XA_ENDED, _I.XA_PREPARE): (_A.PREPARE, _P.BETWEEN),
        (_P.XA_ENDED, _I.XA_ONE_PHASE): (_A.EMIT, _P.BETWEEN),
        (_P.XA_ENDED, _I.XA_COMMIT): (_A.EMIT, _P.BETWEEN),
        (_P.XA_ENDED, _I.ROLLBACK): (_A.EMIT_NOTHING, _P.BETWEEN),
        (_P.XA_ENDED, _I.XA_ROLLBACK): (_A.EMIT_NOTHING, _P.BETWEEN),
        (_P.XA_ENDED, _I.COMMIT): (_A.EMIT, _P.BETWEEN),
        (_P.XA_ENDED, _I.HEARTBEAT): (_A.PASS, _P.XA_ENDED),
    }
)


def compiled_table() -> npt.NDArray[np.int64]:
    """`TRANSITIONS` for compiled code: [phase, input] → (action, next phase)."""
    table = np.zeros((len(Phase), len(EventRole), 2), np.int64)
    for (phase, event), (action, following) in TRANSITIONS.items():
        table[phase, event] = action, following
    return table
